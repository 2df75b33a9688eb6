"""Scratch: who may build there, that nothing stays, and what samples hold."""

import asyncio
from collections.abc import Callable
from contextlib import closing

import psycopg2
import pytest
from psycopg2.extensions import make_dsn

from common.errors import DatabaseUnavailable, InvalidSql
from common.ports import Database
from common.values import Catalog, Table
from databases.demo.loader import DemoServer
from databases.scratch_database import ROLE
from etl.meaning.bound import (
    BoundColumn,
    BoundIntent,
    BoundSource,
    BoundTarget,
    JoinSourceStep,
)
from etl.scratch.scratch_access import ScratchDatabase
from etl.scratch.scratch_build import ScratchBuild, sweep
from etl.scratch.scratch_loading import load_samples
from etl.scratch.scratch_options import ScratchOptions
from etl.scratch.source_sampling import Samples, sample
from tests.support.databases import Opener, as_admin, execute, rows_of, until

OPTIONS = ScratchOptions(builds=1)
SHOP = """
CREATE TYPE mood AS ENUM ('calm', 'wild');
CREATE TABLE "Buyer" (id integer PRIMARY KEY, "full name" text, feeling mood);
INSERT INTO "Buyer"
SELECT n, 'o''Neil\\ {{ ' || n || chr(10), 'calm' FROM generate_series(1, 40) AS n;
CREATE TABLE purchase (
    id bigint PRIMARY KEY, buyer_id integer, amount numeric(12,2), paid_at timestamptz,
    day date, tags text[], note jsonb, is_void boolean
);
INSERT INTO purchase
SELECT n, nullif(n % 41, 0), n * 1.01,
    timestamptz '2024-03-31 00:59:59.5+01' + n * interval '1 hour', date '2024-02-29' + n % 400,
    ARRAY['a,b', NULL, '"'], '{"k": [1.10]}', n % 3 = 0
FROM generate_series(1, 2000) AS n;
CREATE TABLE item (purchase_id bigint, line integer, amount money);
INSERT INTO item SELECT id, l, 2.5 FROM purchase, generate_series(1, 2) AS l;
"""


def scratch(url: str, options: ScratchOptions = OPTIONS) -> ScratchDatabase:
    return ScratchDatabase(lambda: url, options, dict)


def schemas(url: str) -> list[str]:
    return [
        name for (name,) in rows_of(url, "SELECT nspname FROM pg_namespace WHERE nspname ~ '^etl_'")
    ]


def test_the_role_can_connect_nowhere_else(
    scratch_url: str, demo_url: str, app_database_url: str, embedded_server: DemoServer
) -> None:
    others = [make_dsn(url, user=ROLE) for url in (demo_url, app_database_url)]
    others += [embedded_server.url(name, ROLE) for name in ("postgres", "template1")]
    for url in others:
        with pytest.raises(psycopg2.OperationalError, match="CONNECT"):
            psycopg2.connect(url)
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        execute(scratch_url, "SET temp_file_limit = -1")
    found = rows_of(
        scratch_url,
        "SELECT rolsuper, rolcreatedb, rolinherit, rolconnlimit "
        "FROM pg_roles WHERE rolname = current_user",
    )
    assert found == [(False, False, False, 8)]


def test_another_spelling_of_the_asked_database_is_refused(scratch_url: str, demo_url: str) -> None:
    same = make_dsn(scratch_url, connect_timeout=7)
    same_database = ScratchDatabase(
        lambda: scratch_url, OPTIONS, lambda: {"DATABASE_URL": lambda: same}
    )
    with pytest.raises(DatabaseUnavailable, match="SCRATCH_DATABASE_URL.*DATABASE_URL"):
        same_database.check()
    other = ScratchDatabase(
        lambda: scratch_url, OPTIONS, lambda: {"DATABASE_URL": lambda: demo_url}
    )
    assert other.check() == scratch_url
    with pytest.raises(DatabaseUnavailable, match="own"):
        scratch(demo_url).check()


def test_builds_take_turns_and_leave_nothing(scratch_url: str) -> None:
    database = scratch(scratch_url)
    told: list[str] = []

    async def first(entered: asyncio.Event, leave: asyncio.Event) -> None:
        async with database.build("run/1") as build:
            await build.execute(f"CREATE TABLE {build.schema}.t AS SELECT 1 AS one")
            await build.source_schema("public")
            entered.set()
            await leave.wait()

    async def both() -> None:
        entered, leave = asyncio.Event(), asyncio.Event()
        earlier = asyncio.create_task(first(entered, leave))
        await entered.wait()
        assert len(await asyncio.to_thread(schemas, scratch_url)) == 2

        def waits() -> None:
            told.append("waits")
            leave.set()

        async with database.build("run/2", waits) as build:
            assert await asyncio.to_thread(schemas, scratch_url) == [build.schema]
            with pytest.raises(InvalidSql, match="division by zero"):
                await build.execute("SELECT 1 / 0")
        await earlier

    asyncio.run(both())
    assert told == ["waits"]
    assert schemas(scratch_url) == []


def test_builds_of_many_workers_wait_for_connections_and_sweep_none_of_the_others(
    scratch_url: str,
) -> None:
    """The role has eight connections, and whoever begins a build sweeps."""
    workers = [scratch(scratch_url, ScratchOptions(builds=4)) for _ in range(4)]

    async def build(number: int) -> int:
        async with workers[number % len(workers)].build(f"crowd/{number}") as opened:
            made = [await opened.further_schema() for _ in range(3)]
            for schema in (opened.schema, *made):
                await opened.execute(f"CREATE TABLE {schema}.kept (id integer)")
        return len(made)

    async def crowd() -> list[int]:
        return await asyncio.gather(*(build(number) for number in range(16)))

    assert asyncio.run(crowd()) == [3] * 16


def test_cancelling_ends_the_statement_and_the_schemas(scratch_url: str, admin_url: str) -> None:
    running = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%scratching%'"
        " AND pid <> pg_backend_pid()"
    )
    admin = as_admin(scratch_url, admin_url)

    async def build() -> None:
        async with scratch(scratch_url).build("cancelled") as opened:
            await opened.execute(
                "SELECT count(*) FROM generate_series(1, 1000000) AS scratching, "
                "generate_series(1, 1000000)"
            )

    async def cancelled() -> None:
        task = asyncio.create_task(build())
        await until(lambda: rows_of(admin, running) == [(1,)])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert rows_of(admin, running) == [(0,)]
    assert schemas(scratch_url) == []


def test_what_a_killed_process_left_is_swept_when_it_is_old(scratch_url: str) -> None:
    old, new, foreign = f"etl_{'0' * 16}", f"etl_{'1' * 16}_src", "etl_mine"
    execute(scratch_url, *(f"CREATE SCHEMA {name}" for name in (old, new, foreign)))
    execute(
        scratch_url,
        f"COMMENT ON SCHEMA {old} IS 'made at 2020-01-01'",
        f"DO $$ BEGIN EXECUTE format('COMMENT ON SCHEMA {new} IS %L', 'made at ' || now()); END $$",
    )
    assert asyncio.run(sweep(scratch_url, OPTIONS)) == 1
    assert sorted(schemas(scratch_url)) == sorted([new, foreign])
    execute(scratch_url, f"DROP SCHEMA {new}", f"DROP SCHEMA {foreign}")


def shop_intent(catalog: Catalog) -> BoundIntent:
    tables = {table.name: table for table in catalog.tables}

    def source(name: str) -> BoundSource:
        return BoundSource(name, tables[name])

    def join(order: int, right: str, left: BoundColumn, key: str) -> JoinSourceStep:
        return JoinSourceStep(order, right, "left", ((left, BoundColumn(right, key)),), False)

    return BoundIntent(
        "",
        (source("purchase"), source("Buyer"), source("item")),
        (
            join(1, "Buyer", BoundColumn("purchase", "buyer_id"), "id"),
            join(2, "item", BoundColumn("purchase", "id"), "purchase_id"),
        ),
        BoundTarget("t", "t", "DWD", "table", "replace", ("id",)),
        "UTC",
    )


@pytest.fixture(scope="module")
def shop_url(make_database: Callable[[str], str]) -> str:
    return make_database(SHOP)


async def sampled(database: Database, most_rows: int) -> Samples:
    return await sample(database, shop_intent(await database.catalog()), most_rows)


def test_whole_tables_arrive_as_they_are(shop_url: str, scratch_url: str, opened: Opener) -> None:
    async def copied(build: ScratchBuild, samples: Samples) -> dict[str, list[tuple[str, ...]]]:
        warnings = await load_samples(build, samples)
        assert ["mood" in warning.en for warning in warnings] == [True]
        schema = build.source_schemas["public"]
        found = {}
        for _, name in samples.tables:
            result = await build.rows(
                f'SELECT to_jsonb(t)::text FROM {schema}."{name}" AS t ORDER BY 1'
            )
            found[name] = result.rows
        return found

    async def main() -> tuple[Samples, dict[str, list[tuple[str, ...]]]]:
        samples = await sampled(opened(shop_url), 5000)
        async with scratch(scratch_url).build("whole") as build:
            return samples, await copied(build, samples)

    samples, found = asyncio.run(main())
    assert samples.is_whole
    for name, rows in found.items():
        with closing(psycopg2.connect(shop_url)) as connection, connection.cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'")
            cursor.execute(f'SELECT to_jsonb(t)::text FROM "{name}" AS t ORDER BY 1')
            assert rows == cursor.fetchall()


def test_a_part_of_a_table_comes_with_the_rows_that_it_meets(shop_url: str, opened: Opener) -> None:
    samples = asyncio.run(sampled(opened(shop_url), 300))
    purchase, item = samples.tables["public", "purchase"], samples.tables["public", "item"]
    assert samples.tables["public", "Buyer"].is_whole
    assert (purchase.is_whole, purchase.of) == (False, 2000)
    assert 100 < len(purchase.rows) <= 300
    months = {str(row[purchase.columns.index("day")])[:7] for row in purchase.rows}
    assert len(months) == 14, "rows of every month that there are rows of"
    ids = {row[0] for row in purchase.rows}
    assert {row[0] for row in item.rows} <= ids
    assert len(item.rows) == 300, "two of each purchase, up to the limit"


def test_what_a_caller_may_not_read_is_no_sample(shop_url: str, opened: Opener) -> None:
    database = opened(shop_url, denied_objects=["public.purchase.note", "public.item"])

    async def tables() -> tuple[Table, ...]:
        return (await database.catalog()).tables

    purchase = next(table for table in asyncio.run(tables()) if table.name == "purchase")
    bound = BoundIntent(
        "",
        (BoundSource("purchase", purchase),),
        (),
        BoundTarget("t", "t", "DWD", "table", "replace", ("id",)),
        "UTC",
    )
    samples = asyncio.run(sample(database, bound, 10))
    assert "note" not in samples.tables["public", "purchase"].columns
