"""A bounded pool of connections, for one event loop at a time.

A connection that is closed while its statement runs keeps its slot until the server has ended the
statement, so the pool's size bounds the statements that run in the server. The slot is the caller's
who sent the statement, see `common.fair_slots`.

Nothing is opened before it is needed. After a fork the child starts with an empty pool. It neither
uses nor closes the parent's connections: closing them would end the parent's sessions.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from common.actor import CallerId, caller_id
from common.after_fork import restart_after_fork
from common.errors import DatabaseUnavailable
from common.fair_slots import FairSlots, Slot
from postgres.abandoned_backends import AbandonedBackends
from postgres.connection import Connection
from postgres.connection_errors import BUSY, share_taken, share_unstoppable, unstoppable

_LATER_S = 30  # when callers should try again if no statement can be stopped
_HOPELESS_S = 3.0  # callers don't wait for statements that go on this long after they were stopped


@dataclass(frozen=True)
class ConnectionCounts:
    """How many connections are lent and idle, and how many callers wait for one."""

    used: int = 0
    idle: int = 0
    awaited: int = 0

    def __add__(self, other: "ConnectionCounts") -> "ConnectionCounts":
        """Return the counts of both together."""
        return ConnectionCounts(
            self.used + other.used, self.idle + other.idle, self.awaited + other.awaited
        )


class Pool:
    """Lends connections to callers in turn.

    Args:
        connect: opens a new one.
        size: most connections open at once.
        wait_s: seconds to wait for one before `DatabaseUnavailable`.
        share: the part of them that one caller may hold.
        look: opens one more, over which the pool asks whether backends have ended; without it,
            slots of closed connections are free at once.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        *,
        size: int,
        wait_s: float,
        share: float = 1.0,
        look: Callable[[], Awaitable[Connection]] | None = None,
    ) -> None:
        self._connect = connect
        self._look = look
        self._size = size
        self._wait_s = wait_s
        self._share = share
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Begin without connections, as a forked child does."""
        self._slots = FairSlots(self._size, self._share)
        self._idle: list[Connection] = []
        self._lent: dict[Connection, Slot] = {}
        self._abandoned = AbandonedBackends(self._look) if self._look else None

    async def acquire(self) -> Connection:
        """Return a connection at rest whose server has not hung up.

        Raises:
            DatabaseUnavailable: none became free in time, or a new one can't be opened.
        """
        if self._abandoned:
            self._abandoned.watch()

        slot = self._slots.take() or await self._wait_for_turn()
        connection = self._take_idle() or await self._open_one(slot)
        self._lent[connection] = slot
        return connection

    @property
    def counts(self) -> ConnectionCounts:
        """Return how many connections are lent and idle, and how many callers wait."""
        return ConnectionCounts(len(self._lent), len(self._idle), self._slots.waiting)

    @property
    def stuck(self) -> int:
        """Return how many slots are taken by closed connections whose backends have not ended."""
        return 0 if self._abandoned is None else len(self._abandoned)

    async def _wait_for_turn(self) -> Slot:
        if self._is_hopeless(caller_id.get()):
            raise self._none_free()

        try:
            return await self._slots.acquire(self._wait_s)
        except TimeoutError as exc:
            raise self._none_free() from exc

    def _is_hopeless(self, caller: CallerId) -> bool:
        """Tell whether nothing that the caller could get becomes free soon."""
        if self._abandoned is None:
            return False
        if self._all_linger:
            return self._abandoned.youngest_s() > _HOPELESS_S
        if self._share_lingers(caller):
            return self._abandoned.youngest_s(caller) > _HOPELESS_S

        return False

    @property
    def _all_linger(self) -> bool:
        return self.stuck >= self._size

    def _share_lingers(self, caller: CallerId) -> bool:
        if self._abandoned is None:
            return False

        return self._abandoned.count_of(caller) >= self._slots.most_of(caller)

    def _none_free(self) -> DatabaseUnavailable:
        caller = caller_id.get()
        most = self._slots.most_of(caller)
        if self._all_linger:
            return DatabaseUnavailable(unstoppable(self._size), retry_after_s=_LATER_S)
        if self._share_lingers(caller):
            return DatabaseUnavailable(share_unstoppable(most), retry_after_s=_LATER_S)
        if self._slots.has_whole_share(caller):
            return DatabaseUnavailable(share_taken(most), retry_after_s=1)

        return DatabaseUnavailable(BUSY, retry_after_s=1)

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh():
                return connection

            connection.close()

        return None

    async def _open_one(self, slot: Slot) -> Connection:
        """Open a connection for a slot; if the caller is cancelled meanwhile, others get it."""
        opening = asyncio.create_task(self._open_for(slot))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(partial(self._take_over, slot))
            raise

    async def _open_for(self, slot: Slot) -> Connection:
        try:
            return await self._connect()
        except BaseException:
            slot.release()
            raise

    def _take_over(self, slot: Slot, opening: asyncio.Task[Connection]) -> None:
        """Take in a connection that was opened for a caller who has left."""
        has_failed = opening.cancelled() or opening.exception() is not None
        if has_failed:
            return

        connection = opening.result()
        self._lent[connection] = slot
        self.release(connection)

    def release(self, connection: Connection) -> None:
        """Take a connection back; one that is not at rest is closed."""
        slot = self._lent.pop(connection)
        if connection.is_at_rest:
            self._idle.append(connection)
            slot.release()
        else:
            connection.close()
            self._give_up(connection, slot)

    def _give_up(self, connection: Connection, slot: Slot) -> None:
        """Free the slot of a closed connection, now or when its backend has ended."""
        backend = connection.backend if connection.may_run_on else None
        if self._abandoned is None or backend is None:
            slot.release()
            return

        self._abandoned.add(backend, slot)

    def close(self) -> None:
        """Close the idle connections; lent ones still come back, and later uses open new ones."""
        while self._idle:
            self._idle.pop().close()
