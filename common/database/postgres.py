"""The asked PostgreSQL database: every statement in a READ ONLY transaction that is rolled back, bounded in time,
rows and bytes, and stopped in the server when the caller leaves.

Trusts that a guard has proven each statement to be one query, and does not rely on it alone: the statement runs as a
subquery, where PostgreSQL's grammar takes nothing but a query and refuses data-modifying CTEs.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg2
from psycopg2 import errors

from common.database.catalog import CatalogReader, Knowledge, Show, read_knowledge
from common.database.connection import Connection, Limits, Rows, connect
from common.database.failures import NOT_UNICODE, TIMED_OUT, translate
from common.database.guard import ServerFacts
from common.database.plan import plan_estimate
from common.database.pool import Pool
from common.database.privileges import read_dangers, unfit
from common.database.rendering import CORE_TYPES, PgType, renderer
from common.errors import DatabaseUnavailable, QueryTimeout, ValidationFailed
from common.ports import UrlSource
from common.text import Text
from common.values import Catalog, PlanEstimate, QueryResult

_log = logging.getLogger(__name__)
T = TypeVar("T")

_GRACE_S = 1.0  # beyond the statement timeout, for functions that don't look at it and networks that are gone
_KNOWLEDGE_S = 60.0  # to read the whole catalogue
_RESET_S = 2.0  # to bring a connection back to rest; longer and it is closed
_EXPLAIN = "EXPLAIN (FORMAT JSON) "
_PLAIN_PLAN = f"BEGIN READ ONLY; {_EXPLAIN}"
# A plan shows the statement's constants, and PostgreSQL computes those first: `repeat('x', 500000000)` in a condition
# would be sent here. So a block in the server looks at the plan first; of a huge one it keeps the top's estimates.
_PLAN = """BEGIN READ ONLY; DO ${tag}$ DECLARE plan pg_catalog.json; BEGIN EXECUTE {explain} INTO plan;
IF pg_catalog.octet_length(plan::text) > 1000000 THEN
    plan := pg_catalog.json_build_array(pg_catalog.json_build_object('Plan', pg_catalog.json_build_object(
        'Total Cost', plan -> 0 -> 'Plan' -> 'Total Cost', 'Plan Rows', plan -> 0 -> 'Plan' -> 'Plan Rows')));
END IF; PERFORM pg_catalog.set_config('citu.plan', plan::text, true); END ${tag}$;
SELECT pg_catalog.current_setting('citu.plan')"""

# The alias of the user's statement; no column will have that name.
_ROW = "citu_row_8c1f"
_TOO_WIDE = "citu: row too wide"
# OFFSET 0 keeps PostgreSQL from evaluating expressions twice, for the row and for its size.
_SELECT = f"SELECT {_ROW}.* FROM (SELECT * FROM ("
# A row larger than fits is an error raised in the server: neither a 1 GB value nor many large ones are ever sent.
_WHERE = (
    f"\n) AS {_ROW} OFFSET 0) AS {_ROW} WHERE CASE WHEN pg_catalog.pg_column_size({_ROW}) > {{width}} "
    f"THEN CAST('{_TOO_WIDE} ' || pg_catalog.pg_column_size({_ROW}) AS pg_catalog.int4) = 0 ELSE true END"
)
_QUERY = f"BEGIN READ ONLY; {_SELECT}"
_CURSOR = f"BEGIN READ ONLY; DECLARE citu NO SCROLL CURSOR FOR {_SELECT}"


@dataclass(frozen=True)
class Caps:
    """Most rows and bytes (as text) of one result."""

    rows: int
    bytes: int

    @property
    def width(self) -> int:
        """Widest row of a result fetched in one go, in bytes, so that all of it can't take more than about 64 MB."""
        return min(self.bytes, max(16_384, 64 * 1024 * 1024 // (self.rows + 1)))


class RowTooWide(Exception):
    """A row is wider than a fetch in one go allows."""


@dataclass
class _Types:
    """Types by OID, learnt as results bring them up; the core's are known."""

    known: dict[int, PgType] = field(default_factory=lambda: dict(CORE_TYPES))

    async def learn(self, oids: set[int], connection: Connection) -> None:
        while missing := oids - self.known.keys():
            found = await connection.query(_TYPES_QUERY.format(oids=", ".join(map(str, missing))))
            for oid, name, element, delimiter in found.rows:
                self.known[int(oid or 0)] = PgType(name or "", int(element or 0), delimiter or ",")
            for number in missing - self.known.keys():
                self.known[number] = PgType(str(number))
            oids = {self.known[number].element for number in missing} - {0}


# A domain's arrays are rendered as its base type's; `typarray` tells true arrays from vectors such as int2vector.
_TYPES_QUERY = """
SELECT t.oid, t.typname, CASE WHEN e.typtype = 'd' THEN e.typbasetype ELSE e.oid END, t.typdelim
FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND e.typarray = t.oid
WHERE t.oid IN ({oids})
"""


class PostgresDatabase:
    """Implements `common.ports.Database` but for `inspect`. Opens nothing before the first call; survives a fork.

    Args:
        source: gives the libpq connection string or URI; called for every new connection.
        pool_size: most connections.
        pool_wait_s: seconds to wait for a free one.
        statement_timeout_s: seconds one statement may run.
        caps: most rows and bytes of one result.
        catalog_ttl_s: seconds the catalogue is kept.
        show: gives the part of the catalogue that statements may read.
        require_read_only_role: refuse to run anything for a role that may do more than read.
    """

    def __init__(
        self,
        source: UrlSource,
        *,
        pool_size: int,
        pool_wait_s: float,
        statement_timeout_s: float,
        caps: Caps,
        catalog_ttl_s: float,
        show: Show = lambda catalog, _: catalog,
        require_read_only_role: bool = False,
    ) -> None:
        limits = Limits(statement_s=statement_timeout_s)
        self._pool = Pool(lambda: connect(source, limits), size=pool_size, wait_s=pool_wait_s)
        self._deadline_s = statement_timeout_s + _GRACE_S
        self._caps = caps
        self._show = show
        self._require_read_only_role = require_read_only_role
        self._dangers: tuple[Text, ...] | None = None
        self._types = _Types()
        self._knowledge = CatalogReader(self._read_knowledge, ttl_s=catalog_ttl_s)
        self._resets: set[asyncio.Task[None]] = set()

    async def ping(self) -> None:
        """Returns when the database answers."""
        await self._with_connection(lambda connection: connection.query("SELECT 1"))

    async def catalog(self) -> Catalog:
        """The tables and columns that statements may read, at most `catalog_ttl_s` old while the database answers."""
        return (await self._knowledge.get()).catalog

    async def facts(self) -> ServerFacts:
        """What the guard needs to know about the server; same age as the catalogue."""
        return (await self._knowledge.get()).facts

    async def explain(self, sql: str) -> PlanEstimate:
        """The planner's estimate for `sql`, which is not run."""
        return await self._with_connection(lambda connection: _explain(connection, sql), sql, len(_PLAIN_PLAN))

    async def run(self, sql: str) -> QueryResult:
        """The rows of `sql` up to the caps."""
        try:
            return await self._with_connection(lambda connection: self._fetch(connection, sql), sql, len(_QUERY))
        except RowTooWide:
            _log.info("a row is too wide to fetch all rows in one go; running the statement again behind a cursor")
        return await self._with_connection(lambda connection: self._fetch_singly(connection, sql), sql, len(_CURSOR))

    async def _fetch(self, connection: Connection, sql: str) -> QueryResult:
        caps = self._caps
        where = _WHERE.format(width=caps.width)
        try:
            fetched = await connection.query(f"{_QUERY}{sql}{where} LIMIT {caps.rows + 1}")
        except psycopg2.DataError as exc:
            raise RowTooWide if _TOO_WIDE in str(exc) else exc from exc
        await self._types.learn({oid for _, oid in fetched.columns}, connection)
        connection.leave()
        return _result(fetched, self._types.known, caps)

    async def _fetch_singly(self, connection: Connection, sql: str) -> QueryResult:
        """Row by row, so that no more than one wide row is held beyond the cap."""
        caps = self._caps
        await connection.query(f"{_CURSOR}{sql}{_WHERE.format(width=caps.bytes)}")
        fetched = await connection.query("FETCH FORWARD 0 FROM citu")
        await self._types.learn({oid for _, oid in fetched.columns}, connection)
        size = 0
        is_cut = False
        while len(fetched.rows) <= caps.rows and not is_cut:
            try:
                row = await _next_row(connection)
            except RowTooWide:
                is_cut = True
                continue
            if row is None:
                break
            size += _size(row)
            is_cut = size > caps.bytes
            if not is_cut:
                fetched.rows.append(row)
        if is_cut and not fetched.rows:
            raise ValidationFailed(_too_wide(caps))
        connection.leave()
        return _result(fetched, self._types.known, caps, is_cut=is_cut)

    async def role_dangers(self) -> tuple[Text, ...]:
        """What the connected role may do beyond reading; read once."""
        if self._dangers is None:
            self._dangers = await self._with_connection(read_dangers)
            for danger in self._dangers:
                _log.warning("%s: give Citu a role that can only SELECT", danger.en)
        return self._dangers

    async def _read_knowledge(self) -> Knowledge:
        dangers = await self.role_dangers()
        if dangers and self._require_read_only_role:
            raise DatabaseUnavailable(unfit(dangers))
        return await self._with_connection(
            lambda connection: read_knowledge(connection, show=self._show), deadline_s=_KNOWLEDGE_S
        )

    async def _with_connection(
        self,
        work: Callable[[Connection], Awaitable[T]],
        sql: str = "",
        offset: int = 0,
        deadline_s: float | None = None,
    ) -> T:
        connection = await self._pool.acquire()
        try:
            async with asyncio.timeout(deadline_s or self._deadline_s):
                return await work(connection)
        except TimeoutError as exc:
            raise QueryTimeout(TIMED_OUT) from exc
        except UnicodeDecodeError as exc:  # a database that does not know its encoding (SQL_ASCII)
            raise ValidationFailed(NOT_UNICODE) from exc
        except psycopg2.Error as exc:
            raise translate(exc, sql, offset) from exc
        finally:
            await self._give_back(connection)

    async def _give_back(self, connection: Connection) -> None:
        """Returns the connection at rest. A caller that is cancelled once more doesn't stop the clearing up."""
        if connection.is_at_rest:
            self._pool.release(connection)
            return
        reset = asyncio.create_task(self._reset(connection))
        self._resets.add(reset)
        reset.add_done_callback(self._resets.discard)
        await asyncio.shield(reset)

    async def _reset(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(_RESET_S):
                await connection.reset()
        except (psycopg2.Error, TimeoutError):
            connection.close()
        finally:
            self._pool.release(connection)

    def close(self) -> None:
        """Closes idle connections."""
        self._pool.close()


async def _explain(connection: Connection, sql: str) -> PlanEstimate:
    tag = "citu"
    while f"${tag}$" in sql:
        tag += "_"
    literal = "'" + f"{_EXPLAIN}{sql}".replace("'", "''") + "'"
    try:
        answer = await connection.query(_PLAN.format(tag=tag, explain=literal))
    except (errors.UndefinedObject, errors.InsufficientPrivilege):  # PL/pgSQL may be what is missing or not allowed
        await connection.query("ROLLBACK")
        answer = await connection.query(f"{_PLAIN_PLAN}{sql}")
    connection.leave()
    return plan_estimate(json.loads(answer.rows[0][0] or "[{}]")[0]["Plan"])


async def _next_row(connection: Connection) -> tuple[str | None, ...] | None:
    """The cursor's next row, or None at its end.

    Raises:
        RowTooWide: it is wider than the cursor lets through.
    """
    try:
        rows = (await connection.query("FETCH FORWARD 1 FROM citu")).rows
    except psycopg2.DataError as exc:
        raise RowTooWide if _TOO_WIDE in str(exc) else exc from exc
    return rows[0] if rows else None


def _too_wide(caps: Caps) -> Text:
    zh = f"结果中有一行超过{caps.bytes}字节，请少选或截短较大的列。"
    return Text(zh, f"One row of the result is larger than {caps.bytes} bytes; select fewer or shorter columns.")


def _size(row: tuple[str | None, ...]) -> int:
    return sum(len(value.encode("utf-8")) for value in row if value)


def _result(fetched: Rows, types: dict[int, PgType], caps: Caps, *, is_cut: bool = False) -> QueryResult:
    renderers = [renderer(oid, types) for _, oid in fetched.columns]
    kept: list[list[Any]] = []
    size = 0
    for row in fetched.rows[: caps.rows]:
        size += _size(row)
        if size > caps.bytes:
            break
        kept.append([None if value is None else render(value) for value, render in zip(row, renderers, strict=True)])
    return QueryResult(
        columns=tuple(name for name, _ in fetched.columns),
        column_types=tuple(types[oid].name for _, oid in fetched.columns),
        rows=tuple(kept),
        is_limited=is_cut or len(kept) < len(fetched.rows),
    )
