"""A bounded pool of connections, for one event loop at a time.

Nothing is opened before it is needed. After a fork the child starts empty: the parent's connections are neither used
nor closed by the child, since closing would say goodbye on the parent's sockets.
"""

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable

from common.database.connection import Connection
from common.database.failures import BUSY
from common.errors import DatabaseUnavailable

_parents: list[object] = []  # kept alive for ever in the child, so that they are not closed by being collected


class Pool:
    """Lends connections.

    Args:
        connect: opens a new one.
        size: most connections open at once.
        wait_s: seconds to wait for one before `DatabaseUnavailable`.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], *, size: int, wait_s: float) -> None:
        self._connect = connect
        self._size = size
        self._wait_s = wait_s
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._open = 0
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> Connection:
        """A connection at rest whose server has not hung up.

        Raises:
            DatabaseUnavailable: none became free in time, or a new one can't be opened.
        """
        if self._pid != os.getpid():
            _parents.append(self._idle)
            self._start()
        connection = self._take_idle()
        if connection is not None:
            return connection
        if self._open >= self._size:
            try:
                async with asyncio.timeout(self._wait_s):
                    return await self._wait_for_one()
            except TimeoutError as exc:
                raise DatabaseUnavailable(BUSY, retry_after_s=1) from exc
        return await self._open_one()

    async def _wait_for_one(self) -> Connection:
        while True:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake_next()
                raise
            connection = self._take_idle()
            if connection is not None:
                return connection
            if self._open < self._size:
                return await self._open_one()

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh():
                return connection
            connection.close()
            self._open -= 1
        return None

    async def _open_one(self) -> Connection:
        self._open += 1
        try:
            return await self._connect()
        except BaseException:
            self._open -= 1
            self._wake_next()
            raise

    def release(self, connection: Connection) -> None:
        """Takes a connection back; one that is not at rest is closed."""
        if connection.is_at_rest:
            self._idle.append(connection)
        else:
            connection.close()
            self._open -= 1
        self._wake_next()

    def _wake_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def close(self) -> None:
        """Closes the idle connections; lent ones still come back, and the next use opens new ones."""
        while self._pid == os.getpid() and self._idle:
            self._idle.pop().close()
            self._open -= 1
