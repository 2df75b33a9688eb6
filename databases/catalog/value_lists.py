"""Reads from a CHECK constraint's expression which values it lets a column have.

PostgreSQL prints `status IN ('a', 'b')` as `(status = ANY (ARRAY['a'::text, 'b'::text]))`, with
casts around each part that depend on the column's type. The expression is parsed, so these forms
need no patterns of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from common.errors import CituError
from postgres.arrays import parse_array
from sqltree.parsing import Node, parse

Lists = Mapping[str, tuple[str, ...]]
_EQUALS = ("AEXPR_OP", "AEXPR_OP_ANY", "AEXPR_IN")


def value_lists(expression: str) -> Lists:
    """Return, by column, the only values besides NULL that `expression` lets it have.

    They are texts, in the order they are written. In a domain's constraint the column is called `value`. Other kinds of conditions give nothing.
    """
    try:
        (statement,) = parse(f"SELECT {expression}")
        (target,) = statement.node["targetList"]
        return _lists(target["ResTarget"]["val"])
    except (CituError, ValueError, KeyError):  # anything else that PostgreSQL prints is no list
        return {}


def _lists(node: Node) -> Lists:
    condition = node.get("BoolExpr")
    if condition is None:
        return _comparison(node.get("A_Expr", {}))
    parts = [_lists(part) for part in condition["args"] if not _is_null_test(part)]
    if condition["boolop"] == "AND_EXPR":
        return {name: values for part in parts for name, values in part.items()}
    if condition["boolop"] == "OR_EXPR":
        return _united(parts)
    return {}


def _united(parts: Sequence[Lists]) -> Lists:
    """Join alternatives; only those about a single column give a list."""
    columns = {tuple(part) for part in parts}
    if len(columns) != 1:
        return {}
    names = columns.pop()
    if len(names) != 1:
        return {}
    (name,) = names
    values = chain.from_iterable(part[name] for part in parts)
    return {name: tuple(dict.fromkeys(values))}


def _is_null_test(node: Node) -> bool:
    test = node.get("NullTest")
    return test is not None and test["nulltesttype"] == "IS_NULL"


def _comparison(node: Node) -> Lists:
    if node.get("kind") not in _EQUALS or node["name"] != [{"String": {"sval": "="}}]:
        return {}
    column = _uncast(node["lexpr"]).get("ColumnRef")
    values = _values(node["rexpr"], node["kind"])
    if column is None or len(column["fields"]) != 1 or not values:
        return {}
    return {column["fields"][0]["String"]["sval"]: values}


def _values(node: Node, kind: str) -> tuple[str, ...]:
    """Return the constants of a list, an array or a single constant; none if there is another."""
    node = _uncast(node)
    if kind == "AEXPR_OP_ANY" and "A_Const" in node:  # an array as one literal: '{a,b}'
        return _known(parse_array(_constant(node) or "", str))
    elements = node.get("A_ArrayExpr", {}).get("elements")
    items = elements or node.get("List", {}).get("items") or [node]
    return _known([_constant(_uncast(item)) for item in items])


def _known(values: Iterable[str | None]) -> tuple[str, ...]:
    known = []
    for value in values:
        if value is None:
            return ()
        known.append(value)
    return tuple(known)


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
