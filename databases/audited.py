"""Notes every statement of one question, or of one call with SQL, in the audit log."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from common.audit import Audit, Occasion, Outcome, Verdict
from common.errors import CituError, InvalidSql, StatementRejected
from common.ports import Database, Inspected, RowStream
from common.values import Catalog, PlanEstimate, QueryResult

T = TypeVar("T")


class AuditedDatabase:
    """Implements `common.ports.Database` around `inner`, for one `occasion`.

    A statement that is only planned leaves a line if it is refused; a statement that is run always leaves one.
    """

    def __init__(self, inner: Database, audit: Audit, occasion: Occasion) -> None:
        self._inner = inner
        self._audit = audit
        self._occasion = occasion

    async def ping(self) -> None:
        """Returns when the database answers."""
        await self._inner.ping()

    async def catalog(self) -> Catalog:
        """The tables and columns that may be read."""
        return await self._inner.catalog()

    async def inspect(self, sql: str) -> Inspected:
        """See `Database.inspect`."""
        return await self._noting(self._inner.inspect, sql, _refused)

    async def explain(self, sql: str) -> PlanEstimate:
        """See `Database.explain`."""
        return await self._noting(self._inner.explain, sql, _refused)

    async def run(self, sql: str) -> QueryResult:
        """See `Database.run`."""
        watch = _Watch()
        result = await self._noting(self._inner.run, sql, _refused_unrun)
        outcome = Outcome("executed", watch.milliseconds, rows=result.row_count, is_limited=result.is_limited)
        self._note(sql, outcome)
        return result

    async def stream(self, sql: str, most_rows: int) -> RowStream:
        """See `Database.stream`; the line is written when the stream is closed."""
        watch = _Watch()
        rows = await self._noting(lambda sql: self._inner.stream(sql, most_rows), sql, _refused_unrun)
        return _AuditedRows(rows, watch, lambda outcome: self._note(sql, outcome))

    async def _noting(self, act: Callable[[str], Awaitable[T]], sql: str, is_refusal: Callable[[CituError], bool]) -> T:
        """The result of `act` for `sql`; when it fails, the failure is noted."""
        watch = _Watch()
        try:
            return await act(sql)
        except CituError as error:
            verdict: Verdict = "refused" if is_refusal(error) else "failed"
            self._note(sql, Outcome(verdict, watch.milliseconds, error.error_type))
            raise
        except asyncio.CancelledError:
            self._note(sql, Outcome("cancelled", watch.milliseconds, "cancelled"))
            raise

    def _note(self, sql: str, outcome: Outcome) -> None:
        self._audit.record(self._occasion, sql, outcome)


class _AuditedRows:
    """`inner`, whose outcome is noted once: how many rows were taken, or how it failed."""

    def __init__(self, inner: RowStream, watch: "_Watch", note: Callable[[Outcome], None]) -> None:
        self._inner = inner
        self._watch = watch
        self._note: Callable[[Outcome], None] | None = note
        self._rows = 0
        self._is_whole = False
        self.columns, self.column_types = inner.columns, inner.column_types

    @property
    def is_limited(self) -> bool:
        """See `RowStream`."""
        return self._inner.is_limited

    async def page(self) -> list[list[Any]]:
        """See `RowStream.page`."""
        try:
            rows = await self._inner.page()
        except CituError as error:
            self._end(Outcome("failed", self._watch.milliseconds, error.error_type))
            raise
        self._rows += len(rows)
        self._is_whole = not rows
        return rows

    async def aclose(self) -> None:
        """See `RowStream.aclose`."""
        verdict: Verdict = "executed" if self._is_whole else "cancelled"
        self._end(
            Outcome(
                verdict,
                self._watch.milliseconds,
                None if self._is_whole else "cancelled",
                rows=self._rows,
                is_limited=self.is_limited,
            )
        )
        await self._inner.aclose()

    def _end(self, outcome: Outcome) -> None:
        note, self._note = self._note, None
        if note is not None:
            note(outcome)


class _Watch:
    """Measures the time since it was made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def milliseconds(self) -> float:
        return round((time.perf_counter() - self._started) * 1000, 1)


def _refused(error: CituError) -> bool:
    return isinstance(error, StatementRejected)


def _refused_unrun(error: CituError) -> bool:
    """Whether the guard refused it. `InvalidSql` means that the run failed: a division by zero, a cast that fails."""
    return isinstance(error, StatementRejected) and not isinstance(error, InvalidSql)
