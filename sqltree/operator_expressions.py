"""SQL expressions that an operator writes: a metric's aggregate, a filter's condition.

Each is proven by PostgreSQL's own parser to be one expression over the columns of its own table, so
that it can be put into any statement about that table. The statement is proven by the guard again,
like any other.
"""

from dataclasses import dataclass
from functools import lru_cache

from postgast import scan

from common.errors import CituError, InvalidSql
from sqltree.parsing import COMMENTS, Node, nodes, parse, token_names
from sqltree.tree_values import last_name, names_in

_SELECT_KEYS = frozenset(
    ("targetList", "limitOption", "op")
)  # of a SELECT with nothing but its list
_CALL_KEYS = frozenset(
    ("funcname", "args", "agg_star", "funcformat", "location")
)  # of f(column) and f(*)
_TARGET_KEYS = frozenset(("val", "location"))

# Kinds of nodes that reach beyond the table's rows.
_REFUSED = {
    "SubLink": "subqueries are not allowed",
    "ParamRef": "parameters ($1) are not allowed",
    "GroupingFunc": "GROUPING is not allowed",
    "WindowDef": "window functions (OVER) are not allowed",
    "SetToDefault": "DEFAULT is not allowed",
}


class NotAnExpression(Exception):
    """The text can't be used; the message says why, as part of a sentence."""


@dataclass(frozen=True)
class Expression:
    """A proven expression.

    Attributes:
        text: as it was written.
        columns: names of the columns that it reads, each once, in order.
        calls: whether it calls a function; an aggregate is one.
        places: where its columns stand in the text, in characters.
        call: the function's name where it is one plain call, of a column or of all rows:
            sum(amount), count(*).
    """

    text: str
    columns: tuple[str, ...]
    calls: bool
    places: tuple[int, ...]
    call: str | None = None

    def of(self, alias: str) -> str:
        """Return the text with its columns qualified by `alias`, which is written as SQL takes
        it.
        """
        text = self.text
        for place in reversed(self.places):
            text = f"{text[:place]}{alias}.{text[place:]}"

        return text


@lru_cache(maxsize=2_000)
def expression(text: str) -> Expression:
    """Prove that `text` is an expression.

    Raises:
        NotAnExpression: it is none, or reaches beyond one table's rows: subqueries, window
            functions, parameters, qualified columns, whole rows. Comments are refused, because what
            follows them in a statement would be lost.
    """
    text = text.strip()
    value = _only_value(text, "", "")
    # In brackets, too, as it stands in a statement: `ALL x`, `x;` and the like are no operands.
    _only_value(text, "(", ")")
    kinds = token_names(scan(text).tokens)
    if not COMMENTS.isdisjoint(kinds):
        raise NotAnExpression("comments are not allowed in it")

    data = f"SELECT {text}".encode()
    columns: dict[int, str] = {}
    calls = False
    for kind, node in nodes(value):
        if kind in _REFUSED:
            raise NotAnExpression(_REFUSED[kind])
        if kind == "FuncCall" and "over" in node:
            raise NotAnExpression(_REFUSED["WindowDef"])
        if kind == "FuncCall":
            calls = True
        if kind == "ColumnRef":
            before = data[: node.get("location", 0)].decode("utf-8", "replace")
            place = len(before) - len("SELECT ")
            columns[place] = _column_name(node)

    ordered = sorted(columns)
    names = tuple(dict.fromkeys(columns[place] for place in ordered))
    return Expression(text, names, calls, tuple(ordered), _plain_call(value))


def _plain_call(node: Node) -> str | None:
    call: Node = node.get("FuncCall", {})
    names = call.get("funcname", ())
    arguments = call.get("args", ())
    is_plain = call.keys() <= _CALL_KEYS and len(names) == 1
    if not is_plain or len(arguments) > 1:
        return None

    for argument in arguments:
        if "ColumnRef" not in argument:
            return None

    return last_name(names)


def _only_value(text: str, before: str, after: str) -> Node:
    """Return the value of `SELECT text`, whose tree must have exactly that shape."""
    try:
        statements = parse(f"SELECT {before}{text}{after}")
    except InvalidSql as error:
        raise NotAnExpression(f"it is no SQL expression ({error.detail})") from None
    except CituError as error:
        raise NotAnExpression(str(error).rstrip(".")) from None

    kinds = [statement.kind for statement in statements]
    if kinds != ["SelectStmt"]:
        raise NotAnExpression("it is not one SQL expression")

    select = statements[0].node
    targets = select.get("targetList", ())
    is_union = select.get("op", "SETOP_NONE") != "SETOP_NONE"
    has_more = len(targets) != 1 or not select.keys() <= _SELECT_KEYS
    if is_union or has_more:
        raise NotAnExpression("it is not one SQL expression")

    target: Node = targets[0].get("ResTarget", {})
    is_named = not target.keys() <= _TARGET_KEYS or "val" not in target
    if is_named:
        raise NotAnExpression("it is not one SQL expression: it gives itself a name")

    value: Node = target["val"]
    return value


def _column_name(node: Node) -> str:
    fields = node.get("fields", ())
    names = names_in(fields)
    is_plain = len(names) == len(fields) == 1
    if not is_plain:
        raise NotAnExpression("write its columns as plain names, without the table's")

    return names[0]
