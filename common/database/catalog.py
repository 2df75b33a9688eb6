"""What the connected role can read, and what the guard must know about the server: read together, kept for a while.

Thousands of tables cost the same handful of queries as ten. Only sampling stored values takes one query per table; it
stops when its time or its bytes are spent.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import psycopg2
from psycopg2 import errors

from common.database import catalog_queries as queries
from common.database.connection import Connection
from common.database.failures import UNREACHABLE
from common.database.guard import BUILTIN, ServerFacts
from common.database.guard.facts import Key
from common.database.rendering import parse_array
from common.errors import CituError, DatabaseUnavailable
from common.values import Catalog, Column, ForeignKey, Table

_log = logging.getLogger(__name__)
T = TypeVar("T")

_RETRY_S = 5.0  # after a failed reload
_PATIENCE_S = 1.0  # how long a caller waits for the next try when the last one failed
_SAMPLING_S = 3.0  # for all tables together
_SAMPLING_STATEMENT_MS = 500
_SAMPLING_TABLE_BYTES = 16 * 1024 * 1024  # larger tables are not read; their statistics are
_MAX_VALUES = 500  # distinct values of one column; more are not "few"
_MAX_VALUE_CHARS = 100
_MAX_COLUMN_CHARS = 20_000
_MAX_TOTAL_CHARS = 2_000_000
_MAX_COMMENT_CHARS = 2_000
_ITEMS_AT_ONCE = 500  # of a large catalogue, before the event loop goes on

_KINDS: Mapping[str, Literal["table", "view", "materialized view"]] = {"v": "view", "m": "materialized view"}


@dataclass(frozen=True)
class Knowledge:
    """The catalogue and the guard's facts, as of one moment."""

    catalog: Catalog
    facts: ServerFacts


class CatalogReader:
    """Keeps `Knowledge` for `ttl_s` seconds.

    Callers at the same time share one load. For as long again the old copy is served while a new one is read, so that
    steady traffic never waits; and it is served for as long as reading again fails. A database that doesn't answer is
    waited for once; while it stays silent, nobody else has to wait long to hear it.
    """

    def __init__(self, load: Callable[[], Awaitable[Knowledge]], *, ttl_s: float) -> None:
        self._load = load
        self._ttl_s = ttl_s
        self._kept: Knowledge | None = None
        self._kept_until = 0.0
        self._loading: asyncio.Task[Knowledge] | None = None
        self._has_failed = False

    async def get(self) -> Knowledge:
        """The knowledge; raises what loading raises while there is none yet."""
        overdue = time.monotonic() - self._kept_until
        if self._kept is None or overdue > self._ttl_s:
            return await self._awaited()
        if overdue > 0:
            self._shared_load()
        return self._kept

    async def _awaited(self) -> Knowledge:
        loading = self._shared_load()
        try:
            async with asyncio.timeout(_PATIENCE_S if self._has_failed else None):
                return await asyncio.shield(loading)
        except TimeoutError as exc:
            if self._kept is not None:
                return self._kept
            raise DatabaseUnavailable(UNREACHABLE) from exc

    def _shared_load(self) -> "asyncio.Task[Knowledge]":
        loop = asyncio.get_running_loop()
        if self._loading is None or self._loading.done() or self._loading.get_loop() is not loop:
            self._loading = loop.create_task(self._reload())
            self._loading.add_done_callback(_look_at_failure)
        return self._loading

    async def _same_or_new(self, read: Knowledge) -> Knowledge:
        """What was read, or the objects that are kept where they say the same: others hold what they made of them."""
        kept = self._kept
        return read if kept is None else await asyncio.to_thread(_merged, kept, read)

    async def _reload(self) -> Knowledge:
        try:
            self._kept = await self._same_or_new(await self._load())
            self._kept_until = time.monotonic() + self._ttl_s
            self._has_failed = False
        except CituError:
            self._has_failed = True
            if self._kept is None:
                raise
            _log.warning("the catalogue could not be read again; the previous one stays in use")
            self._kept_until = time.monotonic() + min(_RETRY_S, self._ttl_s)
        return self._kept


def _merged(kept: Knowledge, read: Knowledge) -> Knowledge:
    catalog = kept.catalog if kept.catalog == read.catalog else read.catalog
    facts = kept.facts if kept.facts == read.facts else read.facts
    return kept if catalog is kept.catalog and facts is kept.facts else Knowledge(catalog, facts)


def _look_at_failure(loading: "asyncio.Task[Knowledge]") -> None:
    """Whoever waited has it; if all have left, asyncio need not complain."""
    if not loading.cancelled():
        loading.exception()


async def read_knowledge(connection: Connection, *, with_views: bool) -> Knowledge:
    """Reads everything, views' definitions only when rules have to look into them; raises psycopg2's errors."""
    catalog = await _read_catalog(connection)
    columns = {
        table.key: frozenset(column.name for column in table.columns) async for table in _in_turns(catalog.tables)
    }
    facts = replace(await _read_facts(connection), columns=columns, parents=await _read_parents(connection))
    if with_views:
        facts = replace(facts, view_definitions=await _read_views(connection))
    return Knowledge(catalog, facts)


async def _read_parents(connection: Connection) -> Mapping[Key, frozenset[Key]]:
    parents: defaultdict[Key, set[Key]] = defaultdict(set)
    for schema, name, parent_schema, parent in (await connection.query(queries.PARENTS)).rows:
        parents[str(schema), str(name)].add((str(parent_schema), str(parent)))
    return {key: frozenset(above) for key, above in parents.items()}


async def _read_rows_taken(connection: Connection) -> Mapping[str, frozenset[Key]]:
    taken: defaultdict[str, set[Key]] = defaultdict(set)
    for name, schema, relation in (await connection.query(queries.ROW_FUNCTIONS)).rows:
        taken[str(name)].add((str(schema), str(relation)))
    return {name: frozenset(keys) for name, keys in taken.items()}


async def _read_views(connection: Connection) -> Mapping[Key, str]:
    rows = (await connection.query(queries.VIEWS)).rows
    return {(str(schema), str(name)): definition for schema, name, definition in rows if definition}


async def _read_facts(connection: Connection) -> ServerFacts:
    try:
        return await _server_facts(connection)
    except psycopg2.ProgrammingError:  # some hosts hide parts of the catalogue
        _log.warning("the server's functions can't be read; the guard uses its built-in list")
        return replace(BUILTIN, search_path=connection.search_path)


async def _server_facts(connection: Connection) -> ServerFacts:
    builtins = (await connection.query(queries.BUILTINS)).rows
    routines = (await connection.query(queries.ROUTINES)).rows
    types = (await connection.query(queries.TYPES)).rows
    relations = (await connection.query(queries.ALL_RELATIONS)).rows
    operators = (await connection.query(queries.OPERATORS)).rows
    columns = (await connection.query(queries.COLUMN_NAMES)).rows
    casts = (await connection.query(queries.CAST_TYPES)).rows
    schemas: defaultdict[str, set[str]] = defaultdict(set)
    for schema, name, _, _ in routines:
        schemas[str(name)].add(str(schema))
    own = [(str(schema), str(name)) for schema, name, is_extension in relations if is_extension == "f"]
    return ServerFacts(
        builtins={str(name): is_pure == "t" for name, is_pure in builtins},
        routines={name: frozenset(places) for name, places in schemas.items()},
        risky_routines=frozenset((str(schema), str(name)) for schema, name, _, is_risky in routines if is_risky == "t"),
        row_functions=frozenset(str(name) for _, name, takes_row, _ in routines if takes_row == "t"),
        rows_taken=await _read_rows_taken(connection),
        column_names=frozenset(str(name) for (name,) in columns),
        types=frozenset(str(name) for (name,) in types),
        system_relations=frozenset(name for schema, name in own if schema == "pg_catalog"),
        relations=frozenset(key for key in own if key[0] not in ("pg_catalog", "information_schema")),
        extension_relations=frozenset((str(schema), str(name)) for schema, name, ext in relations if ext == "t"),
        volatile_operators=frozenset(str(symbol) for symbol, _ in operators),
        shared_operators=frozenset(str(symbol) for symbol, is_shared in operators if is_shared == "t"),
        volatile_cast_types=frozenset(str(name) for (name,) in casts),
        search_path=connection.search_path,
        is_complete=True,
    )


@dataclass(frozen=True)
class _Relation:
    """A row of `RELATIONS`."""

    oid: str
    schema: str
    name: str
    kind: str
    row_estimate: int
    bytes: int | None
    comment: str | None

    @property
    def is_small(self) -> bool:
        """Whether it may be read for its values; a foreign table is another server's burden."""
        return self.kind != "f" and (self.bytes is None or self.bytes <= _SAMPLING_TABLE_BYTES)


@dataclass(frozen=True)
class _Attribute:
    """A column, and whether its values may be sampled."""

    column: Column
    is_text: bool


async def _read_catalog(connection: Connection) -> Catalog:
    relations = [
        _Relation(str(oid), str(schema), str(name), str(kind), int(rows or -1), int(size) if size else None, comment)
        for oid, schema, name, kind, rows, size, comment in await _with_comments(connection, queries.RELATIONS)
    ]
    attributes = await _read_columns(connection)
    primary, foreign = await _read_keys(connection)
    values = await _Sampler(connection).sample(relations, attributes)
    tables = [
        Table(
            schema=relation.schema,
            name=relation.name,
            kind=_KINDS.get(relation.kind, "table"),
            columns=tuple(_with_values(relation, each.column, values) for each in attributes[relation.oid]),
            comment=_shortened(relation.comment),
            primary_key=primary.get(relation.oid, ()),
            foreign_keys=tuple(foreign[relation.oid]),
            row_estimate=relation.row_estimate,
        )
        async for relation in _in_turns(relations)
    ]
    return Catalog(tables=tuple(tables), search_path=connection.search_path)


async def _with_comments(connection: Connection, query: str) -> list[tuple[str | None, ...]]:
    """The query's rows, without any comments where one is not UTF-8.

    The server refuses the whole result then; it can be so in a database that does not know its encoding (SQL_ASCII).
    """
    try:
        return (await connection.query(query)).rows
    except errors.CharacterNotInRepertoire:
        _log.warning("a comment is not UTF-8; tables and columns are read without their comments")
        return (await connection.query(query.replace("d.description", "NULL"))).rows


async def _read_columns(connection: Connection) -> Mapping[str, list[_Attribute]]:
    attributes: defaultdict[str, list[_Attribute]] = defaultdict(list)
    known: dict[_Attribute, _Attribute] = {}  # thousands of tables have the same ones
    rows = await _with_comments(connection, queries.COLUMNS)
    async for oid, name, kind, nullable, comment, is_text in _in_turns(rows):
        column = Column(name=str(name), type=str(kind), comment=_shortened(comment), nullable=nullable == "t")
        attribute = _Attribute(column, is_text == "t")
        attributes[str(oid)].append(known.setdefault(attribute, attribute))
    return attributes


async def _in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """The items; between some of them other questions go on."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _ITEMS_AT_ONCE == 0:
            await asyncio.sleep(0)


async def _read_keys(
    connection: Connection,
) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, list[ForeignKey]]]:
    primary: dict[str, tuple[str, ...]] = {}
    foreign: defaultdict[str, list[ForeignKey]] = defaultdict(list)
    rows = (await connection.query(queries.KEYS)).rows
    async for oid, kind, columns, schema, name, targets in _in_turns(rows):
        own = tuple(parse_array(columns or "{}", str))
        if kind == "p":
            primary[str(oid)] = own
        else:
            key = ForeignKey(own, (str(schema), str(name)), tuple(parse_array(targets or "{}", str)))
            foreign[str(oid)].append(key)
    return primary, foreign


def _shortened(comment: str | None) -> str | None:
    return comment[:_MAX_COMMENT_CHARS] if comment else None


_Values = dict[tuple[str, str, str], tuple[tuple[str, ...], bool]]  # (schema, table, column) → values, complete?


def _with_values(relation: _Relation, column: Column, values: _Values) -> Column:
    found = values.get((relation.schema, relation.name, column.name))
    return replace(column, values=found[0], is_complete=found[1]) if found else column


class _Sampler:
    """Collects stored values: exactly from small tables, from the planner's statistics for the others."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._values: _Values = {}
        self._chars_left = _MAX_TOTAL_CHARS
        self._until = time.monotonic() + _SAMPLING_S

    async def sample(self, relations: Sequence[_Relation], attributes: Mapping[str, list[_Attribute]]) -> _Values:
        for relation in sorted(relations, key=_sampling_order):
            columns = [each.column.name for each in attributes[relation.oid] if each.is_text]
            if columns and relation.is_small:
                await self._sample_table(relation, columns)
        await self._take_statistics()
        return self._values

    async def _sample_table(self, relation: _Relation, columns: Sequence[str]) -> None:
        if time.monotonic() > self._until or self._chars_left <= 0:
            return
        statement = _sampling_statement(relation, columns)
        try:
            rows = (await self._connection.query(statement)).rows
        except psycopg2.OperationalError as exc:
            if exc.pgcode is None:  # the connection is gone
                raise
            rows = []
        except psycopg2.Error:  # a view that fails, a table locked or dropped meanwhile
            rows = []
        await self._connection.query("ROLLBACK")
        for name, text in zip(columns, rows[0] if rows else (), strict=False):
            values = parse_array(text, str) if text else []
            if len(values) <= _MAX_VALUES:
                self._keep((relation.schema, relation.name, name), values, is_complete=relation.bytes is not None)

    async def _take_statistics(self) -> None:
        try:
            rows = (await self._connection.query(queries.STATISTICS)).rows
        except errors.CharacterNotInRepertoire:  # as with comments
            _log.warning("a stored value is not UTF-8; the statistics' values are not used")
            return
        for schema, table, column, text, is_complete in rows:
            key = (str(schema), str(table), str(column))
            if key not in self._values and text:
                self._keep(key, parse_array(text, str)[:_MAX_VALUES], is_complete=is_complete == "t")

    def _keep(self, key: tuple[str, str, str], values: Iterable[str], *, is_complete: bool) -> None:
        values = [value for value in values if value]
        kept = sorted(value for value in values if len(value) <= _MAX_VALUE_CHARS)
        size = sum(map(len, kept))
        if kept and size <= min(_MAX_COLUMN_CHARS, self._chars_left):
            self._chars_left -= size
            self._values[key] = (tuple(kept), is_complete and len(kept) == len(values))


def _sampling_order(relation: _Relation) -> tuple[bool, int]:
    """Views last: they may be slow, and mostly show what tables hold."""
    return (relation.bytes is None, relation.bytes or 0)


_SAMPLED_VIEW_ROWS = 5_000


def _sampling_statement(relation: _Relation, columns: Sequence[str]) -> str:
    """One row: for each column, its distinct values (one more than counts as few), as an array."""
    source = f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(relation.schema)}.{quoted(relation.name)}"
    if relation.bytes is None:
        source += f" LIMIT {_SAMPLED_VIEW_ROWS}"
    arrays = ", ".join(
        f"(SELECT pg_catalog.array_agg(v) FROM (SELECT DISTINCT pg_catalog.left({quoted(name)}::text,"
        f" {_MAX_VALUE_CHARS + 1}) AS v FROM s WHERE {quoted(name)} IS NOT NULL LIMIT {_MAX_VALUES + 1}) d)"
        for name in columns
    )
    return (
        f"BEGIN READ ONLY; SET LOCAL statement_timeout = {_SAMPLING_STATEMENT_MS}; "
        f"WITH s AS MATERIALIZED ({source}) SELECT {arrays}"
    )


def quoted(name: str) -> str:
    """`name` as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'
