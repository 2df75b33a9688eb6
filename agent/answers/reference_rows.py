"""What the rows that keys refer to are called: a member's name beside the member's number."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from common.errors import CituError
from common.ports import Database
from common.text import Lang
from common.values import Catalog, QueryResult, Table
from knowledge.language.cutting import has_han
from knowledge.language.spoken_names import comment_names
from knowledge.results.result_columns import ResultColumn, result_columns
from knowledge.semantic.guesses import label_of
from postgres.identifiers import quoted
from rules.answering.groupings import row_name
from rules.sql.expressions import literal

_log = logging.getLogger(__name__)

_MOST_COLUMNS = 3
_MOST_KEYS = 200  # of one column
_PATIENCE_S = 0.5
_MOST_IN_FILE = 10_000  # rows of a referred table
_PATIENCE_WITH_FILE_S = 2.0
_WITHOUT_ROWS = "SELECT * FROM (\n{}\n) AS described LIMIT 0"


@dataclass(frozen=True)
class ReferredRows:
    """The rows to which a column's keys refer.

    Attributes:
        label: what the column is called while its keys are told by names; None: as always.
        names: what the row of each key is called.
    """

    label: str | None
    names: Mapping[str, str]


NamesByColumn = Mapping[int, ReferredRows]
"""By the place of a column of keys."""


@dataclass(frozen=True)
class _Reference:
    """A column of a result whose values are keys of rows that have names.

    Attributes:
        place: where the column stands in the result.
        key: the column of `table` that it refers to.
        names: the columns of `table` that name its rows.
    """

    place: int
    table: Table
    key: str
    names: tuple[str, ...]


async def reference_names(
    sql: str, result: QueryResult, database: Database, lang: Lang
) -> NamesByColumn:
    """Look up what the rows are called to which the result's keys refer, as its reader may see
    them.

    A column beside which the names stand already is left out, and what takes long.
    """
    catalog = await database.catalog()
    columns = result_columns(sql, result, catalog, lang)
    rows_by_column: dict[int, ReferredRows] = {}
    try:
        async with asyncio.timeout(_PATIENCE_S):
            for reference in _references(columns, catalog):
                names = await _names(reference, result, database)
                label = _label(columns[reference.place], reference.table, lang)
                rows_by_column[reference.place] = ReferredRows(label, names)
    except (CituError, TimeoutError) as error:
        _log.info("some keys stay without the names of their rows: %r", error)

    return {place: rows for place, rows in rows_by_column.items() if rows.names}


async def names_for_file(sql: str, database: Database, lang: Lang) -> NamesByColumn:
    """Return what the rows are called to which keys of a result of any length may refer.

    All rows of a referred table are read at once: a column has names in each of its rows, or, where
    these are more than `_MOST_IN_FILE` or take long, keys in all. To be called before the result
    is read: each takes a connection for streams, of which there may be one.
    """
    catalog = await database.catalog()
    if not any(table.foreign_keys and table.name in sql for table in catalog.tables):
        return {}

    rows_by_column: dict[int, ReferredRows] = {}
    try:
        async with asyncio.timeout(_PATIENCE_WITH_FILE_S):
            described = await database.run(_WITHOUT_ROWS.format(sql))
            columns = result_columns(sql, described, catalog, lang)
            for reference in _references(columns, catalog):
                label = _label(columns[reference.place], reference.table, lang)
                rows_by_column[reference.place] = ReferredRows(
                    label, await _all_names(reference, database)
                )
    except (CituError, TimeoutError) as error:
        _log.info("some keys stay without the names of their rows: %r", error)

    return {place: rows for place, rows in rows_by_column.items() if rows.names}


async def _all_names(reference: _Reference, database: Database) -> Mapping[str, str]:
    rows = await database.stream(_select(reference), _MOST_IN_FILE)
    try:
        names: dict[str, str] = {}
        while page := await rows.page():
            names |= _called(page)

        return {} if rows.is_limited else names
    finally:
        await rows.aclose()


def column_labels(columns: Sequence[ResultColumn], referred: NamesByColumn) -> list[str]:
    """Return the columns' labels: of keys that are told by names, what these are names of."""
    labels = [column.label for column in columns]
    for place, rows in referred.items():
        if rows.label is not None and rows.label not in labels:
            labels[place] = rows.label

    return labels


def _label(column: ResultColumn, table: Table, lang: Lang) -> str | None:
    """Return what a row is called for a column that is called after its keys alone."""
    assert column.output.column is not None
    name = row_name(table, lang)
    is_in_language = has_han(name) == (lang == "zh")
    names_in_comment = comment_names(column.output.column.comment)
    meaning = column.output.column.meaning
    has_own_name = bool(names_in_comment) or (meaning is not None and bool(meaning.names.all))
    return name if is_in_language and not has_own_name else None


def _references(columns: Sequence[ResultColumn], catalog: Catalog) -> list[_Reference]:
    shown = {
        (column.output.table.key, column.output.name) for column in columns if column.output.table
    }
    row_references = []
    for place, (table, key) in _keys(columns, catalog):
        names = _naming(table)
        stand_beside = any((table.key, name) in shown for name in names)
        if names and key not in names and not stand_beside:
            row_references.append(_Reference(place, table, key, names))

    return row_references[:_MOST_COLUMNS]


def _naming(table: Table) -> tuple[str, ...]:
    """Return the columns that name a row: the semantic file's, else those that seem to."""
    if table.meaning is not None and table.meaning.label_columns:
        return table.meaning.label_columns

    return tuple(label_of(table))


def _keys(
    columns: Sequence[ResultColumn], catalog: Catalog
) -> Iterator[tuple[int, tuple[Table, str]]]:
    """Yield the places of columns of keys, each with the table and the column it refers to."""
    for place, column in enumerate(columns):
        output = column.output
        if not output.is_stored or output.table is None or output.column is None:
            continue

        for key in output.table.foreign_keys:
            table = catalog.by_key.get(key.target)
            if key.columns == (output.column.name,) and table is not None:
                yield place, (table, key.target_columns[0])


async def _names(
    reference: _Reference, result: QueryResult, database: Database
) -> Mapping[str, str]:
    keys = {row[reference.place] for row in result.rows} - {None}
    if not keys or len(keys) > _MOST_KEYS:
        return {}

    key_list = ", ".join(
        str(key) if isinstance(key, int | Decimal) else literal(str(key)) for key in keys
    )
    rows = await database.run(
        f"{_select(reference)}\nWHERE {quoted(reference.key)} IN ({key_list})"
    )
    return _called(rows.rows)


def _select(reference: _Reference) -> str:
    table = reference.table
    columns = ", ".join(map(quoted, (reference.key, *reference.names)))
    return f"SELECT {columns}\nFROM {quoted(table.schema)}.{quoted(table.name)}"


def _called(rows: Iterable[Sequence[Any]]) -> dict[str, str]:
    """Return what rows of a key and names are called, by the key."""
    called = {}
    for value, *parts in rows:
        name = " ".join(str(part) for part in parts if part is not None)
        if name:
            called[str(value)] = name

    return called
