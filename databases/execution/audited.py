"""Notes every statement of one question, or of one call with SQL, in the audit log."""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from common.audit import Audit, AuditVerdict, Occasion, StatementOutcome
from common.errors import CituError, InvalidSql, StatementRejected
from common.ports import Inspected, RowStream
from common.values import QueryResult
from databases.execution.guarded import (
    Action,
    ExecutingDatabase,
    GuardedDatabase,
    ProvenStatement,
    RedactedRows,
    WrappedDatabase,
)

T = TypeVar("T")


class AuditedDatabase(ExecutingDatabase):
    """Implements `common.ports.Database` around `inner`, for one `occasion`.

    A statement that is only planned leaves a line if it is refused; a statement that is run always
    leaves one: for a stream, when it is closed.
    """

    def __init__(self, inner: WrappedDatabase, audit: Audit, occasion: Occasion) -> None:
        self._inner = inner
        self._audit = audit
        self._occasion = occasion
        self.rows_seen: Hashable | None = inner.rows_seen
        self.ping = inner.ping
        self.catalog = inner.catalog

    async def inspect(self, sql: str) -> Inspected:
        with self._failures_of(_Line(sql), runs=False):
            return await self._inner.inspect(sql)

    async def execute(self, sql: str, action: Action[T]) -> T:
        line = _Line(sql)

        async def act(guarded: GuardedDatabase, proven: ProvenStatement) -> T:
            line.sql_as_run = proven.sql_as_run
            return await action.act(guarded, proven)

        with self._failures_of(line, runs=action.runs):
            result = await self._inner.execute(sql, replace(action, act=act))

        if isinstance(result, RedactedRows):
            rows = _AuditedRows(cast("RowStream", result), line, partial(self._note, line))
            return cast("T", rows)

        if isinstance(result, QueryResult):
            self._note_result(line, result)

        return result

    @contextmanager
    def _failures_of(self, line: "_Line", *, runs: bool) -> Iterator[None]:
        """Note how the work inside fails; `runs` tells whether it runs the statement."""
        try:
            yield
        except CituError as error:
            verdict: AuditVerdict = "refused" if _is_refusal(error, runs=runs) else "failed"
            self._note(line, StatementOutcome(verdict, line.milliseconds, error.error_type))
            raise
        except asyncio.CancelledError:
            if runs:
                self._note(line, StatementOutcome("cancelled", line.milliseconds, "cancelled"))

            raise

    def _note_result(self, line: "_Line", result: QueryResult) -> None:
        outcome = StatementOutcome(
            "executed", line.milliseconds, rows=result.row_count, is_limited=result.is_limited
        )
        self._note(line, outcome)

    def _note(self, line: "_Line", outcome: StatementOutcome) -> None:
        self._audit.record(self._occasion, line.sql, replace(outcome, sql_as_run=line.sql_as_run))


class _AuditedRows:
    """The rows of `inner`, whose outcome is noted once: how many were taken, or how it failed."""

    def __init__(
        self, inner: RowStream, line: "_Line", note: Callable[[StatementOutcome], None]
    ) -> None:
        self._inner = inner
        self._line = line
        self._note: Callable[[StatementOutcome], None] | None = note
        self._rows = 0
        self._is_whole = False
        self.columns = inner.columns
        self.column_types = inner.column_types

    @property
    def is_limited(self) -> bool:
        return self._inner.is_limited

    async def page(self) -> list[list[Any]]:
        try:
            rows = await self._inner.page()
        except CituError as error:
            self._end(StatementOutcome("failed", self._line.milliseconds, error.error_type))
            raise

        self._rows += len(rows)
        self._is_whole = not rows
        return rows

    async def aclose(self) -> None:
        verdict: AuditVerdict = "executed" if self._is_whole else "cancelled"
        outcome = StatementOutcome(
            verdict,
            self._line.milliseconds,
            None if self._is_whole else "cancelled",
            rows=self._rows,
            is_limited=self.is_limited,
        )
        self._end(outcome)
        await self._inner.aclose()

    def _end(self, outcome: StatementOutcome) -> None:
        note, self._note = self._note, None
        if note is not None:
            note(outcome)


class _Line:
    """One statement's line in the log, which measures the time since it was made."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.sql_as_run: str | None = None
        self._started = time.perf_counter()

    @property
    def milliseconds(self) -> float:
        return round((time.perf_counter() - self._started) * 1000, 1)


def _is_refusal(error: CituError, *, runs: bool) -> bool:
    if runs and isinstance(error, InvalidSql):
        return False  # the run failed: a division by zero, a cast that does not fit

    return isinstance(error, StatementRejected)
