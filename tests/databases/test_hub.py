"""One question over several databases: a hub with foreign tables, real servers on both ends."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psycopg2
import pytest
from hypothesis import HealthCheck, given, settings
from psycopg2.extensions import make_dsn, parse_dsn

from common.errors import CituError, CostExceeded, DatabaseUnavailable, ForbiddenStatement
from common.values import ForeignKey
from databases.demo.loader import DemoServer
from databases.demo.reader import READER
from tests.support.cases import all_cases
from tests.support.databases import Opener, execute, rows_of, run, until
from tests.support.effort import EXPLORES, tries
from tests.support.folders import reachable_folder
from tests.support.guarded_statements import ALLOWED, REJECTED, SCHEMA
from tests.support.hub_server import HubWorld, hub_server, make_hub, make_source
from tests.support.live import ROOT
from tests.support.offline_questions import FIXTURES, REFUSE, cases_of
from tests.support.postgres_wire import Wire
from tests.support.row_rules import FOLDER, KINDS, Bench, open_bench, prepare, statements
from tests.support.row_statements import queries
from tests.support.spread_tables import make_spread

CRM = """
CREATE TYPE grade AS ENUM ('gold', 'silver', 'basic');
CREATE DOMAIN code AS text CHECK (VALUE <> '');
CREATE TABLE customer (id integer PRIMARY KEY, name text NOT NULL UNIQUE, grade grade,
    country code CHECK (country IN ('DE', 'CN', 'FR')), since date, tags text[], place point);
COMMENT ON TABLE customer IS 'Who buys 客户';
COMMENT ON COLUMN customer.grade IS 'Their standing';
INSERT INTO customer SELECT n, 'customer ' || n,
    (ARRAY['gold', 'silver', 'basic'])[n % 3 + 1]::grade,
    (ARRAY['DE', 'CN', 'FR'])[n % 3 + 1], DATE '2024-01-01' + n, ARRAY['a'], point(n, n)
FROM generate_series(1, 300) AS n;
CREATE TABLE log (n integer);
CREATE FUNCTION noted() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN INSERT INTO public.log VALUES (1); RETURN 1; END $$;
CREATE VIEW writing AS SELECT noted() AS n;
"""
SHOP = """
CREATE SCHEMA archive;
CREATE TABLE product (sku text PRIMARY KEY, title text);
CREATE TABLE sale (id integer PRIMARY KEY, sku text REFERENCES product, customer_id integer,
    amount numeric(10,2), sold_on date);
INSERT INTO product SELECT 'p' || n, 'Product ' || n FROM generate_series(1, 20) AS n;
INSERT INTO sale SELECT n, 'p' || (n % 20 + 1), n % 300 + 1, n % 100, DATE '2025-01-01' + n % 365
FROM generate_series(1, 6000) AS n;
CREATE TABLE archive.old_sale (id integer, amount numeric);
"""


@pytest.fixture(scope="module")
def server(embedded_server: DemoServer) -> Iterator[DemoServer]:
    with reachable_folder() as folder, hub_server(folder, embedded_server) as server:
        yield server


@pytest.fixture(scope="module")
def world(server: DemoServer) -> HubWorld:
    return make_hub(server, {"crm": CRM, "shop": SHOP})


JOIN = """
SELECT c.grade, count(*), sum(s.amount) FROM crm.customer c
JOIN shop_public.sale s ON s.customer_id = c.id GROUP BY c.grade ORDER BY 1
"""


def test_one_question_joins_tables_of_two_databases(world: HubWorld, opened: Opener) -> None:
    result = run(opened(world.url), JOIN)
    assert [row[:2] for row in result.rows] == [["gold", 2000], ["silver", 2000], ["basic", 2000]]


def test_what_the_source_declares_is_known_in_the_hub(world: HubWorld, opened: Opener) -> None:
    tables = asyncio.run(opened(world.url).catalog()).by_key
    customer = tables["crm", "customer"]
    assert customer.comment == "Who buys 客户"
    assert (customer.primary_key, customer.unique_keys) == (("id",), (("name",),))
    assert customer.row_estimate == 300
    grade, country = customer.column("grade"), customer.column("country")
    assert grade is not None
    assert (grade.comment, grade.allowed) == ("Their standing", ("gold", "silver", "basic"))
    assert country is not None
    assert (country.type, set(country.allowed)) == ("text", {"DE", "CN", "FR"})
    since = customer.column("since")
    assert since is not None
    assert since.period == ("2024-01-02", "2024-10-27")
    sale = tables["shop_public", "sale"]
    assert sale.foreign_keys == (
        ForeignKey(("sku",), ("shop_public", "product"), ("sku",)),
        ForeignKey(("customer_id",), ("crm", "customer"), ("id",)),
    )
    assert ("shop_archive", "old_sale") in tables


@pytest.mark.slow
def test_a_column_refers_to_another_source_where_names_and_values_agree(
    server: DemoServer, opened: Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    owners = """CREATE TABLE owner (id integer PRIMARY KEY, name text);
    INSERT INTO owner VALUES (1, 'a'), (2, 'b'), (3, 'c')"""
    pets = """CREATE TABLE pet (id integer PRIMARY KEY, owner_id integer, name text);
    INSERT INTO pet VALUES (1, 1, 'x'), (2, 3, 'y'), (3, NULL, 'z')"""
    world = make_hub(server, {"people": owners, "pets": pets})
    assert "pets.pet.owner_id refers to people.owner.id" in capsys.readouterr().out
    refers = (ForeignKey(("owner_id",), ("people", "owner"), ("id",)),)

    def references(schema: str = "pets") -> tuple[ForeignKey, ...]:
        tables = asyncio.run(opened(world.url).catalog()).by_key
        assert not tables["people", "owner"].foreign_keys
        return tables[schema, "pet"].foreign_keys

    assert references() == refers
    execute(world.source_admin("people"), "ALTER TABLE owner RENAME TO gone")
    assert world.hub("refresh", "pets") == 0
    assert references() == refers, "what can't be looked at stays"
    execute(world.source_admin("people"), "ALTER TABLE gone RENAME TO owner")
    execute(world.source_admin("pets"), "INSERT INTO pet VALUES (4, 9, 'w')")
    assert world.hub("refresh", "pets") == 0
    assert references() == (), "a value that is no key"
    execute(world.source_admin("pets"), "DELETE FROM pet WHERE id = 4")
    again = ("attach", "other", world.sources["pets"], "--reader", READER, "--no-references")
    assert world.hub(*again) == 0
    assert (references(), references("other")) == (refers, ())


def test_a_source_that_could_be_written_to_is_not_attached(
    world: HubWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = world.source_admin("crm")
    execute(admin, "CREATE ROLE citu_test_writer LOGIN", "GRANT INSERT ON log TO citu_test_writer")
    writer = make_dsn(admin, user="citu_test_writer", dbname=parse_dsn(admin)["dbname"])
    execute(admin, f"GRANT CONNECT ON DATABASE {parse_dsn(admin)['dbname']} TO citu_test_writer")
    for url, reason in ((admin, "superuser"), (_as_url(writer), "may change public.log")):
        assert world.hub("attach", "again", _as_url(url), "--reader", READER) == 1
        told = capsys.readouterr().err
        assert reason in told
        assert "ALTER ROLE citu_source SET default_transaction_read_only = on;" in told
    assert rows_of(world.admin_url, "SELECT count(*) FROM pg_foreign_server") == [(2,)]


def _as_url(dsn: str) -> str:
    parts = parse_dsn(dsn)
    return (
        f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}&port={parts['port']}"
    )


def test_a_view_that_writes_in_the_source_is_stopped_there(world: HubWorld, opened: Opener) -> None:
    with pytest.raises(ForbiddenStatement):
        run(opened(world.url), "SELECT n FROM crm.writing")
    # Not even a transaction of the hub that commits writes.
    with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
        execute(world.url, "BEGIN READ WRITE; SELECT n FROM crm.writing; COMMIT")
    assert rows_of(world.source_admin("crm"), "SELECT count(*) FROM log") == [(0,)]


def test_a_role_that_gains_a_right_fails_the_check(
    world: HubWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.hub("check") == 0
    assert capsys.readouterr().out.count("can only be read") == 2
    admin = world.source_admin("crm")
    execute(admin, f"GRANT DELETE ON log TO {READER}")
    try:
        assert world.hub("check", "crm") == 1
        assert "may change public.log" in capsys.readouterr().err
    finally:
        execute(admin, f"REVOKE DELETE ON log FROM {READER}")
    execute(world.admin_url, "ALTER SERVER crm OPTIONS (SET options '-c work_mem=4MB')")
    execute(admin, f"ALTER ROLE {READER} SET default_transaction_read_only = off")
    try:
        assert world.hub("check", "crm") == 1
        assert "transactions there are not read-only" in capsys.readouterr().err
    finally:
        execute(admin, f"ALTER ROLE {READER} SET default_transaction_read_only = on")
        options = "'-c default_transaction_read_only=on'"
        execute(world.admin_url, f"ALTER SERVER crm OPTIONS (SET options {options})")


def test_cancel_reaches_the_source(world: HubWorld, opened: Opener) -> None:
    """The statement in the source ends within two seconds of the caller's leaving."""
    database = opened(world.url)
    source = world.source_admin("shop")
    endless = "SELECT count(*) FROM shop_public.sale a, shop_public.sale b, shop_public.sale c"

    async def left() -> float:
        running = asyncio.create_task(database.run(endless))
        await until(lambda: _runs(source))
        running.cancel()
        began = time.monotonic()
        await until(lambda: not _runs(source))
        return time.monotonic() - began

    assert asyncio.run(left()) < 2.0


def _runs(source: str) -> bool:
    busy = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'FETCH%'"
        " AND application_name = 'citu hub' AND datname = current_database()"
    )
    return rows_of(source, busy) != [(0,)]


def test_plans_and_their_limits_work_over_sources(world: HubWorld, opened: Opener) -> None:
    plan = asyncio.run(opened(world.url).explain(JOIN))
    assert set(plan.scans) <= {"customer", "sale"}
    assert plan.total_cost > 100
    with pytest.raises(CostExceeded):
        asyncio.run(opened(world.url, max_plan_cost=50).explain(JOIN))


def test_a_source_that_hangs_delays_only_its_own_questions(world: HubWorld, opened: Opener) -> None:
    url = make_source(world.server, "CREATE TABLE slow (n integer); INSERT INTO slow VALUES (1)")
    with reachable_folder() as folder, Wire(url, folder) as wire:
        (folder / f".s.PGSQL.{parse_dsn(url)['port']}").chmod(0o777)  # for the server's account
        assert world.hub("attach", "slow", _as_url(wire.url), "--reader", READER) == 0
        database = opened(world.url)

        async def asked() -> None:
            assert (await database.run("SELECT n FROM slow.slow")).rows == ([1],)
            await database.run(JOIN)  # sends the end of the transaction before
            wire.is_silent = True
            hanging = asyncio.create_task(database.run("SELECT n FROM slow.slow"))
            for _ in range(5):
                assert len((await database.run(JOIN)).rows) == 3
            await database.catalog()
            assert not hanging.done()
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging

        asyncio.run(asked())
    with pytest.raises(DatabaseUnavailable, match="The source slow can't be reached"):
        run(opened(world.url), "SELECT n FROM slow.slow")
    execute(
        world.admin_url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'citu'",
    )
    assert world.hub("detach", "slow") == 0


def test_a_refresh_follows_the_source(
    server: DemoServer, opened: Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    world = make_hub(server, {"crm": CRM})
    kept = _oid(world, "writing")
    execute(
        world.source_admin("crm"),
        "ALTER TABLE customer ADD COLUMN phone text, DROP COLUMN tags",
        "ALTER TYPE grade ADD VALUE 'new'",
        "CREATE TABLE visit (id integer PRIMARY KEY, customer_id integer REFERENCES customer)",
        f"GRANT SELECT ON visit TO {READER}",
        "COMMENT ON COLUMN customer.name IS 'Their full name'",
        "COMMENT ON COLUMN customer.country IS 'Where they live'",
        "COMMENT ON COLUMN writing.n IS 'A number'",
    )
    own = (
        "COMMENT ON COLUMN crm.customer.country IS 'Where they pay taxes'",
        "COMMENT ON COLUMN crm.customer.grade IS NULL",
        "COMMENT ON FOREIGN TABLE crm.writing IS 'Not to be asked'",
    )
    execute(world.admin_url, *own)
    capsys.readouterr()
    assert world.hub("check", "crm") == 0
    assert "crm.customer has changed in the source" in capsys.readouterr().out
    assert world.hub("refresh", "crm") == 0
    assert "2 of them made anew" in capsys.readouterr().out
    tables = asyncio.run(opened(world.url).catalog()).by_key
    customer = tables["crm", "customer"]
    assert customer.column("phone") is not None
    assert customer.column("tags") is None
    comments = {column.name: column.comment for column in customer.columns}
    assert (customer.comment, comments["name"]) == ("Who buys 客户", "Their full name")
    assert comments["country"] == "Where they pay taxes", "what was said in the hub stays"
    assert comments["grade"] is None
    writing = tables["crm", "writing"]
    assert (writing.comment, writing.columns[0].comment) == ("Not to be asked", "A number")
    grade = customer.column("grade")
    assert grade is not None
    assert grade.allowed[-1] == "new"
    assert tables["crm", "visit"].foreign_keys[0].target == ("crm", "customer")
    assert _oid(world, "writing") == kept
    execute(world.admin_url, "CREATE VIEW mine AS SELECT id FROM crm.customer")
    assert world.hub("detach", "crm") == 1
    execute(world.admin_url, "DROP VIEW mine")
    assert world.hub("detach", "crm") == 0
    assert rows_of(world.admin_url, "SELECT to_regnamespace('crm')") == [(None,)]
    assert world.hub("check", "crm") == 1


def _oid(world: HubWorld, table: str) -> int:
    ((oid,),) = rows_of(world.admin_url, f"SELECT 'crm.{table}'::regclass::oid")
    return int(oid)


def test_mistakes_are_said(
    world: HubWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    for arguments, told in (
        (("attach", "Bad-Name", world.sources["crm"], "--reader", READER), "no name of a source"),
        (("attach", "other", "oracle://a/b", "--reader", READER), "such as postgresql://"),
        (("attach", "crm", world.sources["crm"], "--reader", READER), "already exists"),
        (("attach", "gone", "postgresql://x@127.0.0.1:1/d", "--reader", READER), "can't be read"),
        (("refresh", "nothing"), "it has: crm, shop"),
    ):
        assert world.hub(*arguments) == 1
        assert told in capsys.readouterr().err
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert world.hub("refresh", "nothing") == 1
    assert capsys.readouterr().err == "枢纽没有来源 nothing；已有：crm, shop。\n"
    assert world.hub("check", "crm") == 0
    assert "crm：只能读取" in capsys.readouterr().out


def test_a_table_over_several_servers_names_what_spreads_its_rows(
    server: DemoServer, opened: Opener
) -> None:
    part = "CREATE TABLE sale (id integer, region text NOT NULL); INSERT INTO sale VALUES {}"
    world = make_hub(
        server,
        {"north": part.format("(1, 'n'), (2, 'n')"), "south": part.format("(3, 's')")},
        f"""
        CREATE TABLE sale (id integer, region text NOT NULL) PARTITION BY LIST (region);
        ALTER TABLE sale ATTACH PARTITION north.sale FOR VALUES IN ('n');
        ALTER TABLE sale ATTACH PARTITION south.sale FOR VALUES IN ('s');
        GRANT SELECT ON sale TO {READER};
        """,
    )
    database = opened(world.url)
    assert run(database, "SELECT region, count(*) FROM sale GROUP BY 1 ORDER BY 1").rows == (
        ["n", 2],
        ["s", 1],
    )
    (sale,) = asyncio.run(database.catalog()).by_name["sale"]
    assert sale.distributed_by == ("region",)


def _moved(world: HubWorld) -> None:
    """Give the foreign tables the places that they have in the source."""
    schemas = rows_of(world.admin_url, "SELECT nspname FROM pg_namespace WHERE nspname ~ '^src'")
    execute(
        world.admin_url,
        "ALTER SCHEMA public RENAME TO empty",
        # Estimates of the source take a round trip for each way to run a statement.
        "ALTER SERVER src OPTIONS (SET use_remote_estimate 'false')",
    )
    for (schema,) in schemas:
        place = schema.removeprefix("src").removeprefix("_") or "public"
        execute(world.admin_url, f"ALTER SCHEMA {schema} RENAME TO {place}")


@pytest.fixture(scope="module")
def ruled(server: DemoServer) -> Iterator[Bench]:
    """Yield a bench of which the statements run in a hub, and the policies hold in the source."""
    world = make_hub(server, {"src": (FOLDER / "schema.sql").read_text("utf-8")})
    source = world.source_admin("src")
    prepare(source)
    _moved(world)
    with open_bench(world.url, source) as own, open_bench(world.url, world.admin_url) as bench:
        yield replace(bench, policed=own.policed)


def test_row_rules_hold_for_foreign_tables(ruled: Bench) -> None:
    """The same rows as the source's own policies leave, and nothing of the others."""
    tried, refused = 0, []
    with all_cases() as cases:
        for kind in KINDS:
            for sql in filter(_is_about_rows, statements(kind)):
                with cases.case(sql):
                    tried += 1
                    if not _is_same(ruled, sql):
                        refused.append(sql)
    assert tried >= 300
    assert len(refused) <= tried * 0.1, refused


@settings(
    max_examples=tries(18),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(sql=queries())
def test_any_statement_over_foreign_tables_gives_what_policies_give(ruled: Bench, sql: str) -> None:
    # Tables that inherit are not in the hub, so that some statements are refused there.
    _is_same(ruled, sql)


def _is_about_rows(sql: str) -> bool:
    """Tell whether it gives the same where all of a table lies in one foreign table."""
    return "tableoid" not in sql and " ONLY " not in sql


def _is_same(bench: Bench, sql: str) -> bool:
    standard, ruled = bench.standard(sql), bench.ruled(sql)
    assert not ruled.canaries(sql)
    if standard.error is not None:
        return True
    if ruled.error is not None:
        return False
    assert ruled.in_any_order == standard.in_any_order
    return True


FOLDERS = (FIXTURES / "offline", ROOT / "benchmarks/studied", ROOT / "benchmarks/held_out")
QUESTIONS = [path for folder in FOLDERS for path in sorted(folder.glob("*_questions.sql"))]
if not EXPLORES:
    QUESTIONS = [FIXTURES / "offline/mall_questions.sql"]


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.stem)
def test_statements_give_the_same_over_a_hub_and_spread_over_three_sources(
    server: DemoServer, opened: Opener, path: Path
) -> None:
    """The hand-written statements of the questions of a database: on it, and through a hub."""
    ddl = path.with_name(path.name.replace("_questions", "")).read_text("utf-8")
    world = make_hub(server, {"src": ddl})
    _moved(world)
    golds = [case.gold for case in cases_of(path)]
    statements_given = [gold for gold in golds if gold not in (REFUSE, "CHAT")]
    direct = opened(world.sources["src"], max_rows=5_000)
    hubs = [opened(url, max_rows=5_000) for url in (world.url, make_spread(server, ddl).url)]

    async def ask_all() -> None:
        with all_cases() as cases:
            for sql in statements_given:
                expected = await direct.run(sql)
                for through in hubs:
                    with cases.case((sql, "spread" if through is hubs[1] else "hub")):
                        found = await through.run(sql)
                        assert found.columns == expected.columns
                        assert not expected.is_limited
                        assert sorted(map(repr, found.rows)) == sorted(map(repr, expected.rows))

    asyncio.run(ask_all())
    assert len(statements_given) >= 20


def test_nothing_that_is_refused_has_an_effect_in_a_source(
    server: DemoServer, opened: Opener
) -> None:
    """As a superuser asks, so that nothing but the guard and the source's role stand between."""
    world = make_hub(server, {"src": SCHEMA})
    _moved(world)
    database = opened(world.admin_url, statement_timeout_s=2.0)
    before = _contents(world)

    async def ask_all() -> None:
        passed = []
        for case in REJECTED:
            for method in (database.explain, database.run):
                try:
                    await method(case.sql)
                except CituError:
                    continue
                passed.append(case.sql)
        assert len(passed) <= len(REJECTED) * 0.05, passed
        for case in ALLOWED:
            with suppress(CituError):
                await database.run(case.sql)

    asyncio.run(ask_all())
    assert _contents(world) == before


def _contents(world: HubWorld) -> list[list[tuple[object, ...]]]:
    """What the tables, sequences and large objects of the source and the hub hold."""
    texts = (
        "SELECT relname, relkind, relnamespace::regnamespace::text FROM pg_class ORDER BY 1, 2, 3",
        "SELECT sequencename, last_value FROM pg_sequences ORDER BY 1",
        "SELECT oid FROM pg_largeobject_metadata ORDER BY 1",
        "SELECT rolname FROM pg_roles ORDER BY 1",
    )
    places = (world.admin_url, world.source_admin("src"))
    found = [rows_of(place, text) for place in places for text in texts]
    for place in places:
        for (table,) in rows_of(place, _STORED):
            rows = f"SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM ONLY {table} t"
            found.append(rows_of(place, rows))
    return found


_STORED = """
SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'm')
AND relnamespace::regnamespace::text !~ '^(pg_|information_schema)' ORDER BY 1
"""
