"""Access to the PostgreSQL store: runs statements within a time limit, and again after a failure
when that is safe.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import psycopg2
from psycopg2 import errors

from common.errors import DatabaseUnavailable, StoreUnavailable
from common.ports import UrlSource
from postgres.connecting import PostgresLimits, connect
from postgres.connection import Connection, Row
from postgres.connection_errors import describe
from postgres.pool import Pool
from store.outages import SLOW, UNREACHABLE, OutageLog
from store.postgres_schema import ensure_schema

_log = logging.getLogger(__name__)


# Errors after somebody dropped the tables; a new connection creates them again.
_MISSING = (errors.InvalidSchemaName, errors.UndefinedTable, errors.UndefinedFunction)
# Errors after which a second try most likely succeeds: the server was restarted, or ended this
# transaction to resolve a deadlock.
_PASSING = (
    *_MISSING,
    psycopg2.InterfaceError,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.DeadlockDetected,
    errors.SerializationFailure,
)


class PostgresAccess:
    """A pool of connections to the database at `source`; `timeout_s` bounds each call, connecting
    included.
    """

    def __init__(self, source: UrlSource, *, timeout_s: float, pool_size: int) -> None:
        self._source = source
        self._timeout_s = timeout_s
        self._limits = PostgresLimits(statement_s=timeout_s)
        self._pool = Pool(self._connect, size=pool_size, wait_s=timeout_s)
        self._outages = OutageLog(_log, "the store's database")

    async def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of the last statement in `sql`; all statements run in one transaction.

        Raises:
            StoreUnavailable: the database can't be reached, refuses, or doesn't answer in time.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                rows = await self._rows(sql, parameters)
        except TimeoutError as exc:
            self._outages.fails("no answer in time")
            raise StoreUnavailable(SLOW) from exc
        except DatabaseUnavailable as exc:
            cause = exc.__cause__
            self._outages.fails(
                describe(cause) if isinstance(cause, psycopg2.Error) else "no connection in time"
            )
            raise StoreUnavailable(UNREACHABLE) from exc
        except psycopg2.Error as exc:
            self._outages.fails(describe(exc))
            raise StoreUnavailable(UNREACHABLE) from exc

        self._outages.works()
        return rows

    async def _rows(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        try:
            return await self._rows_once(sql, parameters)
        except psycopg2.Error as exc:
            # No SQLSTATE: the connection broke, perhaps while it was idle.
            if exc.pgcode is not None and not isinstance(exc, _PASSING):
                raise

        return await self._rows_once(sql, parameters)

    async def _rows_once(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        connection = await self._pool.acquire()
        try:
            return (await connection.query(sql, parameters or None)).rows
        except _MISSING:
            connection.close()
            raise
        finally:
            # If the caller left while its statement runs, this closes the connection and does not
            # wait.
            self._pool.release(connection)

    async def _connect(self) -> Connection:
        connection = await connect(
            self._source,
            self._limits,
            writes=True,
            timeout_s=self._timeout_s,
            log_level=logging.DEBUG,
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                await ensure_schema(connection)
        except BaseException:
            connection.close()
            raise

        return connection

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._pool.close()
