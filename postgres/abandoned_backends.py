"""Counts backends that may still run a statement of a connection that was closed.

Some of PostgreSQL's functions obey neither timeouts nor cancel requests, and don't notice that
their client has left. If new connections were opened in place of such ones, the server would
collect busy backends without end.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import psycopg2

from common.actor import CallerId
from common.errors import CituError
from common.fair_slots import Slot
from common.tasks import is_running_here
from postgres.connection import Backend, Connection

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


@dataclass(frozen=True)
class _Kept:
    """The slot of a backend that may still run, and when its connection was closed."""

    slot: Slot
    since: float


class AbandonedBackends:
    """Watches backends over a connection of its own, which is open only while there are any.

    Each keeps the slot of the caller who sent its statement. While the connection can't be opened,
    all of them count as running.

    Args:
        connect: opens the connection.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._connect = connect
        self._kept: dict[Backend, _Kept] = {}
        self._watching: asyncio.Task[None] | None = None
        self._connection: Connection | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def count_of(self, caller: CallerId) -> int:
        """Return how many of the backends run the caller's statements."""
        return len(self._of(caller))

    def youngest_s(self, caller: CallerId | None = None) -> float:
        """Return the seconds since the last backend, of all or of one caller, was added; else 0."""
        kept = self._of(caller)
        if not kept:
            return 0.0

        youngest = max(each.since for each in kept)
        return time.monotonic() - youngest

    def _of(self, caller: CallerId | None) -> list[_Kept]:
        """Return the connections that are kept for the caller; None: for all."""
        kept = list(self._kept.values())
        if caller is None:
            return kept

        return [each for each in kept if each.slot.caller == caller]

    def add(self, backend: Backend, slot: Slot) -> None:
        """Keep the slot until `backend` is gone."""
        self._kept[backend] = _Kept(slot, time.monotonic())
        self.watch()

    def watch(self) -> None:
        """Make sure that the backends are watched on this loop; an earlier loop may have ended."""
        is_watched = self._watching is not None and is_running_here(self._watching)
        if self._kept and not is_watched:
            self._watching = asyncio.create_task(self._until_gone())

    async def _until_gone(self) -> None:
        pause = _FIRST_PAUSE_S
        try:
            while self._kept:
                await asyncio.sleep(pause)
                await self._look()
                is_longest_next = pause < _LONGEST_PAUSE_S <= 2 * pause
                if self._kept and is_longest_next:
                    _log.warning(
                        "%d connections stay taken: PostgreSQL does not stop their statements",
                        len(self),
                    )

                pause = min(2 * pause, _LONGEST_PAUSE_S)
        finally:
            self._hang_up()

    async def _look(self) -> None:
        """Ask the server once, and forget the backends that have ended."""
        try:
            async with asyncio.timeout(_LOOK_S):
                if self._connection is None:
                    self._connection = await self._connect()

                there = await _still_there(self._connection, list(self._kept))
        except (CituError, psycopg2.Error, TimeoutError) as exc:
            _log.debug("can't look whether backends are gone: %s", type(exc).__name__)
            self._hang_up()
            return

        for backend in self._kept.keys() - there:
            self._kept.pop(backend).slot.release()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


async def _still_there(connection: Connection, backends: list[Backend]) -> set[Backend]:
    """Return the backends that have not ended, and tell each of them to end.

    They are told at every look, because they may obey later.
    """
    values = [f"({backend.pid}, '{backend.seen_at}')" for backend in backends]
    found = await connection.query(_THERE.format(backends=", ".join(values)))
    there: set[Backend] = set()
    for pid, seen_at in found.rows:
        there.add(Backend(int(pid), seen_at))
        with suppress(psycopg2.ProgrammingError):  # not allowed
            await connection.query(f"SELECT pg_catalog.pg_terminate_backend({pid})")

    return there
