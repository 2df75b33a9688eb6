"""Checks single fields of requests.

A check takes the field's name and its value, and returns the value. It raises `InvalidRequest`, which names the field
and says what is allowed.
"""

import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any

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
    """A notice that names the fields nobody reads, each with the known field it may be a misspelling of."""
    unknown = [field for field in body if field not in known]
    if not unknown:
        return ()
    named = [_field_and_guess(field, known) for field in unknown[:_NAMED_FIELDS]]
    more = " …" if len(unknown) > _NAMED_FIELDS else ""
    zh = "、".join(name.zh for name in named)
    en = ", ".join(name.en for name in named)
    return (
        Text(f"请求中有未知字段，已忽略：{zh}{more}。", f"Unknown fields of the request were ignored: {en}{more}."),
    )


def _field_and_guess(field: str, known: Collection[str]) -> Text:
    shown = "".join(c if c.isprintable() else "\ufffd" for c in field[:_FIELD_CHARS])
    close = get_close_matches(field[:_FIELD_CHARS].lower(), known, n=1)
    if not close:
        return Text(shown, shown)
    return Text(f"{shown}（是否指 {close[0]}？）", f"{shown} (did you mean {close[0]}?)")


def optional(body: Mapping[str, Any], field: str, parse: Callable[[str, object], Any]) -> Any:
    """The field's value as `parse` gives it; None when the field is missing or null."""
    value = body.get(field)
    return None if value is None else parse(field, value)


def choice(*choices: str) -> Callable[[str, object], str]:
    """A check for one of these words."""

    def parse(field: str, value: object) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise wrong(field, "、".join(choices) + " 之一", "one of " + ", ".join(choices))

    return parse


def flag(field: str, value: object) -> bool:
    """Checks for true or false."""
    if isinstance(value, bool):
        return value
    raise wrong(field, "true 或 false", "true or false")


def identifier(field: str, value: object) -> str:
    """Checks for the id of a conversation, a run or the like."""
    if isinstance(value, str) and ID.fullmatch(value):
        return value
    raise wrong(
        field, "1 到 128 个字母、数字或 _ . : - 组成的字符串", "a string of 1 to 128 letters, digits, _ . : or -"
    )


def whole_number(most: int) -> Callable[[str, object], int]:
    """A check for a whole number, written in digits, from 1 to `most`, which is below 1000."""

    def parse(field: str, value: object) -> int:
        if isinstance(value, str) and re.fullmatch("[0-9]{1,3}", value) and 1 <= int(value) <= most:
            return int(value)
        raise wrong(field, f"1 到 {most} 的整数", f"a whole number from 1 to {most}")

    return parse


def text(most: int) -> Callable[[str, object], str]:
    """A check for a text of 1 to `most` characters."""

    def parse(field: str, value: object) -> str:
        if isinstance(value, str) and 0 < len(value) <= most and not UNUSABLE.search(value):
            return value
        raise wrong(field, f"1 到 {most} 个字符的字符串", f"a string of 1 to {most} characters")

    return parse


short_text = text(_MAX_NAME_CHARS)
"""Checks for a name."""


def wrong(field: str, zh: str, en: str) -> InvalidRequest:
    """The error for a field that must be something else."""
    return InvalidRequest(Text(f"{field} 无效：必须是{zh}。", f"{field} is not valid: it must be {en}."), field=field)
