"""What the connected role can read, and what the guard must know about the server: read together,
kept for a while.

    catalog_queries   the queries
    catalog_reading   tables and columns
    server_facts      what the guard must know
    sampling          values and periods that columns hold
    catalog           all of it, read at once and kept

Thousands of tables cost the same handful of queries as ten. Only sampling stored values takes one
query per table; it stops when its time or its bytes are spent.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

import psycopg2

from common.errors import CituError, DatabaseUnavailable
from common.values import Catalog
from databases.catalog.catalog_reading import read_catalog, read_columns, read_relations
from databases.catalog.readers import readers_of
from databases.catalog.sampling import Sampler, samples_of
from databases.catalog.sampling_permission import SamplingPermission
from databases.catalog.server_facts import read_facts
from databases.engines.capabilities import UNKNOWN_ENGINE, Capabilities, Lack
from databases.row_context import BEGIN
from databases.row_view import without_row_facts
from guard import ServerFacts
from guard.facts import Key
from postgres.connection import Connection
from postgres.connection_errors import UNREACHABLE

_log = logging.getLogger(__name__)
_WITHOUT_COMPILING = (
    "SET jit = off"  # to compile a query over thousands of tables takes longer than to run it
)
_FRESH_S = 5.0  # a copy that was read since is not read again when somebody asks for it
_RETRY_S = 5.0  # after a failed reload
_PLANNING_MS = 500
_FAULTS_OF_STATEMENTS = (
    "22",
    "42",
)  # SQLSTATEs: of data, such as a division by zero, and of names and types
_MAX_REFUSAL_CHARS = 300
_PATIENCE_S = 1.0  # how long a caller waits for the next try when the last one failed


@dataclass(frozen=True)
class Knowledge:
    """The catalogue and the guard's facts, read at the same moment.

    Attributes:
        secured: relations that show rows of tables with row-level security, where `ROW_CONTEXT` is
            on; the catalogue says nothing of their rows.
    """

    catalog: Catalog
    facts: ServerFacts
    secured: frozenset[Key] = frozenset()


Plan = Callable[[str], Awaitable[str | None]]
"""Says why PostgreSQL can't plan a statement that the guard has proven; None: it can, or can't tell
now.
"""

Annotate = Callable[[Catalog, ServerFacts, Plan], Awaitable[Catalog]]
"""Adds to a catalogue that was read what its operator says of it; called before anything is
sampled.
"""

Secure = Callable[[Connection, ServerFacts], Awaitable[frozenset[Key]]]
"""Finds the tables of which policies may hide rows from those who ask."""

Check = Callable[[Knowledge, Plan], Awaitable[object]]
"""Looks at what was read, before it is used."""

Show = Callable[[Catalog, ServerFacts], Catalog]
"""Gives the part of a catalogue that statements may read."""


class CatalogReader:
    """Keeps `Knowledge` for `ttl_s` seconds.

    Callers at the same time share one load. Up to `ttl_s` seconds later, callers get the old copy
    while a new one is read, so steady traffic never waits. The old copy also stays in use while
    reading fails. The first caller waits as long as loading takes; while the last load has failed,
    callers wait `_PATIENCE_S` seconds at most.
    """

    def __init__(self, load: Callable[[], Awaitable[Knowledge]], *, ttl_s: float) -> None:
        self._load = load
        self._ttl_s = ttl_s
        self._kept: Knowledge | None = None
        self._kept_until = 0.0
        self._loading: asyncio.Task[Knowledge] | None = None
        self._has_failed = False

    async def get(self) -> Knowledge:
        """Return the knowledge; raises what loading raises while there is none yet."""
        overdue = time.monotonic() - self._kept_until
        if self._kept is None or overdue > self._ttl_s:
            return await self._await_load()
        if overdue > 0:
            self._shared_load()

        return self._kept

    async def reread(self) -> None:
        """Read the catalogue again, unless it has just been read.

        Raises:
            CituError: there is no copy, and it can't be read.
        """
        age = self._ttl_s - (self._kept_until - time.monotonic())
        if self._kept is None or age > _FRESH_S:
            await self._await_load()

    async def _await_load(self) -> Knowledge:
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
        loading = self._loading
        if loading is not None and loading.get_loop() is loop and not loading.done():
            return loading

        loading = loop.create_task(self._reload())
        loading.add_done_callback(_look_at_failure)
        self._loading = loading
        return loading

    async def _same_or_new(self, read: Knowledge) -> Knowledge:
        """Return `read`, but with the objects kept before where they are equal: what others derived
        from these stays valid.
        """
        before = self._kept
        if before is None:
            return read

        return await asyncio.to_thread(_merge, before, read)

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


def _merge(before: Knowledge, read: Knowledge) -> Knowledge:
    catalog, facts = before.catalog, before.facts
    if before.catalog != read.catalog:
        catalog = _with_known_tables(before.catalog, read.catalog)
    if before.facts != read.facts:
        facts = read.facts

    merged = Knowledge(catalog, facts, read.secured)
    return before if merged == before else merged


def _with_known_tables(before: Catalog, read: Catalog) -> Catalog:
    """Return `read` with the objects of the tables that have not changed: two copies of thousands
    would take much memory.
    """
    tables_before = before.by_key
    tables = (
        table if tables_before.get(table.key) != table else tables_before[table.key]
        for table in read.tables
    )
    return replace(read, tables=tuple(tables))


def _look_at_failure(loading: "asyncio.Task[Knowledge]") -> None:
    """Take the exception, so that asyncio does not log it when all who waited have left."""
    if not loading.cancelled():
        loading.exception()


async def read_knowledge(
    connection: Connection,
    *,
    show: Show,
    annotate: Annotate | None = None,
    secure: Secure | None = None,
    check: Check | None = None,
    begin: str = BEGIN,
    capabilities: Capabilities | None = None,
) -> Knowledge:
    """Read everything; values only of the columns that `show` leaves in the catalogue. Raises
    psycopg2's errors.

    Args:
        secure: for what shows rows of the tables that it finds, no values are read and no numbers
            of rows are kept.
        check: is given what was read.
        begin: begins each transaction that plans or reads something of the user's.
        capabilities: the capabilities of the server; None: those of PostgreSQL.
    """
    await connection.query(_WITHOUT_COMPILING)
    known_capabilities = capabilities or Capabilities(UNKNOWN_ENGINE)
    relations = await read_relations(connection)
    attributes = await read_columns(connection)
    is_citus = known_capabilities.engine.name == "Citus"
    catalog = await read_catalog(connection, relations, attributes, is_citus=is_citus)
    trusts_functions = Lack.VOLATILITY not in known_capabilities.lacks
    facts = await read_facts(connection, catalog, trusts_functions=trusts_functions)
    plan: Plan = partial(_planning_refusal, connection, begin)
    if annotate is not None:  # first, because what it says decides what is sampled and shown
        catalog = await annotate(catalog, facts, plan)

    # Following many views to what they read takes a while, so it is done in a thread.
    catalog = await asyncio.to_thread(show, catalog, facts)
    secured: frozenset[Key] = frozenset()
    if secure is not None:
        secured = await asyncio.to_thread(readers_of, await secure(connection, facts), facts)
        catalog = without_row_facts(catalog, secured)

    open_relations = (
        relation for relation in relations if (relation.schema, relation.name) not in secured
    )
    sampler = Sampler(connection, SamplingPermission(facts), begin)
    await sampler.sample(await samples_of(catalog, open_relations, attributes))
    knowledge = Knowledge(await sampler.known(catalog), facts, secured)
    if check is not None:
        await check(knowledge, plan)

    await connection.query("RESET jit")
    return knowledge


async def _planning_refusal(connection: Connection, begin: str, sql: str) -> str | None:
    """See `Plan`; raises psycopg2's errors when the connection is lost."""
    refusal = None
    try:
        await connection.query(
            f"{begin}SET LOCAL statement_timeout = {_PLANNING_MS}; EXPLAIN {sql}"
        )
    except psycopg2.Error as exc:
        if exc.pgcode is None:
            raise
        if exc.pgcode.startswith(_FAULTS_OF_STATEMENTS):
            refusal = (exc.diag.message_primary or "PostgreSQL can't plan it")[:_MAX_REFUSAL_CHARS]

    await connection.query("ROLLBACK")
    return refusal
