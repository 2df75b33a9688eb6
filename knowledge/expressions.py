"""SQL expressions of the semantic file: which columns of their table they read, and how to qualify these."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from databases.guard.parsing import parse

_SELECT = "SELECT "


@lru_cache(maxsize=1024)
def columns_in(expression: str) -> tuple[tuple[str, int], ...]:
    """The columns that an expression over one table names, each with its place in the UTF-8 text.

    Raises:
        InvalidSql, ValidationFailed: it is no expression.
    """
    (statement,) = parse(_SELECT + expression)
    return tuple(sorted(_columns(statement.node), key=lambda found: found[1]))


@lru_cache(maxsize=1024)
def qualified(expression: str, alias: str) -> str:
    """The expression, in brackets if it needs them, with every column that is not qualified as one of `alias`."""
    data = expression.encode()
    for _, place in reversed(columns_in(expression)):
        data = data[:place] + f"{alias}.".encode() + data[place:]
    return data.decode()


def _columns(node: Any) -> Iterator[tuple[str, int]]:
    if isinstance(node, list):
        for one in node:
            yield from _columns(one)
    elif isinstance(node, dict):
        fields = node.get("ColumnRef", {}).get("fields", ())
        if len(fields) == 1 and "String" in fields[0]:
            yield fields[0]["String"]["sval"], node["ColumnRef"].get("location", 0) - len(_SELECT)
        for one in node.values():
            yield from _columns(one)
