"""Finds what a query refers to in the catalogue: which table a name or alias stands for, and which
stored column a condition compares with which text.

It reads PostgreSQL's own parse tree and resolves names of base tables and their columns as
PostgreSQL does. Columns of subqueries, CTEs and functions are left out.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from common.errors import StatementRejected
from common.values import Catalog, Column, Table
from sqltree.parsing import Node, parse

_LITERAL = re.compile(r"'(?:[^']|'')*'")
_PATTERN = re.compile(r"(%?)([^%_\\]+)(%?)")

_MAX_CHARS = 4_000  # such a text takes 50 ms at the most

# Kinds of expressions in the tree, and their operators.
_Operator = tuple[str | None, str]
_EQUALS, _IN, _ANY = ("AEXPR_OP", "="), ("AEXPR_IN", "="), ("AEXPR_OP_ANY", "=")
_LIKE, _ILIKE = ("AEXPR_LIKE", "~~"), ("AEXPR_ILIKE", "~~*")
_COMPARING = frozenset((_EQUALS, _IN, _ANY, _LIKE, _ILIKE))

# Clauses whose conditions rows must meet. Conditions of a CASE, or under NOT, don't count.
_FILTERS = frozenset(("whereClause", "quals", "agg_filter"))


@dataclass(frozen=True)
class ColumnComparison:
    """`column = 'text'`, one text of a list the column is compared with, or `column LIKE '%text%'`.

    Attributes:
        text: what is looked for, without wildcards at its ends.
        before, after: those wildcards: `%` or nothing.
        is_pattern: whether it is a LIKE.
        folds_case: whether case makes no difference.
        start, end: where the literal stands in the query, quotes included, in characters.
    """

    table: Table
    column: Column
    text: str
    start: int
    end: int
    before: str = ""
    after: str = ""
    is_pattern: bool = False
    folds_case: bool = False

    def finds(self, value: str) -> bool:
        """Tell whether a row with `value` meets the condition."""
        text = self.text
        if self.folds_case:
            text, value = text.casefold(), value.casefold()
        is_within = self.before and self.after
        if is_within:
            return text in value
        if self.before:
            return value.endswith(text)
        if self.after:
            return value.startswith(text)
        return value == text


@dataclass(frozen=True)
class ColumnReferences:
    """The tables, labels and comparisons of a query.

    Attributes:
        sources: tables by the name they go by in the query, wherever in it; None for subqueries,
            CTEs and functions.
        labels: names the query gives to its own expressions.
        comparisons: the ones that rows must meet, in the order of the text.
    """

    sources: Mapping[str, Table | None] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    comparisons: tuple[ColumnComparison, ...] = ()


def references(sql: str, catalog: Catalog) -> ColumnReferences:
    """Read what `sql` refers to: nothing when it can't be parsed, or is too long to be read."""
    if len(sql) > _MAX_CHARS:
        return ColumnReferences()
    try:
        statements = parse(sql)
    except StatementRejected:
        return ColumnReferences()
    reader = _Reader(sql, catalog)
    for statement in statements:
        reader.read({statement.kind: statement.node})
    return ColumnReferences(
        reader.sources,
        frozenset(reader.labels),
        tuple(sorted(reader.comparisons, key=lambda found: found.start)),
    )


def relation_parts(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the name of a relation as it is written: with its schema, or alone."""
    if "schemaname" in node:
        return (node["schemaname"], node["relname"])
    return (node["relname"],)


def stored_table(node: Node, catalog: Catalog, ctes: Collection[str]) -> Table | None:
    """Return the table that an item of a FROM reads under its own columns' names."""
    parts = relation_parts(node)
    is_cte = len(parts) == 1 and parts[0] in ctes
    if is_cte:
        return None
    if "colnames" in node.get("alias", {}):
        return None
    return table_named(parts, catalog)


def table_named(parts: tuple[str, ...], catalog: Catalog) -> Table | None:
    """Return the table that (`name`,) or (`schema`, `name`) leads to."""
    if len(parts) > 1:
        return catalog.by_key.get((parts[-2], parts[-1]))
    for schema in catalog.search_path:
        table = catalog.by_key.get((schema, parts[0]))
        if table is not None:
            return table
    return None


@dataclass(frozen=True)
class _Scope:
    """One SELECT's names.

    Attributes:
        outer: the SELECT around it.
        ctes: names of CTEs visible here.
        sources: what its FROM makes visible, by name; None is not a base table.
    """

    outer: "_Scope | None" = None
    ctes: frozenset[str] = frozenset()
    sources: Mapping[str, Table | None] = field(default_factory=dict)

    def column(self, name: tuple[str, ...]) -> tuple[Table, Column] | None:
        """Return the base table's column that a reference leads to, when that is certain."""
        scope: _Scope | None = self
        while scope is not None:
            tables = scope.tables(name[:-1])
            found = _columns_named(name[-1], tables)
            if len(found) == 1:
                return found[0]
            is_ended = bool(found) or None in tables or len(name) > 1
            is_other = tables and is_ended
            if is_other:
                return None
            scope = scope.outer
        return None

    def tables(self, qualifier: tuple[str, ...]) -> list[Table | None]:
        """Return what a column with this qualifier may be of; None stands for no base table."""
        if not qualifier:
            return list(self.sources.values())
        if qualifier[-1] in self.sources:
            return [self.sources[qualifier[-1]]]
        return []


def _columns_named(name: str, tables: Iterable[Table | None]) -> list[tuple[Table, Column]]:
    found = []
    for table in tables:
        column = None
        if table:
            column = table.column(name)
        if not table:
            continue
        if column:
            found.append((table, column))
    return found


@dataclass(frozen=True)
class _Place:
    """Where in the tree a node stands: its scope, and whether rows must meet its condition."""

    scope: _Scope
    is_filter: bool = False
    is_negated: bool = False

    @property
    def must_hold(self) -> bool:
        if not self.is_filter:
            return False
        return not self.is_negated


class _Reader:
    def __init__(self, sql: str, catalog: Catalog) -> None:
        self._sql = sql
        self._data = sql.encode("utf-8")
        self._catalog = catalog
        self._pending: list[tuple[Any, _Place]] = []
        self.sources: dict[str, Table | None] = {}
        self.labels: set[str] = set()
        self.comparisons: list[ColumnComparison] = []

    def read(self, root: Node) -> None:
        self._pending.append((root, _Place(_Scope())))
        while self._pending:
            value, place = self._pending.pop()
            if isinstance(value, list):
                for item in value:
                    self._pending.append((item, place))
            elif isinstance(value, dict):
                for key, child in value.items():
                    self._enter(key, child, place)

    def _enter(self, key: str, child: Any, place: _Place) -> None:
        if isinstance(child, dict):
            self._enter_node(key, child, place)
        elif isinstance(child, list):
            self._pending.append((child, _inside(key, {}, place)))

    def _enter_node(self, key: str, node: Node, place: _Place) -> None:
        is_part_of_union = key in ("larg", "rarg") and "op" in node
        is_query = key == "SelectStmt" or is_part_of_union
        if is_query:
            self._enter_select(node, place)
            return
        is_compared = key == "A_Expr" and place.must_hold
        if is_compared:
            self.comparisons.extend(self._compared(node, place.scope))
        elif key == "ResTarget" and "name" in node:
            self.labels.add(node["name"])
        self._pending.append((node, _inside(key, node, place)))

    def _enter_select(self, select: Node, place: _Place) -> None:
        ctes = place.scope.ctes | {
            cte["CommonTableExpr"]["ctename"]
            for cte in select.get("withClause", {}).get("ctes", ())
        }
        sources = dict(self._sources(select.get("fromClause", []), ctes))
        self.sources.update(sources)
        inner = _Place(_Scope(place.scope, ctes, sources), is_negated=place.is_negated)
        subtracted = _Place(inner.scope, is_negated=True)
        for key, child in select.items():
            is_subtracted = key == "rarg" and select.get("op") == "SETOP_EXCEPT"
            self._enter(key, child, subtracted if is_subtracted else inner)

    def _sources(
        self, nodes: list[Node], ctes: frozenset[str]
    ) -> Iterator[tuple[str, Table | None]]:
        pending = list(nodes)
        while pending:
            ((kind, node),) = pending.pop().items()
            alias = node.get("alias", {}).get("aliasname")
            if kind == "RangeVar":
                yield alias or node["relname"], stored_table(node, self._catalog, ctes)
            elif kind == "JoinExpr" and alias is None:
                pending += [node["larg"], node["rarg"]]
            elif kind == "RangeTableSample":
                pending.append(node["relation"])
            elif alias is not None:
                yield alias, None

    def _compared(self, node: Node, scope: _Scope) -> Iterator[ColumnComparison]:
        operator = (node.get("kind"), _operator(node))
        if operator not in _COMPARING:
            return
        left, right = _bare(node.get("lexpr", {})), _bare(node.get("rexpr", {}))
        is_turned = operator == _EQUALS and "ColumnRef" not in left
        if is_turned:
            left, right = right, left
        fields = left.get("ColumnRef", {}).get("fields", ())
        names = []
        for part in fields:
            if "String" in part:
                names.append(part["String"]["sval"])
        name = tuple(names)
        found = None
        if name:
            found = scope.column(name)
        if found is None:
            return
        for item in _items(right):
            literal = self._literal(_bare(item))
            if literal is not None:
                yield from _comparison(operator, *found, literal)

    def _literal(self, node: Node) -> "_Literal | None":
        """Return the string constant that the node is, if it is one that is written plainly."""
        constant = node.get("A_Const", {})
        value = constant.get("sval", {}).get("sval")
        if not value:
            return None
        start = len(self._data[: constant.get("location", 0)].decode("utf-8", "replace"))
        written = _LITERAL.match(self._sql, start)
        if written is None:
            return None
        if written.group()[1:-1].replace("''", "'") != value:
            return None
        return _Literal(value, start, written.end())


@dataclass(frozen=True)
class _Literal:
    """A string constant: its value, and where it stands in the text, quotes included."""

    value: str
    start: int
    end: int


def _items(node: Node) -> list[Node]:
    """Return the members of a list or an array that a column is compared with, or the one value."""
    for kind, key in (("List", "items"), ("A_ArrayExpr", "elements")):
        members: list[Node] = node.get(kind, {}).get(key, [])
        if members:
            return members
    return [node]


def _comparison(
    operator: _Operator, table: Table, column: Column, literal: _Literal
) -> Iterator[ColumnComparison]:
    if operator not in (_LIKE, _ILIKE):
        yield ColumnComparison(table, column, literal.value, literal.start, literal.end)
        return
    pattern = _PATTERN.fullmatch(literal.value)
    if pattern is not None:
        before, text, after = pattern.groups()
        yield ColumnComparison(
            table,
            column,
            text,
            literal.start,
            literal.end,
            before=before,
            after=after,
            is_pattern=True,
            folds_case=operator == _ILIKE,
        )


def _inside(key: str, node: Node, place: _Place) -> _Place:
    if key in _FILTERS:
        return replace(place, is_filter=True)
    if key == "CaseExpr":
        return replace(place, is_filter=False)
    is_not = key == "BoolExpr" and node.get("boolop") == "NOT_EXPR"
    is_all = key == "SubLink" and node.get("subLinkType") == "ALL_SUBLINK"
    is_negating = is_not or is_all
    if is_negating:
        return replace(place, is_negated=True)
    return place


def _operator(node: Node) -> str:
    names = node.get("name", ())
    if not names:
        return ""
    return str(names[-1]["String"]["sval"])


def _bare(node: Node) -> Node:
    """Return the node without casts around it."""
    while "TypeCast" in node:
        node = node["TypeCast"].get("arg", {})
    return node
