"""The database as everyone else gets to hold it: nothing reaches the inner one before the guard has proven it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from common.errors import DatabaseUnavailable, ForbiddenObject, InvalidSql
from common.text import Text
from common.values import Catalog, PlanEstimate, QueryResult
from databases.discretion import discreet
from databases.guard import Guard, Inspection
from databases.guard.parsing import QUICK_CHARS
from databases.plan_estimate import CostLimits, with_known_scans
from databases.postgres import PostgresDatabase

T = TypeVar("T")
_log = logging.getLogger(__name__)

_PATIENCE_S = 0.2  # how long who finds that the catalogue has changed waits for what is made of it

Prepare = Callable[[Catalog, Catalog], Awaitable[None]]
"""Works out what questions need of a catalogue that takes the place of another."""


class GuardedDatabase:
    """Implements `common.ports.Database` around `inner`, judging statements by `guard` and plans by `limits`."""

    def __init__(self, inner: PostgresDatabase, guard: Guard, limits: CostLimits) -> None:
        self._inner = inner
        self._guard = guard
        self._limits = limits
        # One long text at a time, so that many of them take neither the loop's time nor more than one's memory.
        self._judge = ThreadPoolExecutor(1, thread_name_prefix="guard")
        self._shown = self._coming = Catalog(())
        self._prepare: Prepare | None = None
        self._preparing: asyncio.Task[None] | None = None

    async def ping(self) -> None:
        """Returns when the database answers."""
        await self._inner.ping()

    def prepare_with(self, prepare: Prepare) -> None:
        """From now on a catalogue that has changed is given to `prepare` before `catalog` shows it."""
        self._prepare = prepare

    async def catalog(self) -> Catalog:
        """The tables and columns the role may read and the operator opens.

        While a changed catalogue is prepared, the one before.
        """
        catalog = await self._inner.catalog()
        await self._learn()
        self._coming = catalog
        if self._coming is not self._shown:
            await self._show()
        return self._shown

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
        catalog, facts = await self.catalog(), await self._inner.facts()
        plan = with_known_scans(plan, catalog, facts.parents)
        self._limits.admit(plan, catalog)
        return plan

    async def run(self, sql: str) -> QueryResult:
        """Runs `sql` once it is proven."""
        return await self._discreet(self._inner.run, await self._proven(sql))

    async def _discreet(self, act: Callable[[str], Awaitable[T]], statement: str) -> T:
        """What `act` makes of the statement; what PostgreSQL says against it names nothing that is closed."""
        try:
            return await act(statement)
        except (InvalidSql, ForbiddenObject) as error:
            catalog, facts = await self._inner.catalog(), await self._inner.facts()
            told = discreet(error, statement, catalog, facts)
            if told is error:
                raise
            raise told from error

    async def _proven(self, sql: str) -> str:
        """The one statement in `sql`, without its semicolon."""
        try:
            await self._learn()
        except DatabaseUnavailable:
            await self.inspect(sql)  # what is forbidden is said even when nothing could run
            raise
        return (await self.inspect(sql)).statement

    async def _learn(self) -> None:
        self._guard.learn(await self._inner.facts())

    @property
    def stuck_connections(self) -> int:
        """Connections that are taken by statements that PostgreSQL does not stop."""
        return self._inner.stuck_connections

    def close(self) -> None:
        """Closes idle connections."""
        self._inner.close()
