"""A bounded pool of connections, for one event loop at a time.

A connection that is closed while its statement runs keeps its place until the server has ended the statement, so the
pool's size bounds the statements that run in the server.

Nothing is opened before it is needed. After a fork the child starts with an empty pool. It neither uses nor closes the
parent's connections: closing them would end the parent's sessions.
"""

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable

from common.errors import DatabaseUnavailable
from common.postgres.connection import Connection
from common.postgres.connection_errors import BUSY, unstoppable
from common.postgres.lingering import Lingering

_LATER_S = 30  # when callers should try again if no statement can be stopped
_HOPELESS_S = 3.0  # callers don't wait for statements that go on this long after they were stopped

_parents: list[object] = []  # kept for ever in the child, because collecting them would close them


class Pool:
    """Lends connections.

    Args:
        connect: opens a new one.
        size: most connections open at once.
        wait_s: seconds to wait for one before `DatabaseUnavailable`.
        look: opens one more, over which the pool asks whether backends have ended; without it, places of closed
            connections are free at once.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        *,
        size: int,
        wait_s: float,
        look: Callable[[], Awaitable[Connection]] | None = None,
    ) -> None:
        self._connect = connect
        self._look = look
        self._size = size
        self._wait_s = wait_s
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._open = 0
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._lingering = Lingering(self._look, lambda: self._offer(None)) if self._look else None

    async def acquire(self) -> Connection:
        """A connection at rest whose server has not hung up.

        Raises:
            DatabaseUnavailable: none became free in time, or a new one can't be opened.
        """
        if self._pid != os.getpid():
            _parents.append((self._idle, self._lingering))
            self._start()
        if self._lingering:
            self._lingering.watch()
        connection = self._take_idle()
        if connection is not None:
            return connection
        if self._open >= self._size:
            self._refuse_if_hopeless()
            return await self._wait_for_turn()
        self._open += 1
        return await self._open_one()

    def _refuse_if_hopeless(self) -> None:
        if self._lingering and self._all_linger and self._lingering.youngest_s() > _HOPELESS_S:
            raise self._none_free()

    @property
    def stuck(self) -> int:
        """Places that are taken by closed connections whose backends have not ended."""
        return len(self._lingering) if self._lingering is not None and self._pid == os.getpid() else 0

    @property
    def _all_linger(self) -> bool:
        return self.stuck >= self._size

    async def _wait_for_turn(self) -> Connection:
        """Waits for a place; callers are served in the order in which they came."""
        turn: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._wait_s):
                connection = await turn
        except BaseException as exc:
            if turn.done() and not turn.cancelled():
                self._offer(turn.result())
            if isinstance(exc, TimeoutError):
                raise self._none_free() from exc
            raise
        if connection is not None and connection.is_fresh():
            return connection
        if connection is not None:
            connection.close()
        return await self._open_one()

    def _none_free(self) -> DatabaseUnavailable:
        if self._all_linger:
            return DatabaseUnavailable(unstoppable(self._size), retry_after_s=_LATER_S)
        return DatabaseUnavailable(BUSY, retry_after_s=1)

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh():
                return connection
            connection.close()
            self._open -= 1
        return None

    async def _open_one(self) -> Connection:
        """Opens a connection, whose place is taken already; if the caller is cancelled meanwhile, others get it."""
        opening = asyncio.create_task(self._open_for_anyone())
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._take_over)
            raise

    async def _open_for_anyone(self) -> Connection:
        try:
            return await self._connect()
        except BaseException:
            self._offer(None)
            raise

    def _take_over(self, opening: asyncio.Task[Connection]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self.release(opening.result())

    def release(self, connection: Connection) -> None:
        """Takes a connection back; one that is not at rest is closed."""
        if connection.is_at_rest:
            self._offer(connection)
        else:
            connection.close()
            self._give_up(connection)

    def _give_up(self, connection: Connection) -> None:
        """Frees the place of a closed connection, now or when its backend has ended."""
        if self._lingering is not None and connection.may_run_on and connection.backend is not None:
            self._lingering.add(connection.backend)
        else:
            self._offer(None)

    def _offer(self, connection: Connection | None) -> None:
        """Gives a connection, or (None) a place for one, to the caller who waits longest; else keeps it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        if connection is None:
            self._open -= 1
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Closes the idle connections; lent ones still come back, and the next use opens new ones."""
        while self._pid == os.getpid() and self._idle:
            self._idle.pop().close()
            self._open -= 1
