"""Checkpoints in PostgreSQL, in tables of the schema `citu` that LangGraph's own saver defines.

Each process makes the saver at its first use, on its event loop. Before that psycopg 3 is not
imported and no connection is opened.
"""

import asyncio
import importlib
import logging
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from common.after_fork import keep_for_parent, restart_after_fork
from common.errors import LeaseLost, StoreUnavailable
from common.ports import UrlSource
from store.checkpoints import Checkpoints, holder, limited, thread_of
from store.outages import SLOW, UNREACHABLE, OutageLog
from store.postgres_access import PostgresAccess
from store.postgres_values import read_bytes
from store.record_json import key

if TYPE_CHECKING:
    from store.psycopg_saver import Pool, Saver

_log = logging.getLogger(__name__)

T = TypeVar("T")
Held = tuple[bytes, bytes, bool]  # run key, worker key, whether it deletes
_NOT_HELD = "CT001"  # SQLSTATE of `citu.require_lease`

_SAVER = "store.psycopg_saver"
_POOL_SIZE = 4

_SWEEP_EVERY_S = 30.0
_SWEPT_AT_ONCE = 500
_ARE_THERE = "SELECT to_regclass('citu.checkpoints')"
# Young threads are not idle: a sync run has checkpoints before its first write makes it known to
# the store.
# Writes without a checkpoint have no time: nothing can go on from them.
_IDLE = """
WITH given (idle_s, after, most) AS (VALUES (%s::float8, %s::text, %s::integer)),
next_thread AS (
    (SELECT DISTINCT thread_id FROM citu.checkpoints, given
        WHERE thread_id > after ORDER BY thread_id LIMIT (SELECT most FROM given))
    UNION
    (SELECT DISTINCT thread_id FROM citu.checkpoint_writes, given
        WHERE thread_id > after ORDER BY thread_id LIMIT (SELECT most FROM given))
    ORDER BY thread_id LIMIT (SELECT most FROM given)
)
SELECT thread_id, coalesce(
    max((checkpoint ->> 'ts')::timestamptz) <= now() - max(idle_s) * interval '1 second', true
)
FROM given, next_thread LEFT JOIN citu.checkpoints USING (thread_id)
GROUP BY thread_id ORDER BY thread_id
"""
_NEEDED = """
SELECT run_key FROM citu.run
WHERE run_key = ANY (%s) AND state IN ('running', 'waiting') AND expires_at > now()
"""
_DELETE = """
DELETE FROM citu.checkpoints WHERE thread_id = ANY (%s);
DELETE FROM citu.checkpoint_blobs WHERE thread_id = ANY (%s);
DELETE FROM citu.checkpoint_writes WHERE thread_id = ANY (%s)
"""


@dataclass
class _Opened:
    """The pool that is opened on one loop."""

    loop: asyncio.AbstractEventLoop
    pool: "Pool"
    setting_up: asyncio.Lock
    is_set_up: bool = False


class PostgresCheckpoints(Checkpoints):
    """Implements LangGraph's asynchronous saver on the database at `source`.

    Args:
        access: the store's; its connections create the schema.
        timeout_s: seconds one call may take, connecting included.
    """

    def __init__(self, access: PostgresAccess, source: UrlSource, *, timeout_s: float) -> None:
        super().__init__()
        self._access = access
        self._source = source
        self._timeout_s = timeout_s
        self._outages = OutageLog(_log, "the checkpoints' database")
        self._held: list[
            _Opened
        ] = []  # at most one; a list, because LangGraph's copies of this object share it
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Begin without connections, as a forked child does."""
        keep_for_parent(*self._held)
        self._held.clear()

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint; return the config that names it. Raises `StateTooLarge`, `LeaseLost`,
        `StoreUnavailable`.
        """
        with limited():
            return await self._call(
                lambda saver: saver.aput(config, checkpoint, metadata, new_versions),
                _held(thread_of(config)),
            )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what a task wrote; raises what `aput` raises."""
        with limited():
            await self._call(
                lambda saver: saver.aput_writes(config, writes, task_id, task_path),
                _held(thread_of(config)),
            )

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, else the thread's latest; None when there is
        none.
        """
        return await self._call(lambda saver: saver.aget_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Return checkpoints, the latest first."""

        async def listed(saver: "Saver") -> list[CheckpointTuple]:
            return [
                each
                async for each in saver.alist(config, filter=filter, before=before, limit=limit)
            ]

        for each in await self._call(listed):
            yield each

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> "dict[str, DeltaChannelHistory]":
        """Return the stored differences from which LangGraph rebuilds its delta channels."""

        async def history(saver: "Saver") -> dict[str, DeltaChannelHistory]:
            return dict(await saver.aget_delta_channel_history(config=config, channels=channels))

        return await self._call(history)

    async def adelete_thread(self, thread_id: str) -> None:
        """Forget all checkpoints of a thread. Raises `LeaseLost`, `StoreUnavailable`."""
        await self._call(
            lambda saver: saver.adelete_thread(thread_id), _held(thread_id, is_deletion=True)
        )

    async def aclose(self) -> None:
        """Close the connections that this event loop opened."""
        for opened in self._held:
            if opened.loop is asyncio.get_running_loop():
                await opened.pool.close(self._timeout_s)

        self._held.clear()

    async def _call(
        self, operation: "Callable[[Saver], Awaitable[T]]", held: Held | None = None
    ) -> T:
        """Run the operation, and once more if it fails, because the first call after a server
        restart fails.

        Args:
            held: what an operation that writes needs.
        """
        await _import()
        import psycopg

        from store.psycopg_saver import deadline

        clock = asyncio.get_running_loop().time
        ends_at = clock() + self._timeout_s
        token = deadline.set(ends_at)
        try:
            try:
                result = await self._attempt(operation, held)
            except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.ProgrammingError):
                if clock() >= ends_at:
                    raise

                await self._begin_anew()
                result = await self._attempt(operation, held)
        except TimeoutError as exc:
            self._outages.fails("no answer in time")
            raise StoreUnavailable(SLOW) from exc
        except psycopg.Error as exc:
            if exc.sqlstate == _NOT_HELD:
                raise LeaseLost from exc

            # Its message names hosts.
            self._outages.fails(f"{type(exc).__name__} {exc.sqlstate or ''}".strip())
            raise StoreUnavailable(SLOW if clock() >= ends_at else UNREACHABLE) from exc
        finally:
            deadline.reset(token)

        self._outages.works()
        return result

    async def _attempt(self, operation: "Callable[[Saver], Awaitable[T]]", held: Held | None) -> T:
        from store.psycopg_saver import Saver

        opened = self._saver_of_loop()
        saver = Saver(opened.pool, self.serde, held)
        if not opened.is_set_up:
            await self._set_up(opened, saver)

        return await operation(saver)

    async def _set_up(self, opened: _Opened, saver: "Saver") -> None:
        """Create the tables; other calls wait for that meanwhile, up to their own deadline."""
        from store.psycopg_saver import deadline

        async with asyncio.timeout_at(deadline.get()):
            await opened.setting_up.acquire()

        try:
            if opened.is_set_up:
                return

            async with asyncio.timeout_at(deadline.get()):
                await opened.pool.open()
                # Opening the connection creates the schema.
                await self._access.rows("SELECT FROM citu.version")

            await saver.setup()
            opened.is_set_up = True
        finally:
            opened.setting_up.release()

    async def _begin_anew(self) -> None:
        """Drop connections that may be broken; the next attempt checks the tables again."""
        for opened in self._held:
            opened.is_set_up = False
            await opened.pool.drain()

    def _saver_of_loop(self) -> _Opened:
        from store.psycopg_saver import pool_of

        loop = asyncio.get_running_loop()
        if self._held and self._held[0].loop is not loop:
            keep_for_parent(self._held.pop())
        if not self._held:
            pool = pool_of(self._source, size=_POOL_SIZE, timeout_s=self._timeout_s)
            self._held.append(_Opened(loop, pool, asyncio.Lock()))

        return self._held[0]


def _held(thread_id: str, *, is_deletion: bool = False) -> Held | None:
    """Return what a write has to find; None when any may write."""
    worker_id = holder.get()
    if worker_id is None:
        return None

    return (key(thread_id), key(worker_id), is_deletion)


async def _import() -> None:
    """Import psycopg 3 in a thread, because that takes long; later imports find it loaded."""
    if _SAVER not in sys.modules:
        await asyncio.to_thread(importlib.import_module, _SAVER)


class CheckpointSweep:
    """Deletes checkpoints of runs that are gone or have ended.

    Normally the worker that ends a run deletes them. The sweep deletes those that dead workers and
    expired runs left.

    Args:
        idle_s: seconds without a new checkpoint after which a thread without a run is deleted.
    """

    def __init__(self, access: PostgresAccess, *, idle_s: float) -> None:
        self._access = access
        self._idle_s = idle_s
        self._swept_at = float("-inf")
        self._after = ""  # the last thread checked

    async def run(self) -> None:
        """Check the next threads, at most every 30 s; does nothing if called sooner."""
        now = time.monotonic()
        if now - self._swept_at < _SWEEP_EVERY_S:
            return

        self._swept_at = now
        ((table,),) = await self._access.rows(_ARE_THERE)
        if table is None:
            return

        idle = await self._next_idle()
        rows = await self._access.rows(_NEEDED, (list(idle),))
        for (run_key,) in rows:
            del idle[read_bytes(run_key)]

        gone = list(idle.values())
        if gone:
            await self._access.rows(_DELETE, (gone, gone, gone))

    async def _next_idle(self) -> dict[bytes, str]:
        """Return the idle ones of the next threads, by the keys of their runs."""
        idle_threads = await self._access.rows(_IDLE, (self._idle_s, self._after, _SWEPT_AT_ONCE))
        self._after = ""
        if len(idle_threads) == _SWEPT_AT_ONCE:
            self._after, _ = idle_threads[-1]

        idle = [thread for thread, is_idle in idle_threads if is_idle == "t"]
        return {key(thread): thread for thread in idle}
