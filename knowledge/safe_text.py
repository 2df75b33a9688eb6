"""Turns what comes from a database or a user into text that can stand in a prompt: one line, bounded, and unable to
close the delimiters around it. It stays data; the prompts say so."""

import re
from functools import lru_cache

import postgast

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+")
_TAGS = "schema|values|question|rows|sql|error|tables|history|examples|lessons|notes"
_DELIMITER = re.compile(rf"<(?=\s*/\s*(?:{_TAGS})\b|\s*(?:{_TAGS})\s*>)", re.IGNORECASE)


def one_line(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, without control and direction characters."""
    return _shortened(_DELIMITER.sub("‹", _CONTROL.sub(" ", text)).strip(), limit)


def block(text: str, limit: int) -> str:
    """`text` with its line breaks, otherwise as `one_line` does."""
    lines = "\n".join(_CONTROL.sub(" ", line).rstrip() for line in text.splitlines())
    return _shortened(_DELIMITER.sub("‹", lines).strip(), limit)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


@lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """`name` as it must be written in SQL, quoted only when it has to be."""
    # Words of the kinds 0 (none) and 1 (unreserved) can name tables and columns as they are.
    is_plain = bool(_PLAIN_NAME.fullmatch(name)) and postgast.scan(name).tokens[0].keyword_kind in (0, 1)
    return name if is_plain else '"' + one_line(name, 128).replace('"', '""') + '"'
