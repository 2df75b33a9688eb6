"""Reads from a CHECK constraint's expression which values it lets a column have.

PostgreSQL prints `status IN ('a', 'b')` as `(status = ANY (ARRAY['a'::text, 'b'::text]))`, with
casts around each part that depend on the column's type. The expression is parsed, so these forms
need no patterns of their own.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

from common.errors import CituError
from postgres.arrays import parse_array
from sqltree.parsing import Node, parse

Lists = Mapping[str, tuple[str, ...]]
_EQUALS = ("AEXPR_OP", "AEXPR_OP_ANY", "AEXPR_IN")


def value_lists(expression: str) -> Lists:
    """Return the columns that a CHECK limits to a list of values, each with these values.

    They are texts, in the order they are written, without NULL. In a domain's constraint the column
    is called `value`. An expression that is no such list gives nothing.
    """
    try:
        (statement,) = parse(f"SELECT {expression}")
        (target,) = statement.node["targetList"]
        return _lists(target["ResTarget"]["val"])
    except (CituError, ValueError, KeyError):  # another kind of condition
        return {}


def _lists(node: Node) -> Lists:
    condition = node.get("BoolExpr")
    if condition is None:
        return _comparison(node.get("A_Expr", {}))

    parts = [_lists(part) for part in condition["args"] if not _is_null_test(part)]
    match condition["boolop"]:
        case "AND_EXPR":
            return dict(chain.from_iterable(part.items() for part in parts))
        case "OR_EXPR":
            return _united(parts)
        case _:
            return {}


def _united(parts: Sequence[Lists]) -> Lists:
    """Join alternatives; only those about a single column give a list."""
    names = set(chain.from_iterable(parts))
    if len(names) != 1 or not all(parts):
        return {}

    (name,) = names
    values = chain.from_iterable(part[name] for part in parts)
    return {name: tuple(dict.fromkeys(values))}


def _is_null_test(node: Node) -> bool:
    test = node.get("NullTest")
    return test is not None and test["nulltesttype"] == "IS_NULL"


def _comparison(node: Node) -> Lists:
    is_equality = node.get("kind") in _EQUALS and node["name"] == [{"String": {"sval": "="}}]
    if not is_equality:
        return {}

    fields = _uncast(node["lexpr"]).get("ColumnRef", {}).get("fields", ())
    values = _values(node["rexpr"], node["kind"])
    if len(fields) != 1 or not values:
        return {}

    name = fields[0]["String"]["sval"]
    return {name: values}


def _values(node: Node, kind: str) -> tuple[str, ...]:
    """Return the constants of a list, an array or a single constant; none if there is another."""
    node = _uncast(node)
    if kind == "AEXPR_OP_ANY" and "A_Const" in node:  # an array as one literal: '{a,b}'
        return _known(parse_array(_constant(node) or "", str))

    return _known([_constant(_uncast(item)) for item in _items(node)])


def _items(node: Node) -> Sequence[Node]:
    """Return the elements of an array or a list; another node is its only one."""
    items: Sequence[Node] = [node]
    if "A_ArrayExpr" in node:
        items = node["A_ArrayExpr"].get("elements", ())
    elif "List" in node:
        items = node["List"].get("items", ())

    return items


def _known(values: Sequence[str | None]) -> tuple[str, ...]:
    """Return the values; none if one of them is not known."""
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) else ()


def _constant(node: Node) -> str | None:
    constant = node.get("A_Const", {})
    if "ival" in constant:
        return str(constant["ival"].get("ival", 0))

    for kind in ("sval", "fval"):
        if kind in constant:
            return str(constant[kind].get(kind, ""))

    return None


def _uncast(node: Node) -> Node:
    while "TypeCast" in node:
        node = node["TypeCast"]["arg"]

    return node
