"""The constants of a query: their values, their places, and the columns they are compared with.

They are read from PostgreSQL's own parse tree. `with_constants` puts other ones in their places and
proves by the tree that nothing else has changed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from postgast import scan

from sqltree.parsing import Node, parse
from sqltree.tree_values import (
    children_of,
    column_name,
    last_name,
    operands_of,
    parse_one,
    without_casts,
)

_NAME = re.compile(r'"|[^\W\d]')
_MAX_CHARS = 4_000  # a longer query takes too long to be read this way
_COMPARISONS = frozenset(
    ("=", "<>", "<", ">", "<=", ">=", "~~", "~~*", "!~~", "!~~*", "BETWEEN", "NOT BETWEEN")
)
_UNWRITTEN = {"isnull", "boolval"}  # NULL and truth values
_FACTORS = frozenset(("*", "/"))
_DIGITS_ARGUMENTS = frozenset(("round", "trunc"))  # their second argument says how many digits
# What these hold stands where they stand; "" is whatever an operator, a function or a clause holds.
_CARRYING = frozenset(
    ("", "TypeCast", "arg", "List", "items", "A_ArrayExpr", "elements", "SortBy", "node")
)

ConstantRole = Literal[
    "limit", "offset", "compared", "factor", "interval", "argument", "neutral", "other"
]


@dataclass(frozen=True)
class Constant:
    """A number or a text in a query.

    Attributes:
        value: the text, or the number as PostgreSQL reads it.
        start, end: its place in the query, quotes and sign included, in characters.
        role: `limit` and `offset` of rows; `compared` with something; a `factor`; the text of an
            `interval`; an `argument` of a function; `neutral`: the number of a column to sort by,
            or of digits to round to.
        operator: by which it is compared; in a range, also which end of it is meant. For an
            argument, its function.
        column: the reference that it is compared with, as written; empty when that is no plain
            column.
    """

    kind: Literal["integer", "decimal", "text"]
    value: str
    start: int
    end: int
    role: ConstantRole = "other"
    operator: str = ""
    column: tuple[str, ...] = ()

    def may_bound_with(self, other: "Constant") -> bool:
        """Tell whether both may be ends of one range.

        They are compared with the same column, or in one kind of BETWEEN.
        """
        are_compared = self.role == other.role == "compared"
        has_one_column = self.column == other.column
        if not are_compared or not has_one_column:
            return False
        if self.column:
            return True

        operator = self.operator[:-1]
        other_operator = other.operator[:-1]
        return operator == other_operator and "BETWEEN" in operator


def constants_of(sql: str) -> tuple[Constant, ...] | None:
    """Return the constants of one query, in the order of the text; None when it can't be read.

    Truth values and NULL are not among them.
    """
    if len(sql) > _MAX_CHARS:
        return None

    statement = parse_one(sql)
    if statement is None:
        return None

    ends = {token.start: token.end for token in scan(sql).tokens}
    places = _Places(sql, ends)
    constants = []
    for node, place in _constants_in({statement.kind: statement.node}):
        constant = places.constant(node, place)
        if constant is None:
            return None

        constants.append(constant)

    constants.sort(key=lambda one: one.start)
    return tuple(constants)


def identifiers_of(sql: str) -> frozenset[str]:
    """Return the names in a query that `constants_of` can read, without quotes.

    They are of tables, columns, functions and labels.
    """
    data = sql.encode("utf-8")
    names = set()
    for token in scan(sql).tokens:
        text = data[token.start : token.end].decode("utf-8", "replace")
        if _NAME.match(text):
            names.add(text.strip('"'))

    return frozenset(names)


def with_constants(sql: str, changes: Mapping[Constant, str]) -> str | None:
    """Return `sql` with other values for constants of it: numbers as numbers, texts as texts.

    None when that is not possible, for instance because a value is no number.
    """
    changed = sql
    for constant in sorted(changes, key=lambda one: -one.start):
        written = _literal_of(constant, changes[constant])
        changed = changed[: constant.start] + written + changed[constant.end :]

    before = constants_of(sql)
    after = constants_of(changed)
    if before is None or after is None:
        return None

    wanted = []
    for constant in before:
        value = changes.get(constant, constant.value)
        wanted.append(replace(constant, value=value, start=0, end=0))

    pieces = []
    for constant in after:
        pieces.append(replace(constant, start=0, end=0))

    has_changed_only_values = pieces == wanted and _outline(sql) == _outline(changed)
    return changed if has_changed_only_values else None


def _literal_of(constant: Constant, value: str) -> str:
    if constant.kind != "text":
        return value

    escaped = value.replace("'", "''")
    return f"'{escaped}'"


@dataclass(frozen=True)
class _Place:
    """The role that a constant has at one place of the tree."""

    role: ConstantRole = "other"
    operator: str = ""
    column: tuple[str, ...] = ()


_ANYWHERE = _Place()
_CLAUSES = {
    "limitCount": _Place("limit"),
    "limitOffset": _Place("offset"),
    "sortClause": _Place("neutral"),
    "groupClause": _Place("neutral"),
}


class _Child(NamedTuple):
    """A node below another: the field that holds it, and the role of constants there.

    The field is "" where it stands in an operator, in a call or in a clause.
    """

    field: str
    node: Node
    place: _Place


def _constants_in(root: Node) -> Iterator[tuple[Node, _Place]]:
    pending = [_Child("", root, _ANYWHERE)]
    while pending:
        child = pending.pop()
        if child.field != "A_Const":
            pending.extend(_inside(*child))
            continue

        is_written = _UNWRITTEN.isdisjoint(child.node)
        if is_written:
            yield child.node, child.place


def _inside(key: str, node: Node, place: _Place) -> Iterator[_Child]:
    """Yield the nodes below a node, with the role of constants there."""
    if key == "A_Expr":
        yield from _operands(node)
        return

    if key == "FuncCall":
        yield from _arguments(node)
        return

    type_names = node.get("typeName", {}).get("names", ())
    is_interval = key == "TypeCast" and last_name(type_names) == "interval"
    inner = _ANYWHERE
    if is_interval:
        inner = _Place("interval")
    elif key in _CARRYING:
        inner = place

    for name, child in children_of(node):
        if name in _CLAUSES:
            yield _Child("", child, _CLAUSES[name])
        elif name != "typeName":
            yield _Child(name, child, inner)


def _operands(node: Node) -> Iterator[_Child]:
    operator = last_name(node.get("name", ()))
    if operator in _COMPARISONS:
        yield from _compared(node, operator)
        return

    role: ConstantRole = "other"
    if operator in _FACTORS:
        role = "factor"

    place = _Place(role, operator)
    for operand in operands_of(node):
        yield _Child("", operand, place)


def _compared(node: Node, operator: str) -> Iterator[_Child]:
    """Yield both sides of a comparison; of a BETWEEN, each end by itself."""
    left = node.get("lexpr", {})
    right = node.get("rexpr", {})
    kind = str(node.get("kind", ""))
    comparison = f"{kind} {operator}"
    column = column_name(without_casts(left)) or column_name(without_casts(right))
    yield _Child("", left, _Place("compared", f"{comparison} left", column))
    if "BETWEEN" not in kind:
        yield _Child("", right, _Place("compared", comparison, column))
        return

    ends = right.get("List", {}).get("items", ())
    for number, end in enumerate(ends):
        yield _Child("", end, _Place("compared", f"{comparison} {number}", column))


def _arguments(node: Node) -> Iterator[_Child]:
    function = last_name(node.get("funcname", ()))
    argument = _Place("argument", function)
    digits = _Place("neutral", function)
    for number, item in enumerate(node.get("args", ())):
        place = argument
        if number == 1 and function in _DIGITS_ARGUMENTS:
            place = digits

        yield _Child("", item, place)

    for name, child in children_of(node):
        if name not in ("args", "funcname"):
            yield _Child(name, child, _ANYWHERE)


@dataclass(frozen=True)
class _Places:
    """Finds constants of the tree in the text.

    Attributes:
        ends: ends of the text's tokens by their starts, in bytes.
    """

    sql: str
    ends: Mapping[int, int]
    data: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", self.sql.encode("utf-8"))

    def constant(self, node: Node, place: _Place) -> Constant | None:
        kind, value = _kind_and_value(node)
        start = node.get("location", 0)
        end = self._end_of(start)
        if kind is None or end is None:
            return None

        return Constant(
            kind,
            value,
            start=self._chars_before(start),
            end=self._chars_before(end),
            role=place.role,
            operator=place.operator,
            column=place.column,
        )

    def _end_of(self, start: int) -> int | None:
        """Return the end of the token at `start`; a sign belongs to the number after it."""
        end = self.ends.get(start)
        if end is None:
            return None

        token = self.data[start:end]
        if token != b"-":
            return end

        later = [one for one in self.ends if one >= end]
        number = min(later, default=end)
        return self.ends.get(number)

    def _chars_before(self, place: int) -> int:
        before = self.data[:place]
        return len(before.decode("utf-8", "replace"))


def _kind_and_value(node: Node) -> tuple[Literal["integer", "decimal", "text"] | None, str]:
    if "ival" in node:
        return "integer", str(node["ival"].get("ival", 0))
    if "fval" in node:
        value = str(node["fval"]["fval"])
        is_whole = value.lstrip("-").isdigit()
        return "integer" if is_whole else "decimal", value

    if "sval" in node:
        return "text", str(node["sval"].get("sval", ""))

    return None, ""


def _outline(sql: str) -> Any:
    """Return the tree without the values and places of constants."""
    (statement,) = parse(sql)
    return _without_values({statement.kind: statement.node})


def _without_values(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_without_values, value))
    if not isinstance(value, dict):
        return value

    constant = value.get("A_Const", {})
    kind, _ = _kind_and_value(constant)
    if kind is not None:
        return kind

    fields = {}
    for key, item in value.items():
        if key != "location":
            fields[key] = _without_values(item)

    return fields
