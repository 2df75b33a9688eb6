"""`GET /openapi.json`: the API as OpenAPI 3.1, made from the endpoints' table and their models.

`python -m api.openapi` writes the file beside this module, which the service sends and a test
compares with what the table says now.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, send_file
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema

from api.models.asking_models import (
    CompletedAnswerModel,
    ExportedRowsModel,
    ResultEventModel,
    ToolEventModel,
)
from api.models.envelopes import ErrorEnvelope
from api.models.etl_models import CompletedEtlAnswerModel
from api.models.model_base import without_null
from api.models.request_models import RequestFields
from api.models.vanna_models import ChatChunkModel, ChatRefusalModel
from api.operations import FORM_DATA, OPERATIONS, TAGS, Header, Operation, OperationReply

VERSION = "0.5.0"
DOCUMENT = Path(__file__).with_name("openapi.json")
_PARTS = Path(__file__).with_name("openapi_parts.json")
_COMPONENT = "#/components/schemas/{model}"
# Models that no operation names: of errors, of the data of a stream's frames, of one kind of file.
_UNNAMED: tuple[type[BaseModel], ...] = (
    ErrorEnvelope,
    ChatRefusalModel,
    ToolEventModel,
    ResultEventModel,
    CompletedAnswerModel,
    CompletedEtlAnswerModel,
    ChatChunkModel,
    ExportedRowsModel,
)
_BYTES = {"type": "string", "format": "binary"}
_FILE_FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": _BYTES,
        "user_id": {"type": "string", "minLength": 1, "maxLength": 256},
        "lang": {"type": "string", "enum": ["zh", "en"]},
    },
}
_DESCRIPTION = (
    "Ask a PostgreSQL database in plain Chinese or English. Every JSON answer is the same "
    "envelope: code (the HTTP status), success, message, data."
)


class _Schemas(GenerateJsonSchema):
    """JSON Schema without titles, with null as a default nowhere, and as one of a field's types."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        described = super().nullable_schema(schema)
        values = [part for part in described.get("anyOf", ()) if part != {"type": "null"}]
        if len(values) != 1 or "$ref" in values[0]:
            return described

        (value,) = values
        if not isinstance(value.get("type"), str):
            return described

        nullable = {**value, "type": [value["type"], "null"]}
        if "enum" in value:
            nullable["enum"] = [*value["enum"], None]

        return nullable

    def default_schema(self, schema: Any) -> dict[str, Any]:
        described = super().default_schema(schema)
        if described.get("default", 0) is None:
            del described["default"]

        return described


def openapi_blueprint() -> Blueprint:
    """Return the blueprint, which sends the file unchanged."""
    blueprint = Blueprint("openapi", __name__)

    @blueprint.get("/openapi.json")
    def openapi() -> Response:
        return send_file(DOCUMENT, mimetype="application/json", max_age=0)

    return blueprint


def document() -> dict[str, Any]:
    """Make the whole document."""
    parts = json.loads(_PARTS.read_text("utf-8"))
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation_json(operation, parts)

    return {
        "openapi": "3.1.0",
        "info": {"title": "Citu", "version": VERSION, "description": _DESCRIPTION},
        "security": parts["security"],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": parts["securitySchemes"],
            "examples": parts["examples"],
            "responses": parts["responses"],
            "schemas": _components(),
        },
    }


def _models() -> Iterator[type[BaseModel]]:
    for operation in OPERATIONS:
        if isinstance(operation.body, type):
            yield operation.body

        for reply in operation.replies:
            if reply.model is not None:
                yield reply.model

    yield from _UNNAMED


def _components() -> dict[str, Any]:
    """Return the schemas of all models by the names of their components."""
    mode: JsonSchemaMode = "validation"
    models = dict.fromkeys(_models())
    _, definitions = models_json_schema(
        [(model, mode) for model in models], ref_template=_COMPONENT, schema_generator=_Schemas
    )
    text = json.dumps(definitions["$defs"], ensure_ascii=False)
    named = json.loads(re.sub(r'(#/components/schemas/\w+?)(?:Model|Body)"', r'\1"', text))
    for schema in named.values():
        for field in schema.get("properties", {}).values():
            _tell_default(field)

    return {_component_name(name): _without_title(schema) for name, schema in named.items()}


def _tell_default(field: dict[str, Any]) -> None:
    """Move the default into the description: generators take a field with one for required."""
    if "default" not in field:
        return

    default = f"Default: `{json.dumps(field.pop('default'))}`"
    description = field.get("description")
    field["description"] = f"{description}. {default}" if description else default


def _component_name(model: str) -> str:
    return model.removesuffix("Model").removesuffix("Body")


def _without_title(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{_component_name(model.__name__)}"}


def _operation_json(operation: Operation, parts: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.operation_id,
        "tags": [operation.tag],
        "summary": operation.summary,
    }
    if operation.description:
        described["description"] = operation.description
    if 401 not in operation.errors:  # it is open to all
        described["security"] = []

    parameters = [*_path_parameters(operation.path, parts), *_query_parameters(operation.query)]
    parameters += map(_header, operation.headers)
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = _body(operation, parts)

    replies = {str(reply.status): _reply(reply, operation, parts) for reply in operation.replies}
    errors = {str(status): _error_reference(status, operation) for status in operation.errors}
    described["responses"] = {**replies, **errors}
    return described


def _path_parameters(path: str, parts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    names = re.findall(r"\{(\w+)\}", path)
    kinds = parts["pathParameters"]
    for name in names:
        schema = kinds.get(f"{path} {name}") or kinds.get(name) or kinds["id"]
        yield {"name": name, "in": "path", "required": True, **schema}


def _query_parameters(models: Iterable[type[RequestFields]]) -> Iterator[dict[str, Any]]:
    for model in models:
        schema = model.model_json_schema(ref_template=_COMPONENT, schema_generator=_Schemas)
        required = schema.get("required", ())
        for name, field in schema["properties"].items():
            description = field.pop("description", None)
            parameter = {"name": name, "in": "query", "schema": without_null(field)}
            if description:
                parameter["description"] = description
            if name in required:
                parameter["required"] = True

            yield parameter


def _header(header: Header) -> dict[str, Any]:
    parameter: dict[str, Any] = {"name": header.name, "in": "header", "schema": header.schema}
    if header.description:
        parameter["description"] = header.description
    if header.required:
        parameter["required"] = True

    return parameter


def _body(operation: Operation, parts: dict[str, Any]) -> dict[str, Any]:
    if operation.body == FORM_DATA:
        return {"required": True, "content": {FORM_DATA: {"schema": _FILE_FORM}}}
    if isinstance(operation.body, str):
        return {"required": True, "content": {operation.body: {"schema": _BYTES}}}

    assert operation.body is not None
    content: dict[str, Any] = {"schema": _reference(operation.body)}
    examples = parts["requestExamples"].get(_component_name(operation.body.__name__))
    if examples:
        content["examples"] = examples

    return {"required": operation.needs_body, "content": {"application/json": content}}


def _reply(reply: OperationReply, operation: Operation, parts: dict[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = parts["replies"].get(f"{operation.operation_id} {reply.status}", {})
    content = {
        media: own.get("content", {}).get(media) or _content(reply, media) for media in reply.media
    }
    described: dict[str, Any] = {"description": reply.description}
    if "headers" in own:
        described["headers"] = own["headers"]
    if content:
        described["content"] = content

    return described


def _content(reply: OperationReply, media: str) -> dict[str, Any]:
    if reply.model is not None:
        return {"schema": _reference(reply.model)}
    if media == "application/json":
        return {"schema": {"type": "object"}}
    if media == "text/event-stream":
        return {}

    return {"schema": {"type": "string"} if media.startswith("text/") else _BYTES}


def _error_reference(status: int, operation: Operation) -> dict[str, str]:
    """Return a reference to the description of an error that several operations share."""
    kind = {401: "Unauthorized", 429: "RateLimited"}.get(status, "Error")
    # Answers to Vanna's clients carry chunks beside the envelope; a handshake's do not.
    if operation.tag == "vanna" and operation.method == "post":
        kind = {"Error": "ChatRefused"}.get(kind, f"Chat{kind}")

    return {"$ref": f"#/components/responses/{kind}"}


if __name__ == "__main__":
    DOCUMENT.write_text(json.dumps(document(), ensure_ascii=False, indent=0) + "\n", "utf-8")
    sys.stdout.write(f"{DOCUMENT.name}: {len(OPERATIONS)} operations\n")
