"""The database as everyone else gets to hold it: nothing reaches the inner one before the guard has proven it."""

from common.database.guard import Guard, Inspection
from common.database.plan import CostLimits, with_known_scans
from common.database.postgres import PostgresDatabase
from common.errors import DatabaseUnavailable
from common.text import Text
from common.values import Catalog, PlanEstimate, QueryResult


class GuardedDatabase:
    """Implements `common.ports.Database` around `inner`, judging statements by `guard` and plans by `limits`."""

    def __init__(self, inner: PostgresDatabase, guard: Guard, limits: CostLimits) -> None:
        self._inner = inner
        self._guard = guard
        self._limits = limits
        self._read = self._visible = Catalog(())

    async def ping(self) -> None:
        """Returns when the database answers."""
        await self._inner.ping()

    async def catalog(self) -> Catalog:
        """The tables and columns the role may read and the operator opens."""
        catalog = await self._inner.catalog()
        await self._learn()
        if catalog is not self._read:
            self._read, self._visible = catalog, self._guard.access.visible(catalog)
        return self._visible

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
        plan = await self._inner.explain(await self._proven(sql))
        catalog, facts = await self.catalog(), await self._inner.facts()
        plan = with_known_scans(plan, catalog, facts.parents)
        self._limits.admit(plan, catalog)
        return plan

    async def run(self, sql: str) -> QueryResult:
        """Runs `sql` once it is proven."""
        return await self._inner.run(await self._proven(sql))

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

    @property
    def stuck_connections(self) -> int:
        """Connections that are taken by statements that PostgreSQL does not stop."""
        return self._inner.stuck_connections

    def close(self) -> None:
        """Closes idle connections."""
        self._inner.close()
