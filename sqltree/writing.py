"""Turns a tree into text, which PostgreSQL's parser must read back as the same tree."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from postgast import ParseResult, PgQueryError, deparse

from common.errors import InvalidSql, ValidationFailed
from common.text import Text
from sqltree.parsing import TOO_DEEP, Node, parse

NOT_WRITABLE = Text(
    "无法改写这条语句，请换一种写法。",
    "This statement can't be rewritten as it has to be: write it in another way.",
)

_SPECIAL = re.compile(r'[\\"]')  # in an element of an array
# Fields that say where something stands in the text, and nothing else.
_PLACES = frozenset(
    (
        "location",
        "name_location",
        "list_start",
        "list_end",
        "rexpr_list_start",
        "rexpr_list_end",
        "stmt_location",
        "stmt_len",
    )
)

_FIRST_PARAMETER = 100_000_000  # that the text itself will hardly have
_EMPTY_SELECT = {"limitOption": "LIMIT_OPTION_DEFAULT", "op": "SETOP_NONE"}


def text_of(select: Node) -> str:
    """Return the text of a query.

    Raises:
        ValidationFailed: it has none that is surely this tree: libpg_query writes it differently,
            or it is too deep.
    """
    try:
        text = _written(select)
        if _is_same(text, select):
            return text
    except RecursionError as error:
        raise ValidationFailed(TOO_DEEP) from error
    except (PgQueryError, InvalidSql, KeyError, TypeError, ValueError) as error:
        raise ValidationFailed(NOT_WRITABLE) from error

    raise ValidationFailed(NOT_WRITABLE)


def _written(select: Node) -> str:
    """Return what libpg_query writes for a query.

    It forgets the parentheses around most of what has subscripts, `(CASE … END)[1]`. So these parts
    are written by themselves, and stand as parameters meanwhile.
    """
    result = ParseResult()
    subscripted: list[Node] = []
    _fill(result.stmts.add().stmt.select_stmt, select, subscripted)
    text = str(deparse(result))
    for number, part in enumerate(subscripted, _FIRST_PARAMETER):
        alone = {**_EMPTY_SELECT, "targetList": [{"ResTarget": {"val": part}}]}
        written = _written(alone).removeprefix("SELECT ")
        text = text.replace(f"${number}", f"({written})", 1)

    return text


def _is_same(text: str, select: Node) -> bool:
    statements = parse(text)
    if len(statements) != 1:
        return False

    return is_equal(statements[0].node, select)


def array_text(texts: Iterable[str]) -> str:
    """Return the array of these texts as PostgreSQL writes it: `{"a","b"}`, and `{}` for none."""
    escaped = [_SPECIAL.sub(r"\\\g<0>", text) for text in texts]
    elements = ",".join(f'"{text}"' for text in escaped)
    return f"{{{elements}}}"


def is_equal(one: Any, other: Any) -> bool:
    """Tell whether the trees are equal but for places."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        keys = (one.keys() | other.keys()) - _PLACES
        ours = [one.get(key) for key in keys]
        theirs = [other.get(key) for key in keys]
        return all(map(is_equal, ours, theirs))

    if isinstance(one, list):
        has_one_length = len(one) == len(other)
        return has_one_length and all(map(is_equal, one, other))

    return bool(one == other)


def _fill(message: Any, node: Node, subscripted: list[Node]) -> None:
    """Fill the message that libpg_query writes texts of.

    Protobuf's own reader of JSON takes ten times longer.

    Args:
        subscripted: takes what has subscripts; a parameter stands for it in the message.

    Raises:
        KeyError, TypeError, ValueError: the node has a field that the message has not.
    """
    fields = _fields(message.DESCRIPTOR)
    if "A_Indirection" in node:
        subscripts = node["A_Indirection"]
        parameter = {"ParamRef": {"number": _FIRST_PARAMETER + len(subscripted)}}
        subscripted.append(subscripts["arg"])
        node = {"A_Indirection": {**subscripts, "arg": parameter}}

    for key, value in node.items():
        field = fields[key]
        if isinstance(value, list):
            for each in value:
                _fill(getattr(message, field.name).add(), each, subscripted)
        elif isinstance(value, dict):
            child = getattr(message, field.name)
            child.SetInParent()
            _fill(child, value, subscripted)
        else:
            number_or_text = value
            if field.enum_type is not None:
                number_or_text = field.enum_type.values_by_name[value].number

            setattr(message, field.name, number_or_text)


@cache
def _fields(descriptor: Any) -> dict[str, Any]:
    """Return the fields of a kind of message, by their names in libpg_query's JSON."""
    fields = {}
    for field in descriptor.fields:
        fields[field.json_name] = field

    return fields
