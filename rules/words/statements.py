"""SQL that a question is or holds, told from sentences by its shape, by PostgreSQL's own parser,
and by the database.

Sentences may parse by accident: "select the customers from Berlin" reads a column `the` of a table
`berlin`.
"""

import re
from collections.abc import Iterator
from typing import Any

from common.errors import InvalidSql, ValidationFailed
from common.values import Catalog
from sqltree.parsing import parse

_FENCE = re.compile(r"```(?:sql|postgresql|pgsql)?\s*+(.*?)```", re.DOTALL | re.IGNORECASE)
_COMMENTS = re.compile(r"\A(?:\s*+(?:--[^\n]*+(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*+\*/))++\s*+")
_IDENTIFIER = r'(?:"[^"]+"|[A-Za-z_\u4e00-\u9fff][\w$\u4e00-\u9fff]*)'
_NAME = rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})?"
_END = r"\s*+(?:;|$)"
# Statements whose shape no sentence has.
_STATEMENTS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"\bdelete\s++from\s++(?:only\s++)?{_NAME}(?:\s++(?:where|using|returning)\b.*|{_END})",
        rf"\bupdate\s++(?:only\s++)?{_NAME}(?:\s++(?:as\s++)?\w+)?\s++set\s++{_NAME}\s*+=.*",
        rf"\binsert\s++into\s++{_NAME}\s*+(?:\(|values\b|select\b|default\b).*",
        r"\b(?:drop|alter|create|truncate)\s++"
        r"(?:or\s++replace\s++|temp\s++|temporary\s++|unique\s++|materialized\s++)*"
        r"(?:table|view|index|schema|database|function|role|user|sequence|extension|type|trigger)"
        rf"\s++(?:if\s++(?:not\s++)?exists\s++)?{_NAME}(?:\s*+[(;,].*|\s++"
        rf"(?:cascade|restrict|as|on|add|drop|rename|alter|owner|set|using|with|for)\b.*|{_END})",
        rf"\btruncate\s++{_NAME}{_END}",
        r"^\s*+(?:grant|revoke)\s[\w\s,*]+\s(?:on|to|from)\s.+",
        r"^\s*+copy\s.+\s(?:to|from)\s.+",
        r"^\s*+(?:explain|analyze|vacuum|begin|commit|rollback|call|do|lock|reindex|cluster"
        r"|listen|notify|prepare|execute|merge)"
        r"(?:\s*+(?:;|$)|\s++(?:analyze|select|\(|table|into|transaction|work|\$\$).*)",
        r"^\s*+(?:set|reset|show)\s++[a-z_.]+\s*+(?:=|\bto\b).*",
        r"^\s*+with\s++(?:recursive\s++)?\w++(?:\s*+\([^)]*+\))?"
        r"\s++as\s++(?:not\s++)?(?:materialized\s++)?\(.*",
        r"^\s*+\(*\s*+select\s*+(?:\d|'|\(|\*|[a-z_]\w*\s*+\("
        r"|null\b|true\b|false\b|current_\w+|case\s++when).*",
        r"^\s*+values\s*+\(.*",
        r"^\s*+table\s++\w+\s*+;?\s*+$",
    )
)
_ITEM = (
    rf"(?:{_NAME}|[\w.\"]++\s*+\([^()]*+\)|\d+|'[^']*')"
    rf"(?:\s*+[-+*/|]+\s*+[\w.\"']+)*(?:\s++as\s++{_NAME})?"
)
_SELECT = re.compile(
    rf"^\s*+\(*\s*+select\s++(?:distinct\s++|all\s++)?(?:\*|{_ITEM})(?:\s*+,\s*+(?:\*|{_ITEM}))*"
    rf"\s++from\s++(?P<table>{_NAME}|\()(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_SQL_REST = re.compile(
    r"^\s*+(?:$|;|,|(?:as\s++)?\w*\s*+(?:where|join|left|right|inner|full|cross|group\s++by"
    r"|order\s++by|limit|offset|having|union|except|intersect|for\s++update)\b)",
    re.IGNORECASE,
)
_SQL_BEGINNING = re.compile(r"(?i)(select|with|explain|\(|--|/\*)")
_MOST_CHARS = 8_000
_FEWEST_CHARS = 7  # of a statement behind an introduction
_BEGINS = re.compile(r"\A[\s(]*+(?:select|with|values|table)\b", re.IGNORECASE)
_OPERATORS = re.compile(r"[()*=<>]|::")  # of which no sentence that parses has any
_SIGNS = re.compile(rf"{_OPERATORS.pattern}|[;'\"]|[^\W\d]\.[^\W\d]|\w_\w|_\w", re.ASCII)


def pasted_sql(question: str, catalog: Catalog | None = None) -> str | None:
    """Return the SQL statement in the question, verbatim; None when it is a sentence.

    `catalog` tells them apart.
    """
    fenced = _FENCE.search(question)
    text = (fenced.group(1) if fenced else question).strip()
    commented = _COMMENTS.match(text)
    if commented is not None:
        is_sql = pasted_sql(text[commented.end() :], catalog) is not None
        return text if is_sql else None

    for pattern in _STATEMENTS:
        match = pattern.search(text)
        if match:
            return _statement(text, match.start())

    if _looks_like_select(text):
        return None if _is_accident(text, catalog) else text
    if _is_statement(text, catalog):
        return text

    after = re.split(r"[:：]", text, maxsplit=1)[-1].strip()  # an introduction such as "请执行："
    if after == text or len(after) < _FEWEST_CHARS:
        return None

    return pasted_sql(after, catalog)


def _looks_like_select(text: str) -> bool:
    match = _SELECT.match(text)
    if match is None:
        return False
    if match.group("table") == "(":
        return True

    return _SQL_REST.match(match.group("rest")) is not None


def _statement(text: str, start: int) -> str:
    """Return the statement from its beginning on, with what stands before it if that is SQL too."""
    before = text[:start].strip()
    is_sql = not before or ";" in before or _SQL_BEGINNING.match(before) is not None
    return text if is_sql else text[start:].strip()


def _is_statement(text: str, catalog: Catalog | None) -> bool:
    """Tell whether the text is one query of rows, and no sentence that parses by accident."""
    select = _select(text)
    if select is None or not _nodes_with("fromClause", select):
        return False

    known = _KnownNames(catalog, select)
    targets = _nodes_with("ResTarget", select)
    for target in targets:
        if _is_called(target) and not known.has_columns(target):
            return False

    if _OPERATORS.search(text):
        return True
    if any(map(_is_joined, targets)):
        return False

    known.columns.update(map(_given_name, targets))
    return known.has_tables(select) and known.has_columns(select)


def _is_accident(text: str, catalog: Catalog | None) -> bool:
    """Tell whether a text that looks like SQL is a sentence.

    It is one if it has nothing but words and the database has nothing that they name.
    """
    if catalog is None or not catalog.tables or _SIGNS.search(text):
        return False

    select = _select(text)
    if select is None:
        return False

    return not _KnownNames(catalog, select).has_any(select)


def _select(text: str) -> dict[str, Any] | None:
    """Return the tree of the query that the text is."""
    if len(text) > _MOST_CHARS or not _BEGINS.match(text):
        return None

    try:
        statements = parse(text)
    except (InvalidSql, ValidationFailed):
        return None

    if len(statements) != 1:
        return None

    (statement,) = statements
    return statement.node if statement.kind == "SelectStmt" else None


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield all nodes of a tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _nodes_with(field: str, tree: Any) -> list[dict[str, Any]]:
    """Return the nodes of a tree that have the field."""
    nodes = []
    for node in _nodes(tree):
        if field in node:
            nodes.append(node)

    return nodes


def _is_called(node: dict[str, Any]) -> bool:
    """Tell whether a node is a column with another name behind it, as any two words are."""
    target = node.get("ResTarget", {})
    return "name" in target and "ColumnRef" in target.get("val", {})


def _given_name(node: dict[str, Any]) -> str:
    name: str = node["ResTarget"].get("name", "")
    return name


def _is_joined(node: dict[str, Any]) -> bool:
    """Tell whether a node joins two names as sentences do: "region and product"."""
    value = node["ResTarget"].get("val", {})
    operator = value.get("BoolExpr", {}).get("boolop")
    return operator in ("AND_EXPR", "OR_EXPR")


def _tables(tree: Any) -> Iterator[str]:
    """Yield the names of the tables that a tree reads."""
    for node in _nodes(tree):
        if "RangeVar" in node:
            yield node["RangeVar"]["relname"].lower()


def _columns(tree: Any) -> Iterator[str]:
    """Yield the names of the columns that a tree reads."""
    for node in _nodes(tree):
        if "ColumnRef" not in node:
            continue

        last = node["ColumnRef"]["fields"][-1:]
        if last and "String" in last[0]:
            yield last[0]["String"]["sval"].lower()


class _KnownNames:
    """The names that a query may use: those of the database, and those it gives itself."""

    def __init__(self, catalog: Catalog | None, select: dict[str, Any]) -> None:
        self.tables: set[str] = set()
        self.columns: set[str] = set()
        if catalog is not None:
            self._add_catalog(catalog)

        for node in _nodes(select):
            if "ResTarget" in node and not _is_called(node):
                self.columns.add(_given_name(node))
            if "CommonTableExpr" in node:
                self.tables.add(node["CommonTableExpr"]["ctename"])

    def _add_catalog(self, catalog: Catalog) -> None:
        for table in catalog.tables:
            self.tables.add(table.name.lower())
            self.columns.update(column.name.lower() for column in table.columns)

    def has_tables(self, tree: Any) -> bool:
        return self.tables.issuperset(_tables(tree))

    def has_columns(self, tree: Any) -> bool:
        return self.columns.issuperset(_columns(tree))

    def has_any(self, tree: Any) -> bool:
        if not self.tables.isdisjoint(_tables(tree)):
            return True

        return not self.columns.isdisjoint(_columns(tree))
