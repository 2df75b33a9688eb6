"""Turns a tree into text, which PostgreSQL's parser must read back as the same tree."""

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


def text_of(select: Node) -> str:
    """Return the text of a query.

    Raises:
        ValidationFailed: it has none that is surely this tree: libpg_query writes it differently,
            or it is too deep.
    """
    try:
        result = ParseResult()
        _fill(result.stmts.add().stmt.select_stmt, select)
        text = str(deparse(result))
        if _is_same(text, select):
            return text
    except RecursionError as error:
        raise ValidationFailed(TOO_DEEP) from error
    except (PgQueryError, InvalidSql, KeyError, TypeError, ValueError) as error:
        raise ValidationFailed(NOT_WRITABLE) from error
    raise ValidationFailed(NOT_WRITABLE)


def _is_same(text: str, select: Node) -> bool:
    statements = parse(text)
    if len(statements) != 1:
        return False
    return is_equal(statements[0].node, select)


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


def _fill(message: Any, node: Node) -> None:
    """Fill the message that libpg_query writes texts of.

    Protobuf's own reader of JSON takes ten times longer.

    Raises:
        KeyError, TypeError, ValueError: the node has a field that the message has not.
    """
    fields = _fields(message.DESCRIPTOR)
    for key, value in node.items():
        field = fields[key]
        if isinstance(value, list):
            for each in value:
                _fill(getattr(message, field.name).add(), each)
        elif isinstance(value, dict):
            child = getattr(message, field.name)
            child.SetInParent()
            _fill(child, value)
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
