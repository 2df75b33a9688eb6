"""Tells in which order a query gives its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqltree.parsing import Node
from sqltree.tree_values import children_of, column_name
from sqltree.writing import is_equal


@dataclass(frozen=True)
class RowOrder:
    """The order of a query's rows.

    Attributes:
        first_key: the place of the result's column by which they are sorted before anything else;
            None where there is none, or it can't be told.
        is_open: nothing in the statement says in which order they come.
    """

    first_key: int | None
    is_open: bool


def row_order(select: Node, columns: Sequence[str]) -> RowOrder:
    """Return the order of the rows of a SELECT, whose result's columns are `columns`."""
    keys = select.get("sortClause", [])
    if not keys:
        return RowOrder(None, not any(_order_clauses(select)))

    key = keys[0].get("SortBy", {}).get("node", {})
    targets = [target.get("ResTarget", {}) for target in select.get("targetList", ())]
    if len(targets) != len(columns):  # `*` stands for several
        targets = []

    return RowOrder(_place_of(key, targets, columns), is_open=False)


def _place_of(key: Node, targets: Sequence[Node], columns: Sequence[str]) -> int | None:
    position = key.get("A_Const", {}).get("ival", {}).get("ival", 0)
    if position:
        return int(position) - 1

    name = column_name(key)
    if len(name) == 1 and name[0] in columns:
        return columns.index(name[0])

    for place, target in enumerate(targets):
        if is_equal(target.get("val", {}), key):
            return place

    return None


def _order_clauses(node: Node) -> Iterator[bool]:
    """Yield True for each ORDER BY, in any part of the statement."""
    for field, child in children_of(node):
        if field in ("sortClause", "orderClause"):
            yield True

        yield from _order_clauses(child)
