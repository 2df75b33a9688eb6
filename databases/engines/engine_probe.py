"""Finds out what a server can do, by some fifteen tiny statements in a second or less.

What is documented of an engine is not relied upon: a pooler, a proxy or a setting in between can
change all of it. Nothing that is tried leaves anything behind, also where it is let pass.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import psycopg2

from databases.engines.capabilities import UNKNOWN_ENGINE, Capabilities, Engine, Lack, Need
from databases.engines.engine_names import engine_of
from databases.row_context import BEGIN
from postgres.connection import Connection
from postgres.socket_proxy import AnswerTooLarge

Connect = Callable[[], Awaitable[Connection]]
"""Opens a connection as statements use it; raises `DatabaseUnavailable`."""

_PROBE_S = 4.5  # for all of it
_TIMEOUT_MS = 50
_HEAD_START_S = 0.03  # for a statement before it is cancelled
_PATIENCE_S = 1.2  # until a statement that should end has ended
_READ_ONLY = "25006"
_TIMED_OUT = "57014"
# The server counts to 400 million: twenty seconds, unless it is stopped.
_BUSY = (
    "SELECT count(*) FROM generate_series(1, 20000) AS citu_probe, generate_series(1, 20000) AS b"
)
# A backslash is a character, comments nest, and quotes in dollar quotes are characters.
_STRINGS = r"""
SELECT octet_length('\n') = 2 AND 1 /* /* */ + 1 */ = 1 AND $citu$a'b$citu$ = 'a''b'"""
_SETTINGS = "SHOW default_transaction_read_only"
# Refused before anybody's rights are looked at; where it is let pass it goes with its transaction.
_WRITES = (
    "CREATE TEMPORARY TABLE citu_probe (n integer)",
    "CREATE TABLE citu_probe (n integer)",
)
_TWO = "SELECT * FROM (SELECT 1; SELECT 2) AS citu_probe"
_PLAN = "EXPLAIN (FORMAT JSON) SELECT count(*) FROM pg_catalog.pg_class"
_BLOCK = "DO $citu$ BEGIN PERFORM 1; END $citu$"
_VOLATILITY = """
SELECT p.proname, min(p.provolatile) FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'pg_catalog' AND p.proname IN ('random', 'now', 'lower', 'setval')
GROUP BY p.proname
"""
_KNOWN_VOLATILITY = {"random": "v", "setval": "v", "now": "s"}
_EXTENSIONS = "SELECT extname, extversion FROM pg_catalog.pg_extension"


async def probe_engine(connect: Connect) -> Capabilities:
    """Return what the server can do, within five seconds.

    Raises:
        DatabaseUnavailable: no connection could be opened.
    """
    probe = _Probe(connect)
    try:
        async with asyncio.timeout(_PROBE_S):
            await probe.look()
    except TimeoutError:
        probe.unmet.add(Need.ANSWER)
    finally:
        probe.close()

    return Capabilities(probe.engine, frozenset(probe.unmet), frozenset(probe.lacks))


class _Probe:
    """One look at a server; collects what it finds."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self.engine = UNKNOWN_ENGINE
        self.unmet: set[Need] = set()
        self.lacks: set[Lack] = set()

    async def look(self) -> None:
        self.engine = await self._engine()
        needs: Mapping[Need, Callable[[], Awaitable[bool]]] = {
            Need.SETTINGS: self._keeps_settings,
            Need.STRINGS: self._reads_strings,
            Need.READ_ONLY: self._refuses_writes,
            Need.ONE_STATEMENT: self._refuses_two,
            Need.TIMEOUT: self._obeys_timeout,
            Need.CANCEL: self._obeys_cancel,
        }
        for need, holds in needs.items():
            if not await holds():
                self.unmet.add(need)

        if not self.unmet:
            await self._look_for_lacks()

    async def _look_for_lacks(self) -> None:
        plan = await self._plan()
        if plan is None:
            self.lacks.add(Lack.PLAN_FORMAT)
        elif not plan.get("Total Cost"):
            self.lacks.add(Lack.PLAN_COSTS)

        if isinstance(await self._tried(_BLOCK), psycopg2.Error):
            self.lacks.add(Lack.BLOCKS)
        if not await self._tells_volatility():
            self.lacks.add(Lack.VOLATILITY)

    async def _engine(self) -> Engine:
        version = await self._tried("SELECT pg_catalog.version()")
        if isinstance(version, psycopg2.Error) or not version:
            return UNKNOWN_ENGINE

        extensions = await self._tried(_EXTENSIONS)
        if isinstance(extensions, psycopg2.Error):
            extensions = []

        return engine_of(str(version[0][0]), dict(extensions))

    async def _keeps_settings(self) -> bool:
        """Tell whether what a connection was told when it was opened holds in later messages."""
        return await self._tried(_SETTINGS) == [("on",)]

    async def _reads_strings(self) -> bool:
        setting = await self._tried("SHOW standard_conforming_strings")
        return setting == [("on",)] and await self._tried(_STRINGS) == [("t",)]

    async def _refuses_writes(self) -> bool:
        for write in _WRITES:
            outcome = await self._tried(BEGIN + write)
            if not isinstance(outcome, psycopg2.Error):
                return False
            if outcome.pgcode == _READ_ONLY:
                return True

        return False  # refused, but for another reason

    async def _refuses_two(self) -> bool:
        return isinstance(await self._tried(BEGIN + _TWO), psycopg2.Error)

    async def _obeys_timeout(self) -> bool:
        limited = f"{BEGIN}SET LOCAL statement_timeout = {_TIMEOUT_MS}; {_BUSY}"
        await self._open()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                outcome = await self._tried(limited)
        except TimeoutError:
            await self._stopped()
            return False

        return isinstance(outcome, psycopg2.Error) and outcome.pgcode == _TIMED_OUT

    async def _obeys_cancel(self) -> bool:
        await self._open()  # else a slow connection would be what is cancelled
        try:
            async with asyncio.timeout(_HEAD_START_S):
                await self._tried(BEGIN + _BUSY)
        except TimeoutError:
            return await self._stopped()

        return False  # it ended before: what it is can't be told

    async def _stopped(self) -> bool:
        """Cancel the running statement; tell whether it has ended. If not, hang up."""
        connection = await self._open()
        with contextlib.suppress(TimeoutError, psycopg2.Error, AnswerTooLarge):
            async with asyncio.timeout(_PATIENCE_S):
                await connection.reset()
                return True

        self.close()
        return False

    async def _plan(self) -> Mapping[str, Any] | None:
        rows = await self._tried(_PLAN)
        if isinstance(rows, psycopg2.Error):
            return None

        try:
            plan: Mapping[str, Any] = json.loads(rows[0][0])[0]["Plan"]
        except (ValueError, LookupError, TypeError):
            return None

        return plan

    async def _tells_volatility(self) -> bool:
        rows = await self._tried(_VOLATILITY)
        if isinstance(rows, psycopg2.Error):
            return False

        by_server = dict(rows)
        return all(
            by_server.get(name) == volatility for name, volatility in _KNOWN_VOLATILITY.items()
        )

    async def _tried(self, sql: str) -> list[tuple[Any, ...]] | psycopg2.Error:
        """Return the rows of `sql`, or why it was refused; its transaction is over then."""
        connection = await self._open()
        try:
            rows = (await connection.query(sql)).rows
        except psycopg2.Error as refusal:
            await self._rolled_back()
            return refusal

        await self._rolled_back()
        return rows

    async def _rolled_back(self) -> None:
        """Roll back, so that the connection can be used again; forget one that was closed."""
        connection = self._connection
        if connection is None:
            return
        if connection.is_open:
            await connection.query("ROLLBACK")
        else:
            self.close()

    async def _open(self) -> Connection:
        if self._connection is None:
            self._connection = await self._connect()

        return self._connection

    def close(self) -> None:
        """Hang up, if a connection is open."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
