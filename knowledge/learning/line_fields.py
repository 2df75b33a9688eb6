"""Reads the fields of lines that people bring."""

from collections.abc import Mapping
from typing import Any

from common.errors import InvalidRequest
from common.text import Text, is_whole


def text_field(values: Mapping[str, Any], field: str, most: int) -> str:
    value = values.get(field)
    text = ""
    if isinstance(value, str):
        text = value.strip()
    if not 0 < len(text) <= most or not is_whole(text):
        allowed = Text(f"1 到 {most} 个字符的字符串", f"a string of 1 to {most} characters")
        raise invalid_field(field, allowed)

    return text


def invalid_field(field: str, allowed: Text) -> InvalidRequest:
    message = Text(
        f"{field} 无效：必须是{allowed.zh}。", f"{field} is not valid: it must be {allowed.en}."
    )
    return InvalidRequest(message, field=field)
