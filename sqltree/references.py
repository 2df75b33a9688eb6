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
from sqltree.tree_values import (
    children_of,
    column_name,
    last_name,
    string_constant,
    without_casts,
)

_LITERAL = re.compile(r"'(?:[^']|'')*'")
_PATTERN = re.compile(r"(%?)([^%_\\]+)(%?)")

_MAX_CHARS = 4_000  # such a text takes 50 ms at the most

# Kinds of expressions in the tree, and their operators.
_Operator = tuple[str | None, str]
_EQUALS, _IN, _ANY = ("AEXPR_OP", "="), ("AEXPR_IN", "="), ("AEXPR_OP_ANY", "=")
_LIKE, _ILIKE = ("AEXPR_LIKE", "~~"), ("AEXPR_ILIKE", "~~*")
_COMPARING = frozenset((_EQUALS, _IN, _ANY, _LIKE, _ILIKE))

# What holds a SELECT: a wrapper, or a UNION with its two sides.
_SELECT_FIELDS = frozenset(("SelectStmt", "larg", "rarg"))
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
            text = text.casefold()
            value = value.casefold()

        match (self.before, self.after):
            case ("%", "%"):
                return text in value
            case ("%", _):
                return value.endswith(text)
            case (_, "%"):
                return value.startswith(text)
            case _:
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

    comparisons = sorted(reader.comparisons, key=lambda comparison: comparison.start)
    return ColumnReferences(
        sources=reader.sources,
        labels=frozenset(reader.labels),
        comparisons=tuple(comparisons),
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


def cte_names(select: Node) -> set[str]:
    """Return the names of the CTEs that stand before a SELECT."""
    names = set()
    with_clause = select.get("withClause", {})
    for cte in with_clause.get("ctes", ()):
        name = cte["CommonTableExpr"]["ctename"]
        names.add(name)

    return names


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
            columns = _columns_named(name[-1], tables)
            if len(columns) == 1:
                return columns[0]

            is_ambiguous = len(columns) > 1
            may_be_unread = None in tables
            is_qualified = len(name) > 1 and bool(tables)
            if is_ambiguous or may_be_unread or is_qualified:
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
    columns = []
    for table in tables:
        if table is None:
            continue

        column = table.column(name)
        if column is not None:
            columns.append((table, column))

    return columns


@dataclass(frozen=True)
class _Place:
    """The place of a node in the tree: its scope, and whether rows must meet its condition."""

    scope: _Scope
    is_filter: bool = False
    is_negated: bool = False


class _Reader:
    def __init__(self, sql: str, catalog: Catalog) -> None:
        self._sql = sql
        self._data = sql.encode("utf-8")
        self._catalog = catalog
        self._pending: list[tuple[Node, _Place]] = []
        self.sources: dict[str, Table | None] = {}
        self.labels: set[str] = set()
        self.comparisons: list[ColumnComparison] = []

    def read(self, root: Node) -> None:
        self._pending.append((root, _Place(_Scope())))
        while self._pending:
            node, place = self._pending.pop()
            for key, child in children_of(node):
                self._enter(key, child, place)

    def _enter(self, key: str, node: Node, place: _Place) -> None:
        if key in _SELECT_FIELDS and "op" in node:
            self._enter_select(node, place)
            return

        must_hold = place.is_filter and not place.is_negated
        if key == "A_Expr" and must_hold:
            compared = self._comparisons_in(node, place.scope)
            self.comparisons.extend(compared)
        elif key == "ResTarget" and "name" in node:
            self.labels.add(node["name"])

        inside = _inside(key, node, place)
        self._pending.append((node, inside))

    def _enter_select(self, select: Node, place: _Place) -> None:
        ctes = place.scope.ctes.union(cte_names(select))
        from_clause = select.get("fromClause", [])
        sources = dict(self._sources(from_clause, ctes))
        self.sources.update(sources)
        scope = _Scope(place.scope, ctes, sources)
        inner = _Place(scope, is_negated=place.is_negated)
        subtracted = _Place(scope, is_negated=True)
        is_difference = select.get("op") == "SETOP_EXCEPT"
        for key, child in children_of(select):
            is_subtracted = is_difference and key == "rarg"
            self._enter(key, child, subtracted if is_subtracted else inner)

    def _sources(
        self, nodes: list[Node], ctes: frozenset[str]
    ) -> Iterator[tuple[str, Table | None]]:
        pending = list(nodes)
        while pending:
            ((kind, node),) = pending.pop().items()
            alias = node.get("alias", {})
            if kind == "RangeVar":
                name = alias.get("aliasname", node["relname"])
                yield name, stored_table(node, self._catalog, ctes)
            elif kind == "RangeTableSample":
                pending.append(node["relation"])
            elif alias:
                yield alias["aliasname"], None
            elif kind == "JoinExpr":
                pending.append(node["larg"])
                pending.append(node["rarg"])

    def _comparisons_in(self, node: Node, scope: _Scope) -> Iterator[ColumnComparison]:
        operator = (node.get("kind"), last_name(node.get("name", ())))
        if operator not in _COMPARING:
            return

        left = without_casts(node.get("lexpr", {}))
        right = without_casts(node.get("rexpr", {}))
        is_turned = operator == _EQUALS and "ColumnRef" not in left
        if is_turned:
            left, right = right, left

        name = column_name(left)
        if not name:
            return

        compared_column = scope.column(name)
        if compared_column is None:
            return

        table, column = compared_column
        for item in _items(right):
            literal = self._literal(without_casts(item))
            if literal is not None:
                yield from _comparison(operator, table, column, literal)

    def _literal(self, node: Node) -> "_Literal | None":
        """Return the string constant that the node is, if it is one that is written plainly."""
        value = string_constant(node)
        if not value:
            return None

        location = node["A_Const"].get("location", 0)
        text_before = self._data[:location].decode("utf-8", "replace")
        start = len(text_before)
        written = _LITERAL.match(self._sql, start)
        if written is None:
            return None

        written_value = written.group()[1:-1].replace("''", "'")
        if written_value != value:
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
    if (key, node.get("boolop")) == ("BoolExpr", "NOT_EXPR"):
        return replace(place, is_negated=True)
    if (key, node.get("subLinkType")) == ("SubLink", "ALL_SUBLINK"):
        return replace(place, is_negated=True)

    return place
