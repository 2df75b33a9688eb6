"""Opens the datasource for tests, and looks at it from outside with a role that may see
everything.
"""

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import psycopg2
from psycopg2.extensions import make_dsn, parse_dsn

from common.actor import NOBODY
from common.ports import UrlSource
from common.values import Catalog, QueryResult
from databases.datasources import DEFAULT, Datasource, Datasources
from databases.demo import SEMANTIC_FILE
from databases.execution.guarded import GuardedDatabase
from databases.options import DatabaseOptions
from knowledge.semantic.semantic_binding import bind
from knowledge.semantic.semantic_format import read_file

SMALL = DatabaseOptions(
    pool_size=3, pool_wait_s=5.0, statement_timeout_s=20.0, max_rows=50, max_result_bytes=1_000_000
)
"""Limits that tests reach quickly."""
Opener = Callable[..., GuardedDatabase]
"""`open_asked`; closes what it opened when the test ends."""

ENDLESS = (
    "SELECT count(*) FROM generate_series(1, 1000000) AS endless, generate_series(1, 1000000) AS b"
)


def open_asked(source: str | UrlSource, *, prepare: Any = None, **changes: Any) -> GuardedDatabase:
    """Return the database at `source` with `SMALL` options, some of them changed."""
    place = source if callable(source) else lambda: source
    datasources = Datasources(
        {DEFAULT: Datasource(place, replace(SMALL, **changes))}, prepare=prepare
    )
    database = datasources.open(DEFAULT, NOBODY)
    assert isinstance(database, GuardedDatabase)
    return database


def demo_meant(catalog: Catalog) -> Catalog:
    """Return the demo's catalogue with what its semantic file says, all of which must fit."""
    bound = bind(read_file(SEMANTIC_FILE), catalog)
    assert bound.problems == ()
    return bound.catalog


def run(database: GuardedDatabase, sql: str) -> QueryResult:
    """Return the result of `sql`, on an event loop of its own."""
    return asyncio.run(database.run(sql))


def as_admin(url: str, admin_url: str) -> str:
    """Return the same database for a superuser."""
    return make_dsn(admin_url, dbname=parse_dsn(url)["dbname"])


def execute(url: str, *statements: str) -> None:
    """Run statements, each in a transaction of its own."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        for statement in statements:
            cursor.execute(statement)


def rows_of(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query, by a plain connection."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def connections(url: str, admin_url: str) -> list[tuple[int, str]]:
    """Process and state of each of Citu's connections to the database."""
    sql = (
        "SELECT pid, state FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = 'citu'"
    )
    return [(int(pid), str(state)) for pid, state in rows_of(as_admin(url, admin_url), sql)]


def runs_endless(url: str) -> bool:
    """Tell whether the server still runs `ENDLESS`; asked by a superuser's URL."""
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' "
        "AND datname = current_database()"
        " AND query LIKE '%endless%' AND pid <> pg_backend_pid()"
    )
    return rows_of(url, sql) != [(0,)]


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until `condition`, called in a thread, is true."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - it is another process that gets there
            await asyncio.sleep(0.01)
