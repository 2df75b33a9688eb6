"""Runs statements on the datasource: each in a READ ONLY transaction that is rolled back,
bounded in time, rows and bytes, and stopped in the server when the caller leaves.

The guard has proven each statement to be one query. As a second defence the statement runs as a
subquery, where PostgreSQL's grammar takes nothing but a query and refuses CTEs that modify data.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import psycopg2
from psycopg2 import errors

from common.actor import SERVICE, charged_to
from common.errors import DatabaseUnavailable, ValidationFailed
from common.ports import RowStream, UrlSource
from common.text import Text
from common.values import PlanEstimate, QueryResult
from databases.catalog.catalog import (
    Annotate,
    CatalogReader,
    Knowledge,
    Secure,
    Show,
    read_knowledge,
)
from databases.catalog.privileges import read_dangers, unfit
from databases.catalog.view_sources import ViewSources, read_view_sources
from databases.engines.capabilities import Capabilities, Lack
from databases.engines.known_engines import KNOWN_ENGINES
from databases.execution.plan_estimate import NO_ESTIMATE, plan_estimate
from databases.execution.result_types import ResultTypes
from databases.execution.results import (
    MOST_COLUMNS,
    SELECT_ROW,
    TOO_WIDE,
    Caps,
    columns_query,
    cut_query,
    cut_result,
    while_narrow,
    whole_result,
)
from databases.execution.row_stream import CursorRows
from databases.execution.statement_errors import NAMES_NOT_UNICODE, TOO_LARGE, translated
from databases.options import DatabaseOptions
from databases.row_context import BEGIN, NOBODYS, RowContext, blaming_settings
from postgres.connecting import PostgresLimits, connect
from postgres.connection import Connection, TextRows
from postgres.pool import ConnectionCounts, Pool
from postgres.socket_proxy import AnswerTooLarge

_log = logging.getLogger(__name__)
T = TypeVar("T")

_GRACE_S = (
    1.0  # beyond the statement timeout, for functions that don't obey it and for dead networks
)
_KNOWLEDGE_S = 60.0  # to read the whole catalogue
_RESET_S = 2.0  # to bring a connection back to rest; after that it is closed
_STREAMS = 2  # results that are read page by page at once
_LOOK_S = 2.0  # to open the connection over which backends without a client are watched
_EXPLAIN = "EXPLAIN (FORMAT JSON) "
_PLAIN_EXPLAIN = "EXPLAIN "
# Groups are gathered one after the other instead of all at once.
_SORTED_GROUPS = "SET LOCAL enable_hashagg = off; "
# An error message quotes what it is about: `repeat('9', 100000000)::int` makes one of 100 MB. So
# the user's text runs in blocks in the server that shorten long messages before they are sent;
# others pass unchanged, with their positions.
_SHORT_ERRORS = """EXCEPTION WHEN OTHERS THEN
GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, more = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
IF pg_catalog.octet_length(said) + pg_catalog.octet_length(more)
    + pg_catalog.octet_length(hint) < 10000 THEN RAISE;
END IF;
RAISE EXCEPTION USING ERRCODE = SQLSTATE,
    MESSAGE = pg_catalog.left(said, 2000), HINT = pg_catalog.left(hint, 2000);
END"""
_BLOCK = "{begin}DO ${tag}$ DECLARE said text; more text; hint text; "
# A plan shows the statement's constants, and PostgreSQL computes them first: the text of
# `repeat('x', 500000000)` in a condition would be sent here. So a block in the server keeps only
# the estimates of the top node of a huge plan.
_PLAN = f"""{_BLOCK} plan pg_catalog.json; BEGIN EXECUTE {{literal}} INTO plan;
IF pg_catalog.octet_length(plan::text) > 1000000 THEN
    plan := pg_catalog.json_build_array(pg_catalog.json_build_object('Plan',
        pg_catalog.json_build_object(
            'Total Cost', plan -> 0 -> 'Plan' -> 'Total Cost',
            'Plan Rows', plan -> 0 -> 'Plan' -> 'Plan Rows')));
END IF; PERFORM pg_catalog.set_config('citu.plan', plan::text, true);
{_SHORT_ERRORS} ${{tag}}$; SELECT pg_catalog.current_setting('citu.plan')"""
_PLAN_BYTES = 8 * 1024 * 1024  # of the answer: a plan or an error, which may quote the statement

# The block runs the query to its end, so that errors are shortened. The cursor keeps the rows:
# nothing is run twice.
_OPEN = f"""{_BLOCK} rows pg_catalog.refcursor := 'citu';
BEGIN OPEN rows SCROLL FOR EXECUTE {{literal}};
MOVE FORWARD ALL FROM rows; MOVE ABSOLUTE 0 FROM rows;
{_SHORT_ERRORS} ${{tag}}$; FETCH {{what}} FROM citu"""
# Allowed beyond the rows themselves: frames, column names, an error message.
_FRAMING_BYTES = 2 * 1024 * 1024
_SLACK_BYTES = 64 * 1024  # the same for the first attempt


class ResultTooLarge(Exception):
    """The server sends more than the cap."""


class PostgresDatabase:
    """Runs statements that are proven already. Opens nothing before the first call; survives a
    fork.

    Each transaction begins by telling the server's policies whose it is, where `ROW_CONTEXT` is on.

    Args:
        source: gives the libpq connection string or URI; called for every new connection.
        options: all but what is about the guard.
        show: gives the part of the catalogue that statements may read.
        annotate: adds what the operator says of the database.
        secure: finds tables with row-level security, where `ROW_CONTEXT` is on.
        span: gives a context in which the catalogue is read.
    """

    def __init__(
        self,
        source: UrlSource,
        options: DatabaseOptions,
        show: Show,
        annotate: Annotate | None = None,
        secure: Secure | None = None,
        span: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        limits = PostgresLimits(statement_s=options.statement_timeout_s)

        def pool(size: int) -> Pool:
            look = partial(connect, source, limits, timeout_s=_LOOK_S, log_level=logging.DEBUG)
            return Pool(
                partial(connect, source, limits),
                size=size,
                wait_s=options.pool_wait_s,
                share=options.caller_share,
                look=look,
            )

        self._source = source
        self._limits = limits
        self._capabilities: Capabilities | None = None
        self._pool = pool(options.pool_size)
        self._streaming = pool(
            _STREAMS
        )  # a stream holds its connection as long as its reader takes
        self._deadline_s = options.statement_timeout_s + _GRACE_S
        self._caps = Caps(rows=options.max_rows, bytes=options.max_result_bytes)
        self._begin = NOBODYS.begin if options.row_context else BEGIN
        self._row_rules = options.row_rules
        self._show = show
        self._annotate = annotate
        self._secure = secure
        self._require_read_only_role = options.require_read_only_role
        self._is_workspace = options.is_workspace
        self._dangers: tuple[Text, ...] | None = None
        self._types = ResultTypes()
        self._span = span
        self._knowledge = CatalogReader(self._read_knowledge, ttl_s=options.catalog_ttl_s)
        self._resets: set[asyncio.Task[None]] = set()
        self._view_sources: tuple[Knowledge, tuple[ViewSources, ...]] | None = None

    async def ping(self) -> None:
        """Return when the database answers, even when the current caller's share is taken."""
        with charged_to(SERVICE):
            await self._with_connection(lambda connection: connection.query("SELECT 1"))

    @property
    def connections(self) -> ConnectionCounts:
        """Return how many connections there are now, those for streams included."""
        return self._pool.counts + self._streaming.counts

    async def knowledge(self) -> Knowledge:
        """Return the catalogue as `show` leaves it, and what the guard needs to know about the
        server.

        It is at most `catalog_ttl_s` old while the database answers. What did not change is the
        same object as before.

        Raises:
            DatabaseUnavailable: also when the server does not do what must hold.
        """
        knowledge = await self._knowledge.get()
        if self._capabilities is not None and not self._capabilities.is_fit:
            raise DatabaseUnavailable(self._capabilities.refusal())

        return knowledge

    async def reread(self) -> None:
        """Read the catalogue again, as `CatalogReader.reread`."""
        await self._knowledge.reread()

    async def capabilities(self) -> Capabilities:
        """Return what the server can do, as it was when the catalogue was last read."""
        if self._capabilities is None:
            with charged_to(SERVICE):
                self._capabilities = await self._with_connection(self._probe)

        return self._capabilities

    async def _probe(self, connection: Connection) -> Capabilities:
        opening = partial(connect, self._source, self._limits)
        return await KNOWN_ENGINES.of(self._source, connection, opening)

    def _lacks(self, lack: Lack) -> bool:
        return self._capabilities is not None and lack in self._capabilities.lacks

    async def view_sources(self) -> tuple[ViewSources, ...]:
        """Return all views of the database with what they read, as of the catalogue in use."""
        knowledge = await self.knowledge()
        if self._view_sources is None or self._view_sources[0] is not knowledge:
            with charged_to(SERVICE):
                read = await self._with_connection(read_view_sources)

            self._view_sources = (knowledge, read)

        return self._view_sources[1]

    async def explain(self, sql: str, context: RowContext | None = None) -> PlanEstimate:
        """Return the planner's estimate for `sql`, which is not run.

        Args:
            context: what policies are told; None: that nobody asks, if they are told anything.
        """
        begin = self._begun(context)
        command = _EXPLAIN
        explain = _explain
        if self._lacks(Lack.PLAN_FORMAT):
            command = _PLAIN_EXPLAIN
            explain = _explain_plainly
        elif self._lacks(Lack.BLOCKS):
            explain = _explain_without_block

        offset = len(begin) + len(command)
        with blaming_settings(context, sql):
            return await self._with_connection(
                lambda connection: explain(connection, begin, command + sql), sql, offset
            )

    async def run(
        self, sql: str, context: RowContext | None = None, *, gathers: bool = False
    ) -> QueryResult:
        """Return the rows of `sql` up to the caps.

        Args:
            context: as for `explain`.
            gathers: whether it gathers values of many rows into one.
        """
        begin = self._begun(context, gathers=gathers)
        offset = len(begin) + len(SELECT_ROW)
        try:
            with blaming_settings(context, sql):
                return await self._with_connection(
                    lambda connection: self._fetch(connection, begin, sql), sql, offset
                )
        except ResultTooLarge:
            _log.info(
                "the result is larger than its cap; running the statement again with its cells cut"
            )

        return await self._with_connection(
            lambda connection: self._fetch_cut(connection, begin, sql), sql
        )

    def _begun(self, context: RowContext | None, *, gathers: bool = False) -> str:
        """Return how a transaction begins."""
        begin = self._begin if context is None else context.begin
        if gathers:
            return begin + _SORTED_GROUPS

        return begin

    async def _fetch(self, connection: Connection, begin: str, sql: str) -> QueryResult:
        caps = self._caps
        statement = f"{begin}{SELECT_ROW}{sql}{while_narrow(caps.bytes)} LIMIT {caps.rows + 1}"
        try:
            fetched = await connection.query(statement, most_bytes=caps.bytes + _SLACK_BYTES)
        except AnswerTooLarge as exc:
            raise ResultTooLarge from exc
        except psycopg2.DataError as exc:
            raise ResultTooLarge if TOO_WIDE in str(exc) else exc from exc

        types = await self._types.of(fetched.columns, connection)
        return self._noted(await whole_result(fetched, types, caps))

    async def _fetch_cut(self, connection: Connection, begin: str, sql: str) -> QueryResult:
        """Return the rows of a too large result that fit, with cells cut that are too long."""
        caps = self._caps
        described = await _in_block(connection, begin, columns_query(sql), "FORWARD 0", caps)
        if len(described.columns) > MOST_COLUMNS:
            raise ValidationFailed(TOO_LARGE)

        types = await self._types.of(described.columns, connection)
        await connection.query("ROLLBACK")
        cut = await _in_block(
            connection, begin, cut_query(sql, len(described.columns), caps), "ALL", caps
        )
        return self._noted(await cut_result(TextRows(described.columns, cut.rows), types, caps))

    def _noted(self, result: QueryResult) -> QueryResult:
        """Return the result with what the server lacks."""
        if self._capabilities is None or not self._capabilities.lacks:
            return result

        return replace(result, notices=self._capabilities.notices)

    async def role_dangers(self) -> tuple[Text, ...]:
        """Return what the connected role may do beyond reading; read once."""
        if self._dangers is None:
            self._dangers = await self._with_connection(read_dangers)
            for danger in self._dangers:
                _log.warning("%s: give Citu a role that can only SELECT", danger.en)

        return self._dangers

    async def _look_at_rights(self) -> None:
        """Raise `DatabaseUnavailable` if the role may do more than read, where it must not."""
        dangers = await self.role_dangers()
        if dangers and self._require_read_only_role:
            raise DatabaseUnavailable(unfit(dangers))

    async def _read_knowledge(self) -> Knowledge:
        with charged_to(SERVICE), self._span():  # whoever asks first, all use it
            return await self._knowledge_now()

    async def _knowledge_now(self) -> Knowledge:
        # The server may be another one than before.
        self._capabilities = await self._with_connection(self._probe)
        if not self._capabilities.is_fit:
            raise DatabaseUnavailable(self._capabilities.refusal())

        try:
            if not self._is_workspace:
                await self._look_at_rights()

            return await self._with_connection(
                lambda connection: read_knowledge(
                    connection,
                    show=self._show,
                    annotate=self._annotate,
                    secure=self._secure,
                    check=self._row_rules.check if self._row_rules else None,
                    begin=self._begin,
                    capabilities=self._capabilities,
                ),
                deadline_s=_KNOWLEDGE_S,
            )
        except ValidationFailed as exc:
            raise DatabaseUnavailable(NAMES_NOT_UNICODE) from exc

    async def _with_connection(
        self,
        work: Callable[[Connection], Awaitable[T]],
        sql: str = "",
        offset: int = 0,
        deadline_s: float | None = None,
    ) -> T:
        connection = await self._pool.acquire()
        try:
            async with translated(
                deadline_s or self._deadline_s, sql, lambda: connection.ahead + offset
            ):
                return await work(connection)
        finally:
            await self._give_back(connection, self._pool)

    async def stream(
        self,
        sql: str,
        most_rows: int,
        context: RowContext | None = None,
        *,
        gathers: bool = False,
    ) -> RowStream:
        """Return the rows of `sql`, page by page, over a connection that only streams use; the
        others as for `run`.
        """
        rows = CursorRows(
            await self._streaming.acquire(),
            self._types,
            partial(self._give_back, pool=self._streaming),
            begin=self._begun(context, gathers=gathers),
            sql=sql,
            most_rows=most_rows,
            most_row_bytes=self._caps.bytes,
            deadline_s=self._deadline_s,
        )
        try:
            with blaming_settings(context, sql):
                await rows.open()
        except BaseException:
            await rows.aclose()
            raise

        return rows

    async def _give_back(self, connection: Connection, pool: Pool) -> None:
        """Return the connection to the pool, clean. That goes on if the caller is cancelled once
        more.
        """
        if connection.is_open:
            connection.leave()
            pool.release(connection)
            return

        reset = asyncio.create_task(_reset(connection, pool))
        self._resets.add(reset)
        reset.add_done_callback(self._resets.discard)
        await asyncio.shield(reset)

    @property
    def stuck_connections(self) -> int:
        """Return how many connections are taken by statements that PostgreSQL does not stop."""
        return self._pool.stuck + self._streaming.stuck

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._pool.close()
        self._streaming.close()


async def _explain(connection: Connection, begin: str, command: str) -> PlanEstimate:
    block = _with_literal(_PLAN, command, begin=begin)
    try:
        answer = await connection.query(block, most_bytes=_PLAN_BYTES)
    except _NO_BLOCKS:
        await connection.query("ROLLBACK")
        return await _explain_without_block(connection, begin, command)

    return _estimate_in(answer)


async def _explain_without_block(connection: Connection, begin: str, command: str) -> PlanEstimate:
    answer = await connection.query(f"{begin}{command}", most_bytes=_PLAN_BYTES)
    return _estimate_in(answer)


async def _explain_plainly(connection: Connection, begin: str, command: str) -> PlanEstimate:
    """Have the statement planned; what the plan is like can't be read."""
    await connection.query(f"{begin}{command}", most_bytes=_PLAN_BYTES)
    return NO_ESTIMATE


def _estimate_in(answer: TextRows) -> PlanEstimate:
    top: dict[str, Any] = json.loads(answer.rows[0][0] or "[{}]")[0]["Plan"]
    return plan_estimate(top)


async def _in_block(
    connection: Connection, begin: str, query: str, what: str, caps: Caps
) -> TextRows:
    """Run `query` in a transaction and a block that shortens errors, and fetch `what` of it."""
    most_bytes = caps.bytes + _FRAMING_BYTES
    try:
        block = _with_literal(_OPEN, query, begin=begin, what=what)
        return await connection.query(block, most_bytes=most_bytes)
    except _NO_BLOCKS:
        await connection.query("ROLLBACK")
        return await connection.query(f"{begin}{query}", most_bytes=most_bytes)


async def _reset(connection: Connection, pool: Pool) -> None:
    try:
        async with asyncio.timeout(_RESET_S):
            await connection.reset()
    except (psycopg2.Error, TimeoutError, AnswerTooLarge):
        connection.close()
    finally:
        pool.release(connection)


# Raised when PL/pgSQL is missing or not allowed; the statement then runs without a block.
_NO_BLOCKS = (errors.UndefinedObject, errors.InsufficientPrivilege)


def _with_literal(block: str, text: str, **values: str) -> str:
    """Return `block` with `text` as a literal; the tag is chosen so that nothing in the text ends
    the block.
    """
    tag = "citu"
    while f"${tag}$" in text:
        tag += "_"

    return block.format(tag=tag, literal="'" + text.replace("'", "''") + "'", **values)
