"""Reads what single nodes of PostgreSQL's parse tree hold: names, texts, the value under casts."""

from collections.abc import Iterable, Iterator

from common.errors import StatementRejected
from sqltree.parsing import Node, ParsedStatement, parse


def parse_one(sql: str) -> ParsedStatement | None:
    """Parse a text that should hold one statement; None when it can't be parsed or holds others."""
    try:
        statements = parse(sql)
    except StatementRejected:
        return None

    if len(statements) != 1:
        return None

    return statements[0]


def parse_query(sql: str, max_chars: int) -> Node | None:
    """Return the tree of one SELECT; None for any other text, and for one that is too long."""
    if len(sql) > max_chars:
        return None

    statement = parse_one(sql)
    if statement is None:
        return None

    is_query = statement.kind == "SelectStmt"
    return statement.node if is_query else None


def children_of(node: Node) -> Iterator[tuple[str, Node]]:
    """Yield the nodes that a node holds, also those in its lists, each with its field's name."""
    for field, value in node.items():
        if isinstance(value, dict):
            yield field, value
        elif isinstance(value, list):
            for child in value:
                yield field, child


def names_in(parts: Iterable[Node]) -> tuple[str, ...]:
    """Return the parts of a dotted name; the `*` of `t.*` is left out."""
    names = []
    for part in parts:
        if "String" in part:
            string = part["String"]
            name = str(string.get("sval", ""))
            names.append(name)

    return tuple(names)


def last_name(parts: Iterable[Node]) -> str:
    """Return the last part of the name of a function, a type or an operator; "" if it has none."""
    names = names_in(parts)
    return names[-1] if names else ""


def column_name(node: Node) -> tuple[str, ...]:
    """Return the parts of a column's name, as (`t`, `amount`); () for any other expression."""
    reference = node.get("ColumnRef", {})
    return names_in(reference.get("fields", ()))


def without_casts(node: Node) -> Node:
    while "TypeCast" in node:
        node = node["TypeCast"].get("arg", {})

    return node


def string_constant(node: Node) -> str:
    """Return the text of a string constant; "" for any other expression."""
    constant = node.get("A_Const", {})
    value = constant.get("sval", {})
    text = value.get("sval", "")
    return str(text)


def operands_of(node: Node) -> list[Node]:
    """Return the left and the right side of an operator, as far as it has them."""
    operands = []
    for side in ("lexpr", "rexpr"):
        if side in node:
            operands.append(node[side])

    return operands
