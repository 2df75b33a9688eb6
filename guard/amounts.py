"""Has PostgreSQL prove that an amount is small which the statement's text doesn't prove.

`repeat(name, n)` builds as much as the stored `n` says. In the statement that is sent, `n` is read
as a smallint, so that PostgreSQL refuses larger ones before it builds anything.
"""

from collections.abc import Collection
from typing import Any

from sqltree.parsing import Node

_AMOUNT_AT = 1  # among the arguments


def limit_amounts(select: Node, places: Collection[int]) -> bool:
    """Cast the amounts of the calls at `places` in the text; return whether there are any."""
    pending: list[Any] = [select]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            call = value.get("FuncCall", {})
            if call.get("location", 0) in places:
                _limit(call)
            pending += value.values()
    return bool(places)


def _limit(call: Node) -> None:
    arguments = call.get("args", ())
    if len(arguments) > _AMOUNT_AT:
        arguments[_AMOUNT_AT] = _smallint(arguments[_AMOUNT_AT])


def _smallint(value: Node) -> Node:
    names = [{"String": {"sval": "pg_catalog"}}, {"String": {"sval": "int2"}}]
    return {"TypeCast": {"arg": value, "typeName": {"names": names, "typemod": -1}}}
