"""Turns a tree into text, and proves that the text is that tree: PostgreSQL's parser must read it back the same."""

from typing import Any

from google.protobuf import json_format
from postgast import ParseResult, PgQueryError, deparse

from common.errors import InvalidSql, ValidationFailed
from databases.guard.parsing import Node, parse
from databases.row_rules import texts

# Fields that say where something stands in the text, and nothing else.
_PLACES = frozenset(
    ("location", "name_location", "list_start", "list_end", "rexpr_list_start", "rexpr_list_end", "stmt_location")
    + ("stmt_len",)
)
_MAX_DEPTH = 5_000  # Python's own limit on recursion comes first


def text_of(select: Node) -> str:
    """The text of a query.

    Raises:
        ValidationFailed: it has none that is surely this tree: libpg_query writes it differently, or it is too deep.
    """
    try:
        message = json_format.ParseDict(
            {"stmts": [{"stmt": {"SelectStmt": select}}]}, ParseResult(), max_recursion_depth=_MAX_DEPTH
        )
        text = str(deparse(message))
        if _is_same(text, select):
            return text
    except (PgQueryError, json_format.ParseError, InvalidSql, RecursionError, ValueError) as error:
        raise ValidationFailed(texts.NOT_REWRITABLE) from error
    raise ValidationFailed(texts.NOT_REWRITABLE)


def _is_same(text: str, select: Node) -> bool:
    statements = parse(text)
    return len(statements) == 1 and _placeless(statements[0].node) == _placeless(select)


def _placeless(tree: Any) -> Any:
    """The tree without places."""
    if isinstance(tree, list):
        return [_placeless(each) for each in tree]
    if isinstance(tree, dict):
        return {key: _placeless(child) for key, child in tree.items() if key not in _PLACES}
    return tree
