"""Reads the parts of a query as short texts to compare: tables, joins, filters, figures, columns.

The texts are for people and models to read and for nothing else: aliases are replaced by their
tables' names, literals stay, and what is nested deeply is cut.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from common.word_files import words
from sqltree.parsing import Node
from sqltree.references import relation_parts
from sqltree.tree_values import children_of, column_name, last_name, operands_of, parse_one

_MAX_DEPTH = 12
_MAX_CHARS = 80  # of one text
_MAX_TEXTS = 50  # of one part
_CUT = "…"
_ORDERED = {"sortClause", "limitCount"}
_SUBQUERY = "(SELECT …)"
_DIRECTIONS = {"SORTBY_DESC": " DESC"}
# The field of an expression whose parts are shown in its text; of other kinds it is "args".
_SHOWN_FIELDS = {"List": "items", "SubLink": "testexpr", "TypeCast": "arg", "NullTest": "arg"}
# Functions that make one figure of many rows. Others of the connected server count as plain
# functions.
_AGGREGATES = words(
    "sum avg count min max array_agg string_agg bool_and bool_or every "
    "stddev stddev_pop stddev_samp variance "
    "percentile_cont percentile_disc mode json_agg jsonb_agg"
)


@dataclass(frozen=True)
class QueryParts:
    """The parts of a whole statement, subqueries included."""

    tables: frozenset[str] = frozenset()
    joins: frozenset[str] = frozenset()
    filters: frozenset[str] = frozenset()
    figures: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    order: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Difference:
    """The difference of two queries in one part: the texts that only one of them has."""

    part: str
    without: tuple[str, ...]
    with_: tuple[str, ...]


def parts_of(sql: str) -> QueryParts:
    """Read the parts of `sql`; a text that is no query has none."""
    statement = parse_one(sql)
    if statement is None:
        return QueryParts()

    return _Reading({statement.kind: statement.node}).parts()


def differences(wrong: str, right: str) -> tuple[Difference, ...]:
    """Compare two queries part by part, in the order of `QueryParts`."""
    wrong_parts = parts_of(wrong)
    right_parts = parts_of(right)
    differing = []
    for field in fields(QueryParts):
        before = getattr(wrong_parts, field.name)
        after = getattr(right_parts, field.name)
        if before == after:
            continue

        only_before = tuple(sorted(before - after))
        only_after = tuple(sorted(after - before))
        differing.append(Difference(field.name, only_before, only_after))

    return tuple(differing)


class _Reading:
    """Reads one statement's tree."""

    def __init__(self, tree: Node) -> None:
        self._nodes = list(_nodes(tree))
        self._tables_by_alias: dict[str, str] = {}
        for table in self._nodes_of_kind("RangeVar"):
            if "alias" in table:
                alias = table["alias"]["aliasname"]
                self._tables_by_alias[alias] = table["relname"]

    def parts(self) -> QueryParts:
        selects = self._nodes_of_kind("SelectStmt")
        joins = list(self._using())
        filters = []
        for condition in self._conditions(selects):
            if _links(condition):
                joins.append(self._link(condition))
            else:
                filters.append(self._said(condition))

        tables = [".".join(relation_parts(node)) for node in self._nodes_of_kind("RangeVar")]
        return QueryParts(
            tables=frozenset(tables),
            joins=_texts(joins),
            filters=_texts(filters),
            figures=_texts(self._figures()),
            groups=_texts(self._groups(selects)),
            order=_texts(self._orders(selects)),
            shown=_texts(self._shown_expressions(selects)),
        )

    def _nodes_of_kind(self, kind: str) -> list[Node]:
        nodes = []
        for each, node in self._nodes:
            if each == kind:
                nodes.append(node)

        return nodes

    def _conditions(self, selects: Iterable[Node]) -> Iterator[Node]:
        for select in selects:
            yield from _conjuncts(select.get("whereClause"))
            yield from _conjuncts(select.get("havingClause"))

        for join in self._nodes_of_kind("JoinExpr"):
            yield from _conjuncts(join.get("quals"))

    def _using(self) -> Iterator[str]:
        for join in self._nodes_of_kind("JoinExpr"):
            yield from map(_field_name, join.get("usingClause", ()))

    def _figures(self) -> Iterator[str]:
        for call in self._nodes_of_kind("FuncCall"):
            function = last_name(call["funcname"])
            if function in _AGGREGATES:
                yield self._said({"FuncCall": call})

    def _groups(self, selects: Iterable[Node]) -> Iterator[str]:
        for select in selects:
            for key in select.get("groupClause", ()):
                expression = _shown_at(key, select)
                yield self._said(expression)

    def _shown_expressions(self, selects: Iterable[Node]) -> Iterator[str]:
        for select in selects:
            for each in select.get("targetList", ()):
                target = each["ResTarget"]
                yield self._said(target.get("val"))

    def _link(self, condition: Node) -> str:
        operands = operands_of(condition["A_Expr"])
        sides = sorted(map(self._said, operands))
        return " = ".join(sides)

    def _orders(self, selects: Iterable[Node]) -> Iterator[str]:
        """Yield `total DESC, name LIMIT 5` of each SELECT that has an order or a limit."""
        for select in selects:
            keys = []
            for each in select.get("sortClause", ()):
                key = each["SortBy"]
                expression = _shown_as(key["node"], select)
                direction = _DIRECTIONS.get(key.get("sortby_dir"), "")
                keys.append(self._said(expression) + direction)

            limit = ""
            if "limitCount" in select:
                count = self._said(select["limitCount"])
                limit = f" LIMIT {count}"

            order = ", ".join(keys) + limit
            if order:
                yield order

    def _said(self, node: Node | None, depth: int = 0) -> str:
        """Return the text of an expression."""
        if not node or depth > _MAX_DEPTH:
            return _CUT

        kind, value = next(iter(node.items()))
        if kind == "ColumnRef":
            return self._column(value)

        operands = []
        for operand in _operands(kind, value):
            text = self._said(operand, depth + 1)
            operands.append(text)

        write = _WRITERS.get(kind)
        if write is None:
            listed = ", ".join(operands)
            return f"{kind}({listed})"

        return write(value, operands)

    def _column(self, value: Node) -> str:
        """Return the name of a column as written, with its table in the place of an alias."""
        names = [_field_name(field) for field in value["fields"]]
        if len(names) > 1:
            names[0] = self._tables_by_alias.get(names[0], names[0])

        return ".".join(names)


def _nodes(tree: Node) -> Iterator[tuple[str, Node]]:
    """Yield all nodes with their kinds, without recursion, because trees may be deep."""
    pending = [("", tree)]
    while pending:
        kind, node = pending.pop()
        if kind[:1].isupper():  # the names of fields are in lower case
            yield kind, node

        inner = list(children_of(node))
        pending.extend(reversed(inner))


def _conjuncts(condition: Node | None) -> Iterator[Node]:
    """Yield the conditions that a chain of AND joins."""
    if not condition:
        return

    pending = [condition]
    while pending:
        each = pending.pop()
        junction = each.get("BoolExpr", {})
        if junction.get("boolop") == "AND_EXPR":
            pending.extend(reversed(junction["args"]))
        else:
            yield each


def _shown_at(key: Node, select: Node) -> Node:
    """Return the expression that a key stands for: `GROUP BY 1` is by the first column shown."""
    constant = key.get("A_Const", {})
    number = constant.get("ival", {}).get("ival", 0)
    shown = select.get("targetList", [])
    if not 0 < number <= len(shown):
        return key

    target = shown[number - 1]["ResTarget"]
    expression: Node = target.get("val")
    return expression


def _shown_as(key: Node, select: Node) -> Node:
    """Return the expression that a key of ORDER BY stands for, also by the name it is shown by."""
    names = column_name(key)
    for each in select.get("targetList", ()):
        target = each["ResTarget"]
        if (target.get("name"),) == names:
            expression: Node = target["val"]
            return expression

    return _shown_at(key, select)


def _links(condition: Node) -> bool:
    """Tell whether the condition equates columns of two tables."""
    node = condition.get("A_Expr", {})
    is_equation = node.get("kind") == "AEXPR_OP" and _operator(node) == "="
    if not is_equation:
        return False

    left = column_name(node.get("lexpr", {}))
    right = column_name(node.get("rexpr", {}))
    are_qualified = len(left) > 1 and len(right) > 1
    return are_qualified and left[0] != right[0]


def _operands(kind: str, value: Node) -> list[Node]:
    """Return the parts of an expression that its text shows."""
    if kind == "A_Expr":
        return operands_of(value)

    shown_field = _SHOWN_FIELDS.get(kind, "args")
    operands = []
    for field, child in children_of(value):
        if field == shown_field:
            operands.append(child)

    return operands


def _call(value: Node, arguments: Sequence[str]) -> str:
    function = last_name(value["funcname"])
    distinct = ""
    if value.get("agg_distinct"):
        distinct = "DISTINCT "

    listed = "*"
    if not value.get("agg_star"):
        listed = ", ".join(arguments)

    return f"{function}({distinct}{listed})"


def _boolean(value: Node, operands: Sequence[str]) -> str:
    operator = value["boolop"]
    if operator == "NOT_EXPR":
        return f"NOT {operands[0]}"

    word = operator.removesuffix("_EXPR")
    joined = f" {word} ".join(operands)
    return f"({joined})"


def _constant(value: Node) -> str:
    if value.get("isnull"):
        return "NULL"
    if "sval" in value:
        return f"'{value['sval'].get('sval', '')}'"

    for kind, number_node in children_of(value):
        number = number_node.get(kind, "0")  # the tree leaves out what is zero
        return str(number)

    return "0"


def _operator(value: Node) -> str:
    kind = value.get("kind", "")
    name = last_name(value["name"])
    if kind != "AEXPR_IN":
        return name

    return "IN" if name == "=" else "NOT IN"


def _field_name(field: Node) -> str:
    name = last_name([field])
    return name or "*"


def _texts(whole_texts: Iterable[str]) -> frozenset[str]:
    texts = set()
    for text in whole_texts:
        if len(text) > _MAX_CHARS:
            text = text[: _MAX_CHARS - 1] + _CUT

        texts.add(text)

    first = sorted(texts)[:_MAX_TEXTS]
    return frozenset(first)


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
