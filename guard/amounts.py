"""Has PostgreSQL prove that an amount is small which the statement's text doesn't prove.

`repeat(name, n)` builds as much as the stored `n` says. In the statement that is sent, `n` is read
as a smallint, so that PostgreSQL refuses larger ones before it builds anything.

So are the counts of `array_fill(x, ARRAY[n])`. What `factorial(n)` multiplies is proven to be
smaller still: `n` is sent as `n - 0 * (n::numeric * 32)::smallint`, which is `n`, of the same type.
"""

from collections.abc import Collection
from copy import deepcopy

from common.word_files import words
from guard.walk import strings
from sqltree.parsing import Node, nodes

AMOUNT_FUNCTIONS = words("repeat lpad rpad")
"""Functions whose second argument is how long their result gets."""
MOST_COUNT = 1_023
"""Largest count that PostgreSQL lets `factorial` multiply."""
_SCALE = 32  # by which that gets as large as a smallint
_AMOUNT_AT = 1  # among the arguments
_SUMS = frozenset(("+", "-"))


def limit_amounts(select: Node, places: Collection[int]) -> bool:
    """Limit the amounts of the calls at `places` in the text; return whether there are any."""
    for kind, node in nodes(select):
        is_marked = node.get("location", 0) in places
        if is_marked and kind == "FuncCall":
            _limit(node)
    return bool(places)


def is_countable(call: Node) -> bool:
    """Tell whether PostgreSQL can prove the count of a `factorial`.

    It is written twice, so it has to be plain: columns, constants, and their sums.
    """
    return all(map(_is_plain, call.get("args", ())))


def dimensions_of(call: Node) -> list[Node]:
    """Return the counts of an `array_fill`; none if its dimensions are not written as an array."""
    dimensions = call["args"][1]
    while "TypeCast" in dimensions:
        dimensions = dimensions["TypeCast"]["arg"]
    counts: list[Node] = dimensions.get("A_ArrayExpr", {}).get("elements", [])
    return counts


def _is_plain(value: Node) -> bool:
    """Tell whether the value is made of columns and constants, by sums at most."""
    pending = [value]
    while pending:
        ((kind, node),) = pending.pop().items()
        if kind == "A_Expr":
            pending += _summands(node)
        elif kind not in ("ColumnRef", "A_Const"):
            return False
    return True


def _summands(node: Node) -> list[Node]:
    """Return both sides of a sum; what else is computed is not plain."""
    is_operator = node.get("kind", "AEXPR_OP") == "AEXPR_OP"
    is_sum = is_operator and strings(node["name"])[-1] in _SUMS
    has_two_sides = "lexpr" in node
    if is_sum and has_two_sides:
        return [node["lexpr"], node["rexpr"]]
    return [{"": node}]


def _limit(call: Node) -> None:
    name = strings(call.get("funcname", ()))[-1]
    arguments = call.get("args", ())
    if name == "factorial":
        arguments[0] = _counted(arguments[0])
    elif name == "array_fill":
        counts = dimensions_of(call)
        counts[:] = [_cast(_cast(count, "int2"), "int4") for count in counts]
    elif name in AMOUNT_FUNCTIONS:
        arguments[_AMOUNT_AT] = _cast(arguments[_AMOUNT_AT], "int2")


def _counted(value: Node) -> Node:
    """Return an expression that is `value`, and an error where it is large."""
    scaled = _operation("*", _cast(deepcopy(value), "numeric"), _whole(_SCALE))
    nothing = _operation("*", _whole(0), _cast(scaled, "int2"))
    return _operation("-", value, nothing)


def _operation(symbol: str, left: Node, right: Node) -> Node:
    name = [{"String": {"sval": "pg_catalog"}}, {"String": {"sval": symbol}}]
    return {"A_Expr": {"kind": "AEXPR_OP", "name": name, "lexpr": left, "rexpr": right}}


def _whole(number: int) -> Node:
    value = {}
    if number:
        value = {"ival": number}
    return {"A_Const": {"ival": value}}


def _cast(value: Node, name: str) -> Node:
    names = [{"String": {"sval": "pg_catalog"}}, {"String": {"sval": name}}]
    return {"TypeCast": {"arg": value, "typeName": {"names": names, "typemod": -1}}}
