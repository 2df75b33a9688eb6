"""The constants of a query: their values, their places, and the columns they are compared with.

They are read from PostgreSQL's own parse tree. `with_constants` puts other ones in their places and
proves by the tree that nothing else has changed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from postgast import PgQueryError, scan

from common.errors import StatementRejected
from sqltree.parsing import Node, parse

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

Role = Literal["limit", "offset", "compared", "factor", "interval", "argument", "neutral", "other"]


@dataclass(frozen=True)
class Constant:
    """A number or a text in a query.

    Attributes:
        value: the text, or the number as PostgreSQL reads it.
        start, end: its place in the query, quotes and sign included, in characters.
        role: `limit` and `offset` of rows; `compared` with something; a `factor`; the text of an
            `interval`; an `argument` of a function; `neutral`: the number of a column to sort by,
            or of digits to round to.
        operator: of what is compared; of a range, also which end of it. Of an argument, its
            function.
        column: the reference that it is compared with, as written; empty when that is no plain
            column.
    """

    kind: Literal["integer", "decimal", "text"]
    value: str
    start: int
    end: int
    role: Role = "other"
    operator: str = ""
    column: tuple[str, ...] = ()

    def may_bound_with(self, other: "Constant") -> bool:
        """Tell whether both may be ends of one range.

        They are compared with the same column, or in one kind of BETWEEN.
        """
        if self.role != "compared":
            return False
        if other.role != "compared":
            return False
        if self.column != other.column:
            return False
        if self.column:
            return True
        if "BETWEEN" not in self.operator:
            return False
        return self.operator[:-1] == other.operator[:-1]


def constants_of(sql: str) -> tuple[Constant, ...] | None:
    """Return the constants of one query, in the order of the text; None when it can't be read.

    Truth values and NULL are not among them.
    """
    if len(sql) > _MAX_CHARS:
        return None
    try:
        statements = parse(sql)
        tokens = {token.start: token.end for token in scan(sql).tokens}
    except (StatementRejected, PgQueryError):
        return None
    if len(statements) != 1:
        return None
    places = _Places(sql, tokens)
    found = []
    for node, place in _constants_in({statements[0].kind: statements[0].node}):
        constant = places.constant(node, place)
        if constant is None:
            return None
        found.append(constant)
    return tuple(sorted(found, key=lambda one: one.start))


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
        written = _written(constant, changes[constant])
        changed = changed[: constant.start] + written + changed[constant.end :]
    before, after = constants_of(sql), constants_of(changed)
    if before is None:
        return None
    if after is None:
        return None
    if len(before) != len(after):
        return None
    wanted = [replace(one, value=changes.get(one, one.value), start=0, end=0) for one in before]
    if [replace(one, start=0, end=0) for one in after] != wanted:
        return None
    if _outline(sql) == _outline(changed):
        return changed
    return None


def _written(constant: Constant, value: str) -> str:
    if constant.kind != "text":
        return value
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True)
class _Place:
    """The role that a constant has at one place of the tree."""

    role: Role = "other"
    operator: str = ""
    column: tuple[str, ...] = ()


_ANYWHERE = _Place()
_CLAUSES = {
    "limitCount": _Place("limit"),
    "limitOffset": _Place("offset"),
    "sortClause": _Place("neutral"),
    "groupClause": _Place("neutral"),
}


def _constants_in(root: Node) -> Iterator[tuple[Node, _Place]]:
    pending: list[tuple[str, Any, _Place]] = [("", root, _ANYWHERE)]
    while pending:
        key, value, place = pending.pop()
        if key == "typeName":
            continue
        if isinstance(value, list):
            for item in value:
                pending.append((key, item, place))
        elif isinstance(value, dict):
            if key != "A_Const":
                pending.extend(_inside(key, value, place))
            elif not _UNWRITTEN & value.keys():
                yield value, place


def _inside(key: str, node: Node, place: _Place) -> Iterator[tuple[str, Any, _Place]]:
    """Yield the children of a node: key, value, and the role of constants there."""
    if key == "A_Expr":
        yield from _operands(node)
        return
    if key == "FuncCall":
        yield from _arguments(node)
        return
    is_interval = (
        key == "TypeCast" and _last_name(node.get("typeName", {}).get("names", ())) == "interval"
    )
    for name, child in node.items():
        if name in _CLAUSES:
            yield "", child, _CLAUSES[name]
        elif is_interval:
            yield name, child, _Place("interval")
        else:
            yield name, child, place if key in _CARRYING else _ANYWHERE


def _operands(node: Node) -> Iterator[tuple[str, Any, _Place]]:
    operator = _last_name(node.get("name", ()))
    left, right = node.get("lexpr", {}), node.get("rexpr", {})
    kind = str(node.get("kind", ""))
    if operator in _FACTORS:
        for side in (left, right):
            yield ("", side, _Place("factor", operator))
    elif operator in _COMPARISONS:
        said = f"{kind} {operator}"
        column = _column(left) or _column(right)
        yield "", left, _Place("compared", f"{said} left", column)
        if "BETWEEN" in kind:
            for end, item in enumerate(right.get("List", {}).get("items", ())):
                yield "", item, _Place("compared", f"{said} {end}", column)
        else:
            yield "", right, _Place("compared", said, column)
    else:
        for side in (left, right):
            yield ("", side, _Place("other", operator))


def _arguments(node: Node) -> Iterator[tuple[str, Any, _Place]]:
    function = _last_name(node.get("funcname", ()))
    for name, child in node.items():
        if name == "args":
            for number, item in enumerate(child):
                role: Role = "argument"
                if function in _DIGITS_ARGUMENTS and number == 1:
                    role = "neutral"
                yield "", item, _Place(role, function)
        elif name != "funcname":
            yield name, child, _ANYWHERE


def _column(node: Node) -> tuple[str, ...]:
    while "TypeCast" in node:
        node = node["TypeCast"].get("arg", {})
    fields = node.get("ColumnRef", {}).get("fields", ())
    found = []
    for part in fields:
        if "String" in part:
            found.append(part["String"]["sval"])
    return tuple(found)


def _last_name(names: Any) -> str:
    if names:
        return str(names[-1]["String"]["sval"])
    return ""


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
        end = self.ends.get(start)
        if end is not None and self.data[start:end] == b"-":  # the sign belongs to the number
            later = [one for one in self.ends if one >= end]
            end = self.ends.get(min(later, default=end))
        if end is None:
            return None
        if kind is None:
            return None
        first, last = self._chars_before(start), self._chars_before(end)
        return Constant(kind, value, first, last, place.role, place.operator, place.column)

    def _chars_before(self, place: int) -> int:
        before = self.data[:place]
        return len(before.decode("utf-8", "replace"))


def _kind_and_value(node: Node) -> tuple[Literal["integer", "decimal", "text"] | None, str]:
    if "ival" in node:
        return "integer", str(node["ival"].get("ival", 0))
    if "fval" in node:
        value = str(node["fval"]["fval"])
        is_whole = value.lstrip("-").isdigit()
        if is_whole:
            return "integer", value
        return "decimal", value
    if "sval" in node:
        return "text", str(node["sval"].get("sval", ""))
    return None, ""


def _outline(sql: str) -> Any:
    """Return the tree without the values and places of constants."""
    (statement,) = parse(sql)
    return _without_values({statement.kind: statement.node})


def _without_values(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_values(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "A_Const" in value:
        kind, _ = _kind_and_value(value["A_Const"])
        if kind is not None:
            return kind
    fields = {}
    for key, item in value.items():
        if key != "location":
            fields[key] = _without_values(item)
    return fields
