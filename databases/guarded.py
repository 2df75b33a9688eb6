"""The database as everyone else gets it: the guard proves every statement before PostgreSQL sees it, and row rules
rewrite it for who asks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from common.errors import DatabaseUnavailable, ForbiddenObject, InvalidSql
from common.ports import RowStream
from common.text import Text
from common.values import Catalog, PlanEstimate, QueryResult
from databases.catalog import Knowledge
from databases.discretion import discreet, without_values
from databases.guard import BUILTIN, Guard, Inspection
from databases.guard.facts import Key
from databases.guard.parsing import QUICK_CHARS
from databases.plan_estimate import CostLimits, with_known_scans
from databases.postgres import PostgresDatabase
from databases.row_context import RowContext
from databases.row_view import ALL_ROWS, RowView

T = TypeVar("T")
_log = logging.getLogger(__name__)

_PATIENCE_S = 0.03  # how long the caller who finds a changed catalogue waits until it is prepared

Prepare = Callable[[Catalog, Catalog], Awaitable[None]]
"""Works out what questions need of a catalogue (the first argument) that replaces another (the second)."""


@dataclass(frozen=True)
class Proven:
    """A statement that the guard has proven for one actor.

    Attributes:
        statement: as it was given, without the semicolon at its end.
        sent: what PostgreSQL gets: the same, or rewritten by the row rules.
        context: what policies are told.
        tells: whether what PostgreSQL says of it may be shown as it is: estimates, values in messages. Not where it
            reads tables that may hide rows.
    """

    statement: str
    sent: str
    context: RowContext | None = None
    tells: bool = True

    @property
    def sql_as_run(self) -> str | None:
        """`sent`, where it is another statement."""
        return self.sent if self.sent != self.statement else None


class Asked(Protocol):
    """A database that proves a statement first and uses it then, so that whoever wraps it knows what was run."""

    @property
    def rows_seen(self) -> Hashable | None:
        """See `common.ports.Database`."""

    async def ping(self) -> None:
        """See `common.ports.Database`."""

    async def catalog(self) -> Catalog:
        """See `common.ports.Database`."""

    async def inspect(self, sql: str) -> Inspection:
        """See `common.ports.Database`."""

    async def proven(self, sql: str) -> Proven:
        """`sql` once it is proven and, for actors under row rules, rewritten; raises what `inspect` raises."""

    async def planned(self, proven: Proven) -> PlanEstimate:
        """See `common.ports.Database.explain`."""

    async def executed(self, proven: Proven) -> QueryResult:
        """See `common.ports.Database.run`."""

    async def streamed(self, proven: Proven, most_rows: int) -> RowStream:
        """See `common.ports.Database.stream`."""


Narrow = Callable[[Knowledge], Catalog]
"""Gives the part of the catalogue that some actors may see."""

Hides = Callable[[Knowledge], Collection[Key]]
"""Gives the relations that show rows which rules may hide."""


class GuardedDatabase:
    """Implements `common.ports.Database` around `inner`, for actors with the same rights.

    Args:
        inner: may be shared with actors who have other rights.
        guard: judges statements, and remembers its verdicts; belongs to this object alone.
        limits: judge plans.
        prepare: is given a catalogue that has changed before `catalog` shows it.
        narrow: gives the part of `inner`'s catalogue that these actors may see; None: all of it.
        hides: gives the relations that show rows which rules may hide from these actors; None: none does.
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
        if known is not self._whole:
            self._hiding = frozenset(name for _, name in await self._hidden_by(known))
            # Following views to what they read takes a while where there are many.
            narrowed = (
                await asyncio.to_thread(_narrowed, self._narrow, known, self._narrowed) if self._narrow else known
            )
            self._whole, self._narrowed = known, narrowed
        return self._narrowed

    async def _hidden_by(self, known: Knowledge) -> Collection[Key]:
        if self._hides is None:
            return known.secured
        return {*known.secured, *await asyncio.to_thread(self._hides, known)}

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

    @property
    def rows_seen(self) -> Hashable | None:
        """Nothing limits them."""
        return None

    async def explain(self, sql: str) -> PlanEstimate:
        """Plans `sql` once it is proven; raises `CostExceeded` for a plan beyond the limits."""
        return await self.planned(await self.proven(sql))

    async def run(self, sql: str) -> QueryResult:
        """Runs `sql` once it is proven."""
        return await self.executed(await self.proven(sql))

    async def stream(self, sql: str, most_rows: int) -> RowStream:
        """Begins `sql` once it is proven."""
        return await self.streamed(await self.proven(sql), most_rows)

    async def proven(self, sql: str, view: RowView = ALL_ROWS) -> Proven:
        """The one statement in `sql` for who sees the rows of `view`; raises what `inspect` raises."""
        try:
            await self._learned()
        except DatabaseUnavailable:
            await self.inspect(sql)  # a forbidden statement is refused as such even when nothing could run
            raise
        found = await self.inspect(sql)
        if view.is_open:
            return Proven(found.statement, found.statement)
        sent = found.statement if view.rows.is_open else await self._rewritten(found.statement, view)
        return Proven(found.statement, sent, view.context, tells=not self._hides_rows_of(found))

    async def _rewritten(self, statement: str, view: RowView) -> str:
        if len(statement) <= QUICK_CHARS:
            return view.rows.rewritten(statement, self._whole)
        rewrite = partial(view.rows.rewritten, statement, self._whole)
        return await asyncio.get_running_loop().run_in_executor(self._judge, rewrite)

    def _hides_rows_of(self, found: Inspection) -> bool:
        """Whether the statement reads relations of which these actors may not see every row."""
        return any(
            table in self._hiding or any(table.endswith(f".{name}") for name in self._hiding) for table in found.tables
        )

    async def planned(self, proven: Proven) -> PlanEstimate:
        """The planner's estimate; raises `CostExceeded` for a plan beyond the limits."""
        plan = await self._discreet(partial(self._inner.explain, proven.sent, proven.context), proven)
        catalog, known = await self.catalog(), await self._learned()
        plan = replace(with_known_scans(plan, catalog, known.facts.parents), is_shown=proven.tells)
        self._limits.admit(plan, catalog)
        return plan

    async def executed(self, proven: Proven) -> QueryResult:
        """The rows up to the caps."""
        return await self._discreet(partial(self._inner.run, proven.sent, proven.context), proven)

    async def streamed(self, proven: Proven, most_rows: int) -> RowStream:
        """The rows, page by page."""
        begin = partial(self._inner.stream, proven.sent, most_rows, proven.context)
        rows = await self._discreet(begin, proven)
        return _DiscreetRows(rows, lambda: self._discreet(rows.page, proven))

    async def _discreet(self, act: Callable[[], Awaitable[T]], proven: Proven) -> T:
        """What `act` gives; PostgreSQL's messages about the statement lose what these actors may not see.

        They also lose positions in what was sent, if it is not what was given.
        """
        try:
            return await act()
        except (InvalidSql, ForbiddenObject) as error:
            known = await self._learned()
            told = discreet(error, proven.statement, known.catalog, known.facts)
            if isinstance(told, InvalidSql) and not proven.tells:
                told = without_values(told, proven.statement)
            if isinstance(told, InvalidSql) and proven.sql_as_run is not None:
                told.position = None
            if told is error:
                raise
            raise told from error

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


def _narrowed(narrow: Narrow, known: Knowledge, before: Knowledge) -> Knowledge:
    """What is known, with the part of the catalogue that `narrow` gives; its object from before if it says the same."""
    catalog = narrow(known)
    return replace(known, catalog=before.catalog if catalog == before.catalog else catalog)


class ActorDatabase:
    """Implements `common.ports.Database` for one actor: `guarded`, for statements that see the rows of `view`."""

    def __init__(self, guarded: GuardedDatabase, view: RowView) -> None:
        self._guarded = guarded
        self._view = view
        self.ping, self.catalog, self.inspect = guarded.ping, guarded.catalog, guarded.inspect
        self.planned, self.executed, self.streamed = guarded.planned, guarded.executed, guarded.streamed

    @property
    def rows_seen(self) -> Hashable | None:
        """See `common.ports.Database`."""
        return self._view

    async def proven(self, sql: str) -> Proven:
        """See `Asked.proven`."""
        return await self._guarded.proven(sql, self._view)

    async def explain(self, sql: str) -> PlanEstimate:
        """See `common.ports.Database`."""
        return await self.planned(await self.proven(sql))

    async def run(self, sql: str) -> QueryResult:
        """See `common.ports.Database`."""
        return await self.executed(await self.proven(sql))

    async def stream(self, sql: str, most_rows: int) -> RowStream:
        """See `common.ports.Database`."""
        return await self.streamed(await self.proven(sql), most_rows)
