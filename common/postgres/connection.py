"""One connection to PostgreSQL that an event loop drives, and how to open it.

psycopg2 in its asynchronous mode: statements are sent, and the loop watches the socket, so that waiting takes no
thread and a cancelled caller is noticed at once. Only opening blocks (name look-up, TLS), and is done in a thread.
"""

import asyncio
import contextlib
import logging
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2 import extensions

from common.errors import DatabaseUnavailable
from common.ports import UrlSource
from common.postgres.addresses import with_addresses
from common.postgres.cancelling import request_cancel
from common.postgres.server_errors import UNREACHABLE, describe
from common.postgres.value_rendering import parse_array
from common.postgres.wire import AnswerTooLarge, Wire

_log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
_CANCEL_AGAIN_S = 0.2
_ROWS_AT_ONCE = 2_000  # made of an answer before other questions go on
_MAX_IDLE_S = 300.0  # an older idle connection may have been forgotten by a firewall; a new one costs milliseconds

_PARAMETERS: Mapping[str, Any] = {"application_name": "citu", "client_encoding": "UTF8"}
# For networks that drop silently, unless the URL has its own.
DEFAULTS: Mapping[str, Any] = {
    "tcp_user_timeout": 10_000,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}

# What makes text mean the same to the guard, to the server and to the reader, whatever the role's defaults are.
_PINNED: Mapping[str, str] = {
    "standard_conforming_strings": "on",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmloption": "content",
    "work_mem": "16MB",  # of one sort or hash; a statement of many costs time on disk, not the server's memory
    "client_min_messages": "error",  # nobody reads notices, and a view's function may send any number of them
}
# Set where the server knows them and the role may.
_OPTIONAL: Mapping[str, str] = {"client_connection_check_interval": "1000", "temp_file_limit": "1048576"}

# `current_schemas` drops what does not exist and resolves "$user"; as a literal list it can't change any more.
# `pg_catalog` is left out so that it is searched first, and no function of the user's hides a built-in.
# Where a pooler stands in between, only the server itself can say which backend this is.
_PIN_SEARCH_PATH = """
SELECT current_schemas(false) AS path, pg_backend_pid(), clock_timestamp(), set_config('search_path', coalesce(
    (SELECT string_agg(quote_ident(schema), ', ' ORDER BY n)
     FROM unnest(current_schemas(false)) WITH ORDINALITY AS s (schema, n) WHERE schema <> 'pg_catalog'), ''), false)
"""

# What outlives a transaction that is rolled back. Settings, temporary tables, cursors and LISTEN go with it.
_LEAVE = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all(); DEALLOCATE ALL"


@dataclass(frozen=True)
class Backend:
    """The server's process of a connection: its number, and a moment (the server's) at which it was there."""

    pid: int
    seen_at: str


@dataclass(frozen=True)
class Limits:
    """Timeouts that every connection is given, in seconds."""

    statement_s: float = 30.0

    @property
    def settings(self) -> Mapping[str, str]:
        """PostgreSQL's settings for them, in its unit, milliseconds."""
        statement = max(1, int(self.statement_s * 1000))
        return {
            "statement_timeout": str(statement),
            "lock_timeout": str(min(statement, 5000)),
            "idle_in_transaction_session_timeout": str(statement + 10_000),
        }


@dataclass(frozen=True)
class Rows:
    """A result as PostgreSQL's text: (name, type OID) per column, and the rows."""

    columns: tuple[tuple[str, int], ...]
    rows: list[tuple[str | None, ...]]


class _Nowhere(list[str]):
    """Drops notices; a connection would keep the last fifty, however long."""

    def append(self, _notice: str) -> None:
        """Forgets it."""


class Connection:
    """An open connection; one statement at a time. Methods raise psycopg2's errors.

    Attributes:
        backend: the server's process; None until it is known.
        may_run_on: whether it was closed, or broke, while the server may still have been at work for it.
    """

    def __init__(self, raw: extensions.connection) -> None:
        self._raw = raw
        self._wire = Wire(raw.fileno())
        raw.notices = _Nowhere()
        self.backend: Backend | None = None
        self.may_run_on = False
        self._is_sent = True
        self._may_write = False  # whether libpq has more to send than it has handed over
        self._busy = False
        self._is_leaving = False
        self._used_at = time.monotonic()
        self._arrival: asyncio.Future[None] | None = None
        self._watched: tuple[asyncio.AbstractEventLoop, int] | None = None
        self.search_path: tuple[str, ...] = ()
        for oid in extensions.string_types:  # every value as PostgreSQL's text
            raw.string_types[oid] = extensions.UNICODE

    @property
    def is_at_rest(self) -> bool:
        """Whether it is open, in no transaction or leaving one, and no statement runs."""
        if not self.is_open:
            return False
        return self._is_leaving or self._raw.get_transaction_status() == extensions.TRANSACTION_STATUS_IDLE

    @property
    def is_open(self) -> bool:
        """Whether it is open and no statement runs; a transaction may still be."""
        return not self._busy and not self._raw.closed

    def is_fresh(self) -> bool:
        """Whether a connection at rest can be used again: the server has not hung up, nor can it have forgotten us."""
        if not self.is_at_rest or time.monotonic() - self._used_at > _MAX_IDLE_S:
            return False
        try:
            while self._is_leaving and self._take_in() != extensions.POLL_OK:
                if not self._wire.receive():
                    return True
        except (psycopg2.Error, AnswerTooLarge):
            return False
        self._is_leaving = False
        return self.is_at_rest and not _is_ready(self._wire.fileno(), select.POLLIN, 0)

    async def query(self, sql: str, parameters: Sequence[Any] | None = None, *, most_bytes: int | None = None) -> Rows:
        """Sends `sql`, which may be several of our own statements, and returns what the last one returns.

        Args:
            parameters: for the placeholders `%s`, quoted by psycopg2; without, `sql` is sent as it is.
            most_bytes: most that the answer may take on its way, whatever it is made of.

        Raises:
            AnswerTooLarge: it takes more; the connection is closed.
        """
        if self._is_leaving:
            await self._settle()
        self._wire.allow(most_bytes)
        cursor = self._send(sql, parameters)
        await self._settle()
        columns = tuple((column.name, column.type_code) for column in cursor.description or ())
        rows: list[tuple[str | None, ...]] = []
        while cursor.description is not None and (some := cursor.fetchmany(_ROWS_AT_ONCE)):
            rows += some
            if len(some) == _ROWS_AT_ONCE:
                await asyncio.sleep(0)
        cursor.close()  # with the result, which the connection would keep until it is used again
        return Rows(columns, rows)

    def leave(self) -> None:
        """Ends the transaction and clears what outlives it; waited for by whoever uses the connection next."""
        try:
            self._wire.allow(None)
            self._send(_LEAVE)
        except psycopg2.Error:  # the result is here already; only the connection is lost
            self.close()
        self._busy = False
        self._is_leaving = True

    def _send(self, sql: str, parameters: Sequence[Any] | None = None) -> extensions.cursor:
        self._busy = True
        self._cursor = self._raw.cursor()  # kept: psycopg2 only holds it weakly, and needs it when the answer comes
        self._cursor.execute(sql, parameters)
        self._is_sent = self._wire.send()
        self._may_write = True
        return self._cursor

    async def _settle(self) -> None:
        """Returns when the answer to what was sent is complete, or raises the error that it is."""
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
        """Has libpq read what has arrived, and sends what it has to send; the state that libpq is in then."""
        while True:
            state: int = self._raw.poll()
            if self._may_write:
                self._is_sent = self._wire.send()
                self._may_write = state == extensions.POLL_WRITE or not self._is_sent
            if state == extensions.POLL_READ and self._wire.has_unread():
                continue
            if state == extensions.POLL_WRITE and self._is_sent:  # there is room again for what libpq has left
                continue
            return state

    async def _next_piece(self) -> None:
        """Returns when there is more to take in, or more was sent."""
        if not self._is_sent:
            await _socket_ready(self._wire.fileno(), is_read=False)
            return
        if not self._wire.holds_some:
            await self._readable()
        self._wire.receive()

    async def _readable(self) -> None:
        """Returns when there is something to read. The loop goes on watching, since the next answer comes soon."""
        loop = asyncio.get_running_loop()
        self._arrival = loop.create_future()
        if self._watched is None or self._watched[0] is not loop:
            self._watched = loop, self._wire.fileno()
            loop.add_reader(self._watched[1], self._arrived)
        await self._arrival

    def _arrived(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
        else:  # nobody waits: the rest of an answer, or the server hangs up; whoever reads next, watches again
            self._unwatch()

    def _unwatch(self) -> None:
        """Must be called before the loop does anything else when the socket is closed: its number may be given anew."""
        if self._watched is not None:
            loop, descriptor = self._watched
            self._watched = None
            if not loop.is_closed():
                loop.remove_reader(descriptor)

    async def reset(self) -> None:
        """Stops a statement that still runs in the server, and leaves any transaction."""
        while self._busy:
            await request_cancel(self._raw, _socket_ready)
            with contextlib.suppress(psycopg2.Error, TimeoutError):
                # A request that overtakes the statement it is meant for has no effect: asked again until it has.
                async with asyncio.timeout(_CANCEL_AGAIN_S):
                    await self._settle()
        self.leave()
        await self._settle()

    def close(self) -> None:
        """Hangs up, whatever is going on."""
        self.may_run_on = self.may_run_on or self._busy
        self._busy = False
        self._unwatch()
        with contextlib.suppress(psycopg2.Error):
            self._raw.close()
        self._wire.close()


async def _socket_ready(fd: int, is_read: bool) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    add, remove = (loop.add_reader, loop.remove_reader) if is_read else (loop.add_writer, loop.remove_writer)
    add(fd, _resolve, ready)
    try:
        await ready
    finally:
        remove(fd)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def connect(
    source: UrlSource,
    limits: Limits,
    *,
    writes: bool = False,
    timeout_s: float = CONNECT_TIMEOUT_S,
    log_level: int = logging.WARNING,
) -> Connection:
    """A new connection with everything pinned that must not depend on the role's defaults.

    Args:
        source: gives the URL; called in a thread, since it may have to start the server first.
        writes: whether transactions may write; otherwise they are READ ONLY unless they say so.
        timeout_s: seconds the server has to let us in, and as many to be prepared; `source` takes its own time.
        log_level: of the line that says why it failed.

    Raises:
        DatabaseUnavailable: the server can't be reached or refuses.
    """
    try:
        connection = Connection(await _open_in_thread(source, timeout_s))
        try:
            async with asyncio.timeout(timeout_s):
                await _prepare(connection, limits, writes=writes)
        except BaseException:
            connection.close()
            raise
    except TimeoutError as exc:
        _log.log(log_level, "can't connect to the database: no answer in time")
        raise DatabaseUnavailable(UNREACHABLE) from exc
    except psycopg2.Error as exc:
        _log.log(log_level, "can't connect to the database: %s", describe(exc))
        raise DatabaseUnavailable(UNREACHABLE) from exc
    return connection


async def _open_in_thread(source: UrlSource, timeout_s: float) -> extensions.connection:
    """Leaves no connection behind when the caller is cancelled meanwhile."""
    opening = asyncio.get_running_loop().run_in_executor(None, _open, source, timeout_s)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_unclaimed)
        raise


def _close_unclaimed(opening: "asyncio.Future[extensions.connection]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _open(source: UrlSource, timeout_s: float) -> extensions.connection:
    parameters = with_addresses({**DEFAULTS, **extensions.parse_dsn(source()), **_PARAMETERS})
    raw: extensions.connection = psycopg2.connect(**parameters, async_=True)
    deadline = time.monotonic() + timeout_s
    while (state := raw.poll()) != extensions.POLL_OK:
        event = select.POLLIN if state == extensions.POLL_READ else select.POLLOUT
        if not _is_ready(raw.fileno(), event, max(0.0, deadline - time.monotonic())):
            raw.close()
            raise psycopg2.OperationalError("no answer in time")
    return raw


def _is_ready(fd: int, event: int, seconds: float) -> bool:
    poller = select.poll()  # select() can't watch descriptors above 1023
    poller.register(fd, event)
    return bool(poller.poll(seconds * 1000))


async def _prepare(connection: Connection, limits: Limits, *, writes: bool) -> None:
    pinned = {"default_transaction_read_only": "off" if writes else "on", **_PINNED, **limits.settings}
    settings = "; ".join(f"SET {name} = '{value}'" for name, value in pinned.items())
    path = await connection.query(f"{settings}; {_PIN_SEARCH_PATH}")
    names, pid, now, _ = path.rows[0]
    connection.search_path = tuple(parse_array(names or "{}", str))
    connection.backend = Backend(int(pid or 0), now or "")
    for name, value in _OPTIONAL.items():
        with contextlib.suppress(psycopg2.ProgrammingError, psycopg2.DataError, psycopg2.NotSupportedError):
            await connection.query(f"SET {name} = '{value}'")
