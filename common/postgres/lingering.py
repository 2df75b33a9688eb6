"""Backends that may still work for a connection that was closed.

Some of PostgreSQL's functions look neither at timeouts nor at cancel requests, and don't notice that their client has
left. Whoever opened new connections in place of such ones would pile up backends without end.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import psycopg2

from common.errors import CituError
from common.postgres.connection import Backend, Connection

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.02  # most have ended by then
_LONGEST_PAUSE_S = 1.0
_LOOK_S = 3.0  # for one look to be answered

# A process number may be given anew: only a backend that is as old as the connection counts.
_THERE = """
SELECT b.pid, b.seen_at FROM (VALUES {backends}) AS b (pid, seen_at)
JOIN pg_catalog.pg_stat_activity a ON a.pid = b.pid
WHERE a.backend_start IS NULL OR a.backend_start <= b.seen_at::pg_catalog.timestamptz
"""


class Lingering:
    """Watches backends over a connection of its own, which is open only while there are any.

    While that connection can't be had, all of them count as being there.

    Args:
        connect: opens the connection.
        on_gone: called once for each backend that is no more.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], on_gone: Callable[[], None]) -> None:
        self._connect = connect
        self._on_gone = on_gone
        self._since: dict[Backend, float] = {}
        self._watching: asyncio.Task[None] | None = None
        self._connection: Connection | None = None

    def __len__(self) -> int:
        return len(self._since)

    def youngest_s(self) -> float:
        """Seconds since the latest was added; 0 when there is none."""
        return time.monotonic() - max(self._since.values()) if self._since else 0.0

    def add(self, backend: Backend) -> None:
        """Counts `backend` until it is gone."""
        self._since[backend] = time.monotonic()
        self.watch()

    def watch(self) -> None:
        """Goes on watching on this loop; the loop that it was done on so far may have ended."""
        loop = asyncio.get_running_loop()
        if self._since and (self._watching is None or self._watching.done() or self._watching.get_loop() is not loop):
            self._watching = loop.create_task(self._until_gone())

    async def _until_gone(self) -> None:
        pause = _FIRST_PAUSE_S
        try:
            while self._since:
                await asyncio.sleep(pause)
                await self._look()
                if self._since and pause < _LONGEST_PAUSE_S <= 2 * pause:
                    _log.warning("%d connections stay taken: PostgreSQL does not stop their statements", len(self))
                pause = min(2 * pause, _LONGEST_PAUSE_S)
        finally:
            self._hang_up()

    async def _look(self) -> None:
        """Forgets who is gone, if that can be found out now."""
        try:
            async with asyncio.timeout(_LOOK_S):
                if self._connection is None:
                    self._connection = await self._connect()
                there = await _still_there(self._connection, list(self._since))
        except (CituError, psycopg2.Error, TimeoutError) as exc:
            _log.debug("can't look whether backends are gone: %s", type(exc).__name__)
            self._hang_up()
            return
        for backend in self._since.keys() - there:
            del self._since[backend]
            self._on_gone()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


async def _still_there(connection: Connection, backends: list[Backend]) -> set[Backend]:
    """Those of `backends` that have not ended. They are told to, every time: one may come to notice it."""
    values = ", ".join(f"({backend.pid}, '{backend.seen_at}')" for backend in backends)
    rows = (await connection.query(_THERE.format(backends=values))).rows
    there = {Backend(int(pid or 0), seen_at or "") for pid, seen_at in rows}
    for backend in there:
        with suppress(psycopg2.ProgrammingError):  # not allowed
            await connection.query(f"SELECT pg_catalog.pg_terminate_backend({backend.pid})")
    return there
