"""The envelope that every JSON answer has, and its encoding as bytes."""

import re
from typing import Any

import simplejson

from common.errors import CituError
from common.text import Lang

Envelope = dict[str, Any]


def success(data: dict[str, Any], message: str, code: int = 200) -> Envelope:
    """Return the envelope of an answer that succeeded."""
    return {"code": code, "success": True, "message": message, "data": data}


def failure(code: int, message: str, data: dict[str, Any]) -> Envelope:
    """Return the envelope of a failure.

    Args:
        data: that of `error_data`, with the fields that are known of the run.
    """
    return {"code": code, "success": False, "message": message, "data": data}


def error_data(error: CituError, lang: Lang) -> dict[str, Any]:
    """Return the part of an error's `data` that the error itself knows."""
    data: dict[str, Any] = {
        "type": "error",
        "error": error.message(lang),
        "error_type": error.error_type,
        "retryable": error.retryable,
    }
    if error.retry_after_s is not None:
        data["retry_after_s"] = error.retry_after_s

    return data | error.details()


# Made once, because making one for every envelope is slow.
_JSON = simplejson.JSONEncoder(
    use_decimal=True, ensure_ascii=False, ignore_nan=True, separators=(",", ":")
)


def to_json(value: Any) -> str:
    """Return JSON on one line: decimals with all their digits, NaN and infinities as null."""
    text: str = _JSON.encode(value)
    return text


# Characters that JSON doesn't escape and a terminal obeys instead of showing: control characters,
# line separators, invisible ones, and those that change the direction of writing.
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def to_log_line(value: Any) -> str:
    """Return JSON for a log on a terminal: control and invisible characters as `\\uXXXX`."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match.group()):04x}", to_json(value))


def to_bytes(value: Any) -> bytes:
    """Return JSON in UTF-8; a lone surrogate, which UTF-8 can't hold, becomes `?`."""
    return to_json(value).encode("utf-8", "replace")
