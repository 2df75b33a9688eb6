"""Opens connections to PostgreSQL. That blocks (name look-up, TLS), so a thread does it."""

import asyncio
import contextlib
import logging
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2 import extensions

from common.errors import DatabaseUnavailable
from common.ports import UrlSource
from postgres.addresses import with_addresses
from postgres.arrays import parse_array
from postgres.connection import Backend, Connection, is_ready
from postgres.connection_errors import UNREACHABLE, describe

_log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0

# What libpq waits for while it connects, by the state that `poll` returns.
_EVENTS = {extensions.POLL_READ: select.POLLIN, extensions.POLL_WRITE: select.POLLOUT}

_PARAMETERS: Mapping[str, Any] = {"application_name": "citu", "client_encoding": "UTF8"}
# To notice networks that fail silently. The URL may have values of its own.
DEFAULTS: Mapping[str, Any] = {
    "tcp_user_timeout": 10_000,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}

# With these, text means the same to the guard, the server and the reader, whatever the role's
# defaults are.
_PINNED: Mapping[str, str] = {
    "standard_conforming_strings": "on",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmloption": "content",
    # Of one sort or hash; a larger one goes to disk and does not use up the server's memory
    "work_mem": "16MB",
    # Nobody reads notices, and a function in a view may send any number of them
    "client_min_messages": "error",
}
# Set if the server knows them and the role may set them.
_OPTIONAL: Mapping[str, str] = {
    "client_connection_check_interval": "1000",
    "temp_file_limit": "1048576",
}
_REFUSED = (psycopg2.ProgrammingError, psycopg2.DataError, psycopg2.NotSupportedError)

# Replaces the search path by the schemas it leads to now ("$user" resolved, missing ones dropped),
# so that it can't change any more. `pg_catalog` is left out: it is then searched first, and no
# function of the user's hides a built-in. The backend's number is asked of the server, because a
# pooler in between would give its own.
_PIN_SEARCH_PATH = """
SELECT current_schemas(false) AS path, pg_backend_pid(), clock_timestamp(),
    set_config('search_path', coalesce(
        (SELECT string_agg(quote_ident(schema), ', ' ORDER BY n)
         FROM unnest(current_schemas(false)) WITH ORDINALITY AS s (schema, n)
         WHERE schema <> 'pg_catalog'), ''), false)
"""


@dataclass(frozen=True)
class PostgresLimits:
    """Timeouts that every connection is given, in seconds."""

    statement_s: float = 30.0

    @property
    def settings(self) -> Mapping[str, str]:
        """Return PostgreSQL's settings for these timeouts, in milliseconds."""
        statement = max(1, int(self.statement_s * 1000))
        return {
            "statement_timeout": str(statement),
            "lock_timeout": str(min(statement, 5000)),
            "idle_in_transaction_session_timeout": str(statement + 10_000),
        }


async def connect(
    source: UrlSource,
    limits: PostgresLimits,
    *,
    writes: bool = False,
    timeout_s: float = CONNECT_TIMEOUT_S,
    log_level: int = logging.WARNING,
) -> Connection:
    """Return a new connection, with all settings pinned that may differ between roles.

    Args:
        source: gives the URL; called in a thread, since it may have to start the server first.
        writes: whether transactions may write; otherwise they are READ ONLY unless they say so.
        timeout_s: seconds for connecting, and again for the settings; the time that `source` takes
            is not counted.
        log_level: level of the log line that says why it failed.

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
    """Open in a thread.

    If the caller is cancelled meanwhile, the connection is closed when it is there.
    """
    opening = asyncio.get_running_loop().run_in_executor(None, _open, source, timeout_s)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_unused)
        raise


def _close_unused(opening: "asyncio.Future[extensions.connection]") -> None:
    has_failed = opening.cancelled() or opening.exception() is not None
    if not has_failed:
        opening.result().close()


def _open(source: UrlSource, timeout_s: float) -> extensions.connection:
    given = extensions.parse_dsn(source())
    parameters = with_addresses({**DEFAULTS, **given, **_PARAMETERS})
    raw: extensions.connection = psycopg2.connect(**parameters, async_=True)
    deadline = time.monotonic() + timeout_s
    state = raw.poll()
    while state != extensions.POLL_OK:
        event = _EVENTS[state]
        left_s = max(0.0, deadline - time.monotonic())
        if not is_ready(raw.fileno(), event, left_s):
            raw.close()
            raise psycopg2.OperationalError("no answer in time")

        state = raw.poll()

    return raw


async def _prepare(connection: Connection, limits: PostgresLimits, *, writes: bool) -> None:
    """Pin the settings, and note the search path and the backend."""
    pinned = {
        "default_transaction_read_only": "off" if writes else "on",
        **_PINNED,
        **limits.settings,
    }
    statements = [f"SET {name} = '{value}'" for name, value in pinned.items()]
    statements.append(_PIN_SEARCH_PATH)
    ((names, pid, now, _),) = (await connection.query("; ".join(statements))).rows
    connection.search_path = tuple(parse_array(names, str))
    connection.backend = Backend(int(pid), now)
    for name, value in _OPTIONAL.items():
        with contextlib.suppress(*_REFUSED):
            await connection.query(f"SET {name} = '{value}'")
