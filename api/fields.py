"""Checks single fields of requests, for the models of their bodies and query strings.

A check takes the field's name and its value, and returns the value. It raises `InvalidRequest`,
which names the field and says what is allowed. `Checked` puts a check into a model, with the JSON
Schema that says the same.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from common.errors import InvalidRequest
from common.text import Text

# An id of a conversation, a run or the like.
ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
# PostgreSQL takes no NUL, and a lone surrogate (half a character) can't be encoded.
UNUSABLE = re.compile("[\0\ud800-\udfff]")
_MAX_NAME_CHARS = 256
# How many unknown fields a warning names, and how many characters of each.
_NAMED_FIELDS, _FIELD_CHARS = 10, 40


def unknown_fields(body: Mapping[str, Any], known: Collection[str]) -> tuple[Text, ...]:
    """Return a notice of the fields nobody reads, each with the known field it may be meant for."""
    unknown = [field for field in body if field not in known]
    if not unknown:
        return ()

    named = [_field_and_guess(field, known) for field in unknown[:_NAMED_FIELDS]]
    more = " …" if len(unknown) > _NAMED_FIELDS else ""
    zh = "、".join(name.zh for name in named)
    en = ", ".join(name.en for name in named)
    return (
        Text(
            f"请求中有未知字段，已忽略：{zh}{more}。",
            f"Unknown fields of the request were ignored: {en}{more}.",
        ),
    )


def _field_and_guess(field: str, known: Collection[str]) -> Text:
    beginning = field[:_FIELD_CHARS]
    printable = "".join(char if char.isprintable() else "\ufffd" for char in beginning)
    close = get_close_matches(beginning.lower(), known, n=1)
    if not close:
        return Text(printable, printable)

    return Text(f"{printable}（是否指 {close[0]}？）", f"{printable} (did you mean {close[0]}?)")


@dataclass(frozen=True, eq=False)
class Checked:
    """Metadata of a model's field: how its value is checked, and the JSON Schema that says so."""

    check: Callable[[str, object], Any]
    schema: JsonSchemaValue

    def __get_pydantic_core_schema__(
        self, _source: type, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def check(value: object, info: ValidationInfo) -> Any:
            return self.check(info.field_name or "", value)

        return core_schema.with_info_plain_validator_function(check)

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return dict(self.schema)


def one_of(*choices: str) -> Checked:
    """Return a field that is one of these words."""
    return Checked(choice(*choices), {"type": "string", "enum": list(choices)})


def some_of(*choices: str) -> Checked:
    """Return a field that has one or more of these words, separated by commas."""
    words = "|".join(choices)
    return Checked(_several(*choices), {"type": "string", "pattern": f"^({words})(,({words}))*$"})


def number_up_to(most: int) -> Checked:
    """Return a field of a query string that is a whole number from 1 to `most`."""
    return Checked(whole_number(most), {"type": "integer", "minimum": 1, "maximum": most})


def text_up_to(most: int) -> Checked:
    """Return a field that is a text of 1 to `most` characters."""
    return Checked(text(most), {"type": "string", "minLength": 1, "maxLength": most})


def choice(*choices: str) -> Callable[[str, object], str]:
    """Return a check for one of these words."""

    def parse(field: str, value: object) -> str:
        if isinstance(value, str) and value in choices:
            return value

        raise wrong(field, "、".join(choices) + " 之一", "one of " + ", ".join(choices))

    return parse


def flag(field: str, value: object) -> bool:
    """Check for true or false."""
    if isinstance(value, bool):
        return value

    raise wrong(field, "true 或 false", "true or false")


def identifier(field: str, value: object) -> str:
    """Check for the id of a conversation, a run or the like."""
    if isinstance(value, str) and ID.fullmatch(value):
        return value

    raise wrong(
        field,
        "1 到 128 个字母、数字或 _ . : - 组成的字符串",
        "a string of 1 to 128 letters, digits, _ . : or -",
    )


def whole_number(most: int) -> Callable[[str, object], int]:
    """Return a check for a whole number in digits, from 1 to `most`, which is below 1000."""

    def parse(field: str, value: object) -> int:
        if isinstance(value, str) and re.fullmatch("[0-9]{1,3}", value) and 1 <= int(value) <= most:
            return int(value)

        raise wrong(field, f"1 到 {most} 的整数", f"a whole number from 1 to {most}")

    return parse


def text(most: int) -> Callable[[str, object], str]:
    """Return a check for a text of 1 to `most` characters."""

    def parse(field: str, value: object) -> str:
        if isinstance(value, str) and 0 < len(value) <= most and not UNUSABLE.search(value):
            return value

        raise wrong(field, f"1 到 {most} 个字符的字符串", f"a string of 1 to {most} characters")

    return parse


short_text = text(_MAX_NAME_CHARS)
"""Checks for a name."""


def wrong(field: str, zh: str, en: str) -> InvalidRequest:
    """Return the error for a field that must be something else."""
    return InvalidRequest(
        Text(f"{field} 无效：必须是{zh}。", f"{field} is not valid: it must be {en}."), field=field
    )


def _several(*choices: str) -> Callable[[str, object], tuple[str, ...]]:
    def parse(field: str, value: object) -> tuple[str, ...]:
        parts = tuple(part.strip() for part in str(value).split(","))
        if all(part in choices for part in parts):
            return tuple(dict.fromkeys(parts))

        raise wrong(
            field,
            "、".join(choices) + " 中的一个或多个（逗号分隔）",
            "by commas, of " + ", ".join(choices),
        )

    return parse


Identifier = Annotated[str, Checked(identifier, {"type": "string", "pattern": f"^{ID.pattern}$"})]
ShortText = Annotated[str, text_up_to(_MAX_NAME_CHARS)]
Flag = Annotated[bool, Checked(flag, {"type": "boolean"})]
