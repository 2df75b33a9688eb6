"""Turns what comes from a database or a user into text that can stand in a prompt: one line,
bounded, unable to close the delimiters around it, and without control tokens of models. It stays
data; the prompts say so.
"""

import re

from common.special_tokens import PROMPT_TAGS, broken_up
from postgres.identifiers import quoted

_LONGEST_IDENTIFIER = 130  # characters; 63 of which each is a quote, in quotes
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+"
)
_TAGS = "|".join(sorted(PROMPT_TAGS))
_DELIMITER = re.compile(rf"<(?=\s*/\s*(?:{_TAGS})\b|\s*(?:{_TAGS})\s*>)", re.IGNORECASE)


def one_line(text: str, limit: int) -> str:
    """Write `text` on one line of at most `limit` characters, without control characters."""
    line = _CONTROL.sub(" ", text)
    return cut_off(_without_signals(line).strip(), limit)


def block(text: str, limit: int) -> str:
    """Write `text` with its line breaks, otherwise as `one_line` does."""
    lines = []
    for line in text.splitlines():
        lines.append(_CONTROL.sub(" ", line).rstrip())

    joined = "\n".join(lines)
    return cut_off(_without_signals(joined).strip(), limit)


def _without_signals(text: str) -> str:
    """Break up what could end the text's delimiters or pass for a model's control token."""
    return broken_up(_DELIMITER.sub("‹", text))


def cut_off(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, the last one … where some are missing."""
    if len(text) <= limit:
        return text

    return text[: limit - 1] + "…"


def identifier(name: str) -> str:
    """Write `name` as SQL takes it, on one line.

    It is exact unless it holds control characters or is longer than PostgreSQL's.
    """
    return one_line(quoted(name), _LONGEST_IDENTIFIER)
