"""Measures the statements of one occasion."""

from collections.abc import Hashable
from contextlib import AbstractContextManager

from agent.extensions.points import ObservabilityProvider
from common.ports import Database, Inspected, RowStream
from common.values import Catalog, PlanEstimate, QueryResult
from sqltree.parsing import without_literals


class ObservedDatabase:
    """Implements `common.ports.Database` around `inner`, with a span for each statement.

    Args:
        shows_statements: spans have the statements' texts, without their literals.
    """

    def __init__(
        self, inner: Database, observer: ObservabilityProvider, *, shows_statements: bool = False
    ) -> None:
        self._inner = inner
        self._observer = observer
        self._shows_statements = shows_statements

    def _span(self, act: str, sql: str) -> AbstractContextManager[None]:
        attributes = {"act": act}
        if self._shows_statements:
            attributes["statement"] = without_literals(sql)

        return self._observer.span("statement", attributes)

    @property
    def rows_seen(self) -> Hashable | None:
        return self._inner.rows_seen

    async def ping(self) -> None:
        """Return when the database answers."""
        await self._inner.ping()

    async def catalog(self) -> Catalog:
        return await self._inner.catalog()

    async def inspect(self, sql: str) -> Inspected:
        return await self._inner.inspect(sql)

    async def explain(self, sql: str) -> PlanEstimate:
        with self._span("explain", sql):
            return await self._inner.explain(sql)

    async def run(self, sql: str) -> QueryResult:
        with self._span("run", sql):
            result = await self._inner.run(sql)
            self._observer.metric("rows", result.row_count, {"act": "run"})

        return result

    async def stream(self, sql: str, most_rows: int) -> RowStream:
        """Run the statement and stream its rows; the span ends with the first rows."""
        with self._span("stream", sql):
            return await self._inner.stream(sql, most_rows)
