"""Notes every statement of one question, or of one call with SQL, in the audit log."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

from common.audit import Audit, Occasion, Outcome, Verdict
from common.errors import CituError, InvalidSql, StatementRejected
from common.ports import Inspected, RowStream
from common.values import Catalog, PlanEstimate, QueryResult
from databases.guarded import Asked, Proven

T = TypeVar("T")


class AuditedDatabase:
    """Implements `common.ports.Database` around `inner`, for one `occasion`.

    A statement that is only planned leaves a line if it is refused; a statement that is run always leaves one.
    """

    def __init__(self, inner: Asked, audit: Audit, occasion: Occasion) -> None:
        self._inner = inner
        self._audit = audit
        self._occasion = occasion

    @property
    def rows_seen(self) -> Hashable | None:
        """See `Database.rows_seen`."""
        return self._inner.rows_seen

    async def ping(self) -> None:
        """Returns when the database answers."""
        await self._inner.ping()

    async def catalog(self) -> Catalog:
        """The tables and columns that may be read."""
        return await self._inner.catalog()

    async def inspect(self, sql: str) -> Inspected:
        """See `Database.inspect`."""
        return await self._noting(lambda: self._inner.inspect(sql), _Line(sql), _refused)

    async def explain(self, sql: str) -> PlanEstimate:
        """See `Database.explain`."""
        line = _Line(sql)
        proven = await self._proven(line, _refused)
        return await self._noting(lambda: self._inner.planned(proven), line, _refused)

    async def run(self, sql: str) -> QueryResult:
        """See `Database.run`."""
        line = _Line(sql)
        proven = await self._proven(line, _refused_unrun)
        result = await self._noting(lambda: self._inner.executed(proven), line, _refused_unrun)
        self._note(line, Outcome("executed", line.milliseconds, rows=result.row_count, is_limited=result.is_limited))
        return result

    async def stream(self, sql: str, most_rows: int) -> RowStream:
        """See `Database.stream`; the line is written when the stream is closed."""
        line = _Line(sql)
        proven = await self._proven(line, _refused_unrun)
        rows = await self._noting(lambda: self._inner.streamed(proven, most_rows), line, _refused_unrun)
        return _AuditedRows(rows, line, lambda outcome: self._note(line, outcome))

    async def _proven(self, line: "_Line", is_refusal: Callable[[CituError], bool]) -> Proven:
        proven = await self._noting(lambda: self._inner.proven(line.sql), line, is_refusal)
        line.sql_as_run = proven.sql_as_run
        return proven

    async def _noting(
        self, act: Callable[[], Awaitable[T]], line: "_Line", is_refusal: Callable[[CituError], bool]
    ) -> T:
        """The result of `act`; when it fails, the failure is noted."""
        try:
            return await act()
        except CituError as error:
            verdict: Verdict = "refused" if is_refusal(error) else "failed"
            self._note(line, Outcome(verdict, line.milliseconds, error.error_type))
            raise
        except asyncio.CancelledError:
            self._note(line, Outcome("cancelled", line.milliseconds, "cancelled"))
            raise

    def _note(self, line: "_Line", outcome: Outcome) -> None:
        self._audit.record(self._occasion, line.sql, replace(outcome, sql_as_run=line.sql_as_run))


class _AuditedRows:
    """`inner`, whose outcome is noted once: how many rows were taken, or how it failed."""

    def __init__(self, inner: RowStream, line: "_Line", note: Callable[[Outcome], None]) -> None:
        self._inner = inner
        self._line = line
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
            self._end(Outcome("failed", self._line.milliseconds, error.error_type))
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
                self._line.milliseconds,
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


class _Line:
    """What is known of the line of one statement, which measures the time since it was made."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.sql_as_run: str | None = None
        self._started = time.perf_counter()

    @property
    def milliseconds(self) -> float:
        return round((time.perf_counter() - self._started) * 1000, 1)


def _refused(error: CituError) -> bool:
    return isinstance(error, StatementRejected)


def _refused_unrun(error: CituError) -> bool:
    """Whether the guard refused it. `InvalidSql` means that the run failed: a division by zero, a cast that fails."""
    return isinstance(error, StatementRejected) and not isinstance(error, InvalidSql)
