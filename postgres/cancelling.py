"""Asks PostgreSQL to stop the statement of a connection.

psycopg2's own `cancel()` keeps Python's interpreter lock until the server has answered: if the
network is silent, the whole process stands still for ever. libpq 17 cancels without blocking, and
encrypted like the connection itself. psycopg2 does not wrap these functions, but gives us the
pointer that they take.
"""

import asyncio
import ctypes
import sys
from collections.abc import Awaitable, Callable

import psycopg2
from psycopg2 import extensions

WaitFor = Callable[[int, bool], Awaitable[None]]
"""Return when a socket can be read (true) or written (false)."""

_FAILED, _READING, _WRITING, _OK = range(4)  # PostgresPollingStatusType


def _functions() -> ctypes.CDLL | None:
    """Return the libpq of psycopg2; None when it is too old or linked in without its symbols."""
    try:
        libpq = ctypes.CDLL(str(sys.modules["psycopg2._psycopg"].__file__))
        libpq.PQcancelCreate.argtypes = [ctypes.c_void_p]
        libpq.PQcancelCreate.restype = ctypes.c_void_p
        for name in ("PQcancelStart", "PQcancelPoll", "PQcancelSocket"):
            getattr(libpq, name).argtypes = [ctypes.c_void_p]

        libpq.PQcancelFinish.argtypes = [ctypes.c_void_p]
        libpq.PQcancelFinish.restype = None
    except (AttributeError, OSError):
        return None

    return libpq


_LIBPQ = _functions()


async def request_cancel(connection: extensions.connection, wait_for: WaitFor) -> None:
    """Return when the server has taken the request.

    The connection itself then shows when the statement has ended.

    Raises:
        psycopg2.OperationalError: the server can't be reached.
    """
    if _LIBPQ is None:
        await asyncio.to_thread(connection.cancel)
        return

    request = _LIBPQ.PQcancelCreate(connection.pgconn_ptr)
    try:
        state = _WRITING if _LIBPQ.PQcancelStart(request) else _FAILED
        while state in (_READING, _WRITING):
            await wait_for(_LIBPQ.PQcancelSocket(request), state == _READING)
            state = _LIBPQ.PQcancelPoll(request)
    finally:
        _LIBPQ.PQcancelFinish(request)

    if state != _OK:
        raise psycopg2.OperationalError("the cancel request did not reach the server")
