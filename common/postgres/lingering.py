"""Counts backends that may still run a statement of a connection that was closed.

Some of PostgreSQL's functions obey neither timeouts nor cancel requests, and don't notice that their client has left.
If new connections were opened in place of such ones, the server would collect busy backends without end.
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

_FIRST_PAUSE_S = 0.02  # most backends have ended by then
_LONGEST_PAUSE_S = 1.0
_LOOK_S = 3.0  # most time for one look

# Process numbers are reused, so a backend counts only if it started before the connection was seen.
_THERE = """
SELECT b.pid, b.seen_at FROM (VALUES {backends}) AS b (pid, seen_at)
JOIN pg_catalog.pg_stat_activity a ON a.pid = b.pid
WHERE a.backend_start IS NULL OR a.backend_start <= b.seen_at::pg_catalog.timestamptz
"""


class Lingering:
    """Watches backends over a connection of its own, which is open only while there are any.

    While that connection can't be opened, all of them count as running.

    Args:
        connect: opens the connection.
        on_gone: called once for each backend that has ended.
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
        """Seconds since the last backend was added; 0 when there is none."""
        return time.monotonic() - max(self._since.values()) if self._since else 0.0

    def add(self, backend: Backend) -> None:
        """Counts `backend` until it is gone."""
        self._since[backend] = time.monotonic()
        self.watch()

    def watch(self) -> None:
        """Makes sure that the backends are watched on this loop; the loop that watched them so far may have ended."""
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
        """Asks the server once, and forgets the backends that have ended."""
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
    """Those of `backends` that have not ended. Each is told to end at every look, because it may obey later."""
    values = ", ".join(f"({backend.pid}, '{backend.seen_at}')" for backend in backends)
    rows = (await connection.query(_THERE.format(backends=values))).rows
    there = {Backend(int(pid or 0), seen_at or "") for pid, seen_at in rows}
    for backend in there:
        with suppress(psycopg2.ProgrammingError):  # not allowed
            await connection.query(f"SELECT pg_catalog.pg_terminate_backend({backend.pid})")
    return there
