"""The database as the rest of Citu gets it.

The guard proves every statement before PostgreSQL sees it, and row rules rewrite it for the actor.
"""

import asyncio
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from common.errors import (
    CostExceeded,
    DatabaseUnavailable,
    ForbiddenObject,
    InvalidSql,
    StatementRejected,
)
from common.ports import Database, RowStream
from common.text import Text
from common.values import Catalog, PlanEstimate, QueryResult
from databases.catalog.catalog import Knowledge
from databases.execution.error_redaction import without_hidden_names, without_values
from databases.execution.plan_estimate import CostLimits, with_known_scans
from databases.execution.postgres import PostgresDatabase
from databases.row_context import RowContext
from databases.row_view import ALL_ROWS, RowView
from guard import BUILTIN, Guard, Inspection, refusal_texts
from guard.facts import Key
from guard.lengths import NO_GROWTH, Growth
from sqltree.parsing import QUICK_CHARS

T = TypeVar("T")
_log = logging.getLogger(__name__)

_OUT_OF_RANGE = "22003"
_OTHER_RANGES = re.compile(r"smallint|integer|bigint|numeric|oid|money|\"")  # than of a float's
_PATIENCE_S = 0.03  # that the caller who finds a changed catalogue waits for its preparation

Prepare = Callable[[Catalog, Catalog], Awaitable[None]]
"""Prepares for questions about a catalogue (first argument) that replaces another (second)."""


@dataclass(frozen=True)
class ProvenStatement:
    """A statement that the guard has proven for one actor.

    Attributes:
        statement: as it was given, without the semicolon at its end.
        sent: what PostgreSQL gets: the same, or written so that only built-in code is meant, and
            rewritten by the row rules.
        context: what policies are told.
        tells: whether what PostgreSQL says of it may be shown as it is: estimates, values in
            messages. Not where it reads tables that may hide rows.
        growth: what PostgreSQL was told to prove of what the statement builds.
    """

    statement: str
    sent: str
    context: RowContext | None = None
    tells: bool = True
    growth: Growth = NO_GROWTH

    @property
    def gathers(self) -> bool:
        """Whether it gathers values of many rows into one."""
        return self.growth.gathered_copies > 0

    @property
    def sql_as_run(self) -> str | None:
        """Return `sent`, where it is another statement."""
        return self.sent if self.sent != self.statement else None


@dataclass(frozen=True)
class Action(Generic[T]):
    """An action on a proven statement, whose result is a `T`.

    Attributes:
        act: does it; raises what the method of `common.ports.Database` raises that stands for it.
        runs: whether the statement runs, and isn't only planned.
    """

    act: Callable[["GuardedDatabase", ProvenStatement], Awaitable[T]]
    runs: bool = True


class ExecutingDatabase(ABC):
    """Implements all of `common.ports.Database` that takes a statement to PostgreSQL by `execute`.

    Whoever wraps such a database wraps this one method.
    """

    @abstractmethod
    async def execute(self, sql: str, action: Action[T]) -> T:
        """Prove `sql`, and return the result of `action` on what was proven.

        Raises what `inspect` and the action raise.
        """

    async def explain(self, sql: str) -> PlanEstimate:
        return await self.execute(sql, PLAN)

    async def run(self, sql: str) -> QueryResult:
        return await self.execute(sql, RUN)

    async def stream(self, sql: str, most_rows: int) -> RowStream:
        async def begin(guarded: "GuardedDatabase", proven: ProvenStatement) -> RowStream:
            return await guarded.streamed(proven, most_rows)

        return await self.execute(sql, Action(begin))


class WrappedDatabase(Database, Protocol):
    """A database that a wrapper can hand its actions to."""

    async def execute(self, sql: str, action: Action[T]) -> T: ...


Narrow = Callable[[Knowledge], Catalog]
"""Gives the part of the catalogue that some actors may see."""

Hides = Callable[[Knowledge], Collection[Key]]
"""Gives the relations that show rows which rules may hide."""


class GuardedDatabase(ExecutingDatabase):
    """Implements `common.ports.Database` around `inner`, for actors with the same rights.

    Args:
        inner: may be shared with actors who have other rights.
        guard: judges statements, and remembers its verdicts; belongs to this object alone.
        limits: judge plans.
        prepare: is given a catalogue that has changed before `catalog` shows it.
        narrow: gives the part of `inner`'s catalogue that these actors may see; None: all of it.
        hides: gives the relations that show rows which rules may hide from these actors; None: none
            does.
    """

    def __init__(
        self,
        inner: PostgresDatabase,
        guard: Guard,
        limits: CostLimits,
        prepare: Prepare | None = None,
        narrow: Narrow | None = None,
        hides: Hides | None = None,
    ) -> None:
        self._inner = inner
        self._guard = guard
        self._limits = limits
        self._prepare = prepare
        self._narrow = narrow
        self._hides = hides
        self._hiding: frozenset[str] = frozenset()
        # Long texts are judged one after the other in a thread: the loop goes on, and memory is
        # needed for one only.
        self._judge = ThreadPoolExecutor(1, thread_name_prefix="guard")
        self._shown = self._coming = Catalog(())
        self._whole = self._narrowed = Knowledge(Catalog(()), BUILTIN)
        self._preparing: asyncio.Task[None] | None = None

    async def ping(self) -> None:
        await self._inner.ping()

    async def catalog(self) -> Catalog:
        """Return the tables and columns that the role may read and these actors may see.

        While a changed catalogue is prepared, callers get the one before.
        """
        self._coming = (await self._learned()).catalog
        if self._coming is not self._shown:
            await self._show()

        return self._shown

    async def _learned(self) -> Knowledge:
        """Give the guard the facts of the database as they are now; return them, the catalogue
        narrowed.
        """
        knowledge = await self._inner.knowledge()
        self._guard.learn(knowledge.facts)
        if knowledge is not self._whole:
            self._hiding = frozenset(name for _, name in await self._hidden_by(knowledge))
            narrowed = knowledge
            if self._narrow is not None:
                # Following views to what they read takes a while where there are many.
                narrowed = await asyncio.to_thread(
                    _narrowed, self._narrow, knowledge, self._narrowed
                )

            self._whole, self._narrowed = knowledge, narrowed

        return self._narrowed

    async def _hidden_by(self, knowledge: Knowledge) -> Collection[Key]:
        if self._hides is None:
            return knowledge.secured

        return {*knowledge.secured, *await asyncio.to_thread(self._hides, knowledge)}

    async def _show(self) -> None:
        if self._prepare is None or not self._shown.tables:
            self._shown = self._coming
            return

        if not self._is_preparing():
            self._preparing = asyncio.create_task(self._run_preparation(self._prepare))
            await asyncio.wait({self._preparing}, timeout=_PATIENCE_S)

    def _is_preparing(self) -> bool:
        """Tell whether a changed catalogue is being prepared on the running loop."""
        task = self._preparing
        if task is None or task.done():
            return False

        return task.get_loop() is asyncio.get_running_loop()

    async def _run_preparation(self, prepare: Prepare) -> None:
        coming = self._coming
        try:
            await prepare(coming, self._shown)
        except Exception:  # noqa: BLE001 - questions can do without
            _log.exception("what questions need of the changed catalogue could not be worked out")

        self._shown = coming

    async def role_dangers(self) -> tuple[Text, ...]:
        """Return what the connected role may do beyond reading, one sentence each."""
        return await self._inner.role_dangers()

    def check(self, sql: str) -> None:
        """Prove that `sql` is one read-only query.

        Judges by the built-in lists until the server's were first read. Blocks for as long as that
        takes: for callers without an event loop.
        """
        self._guard.check(sql)

    async def inspect(self, sql: str) -> Inspection:
        """Return the tables, columns and functions of `sql`; raise what `check` raises."""
        if len(sql) <= QUICK_CHARS or self._guard.remembered(sql):
            return self._guard.inspect(sql)

        return await asyncio.get_running_loop().run_in_executor(
            self._judge, self._guard.inspect, sql
        )

    @property
    def rows_seen(self) -> Hashable | None:
        return None

    async def execute(self, sql: str, action: Action[T], view: RowView = ALL_ROWS) -> T:
        return await action.act(self, await self.proven(sql, view))

    async def proven(self, sql: str, view: RowView = ALL_ROWS) -> ProvenStatement:
        """Return the one statement in `sql`, for actors who see the rows of `view`.

        Raises what `inspect` raises.
        """
        try:
            await self._learned()
        except DatabaseUnavailable:
            # A forbidden statement is refused as such even when nothing could run.
            await self.inspect(sql)
            raise

        inspection = await self.inspect(sql)
        proven = ProvenStatement(inspection.statement, inspection.sent, growth=inspection.growth)
        if view.is_open:
            return proven

        sent = inspection.sent
        if not view.rows.is_open:
            sent = await self._rewrite(inspection, view)

        tells = not self._hides_rows_of(inspection)
        return replace(proven, sent=sent, context=view.context, tells=tells)

    async def _rewrite(self, inspection: Inspection, view: RowView) -> str:
        qualify = partial(self._guard.qualify, growth=inspection.growth)
        rewrite = partial(view.rows.rewritten, inspection.statement, self._whole, qualify)
        if len(inspection.statement) <= QUICK_CHARS:
            return rewrite()

        return await asyncio.get_running_loop().run_in_executor(self._judge, rewrite)

    def _hides_rows_of(self, inspection: Inspection) -> bool:
        """Tell whether the statement reads relations whose rows these actors may not all see."""
        if not self._hiding.isdisjoint(inspection.tables):
            return True

        endings = tuple(f".{name}" for name in self._hiding)
        return any(table.endswith(endings) for table in inspection.tables)

    async def planned(self, proven: ProvenStatement) -> PlanEstimate:
        """Return the planner's estimate; raises `CostExceeded` for a plan beyond the limits."""
        explain = partial(self._inner.explain, proven.sent, proven.context)
        plan = await self._with_redacted_errors(explain, proven)
        catalog, knowledge = await self.catalog(), await self._learned()
        plan = with_known_scans(plan, catalog, knowledge.facts.parents)
        plan = replace(plan, is_shown=plan.is_shown and proven.tells)
        self._limits.admit(plan, catalog)
        return plan

    async def executed(self, proven: ProvenStatement) -> QueryResult:
        """Return the rows up to the caps; raises `CostExceeded` for too much that is gathered."""
        run = partial(self._inner.run, proven.sent, proven.context, gathers=proven.gathers)
        return await self._with_redacted_errors(run, proven)

    async def streamed(self, proven: ProvenStatement, most_rows: int) -> RowStream:
        """Begin the statement, and return its rows page by page."""
        begin = partial(
            self._inner.stream, proven.sent, most_rows, proven.context, gathers=proven.gathers
        )
        rows = await self._with_redacted_errors(begin, proven)
        return RedactedRows(rows, lambda: self._with_redacted_errors(rows.page, proven))

    async def _with_redacted_errors(
        self, act: Callable[[], Awaitable[T]], proven: ProvenStatement
    ) -> T:
        """Run `act`; take out of its errors what these actors may not see.

        They also lose positions in what was sent, if it is not what was given.
        """
        try:
            return await act()
        except (InvalidSql, ForbiddenObject) as error:
            knowledge = await self._learned()
            refusal = without_hidden_names(
                error, proven.statement, knowledge.catalog, knowledge.facts
            )
            shown_error = _limit_said(refusal, proven)
            if isinstance(shown_error, InvalidSql):
                if not proven.tells:
                    shown_error = without_values(shown_error, proven.statement)
                if proven.sql_as_run is not None:
                    shown_error.position = None

            if shown_error is error:
                raise

            raise shown_error from error

    @property
    def stuck_connections(self) -> int:
        """Count connections whose statements PostgreSQL does not stop, of all actors."""
        return self._inner.stuck_connections

    def close(self) -> None:
        """Close idle connections, which other actors may share; the next use opens new ones."""
        self._inner.close()


def _limit_said(error: StatementRejected, proven: ProvenStatement) -> StatementRejected:
    """Return what users are told where PostgreSQL refused an amount, or what is gathered."""
    if not isinstance(error, InvalidSql):
        return error
    if error.sqlstate != _OUT_OF_RANGE:
        return error

    is_amount = "smallint" in error.detail
    if is_amount and proven.growth.amounts:
        text = refusal_texts.AMOUNT_TOO_LARGE
        return InvalidSql(text.en, detail_zh=text.zh, sqlstate=_OUT_OF_RANGE)

    is_other_type = _OTHER_RANGES.search(error.detail) is not None
    if proven.gathers and not is_other_type:
        return CostExceeded(refusal_texts.GATHERED_TOO_MUCH)

    return error


class RedactedRows:
    """The rows of `inner`, whose error messages lose the names of what is closed.

    Args:
        page: gives the next page of `inner`; raises errors without hidden names.
    """

    def __init__(self, inner: RowStream, page: Callable[[], Awaitable[list[list[Any]]]]) -> None:
        self._inner = inner
        self._page = page
        self.aclose = inner.aclose
        self.columns = inner.columns
        self.column_types = inner.column_types

    @property
    def is_limited(self) -> bool:
        return self._inner.is_limited

    async def page(self) -> list[list[Any]]:
        return await self._page()


def _narrowed(narrow: Narrow, knowledge: Knowledge, before: Knowledge) -> Knowledge:
    """Return `known` with the part of its catalogue that `narrow` leaves.

    A catalogue that equals the one before is the same object, so that what was derived from it
    stays valid.
    """
    catalog = narrow(knowledge)
    if catalog == before.catalog:
        catalog = before.catalog

    return replace(knowledge, catalog=catalog)


class ActorDatabase(ExecutingDatabase):
    """Implements `common.ports.Database` for one actor, whose statements see the rows of `view`."""

    def __init__(self, guarded: GuardedDatabase, view: RowView) -> None:
        self._guarded = guarded
        self._view = view
        self.rows_seen: Hashable | None = view
        self.ping = guarded.ping
        self.catalog = guarded.catalog
        self.inspect = guarded.inspect

    async def execute(self, sql: str, action: Action[T]) -> T:
        return await self._guarded.execute(sql, action, self._view)


PLAN = Action(GuardedDatabase.planned, runs=False)
RUN = Action(GuardedDatabase.executed)
