"""Turns a tree into text, and proves that the text is that tree: PostgreSQL's parser must read it back the same."""

from functools import cache
from typing import Any

from postgast import ParseResult, PgQueryError, deparse

from common.errors import InvalidSql, ValidationFailed
from databases.guard.parsing import TOO_DEEP, Node, parse
from databases.row_rules import texts

# Fields that say where something stands in the text, and nothing else.
_PLACES = frozenset(
    ("location", "name_location", "list_start", "list_end", "rexpr_list_start", "rexpr_list_end", "stmt_location")
    + ("stmt_len",)
)


def text_of(select: Node) -> str:
    """The text of a query.

    Raises:
        ValidationFailed: it has none that is surely this tree: libpg_query writes it differently, or it is too deep.
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
        raise ValidationFailed(texts.NOT_REWRITABLE) from error
    raise ValidationFailed(texts.NOT_REWRITABLE)


def _is_same(text: str, select: Node) -> bool:
    statements = parse(text)
    return len(statements) == 1 and is_equal(statements[0].node, select)


def is_equal(one: Any, other: Any) -> bool:
    """Whether the trees are equal but for places."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(is_equal(one.get(key), other.get(key)) for key in (one.keys() | other.keys()) - _PLACES)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    return bool(one == other)


def _fill(message: Any, node: Node) -> None:
    """Makes the message that libpg_query writes texts of; protobuf's own reader of JSON takes ten times longer.

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
            is_enum = field.enum_type is not None
            setattr(message, field.name, field.enum_type.values_by_name[value].number if is_enum else value)


@cache
def _fields(descriptor: Any) -> dict[str, Any]:
    """The fields of a kind of message, by their names in libpg_query's JSON."""
    return {field.json_name: field for field in descriptor.fields}
