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
_SUMS = frozenset((("+",), ("-",)))
_LEAVES = frozenset(("ColumnRef", "A_Const"))


def limit_amounts(select: Node, places: Collection[int]) -> bool:
    """Limit the amounts of the calls at `places` in the text; return whether there are any."""
    for kind, node in nodes(select):
        location = node.get("location", 0)
        is_limited = kind == "FuncCall" and location in places
        if is_limited:
            _limit(node)

    return bool(places)


def is_countable(call: Node) -> bool:
    """Tell whether PostgreSQL can prove the count of a `factorial`.

    It is written twice, so it has to be plain: columns, constants, and their sums.
    """
    pending = list(call.get("args", ()))
    while pending:
        ((kind, node),) = pending.pop().items()
        is_leaf = kind in _LEAVES
        is_sum = kind == "A_Expr" and _is_sum(node)
        if is_sum:
            pending += [node["lexpr"], node["rexpr"]]
        elif not is_leaf:
            return False

    return True


def dimensions_of(call: Node) -> list[Node]:
    """Return the counts of an `array_fill`; none if its dimensions are not written as an array."""
    dimensions = call["args"][1]
    while "TypeCast" in dimensions:
        dimensions = dimensions["TypeCast"]["arg"]

    counts: list[Node] = dimensions.get("A_ArrayExpr", {}).get("elements", [])
    return counts


def _is_sum(node: Node) -> bool:
    """Tell whether the operation is a sum or difference of two values."""
    symbol = strings(node.get("name", ()))[-1:]
    is_operator = node.get("kind", "AEXPR_OP") == "AEXPR_OP"
    has_two_sides = "lexpr" in node
    return is_operator and has_two_sides and symbol in _SUMS


def _limit(call: Node) -> None:
    name = strings(call.get("funcname", ()))[-1]
    arguments = call.get("args", ())
    if name == "factorial":
        arguments[0] = _counted(arguments[0])
    elif name == "array_fill":
        counts = dimensions_of(call)
        limited = [_cast(count, "int2") for count in counts]
        counts[:] = [_cast(count, "int4") for count in limited]
    elif name in AMOUNT_FUNCTIONS:
        amount = arguments[_AMOUNT_AT]
        arguments[_AMOUNT_AT] = _cast(amount, "int2")


def _counted(value: Node) -> Node:
    """Return an expression that is `value`, and an error where it is large."""
    scaled = _operation("*", _cast(deepcopy(value), "numeric"), _integer_node(_SCALE))
    nothing = _operation("*", _integer_node(0), _cast(scaled, "int2"))
    return _operation("-", value, nothing)


def _operation(symbol: str, left: Node, right: Node) -> Node:
    name = [{"String": {"sval": "pg_catalog"}}, {"String": {"sval": symbol}}]
    return {"A_Expr": {"kind": "AEXPR_OP", "name": name, "lexpr": left, "rexpr": right}}


def _integer_node(number: int) -> Node:
    value = {}
    if number:
        value = {"ival": number}

    return {"A_Const": {"ival": value}}


def _cast(value: Node, name: str) -> Node:
    names = [{"String": {"sval": "pg_catalog"}}, {"String": {"sval": name}}]
    return {"TypeCast": {"arg": value, "typeName": {"names": names, "typemod": -1}}}
