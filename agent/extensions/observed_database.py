"""Measures the statements of one occasion."""

from collections.abc import Hashable

from agent.extensions.points import ObservabilityProvider
from common.ports import Database, Inspected, RowStream
from common.values import Catalog, PlanEstimate, QueryResult


class ObservedDatabase:
    """Implements `common.ports.Database` around `inner`: a span for each statement that is planned or run."""

    def __init__(self, inner: Database, observer: ObservabilityProvider) -> None:
        self._inner = inner
        self._observer = observer

    @property
    def rows_seen(self) -> Hashable | None:
        """See `Database.rows_seen`."""
        return self._inner.rows_seen

    async def ping(self) -> None:
        """Returns when the database answers."""
        await self._inner.ping()

    async def catalog(self) -> Catalog:
        """See `Database.catalog`."""
        return await self._inner.catalog()

    async def inspect(self, sql: str) -> Inspected:
        """See `Database.inspect`."""
        return await self._inner.inspect(sql)

    async def explain(self, sql: str) -> PlanEstimate:
        """See `Database.explain`."""
        with self._observer.span("statement", {"act": "explain"}):
            return await self._inner.explain(sql)

    async def run(self, sql: str) -> QueryResult:
        """See `Database.run`."""
        with self._observer.span("statement", {"act": "run"}):
            result = await self._inner.run(sql)
        self._observer.metric("rows", result.row_count, {"act": "run"})
        return result

    async def stream(self, sql: str, most_rows: int) -> RowStream:
        """See `Database.stream`; the span ends with the first rows."""
        with self._observer.span("statement", {"act": "stream"}):
            return await self._inner.stream(sql, most_rows)
