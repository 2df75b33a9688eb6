"""One connection to PostgreSQL that the event loop drives.

psycopg2 runs in its asynchronous mode: it sends a statement, and the loop watches the socket.
Waiting takes no thread, and a caller who is cancelled is noticed at once.
"""

import asyncio
import contextlib
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2 import extensions

from postgres.cancelling import request_cancel
from postgres.socket_proxy import AnswerTooLarge, SocketProxy

_CANCEL_AGAIN_S = 0.2
_ROWS_AT_ONCE = 2_000  # fetched from an answer before the loop serves others
# A firewall may drop connections that are idle for longer; a new one costs milliseconds.
_MAX_IDLE_S = 300.0

# Advisory locks and prepared statements outlive a transaction that is rolled back; the rest goes
# with it.
LEAVE = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all(); DEALLOCATE ALL; "
_LEAVE_S = 0.01  # how long LEAVE waits for a statement that it can be sent with, to save a message


@dataclass(frozen=True)
class Backend:
    """The server's process for a connection; `seen_at` is a time at which it existed."""

    pid: int
    seen_at: str


Row = tuple[Any, ...]
"""A row's values as PostgreSQL's text; None for NULL."""


@dataclass(frozen=True)
class TextRows:
    """A result: (name, type OID) per column, and the rows."""

    columns: tuple[tuple[str, int], ...]
    rows: list[Row]


class _DroppedNotices(list[str]):
    """Drops notices; psycopg2 would keep the last fifty, however long they are."""

    def append(self, _notice: str) -> None:
        pass


class Connection:
    """An open connection; one statement at a time. Methods raise psycopg2's errors.

    Attributes:
        ahead: characters that the last message to the server had before the statement that `query`
            was given.
        backend: the server's process; None until it is known.
        may_run_on: whether it was closed, or broke, while a statement may still have been running
            in the server.
    """

    def __init__(self, raw: extensions.connection) -> None:
        self._raw = raw
        self._proxy = SocketProxy(raw.fileno())
        raw.notices = _DroppedNotices()
        self.ahead = 0
        self.backend: Backend | None = None
        self.may_run_on = False
        self._is_sent = True
        self._may_write = False  # libpq may hold data that it has not handed to the proxy yet
        self._busy = False
        self._is_leaving = False
        # The timer that leaves a transaction which is over.
        self._departure: asyncio.TimerHandle | None = None
        self._used_at = time.monotonic()
        self._arrival: asyncio.Future[None] | None = None
        self._watched: tuple[asyncio.AbstractEventLoop, int] | None = None
        self.search_path: tuple[str, ...] = ()
        for oid in extensions.string_types:  # every value as PostgreSQL's text
            raw.string_types[oid] = extensions.UNICODE

    @property
    def is_at_rest(self) -> bool:
        """Tell whether it is open, no statement runs, and no transaction is open or stays so."""
        if not self.is_open:
            return False
        if self._is_leaving or self._departure is not None:
            return True

        return self._raw.get_transaction_status() == extensions.TRANSACTION_STATUS_IDLE

    @property
    def is_open(self) -> bool:
        """Tell whether it is open and no statement runs; a transaction may be open."""
        return not self._busy and not self._raw.closed

    def is_fresh(self) -> bool:
        """Tell whether a connection at rest can be used again.

        The server must not have hung up, nor the connection been idle for too long.
        """
        idle_s = time.monotonic() - self._used_at
        if idle_s > _MAX_IDLE_S or not self.is_at_rest:
            return False

        try:
            has_left = self._has_left()
        except (psycopg2.Error, AnswerTooLarge):
            return False

        if not has_left:
            return True

        # Nothing is to come any more, so that what can be read is the server hanging up.
        has_hung_up = is_ready(self._proxy.fileno(), select.POLLIN, 0)
        return self.is_at_rest and not has_hung_up

    def _has_left(self) -> bool:
        """Tell whether the whole answer to what `leave` sent has come; raise as `_settle` does."""
        if not self._is_leaving:
            return True

        while self._take_in() != extensions.POLL_OK:
            if not self._proxy.receive():
                return False

        self._is_leaving = False
        return True

    async def query(
        self, sql: str, parameters: Sequence[Any] | None = None, *, most_bytes: int | None = None
    ) -> TextRows:
        """Send `sql`, one or several statements, and return the rows of the last one.

        Args:
            parameters: for the placeholders `%s`, quoted by psycopg2; without, `sql` is sent as it
                is.
            most_bytes: most bytes of the answer as it arrives: rows, messages, everything.

        Raises:
            AnswerTooLarge: it takes more; the connection is closed.
        """
        if self._is_leaving:
            await self._settle()

        begin = LEAVE if self._call_off_leaving() else ""
        self.ahead = len(begin)
        self._proxy.allow(most_bytes)
        cursor = self._send(begin + sql, parameters)
        await self._settle()
        result = await _fetch(cursor)
        cursor.close()  # frees the result, which the connection would keep until its next use
        return result

    def leave(self) -> None:
        """End the transaction and clear what outlives it.

        That takes one message with the next statement, or soon one of its own.
        """
        self._call_off_leaving()
        self._departure = asyncio.get_running_loop().call_later(_LEAVE_S, self._leave_now)

    def _call_off_leaving(self) -> bool:
        """Call off what `leave` has planned; tell whether there was something."""
        if self._departure is None:
            return False

        self._departure.cancel()
        self._departure = None
        return True

    def _leave_now(self) -> None:
        self._departure = None
        try:
            self._proxy.allow(None)
            self._send(LEAVE)
        except psycopg2.Error:  # the caller has its result already; only the connection is lost
            self.close()

        self._busy = False
        self._is_leaving = True

    def _send(self, sql: str, parameters: Sequence[Any] | None = None) -> extensions.cursor:
        self._busy = True
        # psycopg2 holds only a weak reference, and needs the cursor when the answer comes.
        self._cursor = self._raw.cursor()
        self._cursor.execute(sql, parameters)
        self._is_sent = self._proxy.send()
        self._may_write = True
        return self._cursor

    async def _settle(self) -> None:
        """Return when the answer to what was sent is complete; raise it when it is an error."""
        self._busy = True
        try:
            while self._take_in() != extensions.POLL_OK:
                await self._next_piece()
        except psycopg2.Error:
            if self._raw.closed:
                self.close()

            self._busy = self._is_leaving = False
            raise
        except AnswerTooLarge:
            self.close()
            raise

        self._busy = self._is_leaving = False
        self._used_at = time.monotonic()

    def _take_in(self) -> int:
        """Let libpq read what has arrived, and send what it wants to send.

        Returns the state that `poll` gave.
        """
        can_go_on = True
        while can_go_on:
            state: int = self._raw.poll()
            if self._may_write:
                self._is_sent = self._proxy.send()
                self._may_write = state == extensions.POLL_WRITE or not self._is_sent

            if state == extensions.POLL_READ:
                can_go_on = self._proxy.has_unread()
            elif state == extensions.POLL_WRITE:
                can_go_on = self._is_sent
            else:
                can_go_on = False

        return state

    async def _next_piece(self) -> None:
        """Return when more has arrived, or when more can be sent."""
        if not self._is_sent:
            await _socket_ready(self._proxy.fileno(), is_read=False)
            return

        if not self._proxy.holds_some:
            await self._readable()

        self._proxy.receive()

    async def _readable(self) -> None:
        """Return when there is something to read.

        The loop keeps watching, because the next answer comes soon.
        """
        loop = asyncio.get_running_loop()
        self._arrival = loop.create_future()
        watched = (loop, self._proxy.fileno())
        if self._watched != watched:
            self._watched = watched
            loop.add_reader(self._proxy.fileno(), self._arrived)

        await self._arrival

    def _arrived(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
        elif not self._takes_leave():
            # Nobody waits for this: the rest of an answer, or the server hangs up. The next reader
            # watches again.
            self._unwatch()

    def _takes_leave(self) -> bool:
        """Take in the answer to what `leave` has sent, if it is that which has arrived."""
        if self._busy or not self._is_leaving:
            return False

        try:
            self._has_left()
        except (psycopg2.Error, AnswerTooLarge):
            self.close()

        return True

    def _unwatch(self) -> None:
        """Stop watching the socket.

        When the socket is closed, this must happen before the loop runs on: the descriptor may be
        reused.
        """
        if self._watched is None:
            return

        loop, descriptor = self._watched
        self._watched = None
        if not loop.is_closed():
            loop.remove_reader(descriptor)

    async def reset(self) -> None:
        """Stop a statement that still runs in the server, and end the transaction."""
        while self._busy:
            await request_cancel(self._raw, _socket_ready)
            with contextlib.suppress(psycopg2.Error, TimeoutError):
                # A request that arrives before its statement has no effect, so it is repeated until
                # the statement ends.
                async with asyncio.timeout(_CANCEL_AGAIN_S):
                    await self._settle()

        self._leave_now()
        await self._settle()

    def close(self) -> None:
        """Hang up, also while a statement runs."""
        self.may_run_on = self.may_run_on or self._busy
        self._busy = False
        self._call_off_leaving()
        self._unwatch()
        with contextlib.suppress(psycopg2.Error):
            self._raw.close()

        self._proxy.close()


async def _fetch(cursor: extensions.cursor) -> TextRows:
    """Return the result that has arrived; one of a statement without rows is empty."""
    if cursor.description is None:
        return TextRows((), [])

    columns = tuple((column.name, column.type_code) for column in cursor.description)
    rows: list[Row] = []
    while some := cursor.fetchmany(_ROWS_AT_ONCE):
        rows += some
        if len(some) == _ROWS_AT_ONCE:
            await asyncio.sleep(0)

    return TextRows(columns, rows)


async def _socket_ready(fd: int, is_read: bool) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    if is_read:
        add, remove = loop.add_reader, loop.remove_reader
    else:
        add, remove = loop.add_writer, loop.remove_writer

    add(fd, _resolve, ready)
    try:
        await ready
    finally:
        remove(fd)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def is_ready(fd: int, event: int, seconds: float) -> bool:
    """Tell whether a socket is ready for `event` (POLLIN or POLLOUT) within so many seconds."""
    poller = select.poll()  # select() can't watch descriptors above 1023
    poller.register(fd, event)
    return bool(poller.poll(seconds * 1000))
