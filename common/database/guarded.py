"""The database as everyone else gets to hold it: nothing reaches the inner one before the guard has proven it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from common.database.discretion import discreet
from common.database.guard import Guard, Inspection
from common.database.plan import CostLimits, with_known_scans
from common.database.postgres import PostgresDatabase
from common.errors import DatabaseUnavailable, ForbiddenObject, InvalidSql
from common.text import Text
from common.values import Catalog, PlanEstimate, QueryResult

T = TypeVar("T")


class GuardedDatabase:
    """Implements `common.ports.Database` around `inner`, judging statements by `guard` and plans by `limits`."""

    def __init__(self, inner: PostgresDatabase, guard: Guard, limits: CostLimits) -> None:
        self._inner = inner
        self._guard = guard
        self._limits = limits

    async def ping(self) -> None:
        """Returns when the database answers."""
        await self._inner.ping()

    async def catalog(self) -> Catalog:
        """The tables and columns the role may read and the operator opens."""
        catalog = await self._inner.catalog()
        await self._learn()
        return catalog

    async def role_dangers(self) -> tuple[Text, ...]:
        """What the connected role may do beyond reading, one sentence each; empty when it is as it should be."""
        return await self._inner.role_dangers()

    def check(self, sql: str) -> None:
        """Proves that `sql` is one read-only query; by the built-in lists until the server's were first read."""
        self._guard.check(sql)

    def inspect(self, sql: str) -> Inspection:
        """What `sql` uses; raises what `check` raises."""
        return self._guard.inspect(sql)

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
            self._guard.check(sql)  # what is forbidden is said even when nothing could run
            raise
        return self._guard.inspect(sql).statement

    async def _learn(self) -> None:
        self._guard.learn(await self._inner.facts())

    def close(self) -> None:
        """Closes idle connections."""
        self._inner.close()
