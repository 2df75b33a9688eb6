"""GROUP BY a primary key: PostgreSQL then lets a query read the table's other columns, which it doesn't for a subquery.

Those that the query reads are grouped by as well, which makes the same groups.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from databases.guard.parsing import Node
from databases.guard.walk import strings
from databases.row_rules.predicates import nodes
from databases.row_rules.references import Item

# Parts of a SELECT whose columns must be grouped by or stand in aggregates.
_READING = ("targetList", "havingClause", "sortClause", "distinctClause", "windowClause")


def group_by_all(select: Node, items: Sequence[Item], keys: Sequence[Sequence[str]]) -> None:
    """Adds to the GROUP BY what the primary keys in it stand for.

    Args:
        items: what the SELECT reads from.
        keys: of each item, the primary key's columns as stored; empty: it has none, or one that is masked.
    """
    grouped = select.get("groupClause", [])
    if not grouped or any("GroupingSet" in each for each in grouped):
        return
    names = {name for each in grouped for name in _grouped_names(each, select)}
    for item, key in zip(items, keys, strict=True):
        called = [item.columns[item.table.columns.index(column)] for column in key] if item.table else []
        if called and all((column,) in names or (item.called, column) in names for column in called):
            grouped.extend(_reference(item.name, column) for column in _read_columns(select, item, names))


def _grouped_names(value: Node, select: Node) -> Iterator[tuple[str, ...]]:
    """The column that an item of a GROUP BY means: by its name, its place in the list or a name that is given there."""
    targets = [target["ResTarget"] for target in select.get("targetList", ())]
    name = _name(value)
    place = value.get("A_Const", {}).get("ival", {}).get("ival", 0)
    if 0 < place <= len(targets):
        name = _name(targets[place - 1].get("val", {}))
    if name:
        yield name
    yield from (_name(target.get("val", {})) for target in targets if name == (target.get("name"),))


def _name(value: Node) -> tuple[str, ...]:
    return strings(value.get("ColumnRef", {}).get("fields", ()))[-2:]


def _read_columns(select: Node, item: Item, names: set[tuple[str, ...]]) -> Iterator[str | None]:
    """The columns of the item that the SELECT may read and does not group by; None: its row as a whole."""
    read = list(map(_last_two, _references(select)))
    is_all = any(name in (("*",), (item.called, "*")) for name in read)
    for column in item.columns:
        is_read = is_all or (column,) in read or (item.called, column) in read
        if is_read and (column,) not in names and (item.called, column) not in names:
            yield column
    if (item.called,) in read and item.called not in item.columns:
        yield None


def _references(select: Node) -> Iterator[Node]:
    parts: list[Any] = [select.get(clause, ()) for clause in _READING]
    return (node for kind, node in nodes(parts) if kind == "ColumnRef")


def _last_two(node: Node) -> tuple[str, ...]:
    return strings(node["fields"])[-2:]


def _reference(name: str, column: str | None) -> Node:
    parts = (name,) if column is None else (name, column)
    return {"ColumnRef": {"fields": [{"String": {"sval": part}} for part in parts]}}
