"""The base class of the models of answers, and types that several of them use."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Generic, Optional, TypeVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue, WithJsonSchema
from pydantic_core import CoreSchema

T = TypeVar("T")


def without_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    """Return a JSON Schema that allows the same values except null."""
    described = dict(schema)
    if "enum" in described:
        described["enum"] = _without(None, described["enum"])
    if isinstance(described.get("type"), list):
        (described["type"],) = _without("null", described["type"])

    values = _without({"type": "null"}, described.pop("anyOf", ()))
    if len(values) == 1:
        return {**values[0], **described}
    if values:
        described["anyOf"] = values

    return described


def _without(unwanted: object, values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value != unwanted]


class NeverNull:
    """Metadata of a field that may be missing: the JSON Schema of its value leaves null out."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return without_null(handler(schema))


Sometimes = Annotated[Optional[T], NeverNull()]  # noqa: UP045 - of a type variable
"""A field that is missing where there is nothing to say, and never null."""

Timestamp = Annotated[datetime, WithJsonSchema({"type": "string", "format": "date-time"})]


class ReplyModel(BaseModel):
    """An object of an answer; later versions may add fields."""

    model_config = ConfigDict(populate_by_name=True)


class ClosedReplyModel(ReplyModel):
    """An object that has no other fields."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class EnvelopeOf(ReplyModel, Generic[T]):
    """The form of every JSON answer, around its data."""

    code: int
    success: bool
    message: str
    data: T


class Envelope(EnvelopeOf[dict[str, Any]]):
    pass
