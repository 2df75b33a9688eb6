"""GROUP BY a primary key: PostgreSQL then lets a query read the table's other columns, which it
doesn't for a subquery.

Those that the query reads are grouped by as well, which makes the same groups.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from guard.row_rules.row_references import FromItem
from guard.walk import strings
from sqltree.parsing import Node, nodes

# Parts of a SELECT whose columns must be grouped by or stand in aggregates.
_READING = ("targetList", "havingClause", "sortClause", "distinctClause", "windowClause")


def group_by_all(select: Node, items: Sequence[FromItem], keys: Sequence[Sequence[str]]) -> None:
    """Add to the GROUP BY what the primary keys in it stand for.

    Args:
        items: what the SELECT reads from.
        keys: of each item, the primary key's columns as stored; empty: it has none, or one that is
            masked.
    """
    grouped = select.get("groupClause", [])
    has_sets = any("GroupingSet" in each for each in grouped)
    if not grouped or has_sets:
        return
    names: set[tuple[str, ...]] = set()
    for each in grouped:
        names.update(_grouped_names(each, select))
    for item, key in zip(items, keys, strict=True):
        if not _groups_by_key(item, key, names):
            continue
        for column in _read_columns(select, item, names):
            grouped.append(_reference(item.name, column))


def _groups_by_key(item: FromItem, key: Sequence[str], names: set[tuple[str, ...]]) -> bool:
    """Tell whether all columns of the item's primary key are grouped by."""
    if item.table is None:
        return False
    if not key:
        return False
    for stored in key:
        column = item.columns[item.table.columns.index(stored)]
        if not _is_in(names, item, column):
            return False
    return True


def _is_in(names: Collection[tuple[str, ...]], item: FromItem, column: str) -> bool:
    """Tell whether the column is among the names, alone or behind the item's name."""
    if (column,) in names:
        return True
    return (item.called, column) in names


def _grouped_names(value: Node, select: Node) -> Iterator[tuple[str, ...]]:
    """Return the column that an item of a GROUP BY means: by its name, its place in the list or
    a name that is given there.
    """
    targets = [target["ResTarget"] for target in select.get("targetList", ())]
    name = _name(value)
    number = value.get("A_Const", {}).get("ival", {})
    place = number.get("ival", 0)
    if 0 < place <= len(targets):
        target = targets[place - 1]
        name = _name(target.get("val", {}))
    if name:
        yield name
    for target in targets:
        if name == (target.get("name"),):
            yield _name(target.get("val", {}))


def _name(value: Node) -> tuple[str, ...]:
    return strings(value.get("ColumnRef", {}).get("fields", ()))[-2:]


def _read_columns(
    select: Node, item: FromItem, names: set[tuple[str, ...]]
) -> Iterator[str | None]:
    """Yield the columns of the item that the SELECT may read and does not group by.

    None stands for the item's row as a whole.
    """
    read = set()
    for node in _references(select):
        name = strings(node["fields"])
        read.add(name[-2:])
    is_all = ("*",) in read or (item.called, "*") in read
    for column in item.columns:
        is_grouped = _is_in(names, item, column)
        if is_grouped:
            continue
        if is_all or _is_in(read, item, column):
            yield column
    is_read = (item.called,) in read
    is_row = item.called not in item.columns
    if is_read and is_row:
        yield None


def _references(select: Node) -> Iterator[Node]:
    """Yield the references to columns in the parts that must be grouped by."""
    parts: list[Any] = [select.get(clause, ()) for clause in _READING]
    for kind, node in nodes(parts):
        if kind == "ColumnRef":
            yield node


def _reference(name: str, column: str | None) -> Node:
    parts = [name]
    if column is not None:
        parts.append(column)
    fields = [{"String": {"sval": part}} for part in parts]
    return {"ColumnRef": {"fields": fields}}
