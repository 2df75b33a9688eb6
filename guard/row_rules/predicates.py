"""SQL that the operator writes: one expression each, parsed by PostgreSQL's parser, with places for
the actor's values.

`:user_id` and `:groups` are no SQL. Before parsing they become parameters (`$1`, `$2`), and in the
tree these become constants. So no value of an actor is ever part of a text that is parsed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from postgast import PgQueryError, scan

from common.errors import CituError, InvalidSql
from guard.walk import walk
from sqltree.parsing import Node, nodes, parse, token_names

PLACEHOLDERS = ("user_id", "groups")
"""In the order of the parameters that stand for them, from `$1` on."""

_SELECT_KEYS = frozenset(
    ("targetList", "limitOption", "op")
)  # of a SELECT with nothing but its list
_COMMENTS = frozenset(("SQL_COMMENT", "C_COMMENT"))
_NOT_ONE = "it is not one SQL expression"
_HINT = "NULL, a text as \"'***'\", or an expression such as left(phone, 3) || '****'"


class NotASql(Exception):
    """Says why the text can't be used, as part of a sentence."""


@dataclass(frozen=True, eq=False)
class OperatorSql:
    """A proven expression.

    Attributes:
        text: as it was written.
        tree: PostgreSQL's tree of it, in which parameters stand for the actor's values.
        placeholders: the names of those that occur.
    """

    text: str
    tree: Node
    placeholders: frozenset[str]


def condition(text: str) -> OperatorSql:
    """Return the condition that rows must meet.

    Raises:
        NotASql: it is not one expression that may be a condition.
    """
    sql = _parsed(text)
    constant = sql.tree.get("A_Const", {})
    is_value = constant and "boolval" not in constant
    if is_value:
        raise NotASql("it is no condition: write a comparison of columns, or all for all rows")

    return sql


def value(text: str) -> OperatorSql:
    """Return what is shown instead of a column's value: a constant, or an expression over columns
    of the same row.

    Raises:
        NotASql: it is not one such expression.
    """
    try:
        sql = _parsed(text)
    except NotASql as error:
        raise NotASql(f"{error}; a mask is {_HINT}") from None

    for kind, node in nodes(sql.tree):
        is_window = kind == "FuncCall" and "over" in node
        if is_window:
            raise NotASql("a mask may not have window functions (OVER)")
        if kind == "SubLink":
            raise NotASql("a mask may not have subqueries")

    return sql


def with_constants(tree: Any, user_id: str | None, groups: Sequence[str]) -> Any:
    """Return the tree with the actor's values in their places; the tree itself stays as it is."""
    if isinstance(tree, list):
        found = []
        for each in tree:
            found.append(with_constants(each, user_id, groups))

        return found

    if not isinstance(tree, dict):
        return tree
    if "ParamRef" in tree:
        is_user_id = tree["ParamRef"]["number"] == 1
        if is_user_id:
            return _constant(user_id)

        return _texts(groups)

    fields = {}
    for key, child in tree.items():
        fields[key] = with_constants(child, user_id, groups)

    return fields


def _parsed(text: str) -> OperatorSql:
    sql, found = _with_parameters(text.strip())
    try:
        statements = parse(f"SELECT ({sql})")
        walk(statements[0].kind, statements[0].node)
        tree = _only_value(f"SELECT {sql}")
        _only_value(
            f"SELECT ({sql})"
        )  # as it stands in a statement: `ALL x`, `x;` and the like are no operands
    except InvalidSql as error:
        raise NotASql(f"it is no SQL expression ({error.detail})") from None
    except CituError as error:
        raise NotASql(str(error).rstrip(".")) from None

    return OperatorSql(text.strip(), tree, found)


def _only_value(sql: str) -> Node:
    """Return the value of a SELECT whose tree must have exactly that shape."""
    statements = parse(sql)
    kinds = [statement.kind for statement in statements]
    if kinds != ["SelectStmt"]:
        raise NotASql(_NOT_ONE)

    select = statements[0].node
    targets = select.get("targetList", ())
    is_plain = select.keys() <= _SELECT_KEYS and select.get("op") == "SETOP_NONE"
    has_one = len(targets) == 1
    if not (is_plain and has_one):
        raise NotASql(_NOT_ONE)

    target: Node = targets[0].get("ResTarget", {})
    is_named = not target.keys().isdisjoint(("name", "indirection"))
    if is_named or "val" not in target:
        raise NotASql(f"{_NOT_ONE}: it gives itself a name")

    tree: Node = target["val"]
    return tree


def _with_parameters(text: str) -> tuple[str, frozenset[str]]:
    """Return the text with parameters in the places of placeholders, and the names of these."""
    data = text.encode("utf-8", "replace")
    try:
        tokens = list(scan(text).tokens)
    except PgQueryError as error:
        raise NotASql(f"it is no SQL expression ({error.message})") from None

    names = token_names(tokens)
    if not _COMMENTS.isdisjoint(names):
        raise NotASql("comments are not allowed in it")
    if "PARAM" in names:
        raise NotASql("write :user_id or :groups instead of $1")

    found: set[str] = set()
    colons = [place for place, name in enumerate(names[:-1]) if name == "ASCII_58"]
    for place in reversed(colons):
        colon, word = tokens[place], tokens[place + 1]
        name = data[word.start : word.end].decode("utf-8", "replace")
        is_slice = colon.end != word.start or not name[0].isidentifier()  # a[1:2] and a[1 : n]
        if is_slice:
            continue

        found.add(name)
        parameter = _parameter(name)
        data = data[: colon.start] + parameter + data[word.end :]

    return data.decode("utf-8", "replace"), frozenset(found)


def _parameter(placeholder: str) -> bytes:
    if placeholder not in PLACEHOLDERS:
        raise NotASql(
            f"there is no placeholder :{placeholder}, but :user_id and :groups;"
            " a slice is written [1 : n]"
        )

    number = PLACEHOLDERS.index(placeholder) + 1
    return f"${number}".encode()


def _constant(text: str | None) -> Node:
    if text is None:
        return {"A_Const": {"isnull": True}}

    value = {}
    if text:
        value = {"sval": text}

    return {"A_Const": {"sval": value}}


def _texts(texts: Sequence[str]) -> Node:
    array: Node = {"A_ArrayExpr": {"elements": list(map(_constant, texts))} if texts else {}}
    type_name = {
        "names": [{"String": {"sval": "text"}}],
        "typemod": -1,
        "arrayBounds": [{"Integer": {"ival": -1}}],
    }
    return {"TypeCast": {"arg": array, "typeName": type_name}}
