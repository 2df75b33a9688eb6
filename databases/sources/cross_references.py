"""References from tables of one source to those of another: by names and values.

No server can declare them, and without them no question joins the sources. A column that is called
like the key of one table of other sources refers to it, if all values that are looked at are there.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import psycopg2
from psycopg2 import extensions, sql

from databases.catalog.source_notes import NotedKeys, NotedReference, SourceNote

_TIMEOUT_MS = 10_000  # for the values of one column
_ROWS = 20_000  # of a table that are looked at
_VALUES = 1_000  # of a column that are compared
_MOST_TRIED = 200  # columns
# A key by such a name tells nothing; who refers to it names the table as well.
_BARE = frozenset({"id", "key", "code", "no", "number", "name", "uuid", "编号", "编码", "名称"})
_COMPARED = ("N", "S", "U")  # categories of types whose values are compared

_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, t.typcategory, pg_catalog.format_type(a.atttypid, NULL)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = ANY (%s) AND c.relkind IN ('f', 'v') ORDER BY n.nspname, c.relname, a.attnum
"""


@dataclass(frozen=True)
class _Column:
    source: str
    table: tuple[str, str]
    name: str
    category: str
    type: str


def cross_references(
    cursor: extensions.cursor, notes: Mapping[str, SourceNote]
) -> Mapping[str, Sequence[NotedReference]]:
    """Return the references between the sources of a hub, by the source that refers.

    Of a source that does not answer, those that are known stay.
    """
    columns = list(_columns(cursor, notes))
    references: defaultdict[str, list[NotedReference]] = defaultdict(list)
    away: set[str] = set()
    for column, key in _pairs(columns, notes):
        reference = NotedReference(column.table, column.name, key.table, key.name)
        agree = None
        if away.isdisjoint((column.source, key.source)):
            agree = _values_agree(cursor, column, key)
        if agree is None:
            away.update((column.source, key.source))
            agree = reference in notes[column.source].references
        if agree:
            references[column.source].append(reference)

    return references


def _columns(cursor: extensions.cursor, notes: Mapping[str, SourceNote]) -> Iterator[_Column]:
    by_schema = {}
    for name, note in notes.items():
        for schema in note.schemas.values() if note.has_references else ():
            by_schema[schema] = name

    cursor.execute(_COLUMNS, [list(by_schema)])
    for schema, table, column, category, type_ in cursor.fetchall():
        yield _Column(by_schema[schema], (schema, table), column, category, type_)


def _pairs(
    columns: Sequence[_Column], notes: Mapping[str, SourceNote]
) -> Iterator[tuple[_Column, _Column]]:
    """Yield the columns that may refer to the key of another source's table, with it."""
    noted = {keys.table: keys for note in notes.values() for keys in note.keys}
    by_name: defaultdict[str, list[_Column]] = defaultdict(list)
    others = []
    for column in columns:
        keys = noted.get(column.table)
        if _is_key(column, keys):
            for name in _names_of(column):
                by_name[name].append(column)
        elif not _refers_already(column, keys):
            others.append(column)

    referring = ((column, _referred(column, by_name[column.name.lower()])) for column in others)
    pairs = ((column, key) for column, key in referring if key is not None)
    yield from islice(pairs, _MOST_TRIED)


def _is_key(column: _Column, keys: NotedKeys | None) -> bool:
    """Tell whether the column is the whole primary key of its table."""
    return keys is not None and keys.primary == (column.name,)


def _refers_already(column: _Column, keys: NotedKeys | None) -> bool:
    """Tell whether a foreign key of its own source has the column."""
    if keys is None:
        return False

    return any(column.name in key.columns for key in keys.foreign)


def _referred(column: _Column, keys: Sequence[_Column]) -> _Column | None:
    """Return the only key that the column may refer to, if it is another source's."""
    likely = [key for key in keys if key.category == column.category]
    if len(likely) != 1 or likely[0].source == column.source:
        return None

    return likely[0]


def _names_of(key: _Column) -> Iterable[str]:
    """Return the names of columns that may refer to a key, in lower case."""
    if key.category not in _COMPARED:
        return

    name, table = key.name.lower(), key.table[1].lower()
    if name not in _BARE:
        yield name
        return

    for owner in dict.fromkeys((table, table.removesuffix("s"))):
        yield f"{owner}_{name}"
        yield f"{owner}{name}"


def _values_agree(cursor: extensions.cursor, column: _Column, key: _Column) -> bool | None:
    """Tell whether all values that are looked at are values of the key; None: it can't be told."""
    cursor.execute("SAVEPOINT citu_values")
    try:
        cursor.execute(f"SET LOCAL statement_timeout = {_TIMEOUT_MS}")
        cursor.execute(
            sql.SQL(
                "SELECT DISTINCT v FROM (SELECT {column} AS v FROM {table}"
                " WHERE {column} IS NOT NULL LIMIT {rows}) AS seen LIMIT {values}"
            ).format(
                column=sql.Identifier(column.name),
                table=sql.Identifier(*column.table),
                rows=sql.Literal(_ROWS),
                values=sql.Literal(_VALUES),
            )
        )
        values = [value for (value,) in cursor.fetchall()]
        cursor.execute(
            sql.SQL(
                "SELECT count(DISTINCT {key}) FROM {table} WHERE {key} = ANY (%s::{type}[])"
            ).format(
                key=sql.Identifier(key.name),
                table=sql.Identifier(*key.table),
                type=sql.SQL(column.type),
            ),
            [values],
        )
        ((matching,),) = cursor.fetchall()
    except psycopg2.Error:
        cursor.execute("ROLLBACK TO SAVEPOINT citu_values")
        return None

    cursor.execute("RELEASE SAVEPOINT citu_values")
    return bool(values) and matching == len(values)
