"""Reads from a CHECK constraint's expression which values it lets a column have.

PostgreSQL prints `status IN ('a', 'b')` as `(status = ANY (ARRAY['a'::text, 'b'::text]))`, with casts around each part
that depend on the column's type. The expression is parsed, so these forms need no patterns of their own.
"""

from collections.abc import Mapping

from common.errors import CituError
from common.postgres.arrays import parse_array
from databases.guard.parsing import Node, parse

Lists = Mapping[str, tuple[str, ...]]
_EQUALS = ("AEXPR_OP", "AEXPR_OP_ANY", "AEXPR_IN")


def value_lists(expression: str) -> Lists:
    """Column → the only values besides NULL that `expression` lets it have, as text, in the order they are written.

    In a domain's constraint the column is called `value`. Other kinds of conditions give nothing.
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
    if condition["boolop"] == "OR_EXPR" and parts and len({tuple(part) for part in parts}) == 1 == len(parts[0]):
        (name,) = parts[0]
        return {name: tuple(dict.fromkeys(value for part in parts for value in part[name]))}
    return {}


def _is_null_test(node: Node) -> bool:
    test = node.get("NullTest")
    return test is not None and test["nulltesttype"] == "IS_NULL"


def _comparison(node: Node) -> Lists:
    if node.get("kind") not in _EQUALS or node["name"] != [{"String": {"sval": "="}}]:
        return {}
    column, values = _uncast(node["lexpr"]).get("ColumnRef"), _values(node["rexpr"], node["kind"])
    if column is None or len(column["fields"]) != 1 or not values:
        return {}
    return {column["fields"][0]["String"]["sval"]: values}


def _values(node: Node, kind: str) -> tuple[str, ...]:
    """The constants of a list, an array or a single constant; empty when there is anything else."""
    node = _uncast(node)
    elements = node.get("A_ArrayExpr", {}).get("elements") or node.get("List", {}).get("items") or [node]
    values = [_constant(_uncast(element)) for element in elements]
    if kind == "AEXPR_OP_ANY" and "A_Const" in node:  # an array written as one literal: '{a,b}'
        values = parse_array(values[0] or "", str)
    return tuple(value for value in values if value is not None) if None not in values else ()


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
