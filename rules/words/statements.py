"""Whether a text that begins like SQL is SQL, by PostgreSQL's own parser and by what the database has.

Sentences may parse by accident: "select the customers from Berlin" reads a column `the` of a table `berlin`.
"""

import re
from collections.abc import Iterator
from typing import Any

from common.errors import InvalidSql, ValidationFailed
from common.values import Catalog
from databases.guard.parsing import parse

_MOST_CHARS = 8_000
_BEGINS = re.compile(r"[\s(]*(?:select|with|values|table)\b", re.IGNORECASE)
_OPERATORS = re.compile(r"[()*=<>]|::")  # of which no sentence that parses has any
_SIGNS = re.compile(rf"{_OPERATORS.pattern}|[;'\"]|[^\W\d]\.[^\W\d]|\w_\w|_\w", re.ASCII)


def is_statement(text: str, catalog: Catalog | None) -> bool:
    """Whether the text is one query of rows from somewhere, and no sentence that parses by accident."""
    select = _select(text)
    if select is None or not any("fromClause" in node for node in _nodes(select)):
        return False
    known = _Known(catalog, select)
    targets = [node for node in _nodes(select) if "ResTarget" in node]
    if any(_is_called(node) and not known.has_columns(node) for node in targets):
        return False
    if _OPERATORS.search(text):
        return True
    known.columns.update(node["ResTarget"].get("name", "") for node in targets)
    return not any(map(_is_joined, targets)) and known.has_tables(select) and known.has_columns(select)


def is_accident(text: str, catalog: Catalog | None) -> bool:
    """Whether a text that looks like SQL is a sentence: nothing but words, and the database has nothing it names."""
    if catalog is None or not catalog.tables or _SIGNS.search(text):
        return False
    select = _select(text)
    return select is not None and not _Known(catalog, select).has_any(select)


def _select(text: str) -> dict[str, Any] | None:
    """The tree of the query that the text is."""
    if len(text) > _MOST_CHARS or not _BEGINS.match(text):
        return None
    try:
        statements = parse(text)
    except (InvalidSql, ValidationFailed):
        return None
    return statements[0].node if len(statements) == 1 and statements[0].kind == "SelectStmt" else None


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All nodes of a tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _is_called(node: dict[str, Any]) -> bool:
    """Whether a node is a column with another name behind it, as any two words are."""
    target = node.get("ResTarget", {})
    return "name" in target and "ColumnRef" in target.get("val", {})


def _is_joined(node: dict[str, Any]) -> bool:
    """Whether a node is what sentences have as well: "region and product"."""
    return node["ResTarget"].get("val", {}).get("BoolExpr", {}).get("boolop") in ("AND_EXPR", "OR_EXPR")


def _tables(tree: Any) -> Iterator[str]:
    yield from (node["RangeVar"]["relname"].lower() for node in _nodes(tree) if "RangeVar" in node)


def _columns(tree: Any) -> Iterator[str]:
    """The names of the columns that a tree reads."""
    for node in _nodes(tree):
        fields = node["ColumnRef"]["fields"] if "ColumnRef" in node else []
        if fields and "String" in fields[-1]:
            yield fields[-1]["String"]["sval"].lower()


class _Known:
    """The names that a query may use: those of the database, and those it gives itself."""

    def __init__(self, catalog: Catalog | None, select: dict[str, Any]) -> None:
        tables = catalog.tables if catalog is not None else ()
        self.tables = {table.name.lower() for table in tables}
        self.columns = {column.name.lower() for table in tables for column in table.columns}
        given = [node for node in _nodes(select) if "ResTarget" in node and not _is_called(node)]
        self.columns.update(node["ResTarget"].get("name", "") for node in given)
        self.tables.update(node["CommonTableExpr"]["ctename"] for node in _nodes(select) if "CommonTableExpr" in node)

    def has_tables(self, tree: Any) -> bool:
        return self.tables.issuperset(_tables(tree))

    def has_columns(self, tree: Any) -> bool:
        return self.columns.issuperset(_columns(tree))

    def has_any(self, tree: Any) -> bool:
        return not self.tables.isdisjoint(_tables(tree)) or not self.columns.isdisjoint(_columns(tree))
