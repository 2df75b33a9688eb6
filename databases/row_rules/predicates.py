"""SQL that the operator writes: one expression each, parsed by PostgreSQL's parser, with places for the actor's values.

`:user_id` and `:groups` are no SQL. Before parsing they become parameters (`$1`, `$2`), and in the tree these become
constants. So no value of an actor is ever part of a text that is parsed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from postgast import PgQueryError, scan

from common.errors import CituError, InvalidSql
from databases.guard.parsing import Node, parse, token_names
from databases.guard.walk import walk

PLACEHOLDERS = ("user_id", "groups")
"""In the order of the parameters that stand for them, from `$1` on."""

_SELECT_KEYS = frozenset(("targetList", "limitOption", "op"))  # of a SELECT with nothing but its list
_COMMENTS = frozenset(("SQL_COMMENT", "C_COMMENT"))
_HINT = "NULL, a text as \"'***'\", or an expression such as left(phone, 3) || '****'"


class NotASql(Exception):
    """The text can't be used; the message says why, as part of a sentence."""


@dataclass(frozen=True, eq=False)
class Sql:
    """A proven expression.

    Attributes:
        text: as it was written.
        tree: PostgreSQL's tree of it, in which parameters stand for the actor's values.
        placeholders: the names of those that occur.
    """

    text: str
    tree: Node
    placeholders: frozenset[str]


def condition(text: str) -> Sql:
    """The condition that rows must meet.

    Raises:
        NotASql: it is not one expression that may be a condition.
    """
    sql = _parsed(text)
    constant = sql.tree.get("A_Const", {})
    if constant and "boolval" not in constant:
        raise NotASql("it is no condition: write a comparison of columns, or all for all rows")
    return sql


def value(text: str) -> Sql:
    """What is shown instead of a column's value: a constant, or an expression over columns of the same row.

    Raises:
        NotASql: it is not one such expression.
    """
    try:
        sql = _parsed(text)
    except NotASql as error:
        raise NotASql(f"{error}; a mask is {_HINT}") from None
    if any(kind == "SubLink" for kind, _ in nodes(sql.tree)):
        raise NotASql("a mask may not have subqueries")
    if any("over" in node for kind, node in nodes(sql.tree) if kind == "FuncCall"):
        raise NotASql("a mask may not have window functions (OVER)")
    return sql


def with_constants(tree: Any, user_id: str | None, groups: Sequence[str]) -> Any:
    """The tree with the actor's values in their places; the tree itself stays as it is."""
    if isinstance(tree, list):
        return [with_constants(each, user_id, groups) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if "ParamRef" in tree:
        return _constant(user_id) if tree["ParamRef"]["number"] == 1 else _texts(groups)
    return {key: with_constants(child, user_id, groups) for key, child in tree.items()}


def nodes(value: Any) -> Iterator[tuple[str, Node]]:
    """All nodes below `value` with their kinds or the names of their fields."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, dict):
            yield from ((key, child) for key, child in each.items() if isinstance(child, dict))
            pending.extend(each.values())


def _parsed(text: str) -> Sql:
    sql, found = _with_parameters(text.strip())
    try:
        statements = parse(f"SELECT ({sql})")
        walk(statements[0].kind, statements[0].node)
        tree = _only_value(f"SELECT {sql}")
        _only_value(f"SELECT ({sql})")  # as it stands in a statement: `ALL x`, `x;` and the like are no operands
    except InvalidSql as error:
        raise NotASql(f"it is no SQL expression ({error.detail})") from None
    except CituError as error:
        raise NotASql(str(error).rstrip(".")) from None
    return Sql(text.strip(), tree, found)


def _only_value(sql: str) -> Node:
    """The value of a SELECT whose tree must have exactly that shape."""
    statements = parse(sql)
    select = statements[0].node if len(statements) == 1 and statements[0].kind == "SelectStmt" else {}
    targets = select.get("targetList", ())
    if len(targets) != 1 or not select.keys() <= _SELECT_KEYS or select.get("op") != "SETOP_NONE":
        raise NotASql("it is not one SQL expression")
    target: Node = targets[0].get("ResTarget", {})
    if "name" in target or "indirection" in target or "val" not in target:
        raise NotASql("it is not one SQL expression: it gives itself a name")
    tree: Node = target["val"]
    return tree


def _with_parameters(text: str) -> tuple[str, frozenset[str]]:
    """The text with parameters in the places of placeholders, and the names of these."""
    data = text.encode("utf-8", "replace")
    try:
        tokens = list(scan(text).tokens)
    except PgQueryError as error:
        raise NotASql(f"it is no SQL expression ({error.message})") from None
    names = token_names(tokens)
    if any(name in _COMMENTS for name in names):
        raise NotASql("comments are not allowed in it")
    if "PARAM" in names:
        raise NotASql("write :user_id or :groups instead of $1")
    found: set[str] = set()
    for place in reversed([at for at, name in enumerate(names[:-1]) if name == "ASCII_58"]):
        colon, word = tokens[place], tokens[place + 1]
        name = data[word.start : word.end].decode("utf-8", "replace")
        if colon.end != word.start or not name[0].isidentifier():  # a[1:2] and a[1 : n] are slices
            continue
        if name not in PLACEHOLDERS:
            raise NotASql(f"there is no placeholder :{name}, but :user_id and :groups; a slice is written [1 : n]")
        found.add(name)
        data = data[: colon.start] + f"${PLACEHOLDERS.index(name) + 1}".encode() + data[word.end :]
    return data.decode("utf-8", "replace"), frozenset(found)


def _constant(text: str | None) -> Node:
    return {"A_Const": {"isnull": True} if text is None else {"sval": {"sval": text} if text else {}}}


def _texts(texts: Sequence[str]) -> Node:
    array: Node = {"A_ArrayExpr": {"elements": list(map(_constant, texts))} if texts else {}}
    type_name = {"names": [{"String": {"sval": "text"}}], "typemod": -1, "arrayBounds": [{"Integer": {"ival": -1}}]}
    return {"TypeCast": {"arg": array, "typeName": type_name}}
