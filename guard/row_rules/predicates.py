"""SQL that the operator writes: one expression each, parsed by PostgreSQL's parser, with places for
the actor's values.

`:user_id`, `:groups` and `:attribute.name` are not SQL. They become parameters (`$1`, `$2` …)
before parsing, and constants in the tree, so that no value of an actor is ever parsed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from postgast import PgQueryError, scan

from common.actor import Attributes
from common.errors import CituError, InvalidSql
from guard.walk import walk
from sqltree.parsing import Node, nodes, parse, token_names
from sqltree.writing import array_text

ATTRIBUTE = "attribute"
_PLACEHOLDERS = "there are :user_id, :groups and :attribute.name"
_LISTING = frozenset(("AEXPR_OP_ANY", "AEXPR_OP_ALL"))

# Of a SELECT that has only a list of expressions.
_SELECT_KEYS = frozenset(("targetList", "limitOption", "op"))
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
        tree: PostgreSQL's tree of it, in which parameters stand for the actor's values; each has
            the name of its placeholder, and says whether it stands for a list of values.
        placeholders: the names of those that occur; of an attribute `attribute.name`.
        single: the attributes that occur where one value is meant.
    """

    text: str
    tree: Node
    placeholders: frozenset[str]
    single: frozenset[str] = frozenset()

    @property
    def attributes(self) -> frozenset[str]:
        """Return the names of the attributes that occur."""
        names = set()
        for placeholder in self.placeholders:
            _, _, name = placeholder.partition(".")
            if name:
                names.add(name)

        return frozenset(names)


@dataclass(frozen=True)
class ActorValues:
    """Gives the values that placeholders stand for."""

    user_id: str | None = None
    groups: tuple[str, ...] = ()
    attributes: Attributes = ()

    def constant_for(self, parameter: Node) -> Node:
        """Return what stands in a parameter's place; NULL for an attribute without values."""
        placeholder = parameter["placeholder"]
        if placeholder == "user_id":
            return _constant(self.user_id)
        if placeholder == "groups":
            return _texts(self.groups)

        values = dict(self.attributes).get(placeholder.partition(".")[2], ())
        if not values:
            return _constant(None)
        if parameter["is_list"]:
            return _constant(array_text(values))

        return _constant(values[0])


def condition(text: str) -> OperatorSql:
    """Return the condition that rows must meet.

    Raises:
        NotASql: it is not one expression that may be a condition.
    """
    sql = _parse_operator_sql(text)
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
        sql = _parse_operator_sql(text)
    except NotASql as error:
        raise NotASql(f"{error}; a mask is {_HINT}") from None

    for kind, node in nodes(sql.tree):
        is_window = kind == "FuncCall" and "over" in node
        if is_window:
            raise NotASql("a mask may not have window functions (OVER)")
        if kind == "SubLink":
            raise NotASql("a mask may not have subqueries")

    return sql


def with_constants(tree: Any, values: ActorValues) -> Any:
    """Return the tree with the actor's values in their places; the tree itself stays as it is."""
    if isinstance(tree, list):
        replaced = []
        for each in tree:
            replaced.append(with_constants(each, values))

        return replaced

    if not isinstance(tree, dict):
        return tree
    if "ParamRef" in tree:
        return values.constant_for(tree["ParamRef"])

    fields = {}
    for key, child in tree.items():
        fields[key] = with_constants(child, values)

    return fields


def _parse_operator_sql(text: str) -> OperatorSql:
    sql, attributes = _with_parameters(text.strip())
    try:
        statements = parse(f"SELECT ({sql})")
        walk(statements[0].kind, statements[0].node)
        tree = _only_value(f"SELECT {sql}")
        # Statements have it in parentheses, in which `ALL x`, `x;` and the like are no operands.
        _only_value(f"SELECT ({sql})")
    except InvalidSql as error:
        raise NotASql(f"it is no SQL expression ({error.detail})") from None
    except CituError as error:
        raise NotASql(str(error).rstrip(".")) from None

    single = _name_parameters(tree, attributes)
    return OperatorSql(text.strip(), tree, frozenset(attributes), frozenset(single))


def _name_parameters(tree: Node, placeholders: Sequence[str]) -> set[str]:
    """Write into each parameter which placeholder it is, and whether it stands for a list.

    An attribute stands for a list in `ANY (:attribute.name)` and where it is cast to an array.
    Return the attributes that stand for one value.
    """
    lists = {id(parameter) for parameter in _list_operands(tree)}
    single = set()
    for kind, node in nodes(tree):
        if kind != "ParamRef":
            continue

        placeholder = placeholders[node["number"] - 1]
        node["placeholder"] = placeholder
        node["is_list"] = id(node) in lists
        _, _, attribute = placeholder.partition(".")
        if attribute and not node["is_list"]:
            single.add(attribute)

    return single


def _list_operands(tree: Node) -> Iterator[Node]:
    """Yield the parameters of a condition that stand for a list: in `= ANY ($1)`, `$1::text[]`."""
    for kind, node in nodes(tree):
        operand: Node = {}
        if kind == "A_Expr" and node.get("kind") in _LISTING:
            operand = node["rexpr"]
        if kind == "TypeCast" and "arrayBounds" in node["typeName"]:
            operand = node["arg"]
        if "ParamRef" in operand:
            yield operand["ParamRef"]


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


def _with_parameters(text: str) -> tuple[str, list[str]]:
    """Return the text with parameters in the places of placeholders, and the names of these in the
    order of their parameters, from `$1` on.
    """
    data = text.encode("utf-8", "replace")
    try:
        tokens = list(scan(text).tokens)
    except PgQueryError as error:
        raise NotASql(f"it is no SQL expression ({error.message})") from None

    names = token_names(tokens)
    if not _COMMENTS.isdisjoint(names):
        raise NotASql("comments are not allowed in it")
    if "PARAM" in names:
        raise NotASql("write :user_id, :groups or :attribute.name instead of $1")

    attributes: list[str] = []
    colons = [place for place, name in enumerate(names[:-1]) if name == "ASCII_58"]
    for place in reversed(colons):
        colon, word = tokens[place], tokens[place + 1]
        is_slice = colon.end != word.start or not _is_name(data[word.start : word.end])
        if is_slice:  # a[1:2] and a[1 : n]
            continue

        end = word.end
        if data[word.start : end] == ATTRIBUTE.encode():
            end = _end_of_attribute(data, tokens[place + 1 : place + 4])

        placeholder = _placeholder(data[word.start : end].decode("utf-8", "replace"))
        if placeholder not in attributes:
            attributes.append(placeholder)

        parameter = f"${attributes.index(placeholder) + 1}".encode()
        data = data[: colon.start] + parameter + data[end:]

    return data.decode("utf-8", "replace"), attributes


def _is_name(word: bytes) -> bool:
    return word.decode("utf-8", "replace")[0].isidentifier()


def _end_of_attribute(data: bytes, tokens: Sequence[Any]) -> int:
    """Return where `attribute.name` ends; `tokens` are `attribute` and at most two more."""
    if len(tokens) == 3:
        word, dot, name = tokens
        is_unbroken = word.end == dot.start and dot.end == name.start
        has_dot = data[dot.start : dot.end] == b"."
        if is_unbroken and has_dot and _is_name(data[name.start : name.end]):
            return int(name.end)

    raise NotASql("an attribute is written :attribute.name, for example :attribute.region")


def _placeholder(text: str) -> str:
    is_attribute = text.startswith(f"{ATTRIBUTE}.")
    if is_attribute or text in ("user_id", "groups"):
        return text

    raise NotASql(f"there is no placeholder :{text}: {_PLACEHOLDERS}; a slice is written [1 : n]")


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
