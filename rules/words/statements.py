"""SQL that a question is or holds, told from sentences by its shape, by PostgreSQL's own parser, and by the database.

Sentences may parse by accident: "select the customers from Berlin" reads a column `the` of a table `berlin`.
"""

import re
from collections.abc import Iterator
from typing import Any

from common.errors import InvalidSql, ValidationFailed
from common.values import Catalog
from databases.guard.parsing import parse

_FENCE = re.compile(r"```(?:sql|postgresql|pgsql)?\s*\n?(.*?)```", re.DOTALL | re.IGNORECASE)
_COMMENTS = re.compile(r"(?:\s*(?:--[^\n]*(?:\n|$)|/\*.*?\*/))+\s*", re.DOTALL)
_NAME = (
    r'(?:"[^"]+"|[A-Za-z_\u4e00-\u9fff][\w$\u4e00-\u9fff]*)(?:\.(?:"[^"]+"|[A-Za-z_\u4e00-\u9fff][\w$\u4e00-\u9fff]*))?'
)
_END = r"\s*(?:;|$)"
# Statements whose shape no sentence has.
_STATEMENTS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"\bdelete\s+from\s+(?:only\s+)?{_NAME}(?:\s+(?:where|using|returning)\b.*|{_END})",
        rf"\bupdate\s+(?:only\s+)?{_NAME}(?:\s+(?:as\s+)?\w+)?\s+set\s+{_NAME}\s*=.*",
        rf"\binsert\s+into\s+{_NAME}\s*(?:\(|values\b|select\b|default\b).*",
        rf"\b(?:drop|alter|create|truncate)\s+(?:or\s+replace\s+|temp\s+|temporary\s+|unique\s+|materialized\s+)*"
        rf"(?:table|view|index|schema|database|function|role|user|sequence|extension|type|trigger)\s+(?:if\s+(?:not\s+)?exists\s+)?"
        rf"{_NAME}(?:\s*[(;,].*|\s+(?:cascade|restrict|as|on|add|drop|rename|alter|owner|set|using|with|for)\b.*|{_END})",
        rf"\btruncate\s+{_NAME}{_END}",
        r"^\s*(?:grant|revoke)\s+[\w\s,*]+\s+(?:on|to|from)\s+.+",
        r"^\s*copy\s+.+\s+(?:to|from)\s+.+",
        r"^\s*(?:explain|analyze|vacuum|begin|commit|rollback|call|do|lock|reindex|cluster|listen|notify|prepare|execute|merge)"
        r"\s*(?:;|$|\s+(?:analyze|select|\(|table|into|transaction|work|\$\$).*)",
        r"^\s*(?:set|reset|show)\s+[a-z_.]+\s*(?:=|\bto\b).*",
        r"^\s*with\s+(?:recursive\s+)?\w+\s*(?:\([^)]*\))?\s+as\s+(?:not\s+)?(?:materialized\s+)?\(.*",
        r"^\s*\(*\s*select\s*(?:\d|'|\(|\*|[a-z_]\w*\s*\(|null\b|true\b|false\b|current_\w+|case\s+when).*",
        r"^\s*values\s*\(.*",
        r"^\s*table\s+\w+\s*;?\s*$",
    )
)
_ITEM = rf"(?:{_NAME}|[\w.\"]+\s*\([^)]*\)|\d+|'[^']*')(?:\s*[-+*/|]+\s*[\w.\"']+)*(?:\s+as\s+{_NAME})?"
_SELECT = re.compile(
    rf"^\s*\(*\s*select\s+(?:distinct\s+|all\s+)?(?:\*|{_ITEM})(?:\s*,\s*(?:\*|{_ITEM}))*\s+from\s+(?P<table>{_NAME}|\()(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_SQL_REST = re.compile(
    r"^\s*(?:$|;|,|(?:as\s+)?\w*\s*(?:where|join|left|right|inner|full|cross|group\s+by|order\s+by|limit|offset|having|union|"
    r"except|intersect|for\s+update)\b)",
    re.IGNORECASE,
)
_MOST_CHARS = 8_000
_BEGINS = re.compile(r"[\s(]*(?:select|with|values|table)\b", re.IGNORECASE)
_OPERATORS = re.compile(r"[()*=<>]|::")  # of which no sentence that parses has any
_SIGNS = re.compile(rf"{_OPERATORS.pattern}|[;'\"]|[^\W\d]\.[^\W\d]|\w_\w|_\w", re.ASCII)


def pasted_sql(question: str, catalog: Catalog | None = None) -> str | None:
    """The SQL statement in the question, verbatim; None when it is a sentence. `catalog` tells them apart."""
    fenced = _FENCE.search(question)
    text = (fenced.group(1) if fenced else question).strip()
    commented = _COMMENTS.match(text)
    if commented is not None:
        return text if pasted_sql(text[commented.end() :], catalog) is not None else None
    for pattern in _STATEMENTS:
        match = pattern.search(text)
        if match:
            return _statement(text, match.start())
    match = _SELECT.match(text)
    if match and (match.group("table") == "(" or _SQL_REST.match(match.group("rest"))):
        return text if not _is_accident(text, catalog) else None
    if _is_statement(text, catalog):
        return text
    after = re.split(r"[:：]", text, maxsplit=1)[-1].strip()  # an introduction such as "请执行："
    return pasted_sql(after, catalog) if after != text and len(after) > 6 else None


def _statement(text: str, start: int) -> str:
    """From the statement's beginning on; everything before it stays out only when it is not SQL itself."""
    before = text[:start].strip()
    if not before or re.match(r"(?i)(select|with|explain|\(|--|/\*)", before) or ";" in before:
        return text
    return text[start:].strip()


def _is_statement(text: str, catalog: Catalog | None) -> bool:
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


def _is_accident(text: str, catalog: Catalog | None) -> bool:
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
