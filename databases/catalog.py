"""What the connected role can read, and what the guard must know about the server: read together, kept for a while.

Thousands of tables cost the same handful of queries as ten. Only sampling stored values takes one query per table; it
stops when its time or its bytes are spent.
"""

import asyncio
import logging
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import psycopg2
from psycopg2 import errors

from common.errors import CituError, DatabaseUnavailable
from common.postgres.connection import Connection
from common.postgres.server_errors import UNREACHABLE
from common.postgres.value_rendering import parse_array
from common.values import Catalog, Column, ForeignKey, Table
from databases import catalog_queries as queries
from databases.guard import BUILTIN, ServerFacts
from databases.guard.facts import Column as GuardColumn
from databases.guard.facts import Key, TypeEffect
from databases.unasked import UnaskedReading
from databases.value_lists import value_lists

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
_MAX_ALLOWED = 200  # values that an enum or a CHECK lists; longer lists are left out
_ITEMS_AT_ONCE = 500  # of a large catalogue, before the event loop goes on

_KINDS: Mapping[str, Literal["table", "view", "materialized view"]] = {"v": "view", "m": "materialized view"}


@dataclass(frozen=True)
class Knowledge:
    """The catalogue and the guard's facts, as of one moment."""

    catalog: Catalog
    facts: ServerFacts


Show = Callable[[Catalog, ServerFacts], Catalog]
"""Gives the part of a catalogue that statements may read."""


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
        """What was read, or the objects kept before where they say the same, which others have built on."""
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


async def read_knowledge(connection: Connection, *, show: Show) -> Knowledge:
    """Reads everything, and values of what `show` leaves in the catalogue; raises psycopg2's errors."""
    relations = await _read_relations(connection)
    attributes = await _read_columns(connection)
    catalog = await _read_catalog(connection, relations, attributes)
    facts = await _read_all_facts(connection, catalog)
    # Views are followed to what they read, which takes a while where there are many.
    catalog = await asyncio.to_thread(show, catalog, facts)
    sampler = _Sampler(connection, UnaskedReading(facts))
    await sampler.sample(await _samples(catalog, relations, attributes))
    return Knowledge(await sampler.known(catalog), facts)


async def _read_all_facts(connection: Connection, catalog: Catalog) -> ServerFacts:
    columns = {
        table.key: frozenset(column.name for column in table.columns) async for table in _in_turns(catalog.tables)
    }
    facts = await _read_facts(connection)
    relations = facts.relations | columns.keys()
    facts = replace(facts, relations=relations, columns=columns, parents=await _read_parents(connection))
    try:
        return await _followable(facts, connection)
    except psycopg2.ProgrammingError:  # as with functions
        _log.warning("what views and tables run can't be read; nothing is read unasked")
        return facts


async def _followable(facts: ServerFacts, connection: Connection) -> ServerFacts:
    """The facts with all that reading a relation leads to."""
    reading = (await connection.query(queries.READING)).rows
    return replace(
        facts,
        reading_operators=frozenset(str(name) for is_operator, name in reading if is_operator == "t"),
        reading_cast_types=frozenset(str(name) for is_operator, name in reading if is_operator == "f"),
        column_sources=await _read_generated(connection),
        view_definitions=await _read_views(connection),
        read_functions=await _read_functions_run(connection),
        read_conditions=await _read_conditions(connection),
        is_followable=True,
    )


async def _read_generated(connection: Connection) -> Mapping[tuple[str, str, str], Collection[str]]:
    rows = (await connection.query(queries.GENERATED)).rows
    return {
        (str(schema), str(table), str(column)): parse_array(sources or "{}", str)
        for schema, table, column, sources in rows
    }


async def _read_functions_run(connection: Connection) -> Mapping[Key, Collection[Key]]:
    functions: defaultdict[Key, set[Key]] = defaultdict(set)
    for schema, relation, place, function in (await connection.query(queries.READ_FUNCTIONS)).rows:
        functions[str(schema), str(relation)].add((str(place), str(function)))
    return functions


async def _read_conditions(connection: Connection) -> Mapping[Key, Sequence[str | None]]:
    conditions: defaultdict[Key, list[str | None]] = defaultdict(list)
    for schema, name, condition in (await connection.query(queries.READ_CONDITIONS)).rows:
        conditions[str(schema), str(name)].append(condition)
    return conditions


async def _read_parents(connection: Connection) -> Mapping[Key, frozenset[Key]]:
    parents: defaultdict[Key, set[Key]] = defaultdict(set)
    for schema, name, parent_schema, parent in (await connection.query(queries.PARENTS)).rows:
        parents[str(schema), str(name)].add((str(parent_schema), str(parent)))
    return {key: frozenset(above) for key, above in parents.items()}


async def _read_views(connection: Connection) -> Mapping[Key, str]:
    """Views' queries; all empty where a lock keeps one from being read, and empty ones are never taken for harmless."""
    try:
        rows = (await connection.query(queries.VIEWS)).rows
    except psycopg2.OperationalError as exc:
        if exc.pgcode is None:  # the connection is gone
            raise
        _log.warning("views' definitions can't be read now: SQLSTATE %s", exc.pgcode)
        rows = (await connection.query(queries.VIEWS.replace("pg_catalog.pg_get_viewdef(c.oid)", "NULL"))).rows
    return {(str(schema), str(name)): definition or "" for schema, name, definition in rows}


async def _read_facts(connection: Connection) -> ServerFacts:
    ((version,),) = (await connection.query(queries.VERSION)).rows
    try:
        return replace(await _server_facts(connection), version=int(version or 0))
    except psycopg2.ProgrammingError:  # some hosts hide parts of the catalogue
        _log.warning("the server's functions can't be read; the guard uses its built-in list")
        return replace(BUILTIN, search_path=connection.search_path, version=int(version or 0))


async def _server_facts(connection: Connection) -> ServerFacts:
    types = (await connection.query(queries.TYPES)).rows
    relations = (await connection.query(queries.ALL_RELATIONS)).rows
    operators = (await connection.query(queries.OPERATORS)).rows
    effects = (await connection.query(queries.TYPE_EFFECTS)).rows
    own = [(str(schema), str(name)) for schema, name, is_extension in relations if is_extension == "f"]
    facts = ServerFacts(
        builtins={},
        row_results=await _read_row_results(connection),
        attributes=await _read_attributes(connection),
        types=frozenset(str(name) for (name,) in types),
        system_relations=frozenset(name for schema, name in own if schema == "pg_catalog"),
        relations=frozenset(key for key in own if key[0] not in ("pg_catalog", "information_schema")),
        extension_relations=frozenset((str(schema), str(name)) for schema, name, ext in relations if ext == "t"),
        volatile_operators=frozenset(str(symbol) for symbol, *_ in operators),
        shared_operators=frozenset(str(symbol) for symbol, is_shared, *_ in operators if is_shared == "t"),
        plain_operators=frozenset(
            (str(symbol), left, right)
            for symbol, is_shared, left, right in operators
            if is_shared == "t" and left is not None and right is not None
        ),
        type_effects=tuple(
            TypeEffect(str(kind), str(detail), (str(schema), str(name)), column, is_own == "t")
            for kind, detail, schema, name, column, is_own in effects
        ),
        search_path=connection.search_path,
        is_complete=True,
    )
    return await _with_functions(facts, connection)


async def _with_functions(facts: ServerFacts, connection: Connection) -> ServerFacts:
    builtins = (await connection.query(queries.BUILTINS)).rows
    routines = (await connection.query(queries.ROUTINES)).rows
    schemas: defaultdict[str, set[str]] = defaultdict(set)
    for schema, name, *_ in routines:
        schemas[str(name)].add(str(schema))
    return replace(
        facts,
        builtins={str(name): is_pure == "t" for name, is_pure, *_ in builtins},
        result_categories={str(name): str(categories) for name, *_, categories in builtins},
        unary_builtins=frozenset(str(name) for name, _, is_unary, *_ in builtins if is_unary == "t"),
        any_type_builtins=frozenset(str(name) for name, _, _, takes_any, _ in builtins if takes_any == "t"),
        routines={name: frozenset(places) for name, places in schemas.items()},
        unary_routines=frozenset((str(place), str(name)) for place, name, unary, _, _ in routines if unary == "t"),
        risky_routines=frozenset((str(place), str(name)) for place, name, _, risky, _ in routines if risky == "t"),
        range_constructors=frozenset((str(place), str(name)) for place, name, *_, ranges in routines if ranges == "t"),
    )


async def _read_row_results(connection: Connection) -> Mapping[str, frozenset[str]]:
    results: dict[str, frozenset[str]] = {}
    for name, columns in (await connection.query(queries.ROW_RESULTS)).rows:
        declared = frozenset(parse_array(columns, str)) if columns else frozenset()
        results[str(name)] = results.get(str(name), declared) & declared
    return results


async def _read_attributes(connection: Connection) -> Mapping[Key, tuple[GuardColumn, ...]]:
    rows = (await connection.query(queries.ATTRIBUTES)).rows
    keys = {int(oid or 0): (str(schema), str(name)) for oid, schema, name, *_ in rows}
    return {
        keys[int(oid or 0)]: tuple(
            GuardColumn(name, keys.get(abs(row)), is_array=row < 0, category=category)
            for name, row, category in zip(
                parse_array(names or "{}", str), parse_array(kinds or "{}", int), categories or "", strict=True
            )
        )
        async for oid, _, _, names, kinds, categories in _in_turns(rows)
    }


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
    """A column, whether its values may be sampled, whether it holds days, and the oids of its type and of the enum
    that the type may be about."""

    column: Column
    is_text: bool
    is_day: bool
    type_oid: str
    enum_oid: str


async def _read_relations(connection: Connection) -> list[_Relation]:
    return [
        _Relation(str(oid), str(schema), str(name), str(kind), int(rows or -1), int(size) if size else None, comment)
        for oid, schema, name, kind, rows, size, comment in await _with_comments(connection, queries.RELATIONS)
    ]


async def _read_catalog(
    connection: Connection, relations: Iterable[_Relation], attributes: Mapping[str, list[_Attribute]]
) -> Catalog:
    """Without what is stored."""
    keys = await _read_keys(connection)
    allowed = await _read_allowed(connection, attributes)

    def column_of(relation: _Relation, column: Column) -> Column:
        values = allowed.get((relation.oid, column.name))
        return replace(column, allowed=values) if values else column

    tables = [
        Table(
            schema=relation.schema,
            name=relation.name,
            kind=_KINDS.get(relation.kind, "table"),
            columns=tuple(column_of(relation, each.column) for each in attributes[relation.oid]),
            comment=_shortened(relation.comment),
            primary_key=keys.primary.get(relation.oid, ()),
            foreign_keys=tuple(keys.foreign[relation.oid]),
            unique_keys=tuple(keys.unique[relation.oid]),
            row_estimate=relation.row_estimate,
        )
        async for relation in _in_turns(relations)
    ]
    catalog = Catalog(tables=tuple(tables), search_path=connection.search_path)
    return await asyncio.to_thread(catalog.coherent)


async def _with_comments(connection: Connection, query: str) -> list[tuple[str | None, ...]]:
    """The query's rows, without any comments where one is not UTF-8.

    The server refuses the whole result then; it can be so in a database that does not know its encoding (SQL_ASCII).
    """
    try:
        return (await connection.query(query)).rows
    except errors.CharacterNotInRepertoire:
        _log.warning("a comment is not UTF-8; tables and columns are read without their comments")
        return (await connection.query(query.replace("d.description", "NULL"))).rows


async def _rows_if_text(connection: Connection, query: str) -> list[tuple[str | None, ...]]:
    """The query's rows; none when something in them is not UTF-8, as with comments."""
    try:
        return (await connection.query(query)).rows
    except errors.CharacterNotInRepertoire:
        _log.warning("a value in a type or constraint is not UTF-8; columns are read without what they are confined to")
        return []


async def _read_columns(connection: Connection) -> Mapping[str, list[_Attribute]]:
    attributes: defaultdict[str, list[_Attribute]] = defaultdict(list)
    known: dict[_Attribute, _Attribute] = {}  # thousands of tables have the same ones
    rows = await _with_comments(connection, queries.COLUMNS)
    async for oid, name, kind, nullable, comment, is_text, is_day, *types in _in_turns(rows):
        column = Column(name=str(name), type=str(kind), comment=_shortened(comment), nullable=nullable == "t")
        attribute = _Attribute(column, is_text == "t", is_day == "t", *map(str, types))
        attributes[str(oid)].append(known.setdefault(attribute, attribute))
    return attributes


async def _in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, with a pause after every `_ITEMS_AT_ONCE` in which the event loop goes on."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _ITEMS_AT_ONCE == 0:
            await asyncio.sleep(0)


@dataclass(frozen=True)
class _Keys:
    """Keys by the oid of their table."""

    primary: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unique: defaultdict[str, list[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(list))
    foreign: defaultdict[str, list[ForeignKey]] = field(default_factory=lambda: defaultdict(list))


async def _read_keys(connection: Connection) -> _Keys:
    keys = _Keys()
    rows = (await connection.query(queries.KEYS)).rows
    async for oid, kind, columns, schema, name, targets in _in_turns(rows):
        own = tuple(parse_array(columns or "{}", str))
        if kind == "p":
            keys.primary[str(oid)] = own
        elif kind == "u":
            keys.unique[str(oid)].append(own)
        else:
            key = ForeignKey(own, (str(schema), str(name)), tuple(parse_array(targets or "{}", str)))
            keys.foreign[str(oid)].append(key)
    return keys


_Allowed = Mapping[tuple[str, str], tuple[str, ...]]  # (table's oid, column) → the only values it can have


async def _read_allowed(connection: Connection, attributes: Mapping[str, list[_Attribute]]) -> _Allowed:
    labels, checks = await _rows_if_text(connection, queries.LABELS), await _rows_if_text(connection, queries.CHECKS)
    of_types = {str(oid): tuple(parse_array(text or "{}", str)) for oid, text in labels}
    # Thousands of constraints take a second to parse, in which the loop must go on.
    listed = await asyncio.to_thread(lambda: [(oid, domain, value_lists(text or "")) for oid, domain, text in checks])
    of_types |= {str(domain): lists["value"] for _, domain, lists in listed if domain != "0" and "value" in lists}
    allowed = {
        (oid, each.column.name): of_types.get(each.type_oid) or of_types.get(each.enum_oid, ())
        async for oid, columns in _in_turns(attributes.items())
        for each in columns
        if each.type_oid in of_types or each.enum_oid in of_types
    }
    allowed |= {(str(oid), name): values for oid, _, lists in listed for name, values in lists.items() if oid != "0"}
    return {key: values for key, values in allowed.items() if 0 < len(values) <= _MAX_ALLOWED}


def _shortened(comment: str | None) -> str | None:
    return comment[:_MAX_COMMENT_CHARS] if comment else None


@dataclass(frozen=True)
class _Sample:
    """A relation, and those of its columns that are shown: the ones that hold text, and those that hold days."""

    relation: _Relation
    columns: Sequence[str]
    days: Sequence[str]


async def _samples(
    catalog: Catalog, relations: Iterable[_Relation], attributes: Mapping[str, list[_Attribute]]
) -> Sequence[_Sample]:
    samples = []
    async for relation in _in_turns(relations):
        table = catalog.by_key.get((relation.schema, relation.name))
        names = {column.name for column in table.columns} if table else set()
        shown = [each for each in attributes[relation.oid] if each.column.name in names]
        texts = [each.column.name for each in shown if each.is_text]
        samples.append(_Sample(relation, texts, [each.column.name for each in shown if each.is_day]))
    return samples


_Place = tuple[str, str, str]  # schema, table, column


class _Sampler:
    """Collects stored values and periods: exactly from small tables, from the planner's statistics for the others."""

    def __init__(self, connection: Connection, unasked: UnaskedReading) -> None:
        self._connection = connection
        self._unasked = unasked
        self._values: dict[_Place, tuple[tuple[str, ...], bool]] = {}  # values, and whether they are all
        self._periods: dict[_Place, tuple[str, str]] = {}
        self._chars_left = _MAX_TOTAL_CHARS
        self._until = time.monotonic() + _SAMPLING_S

    async def sample(self, samples: Sequence[_Sample]) -> None:
        for each in sorted(samples, key=lambda each: _sampling_order(each.relation)):
            relation, columns = each.relation, each.columns
            if self._is_spent():
                break
            days = each.days if relation.bytes is not None else ()  # a view would have to be read whole
            if (columns or days) and relation.is_small and await self._may_read(relation):
                await self._sample_table(relation, columns, days)
        await self._take_statistics(samples)

    async def known(self, catalog: Catalog) -> Catalog:
        """The catalogue with what was found of its columns."""
        found = {place[:2] for place in (*self._values, *self._periods)}
        tables = [
            replace(table, columns=tuple(self._known(table, column) for column in table.columns))
            if table.key in found
            else table
            async for table in _in_turns(catalog.tables)
        ]
        return replace(catalog, tables=tuple(tables))

    def _known(self, table: Table, column: Column) -> Column:
        place = (*table.key, column.name)
        values, period = self._values.get(place), self._periods.get(place)
        if values is None and period is None:
            return column
        return replace(
            column, values=values[0] if values else (), is_complete=bool(values and values[1]), period=period
        )

    async def _may_read(self, relation: _Relation) -> bool:
        """Whether reading it runs only what a question may run."""
        key = (relation.schema, relation.name)
        if relation.kind == "v":  # judging a long definition takes a while
            return await asyncio.to_thread(self._unasked.is_harmless, key)
        return relation.kind == "m" or self._unasked.is_harmless(key)

    def _is_spent(self) -> bool:
        return time.monotonic() > self._until or self._chars_left <= 0

    async def _sample_table(self, relation: _Relation, columns: Sequence[str], days: Sequence[str]) -> None:
        statement = _sampling_statement(relation, columns, days)
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
        for name, period in zip(days, rows[0][len(columns) :] if rows else (), strict=False):
            self._keep_period((relation.schema, relation.name, name), parse_array(period or "{}", str))

    async def _take_statistics(self, samples: Iterable[_Sample]) -> None:
        shown = {
            (each.relation.schema, each.relation.name, name)
            async for each in _in_turns(samples)
            for name in (*each.columns, *each.days)
        }
        try:
            rows = (await self._connection.query(queries.STATISTICS)).rows
        except errors.CharacterNotInRepertoire:  # as with comments
            _log.warning("a stored value is not UTF-8; the statistics' values are not used")
            return
        for schema, table, column, text, is_complete in rows:
            key = (str(schema), str(table), str(column))
            if key in shown and key not in self._values and text:
                self._keep(key, parse_array(text, str)[:_MAX_VALUES], is_complete=is_complete == "t")
        for schema, table, column, first, last, common in (await self._connection.query(queries.PERIODS)).rows:
            key = (str(schema), str(table), str(column))
            if key in shown and key not in self._periods:
                self._keep_period(key, [first, last, *parse_array(common or "{}", str)])

    def _keep_period(self, key: _Place, moments: Iterable[str | None]) -> None:
        """`moments` in ISO; their text orders them, but for those before Christ and infinity, which say little."""
        days = sorted(moment[:10] for moment in moments if moment and _IS_MOMENT(moment))
        if days:
            self._periods[key] = (days[0], days[-1])

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


_IS_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?!.*BC)").match


def _sampling_statement(relation: _Relation, columns: Sequence[str], days: Sequence[str]) -> str:
    """One row: for each column, its distinct values (one more than counts as few), as an array; then for each of
    `days`, its least and greatest as an array."""
    names = ", ".join(map(quoted, [*columns, *days]))
    source = f"SELECT {names} FROM {quoted(relation.schema)}.{quoted(relation.name)}"
    if relation.bytes is None:
        source += f" LIMIT {_SAMPLED_VIEW_ROWS}"
    arrays = [
        f"(SELECT pg_catalog.array_agg(v) FROM (SELECT DISTINCT pg_catalog.left({quoted(name)}::text,"
        f" {_MAX_VALUE_CHARS + 1}) AS v FROM s WHERE {quoted(name)} IS NOT NULL LIMIT {_MAX_VALUES + 1}) d)"
        for name in columns
    ]
    arrays += [
        f"(SELECT ARRAY[pg_catalog.min({quoted(name)})::text, pg_catalog.max({quoted(name)})::text] FROM s"
        f" WHERE pg_catalog.isfinite({quoted(name)}))"
        for name in days
    ]
    return (
        f"BEGIN READ ONLY; SET LOCAL statement_timeout = {_SAMPLING_STATEMENT_MS}; "
        f"WITH s AS MATERIALIZED ({source}) SELECT {', '.join(arrays)}"
    )


def quoted(name: str) -> str:
    """`name` as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'
