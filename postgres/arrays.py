"""Reads PostgreSQL's array literals."""

import re
from collections.abc import Callable
from typing import Any

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def parse_array(text: str, element: Callable[[str], Any], delimiter: str = ",") -> list[Any]:
    """Return the nested lists of an array literal, with None for NULL.

    Such a literal is `[0:1]={{1,NULL},{"a\\"b",3}}`.

    A stack instead of recursion: arrays have at most six dimensions, but nothing here proves that
    of the text.

    Args:
        element: makes a value of an element's text.
        delimiter: between elements; a comma for all types of PostgreSQL's core but `box`.

    Raises:
        ValueError: the text holds no array.
    """
    tokens = _array_tokens(delimiter).finditer(text, text.index("{"))
    top: list[Any] = []
    stack = [top]
    for token in tokens:
        kind, content = token.lastgroup, token.group()
        if kind == "open":
            inner: list[Any] = []
            stack[-1].append(inner)
            stack.append(inner)
        elif kind == "close":
            stack.pop()
        elif kind == "quoted":
            stack[-1].append(element(_ESCAPED.sub(r"\1", content[1:-1])))
        elif kind == "bare":
            stack[-1].append(None if content == "NULL" else element(content))

    result: list[Any] = top[0]
    return result


def parse_texts(text: str | None) -> tuple[str, ...]:
    """Return the texts of an array literal of one dimension without NULLs; none for NULL."""
    return () if text is None else tuple(parse_array(text, str))


def _array_tokens(delimiter: str) -> re.Pattern[str]:
    end = re.escape(delimiter)
    return re.compile(
        r"(?P<open>\{)|(?P<close>\})"
        r'|(?P<quoted>"(?:[^"\\]|\\.)*")'
        rf'|(?P<bare>[^{{}}"{end}]+)|{end}',
        re.DOTALL,
    )
