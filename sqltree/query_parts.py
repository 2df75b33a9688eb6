"""Reads the parts of a query as short texts to compare: tables, joins, filters, figures, columns.

The texts are for people and models to read and for nothing else: aliases are replaced by their
tables' names, literals stay, and what is nested deeply is cut.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from common.errors import StatementRejected
from common.word_files import words
from sqltree.parsing import parse
from sqltree.references import relation_parts

_MAX_DEPTH = 12
_MAX_CHARS = 80  # of one text
_MAX_TEXTS = 50  # of one part
_CUT = "…"
_ORDERED = {"sortClause", "limitCount"}
_SUBQUERY = "(SELECT …)"
# Functions that make one figure of many rows. Others of the connected server count as plain
# functions.
_AGGREGATES = words(
    "sum avg count min max array_agg string_agg bool_and bool_or every "
    "stddev stddev_pop stddev_samp variance "
    "percentile_cont percentile_disc mode json_agg jsonb_agg"
)

Node = Mapping[str, Any]


@dataclass(frozen=True)
class QueryParts:
    """Of a whole statement, subqueries included."""

    tables: frozenset[str] = frozenset()
    joins: frozenset[str] = frozenset()
    filters: frozenset[str] = frozenset()
    figures: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    order: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Difference:
    """How two queries differ in one part: the texts that only one of them has."""

    part: str
    without: tuple[str, ...]
    with_: tuple[str, ...]


def parts_of(sql: str) -> QueryParts:
    """Read the parts of `sql`; a text that is no query has none."""
    try:
        statements = parse(sql)
    except StatementRejected:
        return QueryParts()
    if len(statements) != 1:
        return QueryParts()
    statement = statements[0]
    return _Reading({statement.kind: statement.node}).parts()


def differences(wrong: str, right: str) -> tuple[Difference, ...]:
    """Compare two queries part by part, in the order of `QueryParts`."""
    one, other = parts_of(wrong), parts_of(right)
    found = []
    for field in fields(QueryParts):
        before, after = getattr(one, field.name), getattr(other, field.name)
        if before != after:
            found.append(
                Difference(field.name, tuple(sorted(before - after)), tuple(sorted(after - before)))
            )
    return tuple(found)


class _Reading:
    """Reads one statement's tree."""

    def __init__(self, tree: Node) -> None:
        self._nodes = list(_nodes(tree))
        self._names: dict[str, str] = {}
        for table in self._all("RangeVar"):
            if "alias" in table:
                alias = table["alias"]["aliasname"]
                self._names[alias] = table["relname"]

    def parts(self) -> QueryParts:
        selects = self._all("SelectStmt")
        links = []
        filters = []
        for condition in self._conditions(selects):
            if _links(condition):
                links.append(self._link(condition))
            else:
                filters.append(self._said(condition))
        orders = []
        for select in selects:
            is_ordered = "sortClause" in select or "limitCount" in select
            if is_ordered:
                orders.append(select)
        return QueryParts(
            tables=frozenset(map(_table, self._all("RangeVar"))),
            joins=_texts([*links, *self._using()]),
            filters=_texts(filters),
            figures=_texts(self._figures()),
            groups=_texts(self._groups(selects)),
            order=_texts(map(self._ordered, orders)),
            shown=_texts(self._shown(selects)),
        )

    def _all(self, kind: str) -> list[Node]:
        found = []
        for each, node in self._nodes:
            if each == kind:
                found.append(node)
        return found

    def _conditions(self, selects: Iterable[Node]) -> Iterator[Node]:
        for select in selects:
            yield from _conjuncts(select.get("whereClause"))
            yield from _conjuncts(select.get("havingClause"))
        for join in self._all("JoinExpr"):
            yield from _conjuncts(join.get("quals"))

    def _using(self) -> Iterator[str]:
        for join in self._all("JoinExpr"):
            yield from map(_name, join.get("usingClause", ()))

    def _figures(self) -> Iterator[str]:
        for call in self._all("FuncCall"):
            if _called(call) in _AGGREGATES:
                yield self._said({"FuncCall": call})

    def _groups(self, selects: Iterable[Node]) -> Iterator[str]:
        for select in selects:
            for key in select.get("groupClause", ()):
                yield self._said(_shown_at(key, select))

    def _shown(self, selects: Iterable[Node]) -> Iterator[str]:
        for select in selects:
            for target in select.get("targetList", ()):
                yield self._said(target["ResTarget"].get("val"))

    def _link(self, condition: Node) -> str:
        node = condition["A_Expr"]
        return " = ".join(sorted((self._said(node["lexpr"]), self._said(node["rexpr"]))))

    def _ordered(self, select: Node) -> str:
        keys = []
        for each in select.get("sortClause", ()):
            key = each["SortBy"]
            keys.append(self._said(_shown_as(key["node"], select)) + _direction(key))
        limit = ""
        if "limitCount" in select:
            limit = f" LIMIT {self._said(select['limitCount'])}"
        return ", ".join(keys) + limit

    def _said(self, node: Node | None, depth: int = 0) -> str:
        if not node:
            return _CUT
        if depth > _MAX_DEPTH:
            return _CUT
        kind, value = next(iter(node.items()))
        if kind == "ColumnRef":
            return self._column(value)
        operands = [self._said(each, depth + 1) for each in _operands(kind, value)]
        write = _WRITERS.get(kind)
        if write is None:
            return f"{kind}({', '.join(operands)})"
        return write(value, operands)

    def _column(self, value: Node) -> str:
        names = [_name(field) for field in value["fields"]]
        if len(names) > 1:
            names[0] = self._names.get(names[0], names[0])
        return ".".join(names)


def _nodes(tree: Node) -> Iterator[tuple[str, Node]]:
    """Yield all nodes with their kinds, without recursion, because trees may be deep."""
    pending: list[Any] = [tree]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending.extend(reversed(each))
        elif isinstance(each, Mapping):
            for kind, value in each.items():
                if not kind[0].isupper():
                    continue
                if isinstance(value, Mapping):
                    yield kind, value
            pending.extend(reversed(list(each.values())))


def _conjuncts(condition: Node | None) -> Iterator[Node]:
    pending = []
    if condition:
        pending = [condition]
    while pending:
        each = pending.pop()
        inner = each.get("BoolExpr", {})
        if inner.get("boolop") == "AND_EXPR":
            pending.extend(reversed(inner["args"]))
        else:
            yield each


def _shown_at(key: Node, select: Node) -> Node:
    """Return the expression that a key stands for: `GROUP BY 1` is by the first column shown."""
    number = key.get("A_Const", {}).get("ival", {}).get("ival", 0)
    shown = select.get("targetList", [])
    if not 0 < number <= len(shown):
        return key
    found: Node = shown[number - 1]["ResTarget"].get("val")
    return found


def _shown_as(key: Node, select: Node) -> Node:
    """Return the expression that a key of ORDER BY stands for, also by the name it is shown by."""
    names = [_name(field) for field in key.get("ColumnRef", {}).get("fields", ())]
    if len(names) == 1:
        for each in select.get("targetList", ()):
            if each["ResTarget"].get("name") == names[0]:
                found: Node = each["ResTarget"]["val"]
                return found
    return _shown_at(key, select)


def _links(condition: Node) -> bool:
    """Tell whether the condition equates columns of two tables."""
    node = condition.get("A_Expr", {})
    if node.get("kind") != "AEXPR_OP":
        return False
    if _operator(node) != "=":
        return False
    left = _reference(node.get("lexpr"))
    right = _reference(node.get("rexpr"))
    are_qualified = len(left) > 1 and len(right) > 1
    if not are_qualified:
        return False
    return left[0] != right[0]


def _reference(node: Node | None) -> list[str]:
    """Return the parts of a column's name; empty for any other expression."""
    if node is None:
        return []
    fields = node.get("ColumnRef", {}).get("fields", ())
    return list(map(_name, fields))


def _operands(kind: str, value: Any) -> list[Node]:
    """Return the parts of an expression that its text shows."""
    match kind:
        case "A_Expr":
            found = []
            for side in ("lexpr", "rexpr"):
                if side in value:
                    found.append(value[side])
            return found
        case "List":
            return list(value["items"])
        case "SubLink":
            if "testexpr" in value:
                return [value["testexpr"]]
            return []
        case "TypeCast" | "NullTest":
            return [value["arg"]]
        case "A_Const" | "SelectStmt":
            return []
        case _:
            return _arguments(value)


def _arguments(value: Any) -> list[Node]:
    if not isinstance(value, Mapping):
        return []
    found = []
    for each in value.get("args", ()):
        if isinstance(each, Mapping):
            found.append(each)
    return found


def _call(value: Node, arguments: Sequence[str]) -> str:
    distinct = ""
    if value.get("agg_distinct"):
        distinct = "DISTINCT "
    listed = "*"
    if not value.get("agg_star"):
        listed = ", ".join(arguments)
    return f"{_called(value)}({distinct}{listed})"


def _boolean(value: Node, operands: Sequence[str]) -> str:
    operator = value["boolop"]
    if operator == "NOT_EXPR":
        return f"NOT {operands[0]}"
    word = operator.removesuffix("_EXPR")
    return f"({f' {word} '.join(operands)})"


def _constant(value: Node) -> str:
    if value.get("isnull"):
        return "NULL"
    for kind, held in value.items():
        if isinstance(held, Mapping):
            inner = held.get(kind, held.get("boolval", ""))
            if kind == "sval":
                return f"'{inner}'"
            return str(inner) or "0"  # the tree leaves out what is zero
    return "0"


def _operator(value: Node) -> str:
    kind, name = value.get("kind", ""), _name(value["name"][-1])
    if kind == "AEXPR_IN":
        if name == "=":
            return "IN"
        return "NOT IN"
    return name


def _direction(key: Node) -> str:
    if key.get("sortby_dir") == "SORTBY_DESC":
        return " DESC"
    return ""


def _called(call: Node) -> str:
    return _name(call["funcname"][-1])


def _table(node: Node) -> str:
    return ".".join(relation_parts(node))


def _name(field: Node) -> str:
    if "String" in field:
        return str(field["String"].get("sval", ""))
    return "*"


def _texts(said: Iterable[str]) -> frozenset[str]:
    shortened = set(map(_shortened, said))
    first = sorted(shortened)[:_MAX_TEXTS]
    return frozenset(first)


def _shortened(text: str) -> str:
    if len(text) <= _MAX_CHARS:
        return text
    return text[: _MAX_CHARS - 1] + _CUT


# Kind of node → its text, of the node and the texts of its operands.
_WRITERS: Mapping[str, Callable[[Node, Sequence[str]], str]] = {
    "A_Const": lambda value, _: _constant(value),
    "FuncCall": _call,
    "A_Expr": lambda value, operands: f" {_operator(value)} ".join(operands),
    "BoolExpr": _boolean,
    "NullTest": lambda value, operands: f"{operands[0]} {value['nulltesttype'].replace('_', ' ')}",
    "TypeCast": lambda _, operands: operands[0],
    "List": lambda _, operands: f"({', '.join(operands)})",
    "SubLink": lambda _, operands: " ".join([*operands, _SUBQUERY]),
}
