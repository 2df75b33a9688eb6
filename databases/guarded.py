"""The database as everyone else gets it: the guard proves every statement before PostgreSQL sees it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from common.errors import DatabaseUnavailable, ForbiddenObject, InvalidSql
from common.ports import RowStream
from common.text import Text
from common.values import Catalog, PlanEstimate, QueryResult
from databases.catalog import Knowledge, Show
from databases.discretion import discreet
from databases.guard import BUILTIN, Guard, Inspection
from databases.guard.parsing import QUICK_CHARS
from databases.plan_estimate import CostLimits, with_known_scans
from databases.postgres import PostgresDatabase

T = TypeVar("T")
_log = logging.getLogger(__name__)

_PATIENCE_S = 0.03  # how long the caller who finds a changed catalogue waits until it is prepared

Prepare = Callable[[Catalog, Catalog], Awaitable[None]]
"""Works out what questions need of a catalogue (the first argument) that replaces another (the second)."""


class GuardedDatabase:
    """Implements `common.ports.Database` around `inner`, for actors with the same rights.

    Args:
        inner: may be shared with actors who have other rights.
        guard: judges statements, and remembers its verdicts; belongs to this object alone.
        limits: judge plans.
        prepare: is given a catalogue that has changed before `catalog` shows it.
        narrow: gives the part of `inner`'s catalogue that these actors may see; None: all of it.
    """

    def __init__(
        self,
        inner: PostgresDatabase,
        guard: Guard,
        limits: CostLimits,
        prepare: Prepare | None = None,
        narrow: Show | None = None,
    ) -> None:
        self._inner = inner
        self._guard = guard
        self._limits = limits
        self._prepare = prepare
        self._narrow = narrow
        # Long texts are judged one after the other in a thread: the loop goes on, and memory is needed for one only.
        self._judge = ThreadPoolExecutor(1, thread_name_prefix="guard")
        self._shown = self._coming = Catalog(())
        self._whole = self._narrowed = Knowledge(Catalog(()), BUILTIN)
        self._preparing: asyncio.Task[None] | None = None

    async def ping(self) -> None:
        """Returns when the database answers."""
        await self._inner.ping()

    async def catalog(self) -> Catalog:
        """The tables and columns that the role may read and these actors may see.

        While a changed catalogue is prepared, callers get the one before.
        """
        self._coming = (await self._learned()).catalog
        if self._coming is not self._shown:
            await self._show()
        return self._shown

    async def _learned(self) -> Knowledge:
        """What is known of the server, its catalogue as these actors may see it; the guard judges by it from now on."""
        known = await self._inner.knowledge()
        self._guard.learn(known.facts)
        if self._narrow is None:
            return known
        if known is not self._whole:
            # Following views to what they read takes a while where there are many.
            catalog = await asyncio.to_thread(_narrowed, self._narrow, known, self._narrowed.catalog)
            self._whole, self._narrowed = known, Knowledge(catalog, known.facts)
        return self._narrowed

    async def _show(self) -> None:
        if self._prepare is None or not self._shown.tables:
            self._shown = self._coming
            return
        preparing = self._preparing
        if preparing is None or preparing.done() or preparing.get_loop() is not asyncio.get_running_loop():
            self._preparing = asyncio.create_task(self._prepared(self._prepare))
            await asyncio.wait({self._preparing}, timeout=_PATIENCE_S)

    async def _prepared(self, prepare: Prepare) -> None:
        coming = self._coming
        try:
            await prepare(coming, self._shown)
        except Exception:  # noqa: BLE001 - questions can do without
            _log.exception("what questions need of the changed catalogue could not be worked out")
        self._shown = coming

    async def role_dangers(self) -> tuple[Text, ...]:
        """What the connected role may do beyond reading, one sentence each; empty when it is as it should be."""
        return await self._inner.role_dangers()

    def check(self, sql: str) -> None:
        """Proves that `sql` is one read-only query; by the built-in lists until the server's were first read.

        Blocks for as long as that takes: for callers without an event loop.
        """
        self._guard.check(sql)

    async def inspect(self, sql: str) -> Inspection:
        """What `sql` uses; raises what `check` raises."""
        if len(sql) <= QUICK_CHARS or self._guard.remembered(sql):
            return self._guard.inspect(sql)
        return await asyncio.get_running_loop().run_in_executor(self._judge, self._guard.inspect, sql)

    async def explain(self, sql: str) -> PlanEstimate:
        """Plans `sql` once it is proven; raises `CostExceeded` for a plan beyond the limits."""
        plan = await self._discreet(self._inner.explain, await self._proven(sql))
        catalog, known = await self.catalog(), await self._learned()
        plan = with_known_scans(plan, catalog, known.facts.parents)
        self._limits.admit(plan, catalog)
        return plan

    async def run(self, sql: str) -> QueryResult:
        """Runs `sql` once it is proven."""
        return await self._discreet(self._inner.run, await self._proven(sql))

    async def stream(self, sql: str, most_rows: int) -> RowStream:
        """Begins `sql` once it is proven."""
        statement = await self._proven(sql)
        rows = await self._discreet(partial(self._inner.stream, most_rows=most_rows), statement)
        return _DiscreetRows(rows, lambda: self._discreet(lambda _: rows.page(), statement))

    async def _discreet(self, act: Callable[[str], Awaitable[T]], statement: str) -> T:
        """What `act` makes of the statement; PostgreSQL's messages about it lose the names of what is closed."""
        try:
            return await act(statement)
        except (InvalidSql, ForbiddenObject) as error:
            known = await self._learned()
            told = discreet(error, statement, known.catalog, known.facts)
            if told is error:
                raise
            raise told from error

    async def _proven(self, sql: str) -> str:
        """The one statement in `sql`, without its semicolon."""
        try:
            await self._learned()
        except DatabaseUnavailable:
            await self.inspect(sql)  # a forbidden statement is refused as such even when nothing could run
            raise
        return (await self.inspect(sql)).statement

    @property
    def stuck_connections(self) -> int:
        """Connections that are taken by statements that PostgreSQL does not stop, whoever asked them."""
        return self._inner.stuck_connections

    def close(self) -> None:
        """Closes idle connections, which other actors may share; the next use opens new ones."""
        self._inner.close()


class _DiscreetRows:
    """`inner`, whose messages lose the names of what is closed."""

    def __init__(self, inner: RowStream, page: Callable[[], Awaitable[list[list[Any]]]]) -> None:
        self._inner = inner
        self._page = page
        self.columns, self.column_types = inner.columns, inner.column_types
        self.aclose = inner.aclose

    @property
    def is_limited(self) -> bool:
        """See `common.ports.RowStream`."""
        return self._inner.is_limited

    async def page(self) -> list[list[Any]]:
        """See `common.ports.RowStream`."""
        return await self._page()


def _narrowed(narrow: Show, known: Knowledge, before: Catalog) -> Catalog:
    """The part of the catalogue that `narrow` gives; the object from before if it says the same."""
    catalog = narrow(known.catalog, known.facts)
    return before if catalog == before else catalog
