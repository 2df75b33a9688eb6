"""GROUP BY a primary key: PostgreSQL then lets a query read the table's other columns, which it
doesn't for a subquery.

Those that the query reads are grouped by as well, which makes the same groups.
"""

from collections.abc import Collection, Iterator, Sequence

from guard.row_rules.row_references import FromItem
from guard.walk import column_parts, references_in, strings
from sqltree.parsing import Node

# Parts of a SELECT whose columns must be grouped by or stand in aggregates.
_READING = ("targetList", "havingClause", "sortClause", "distinctClause", "windowClause")


def group_by_all(select: Node, items: Sequence[FromItem], keys: Sequence[Sequence[str]]) -> None:
    """Add to the GROUP BY what the primary keys in it stand for.

    Args:
        items: what the SELECT reads from.
        keys: for each item, the primary key's columns as stored; empty: it has none, or one that is
            masked.
    """
    grouped = select.get("groupClause", [])
    has_sets = any("GroupingSet" in each for each in grouped)
    if has_sets or not grouped:
        return

    names: set[tuple[str, ...]] = set()
    for each in grouped:
        names.update(_grouped_names(each, select))

    for item, key in zip(items, keys, strict=True):
        if _groups_by_key(item, key, names):
            columns = _read_columns(select, item, names)
            grouped += [_reference(item.name, column) for column in columns]


def _groups_by_key(item: FromItem, key: Sequence[str], names: set[tuple[str, ...]]) -> bool:
    """Tell whether all columns of the item's primary key are grouped by."""
    if item.table is None:
        return False

    called = dict(zip(item.table.columns, item.columns, strict=False))
    grouped = [_is_in(names, item, called[stored]) for stored in key]
    has_key = bool(key)
    return has_key and all(grouped)


def _is_in(names: Collection[tuple[str, ...]], item: FromItem, column: str) -> bool:
    """Tell whether the column is among the names, alone or behind the item's name."""
    spellings = {(column,), (item.called, column)}
    return not spellings.isdisjoint(names)


def _grouped_names(value: Node, select: Node) -> Iterator[tuple[str, ...]]:
    """Yield the column that an item of a GROUP BY means: by its name, its place in the list or
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
    """Return a column's name, behind its table's where it is written; none for other values."""
    parts = column_parts(value)
    return parts[-2:]


def _read_columns(
    select: Node, item: FromItem, names: set[tuple[str, ...]]
) -> Iterator[str | None]:
    """Yield the columns of the item that the SELECT may read and does not group by.

    None stands for the item's row as a whole.
    """
    parts = [select.get(clause, ()) for clause in _READING]
    references = [strings(node["fields"]) for node in references_in(parts)]
    read = {name[-2:] for name in references}
    is_all = _is_in(read, item, "*")
    for column in item.columns:
        is_grouped = _is_in(names, item, column)
        is_read = is_all or _is_in(read, item, column)
        if is_read and not is_grouped:
            yield column

    is_named = (item.called,) in read
    is_row = item.called not in item.columns
    if is_named and is_row:
        yield None


def _reference(name: str, column: str | None) -> Node:
    parts = [name]
    if column is not None:
        parts.append(column)

    fields = [{"String": {"sval": part}} for part in parts]
    return {"ColumnRef": {"fields": fields}}
