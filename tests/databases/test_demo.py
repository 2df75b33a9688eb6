"""The demo database: what it holds, that it grows day by day as if it had always been there, that
it is read-only.
"""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import make_dsn

from databases.demo import loader
from databases.demo.loader import DATABASE, DAYS, DemoServer, ensure_demo
from databases.demo.measurements import holiday_rush, revenue_lines, traffic_lines
from databases.demo.network import RENOVATING, service_areas, shops
from databases.demo.reader import READER
from databases.embedded.embedded_server import EmbeddedServer
from tests.support.folders import reachable_folder

PROJECT = Path(__file__).resolve().parents[2]
SOME_DAY = date(2025, 3, 4)
BUILD = """
import sys
from datetime import date
from databases.demo.loader import ensure_demo

class Server:
    admin_url = sys.argv[1]
    def url(self, dbname, user): return ""

ensure_demo(Server(), today=date.fromisoformat(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def other_server() -> Iterator[DemoServer]:
    """A server whose demo may be broken and made again."""
    with reachable_folder() as folder:
        server = EmbeddedServer.acquire(folder / "var")
        yield server
        server.release()


def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def value(url: str, sql: str) -> Any:
    return rows(url, sql)[0][0]


def figures(url: str, day: date) -> set[str]:
    """The day's rows of both tables, as COPY writes them but for the time they were reported at."""
    found = rows(
        url,
        "SELECT concat_ws(E'\\t', revenue_date, shop_id, payment_type, coalesce(amount::text, "
        "'\\N'), order_count) "
        f"FROM daily_revenue WHERE revenue_date = '{day}' UNION ALL "
        "SELECT concat_ws(E'\\t', traffic_date, service_area_id, vehicle_class, "
        "coalesce(vehicle_count::text, '\\N')) "
        f"FROM daily_traffic WHERE traffic_date = '{day}'",
    )
    return {line for (line,) in found}


def generated(day: date) -> set[str]:
    areas = service_areas()
    lines = chain(revenue_lines(day, areas, shops(areas)), traffic_lines(day, areas))
    return {line.rpartition("\t")[0] for line in lines}


# ------------------------------------------------------------------------------
# content


@pytest.fixture(scope="module")
def complete_url(other_server: DemoServer) -> str:
    """The demo with all its days and rows."""
    return ensure_demo(other_server)


def test_it_has_two_years_of_figures_up_to_yesterday(complete_url: str) -> None:
    first, last, days = rows(
        complete_url,
        "SELECT min(d), max(d), count(DISTINCT d) FROM (SELECT revenue_date d FROM daily_revenue)",
    )[0]
    # The session may have begun before midnight.
    assert last in (date.today() - timedelta(days=1), date.today() - timedelta(days=2))
    assert days == DAYS == (last - first).days + 1
    assert rows(complete_url, "SELECT min(traffic_date), max(traffic_date) FROM daily_traffic") == [
        (first, last)
    ]


@pytest.mark.parametrize(
    ("table", "fewest", "most"),
    [
        ("company", 6, 8),
        ("service_area", 38, 45),
        ("shop", 260, 340),
        ("daily_revenue", 300_000, 600_000),
    ],
)
def test_it_is_big_enough_to_be_interesting(
    complete_url: str, table: str, fewest: int, most: int
) -> None:
    assert fewest <= value(complete_url, f"SELECT count(*) FROM {table}") <= most


@pytest.mark.parametrize(
    "condition",
    [
        "daily_revenue WHERE amount IS NULL",
        "daily_revenue WHERE amount = 0",
        "daily_traffic WHERE vehicle_count IS NULL",
        "shop WHERE brand IS NULL",
        "shop WHERE monthly_rent IS NULL",
        "shop WHERE is_deleted",
        "service_area WHERE is_deleted",
        "service_area WHERE parking_spaces IS NULL",
        "company WHERE is_deleted",
        "company WHERE region IS NULL",
        "company c WHERE NOT is_deleted AND NOT EXISTS (SELECT FROM service_area s "
        "WHERE s.company_id = c.company_id "
        "AND s.status = '营业中' AND NOT s.is_deleted)",
        "service_area s WHERE status = '装修中' AND NOT EXISTS (SELECT "
        "FROM service_area_daily_revenue r "
        "WHERE r.service_area_id = s.service_area_id AND r.revenue_date > current_date - 30)",
    ],
)
def test_it_has_the_warts_of_real_data(complete_url: str, condition: str) -> None:
    assert value(complete_url, f"SELECT count(*) FROM {condition}") > 0


def test_some_shops_lack_some_days(complete_url: str) -> None:
    gaps = value(
        complete_url,
        f"SELECT count(*) FROM (SELECT shop_id FROM daily_revenue GROUP BY shop_id "
        f"HAVING count(DISTINCT revenue_date) BETWEEN {DAYS} - 60 AND {DAYS} - 1)",
    )
    assert gaps > 100


def test_names_and_rankings_have_no_ties(complete_url: str) -> None:
    for table, name in (
        ("shop", "shop_name"),
        ("service_area", "service_area_name"),
        ("company", "company_name"),
    ):
        assert value(complete_url, f"SELECT count(*) - count(DISTINCT {name}) FROM {table}") == 0
    totals = rows(
        complete_url, "SELECT sum(revenue) FROM service_area_daily_revenue GROUP BY service_area_id"
    )
    assert len(set(totals)) == len(totals) > 35


def test_every_foreign_key_holds(complete_url: str) -> None:
    """They are loaded unchecked, so they are checked here."""
    for child, key, parent in (
        ("service_area", "company_id", "company"),
        ("shop", "service_area_id", "service_area"),
        ("daily_revenue", "shop_id", "shop"),
        ("daily_traffic", "service_area_id", "service_area"),
    ):
        abandoned = (
            f"SELECT count(*) FROM {child} LEFT JOIN {parent} USING ({key}) "
            f"WHERE {parent}.updated_at IS NULL"
        )
        assert value(complete_url, abandoned) == 0
    assert (
        value(
            complete_url, "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated"
        )
        == 4
    )


def test_holidays_are_busier(complete_url: str) -> None:
    average = "SELECT avg(vehicle_count) FROM daily_traffic WHERE vehicle_class = '客车' AND "
    golden_week = value(
        complete_url, average + "to_char(traffic_date, 'MM-DD') BETWEEN '10-01' AND '10-07'"
    )
    after = value(
        complete_url, average + "to_char(traffic_date, 'MM-DD') BETWEEN '10-10' AND '10-31'"
    )
    assert golden_week > after * 13 / 10


def test_every_year_has_a_spring_festival_and_other_holidays() -> None:
    for year in range(2024, 2036):
        days = [date(year, 1, 1) + timedelta(days=offset) for offset in range(365)]
        assert 20 < sum(holiday_rush(day) > 0 for day in days) < 35


# ------------------------------------------------------------------------------
# growth

FEW_DAYS = 40


@pytest.fixture
def growing(other_server: DemoServer, monkeypatch: pytest.MonkeyPatch) -> DemoServer:
    """A server without a demo, on which this process makes one of a few days."""
    monkeypatch.setattr(loader, "DAYS", FEW_DAYS)
    with closing(psycopg2.connect(other_server.admin_url)) as admin, admin.cursor() as cursor:
        admin.autocommit = True
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
    return other_server


def total(server: DemoServer) -> int:
    url = server.url(DATABASE, READER)
    return int(
        value(
            url,
            "SELECT (SELECT count(*) FROM daily_revenue) + (SELECT count(*) FROM daily_traffic)",
        )
    )


@pytest.mark.slow
def test_a_build_killed_half_way_is_made_anew_by_whoever_comes_next(growing: DemoServer) -> None:
    command = [sys.executable, "-c", BUILD, growing.admin_url, str(SOME_DAY)]
    with subprocess.Popen(command, cwd=PROJECT) as build:
        loading = "SELECT count(*) FROM pg_stat_progress_copy"
        while not value(growing.admin_url, loading):
            assert build.poll() is None, "the build ended before it could be interrupted"
        build.kill()
    with ThreadPoolExecutor() as pool:
        urls = set(pool.map(lambda _: ensure_demo(growing, today=SOME_DAY), range(2)))
    assert len(urls) == 1
    databases = "SELECT count(*) FROM pg_database WHERE datname LIKE 'citu%'"
    assert value(growing.admin_url, databases) == 1
    assert value(urls.pop(), "SELECT count(DISTINCT revenue_date) FROM daily_revenue") == FEW_DAYS


def test_days_appended_later_are_those_of_a_fresh_build(growing: DemoServer) -> None:
    url = ensure_demo(growing, today=SOME_DAY)
    earlier = total(growing)
    assert ensure_demo(growing, today=SOME_DAY + timedelta(days=9)) == url
    for offset in range(-3, 9):
        day = SOME_DAY + timedelta(days=offset)
        assert figures(url, day) == generated(day) != set()
    assert figures(url, SOME_DAY + timedelta(days=9)) == set()
    grown = total(growing)
    assert grown > earlier
    for today in (
        SOME_DAY,
        SOME_DAY + timedelta(days=9),
    ):  # a clock set back, and a second start on the same day
        ensure_demo(growing, today=today)
        assert total(growing) == grown


def test_a_demo_made_by_another_version_is_made_anew(growing: DemoServer) -> None:
    url = ensure_demo(growing, today=SOME_DAY)
    with (
        closing(psycopg2.connect(make_dsn(growing.admin_url, dbname=DATABASE))) as admin,
        admin.cursor() as cursor,
    ):
        cursor.execute(f"DROP TABLE daily_traffic; COMMENT ON DATABASE {DATABASE} IS 'older'")
        admin.commit()
    ensure_demo(growing, today=SOME_DAY)
    assert figures(url, SOME_DAY - timedelta(days=1)) == generated(SOME_DAY - timedelta(days=1))


def test_a_day_does_not_depend_on_what_was_drawn_before() -> None:
    assert generated(SOME_DAY) == generated(SOME_DAY) != generated(SOME_DAY + timedelta(days=7))


def test_areas_being_renovated_have_traffic_and_no_sales_of_late() -> None:
    day = date(2026, 6, 1)
    areas = tuple(area for area in service_areas() if area.status == RENOVATING)
    assert areas
    assert not list(revenue_lines(day, areas, shops(areas)))
    assert list(traffic_lines(day, areas))


# ------------------------------------------------------------------------------
# the role

WRITES = """
INSERT INTO company VALUES (99, 'x', NULL, NULL, false, now())
UPDATE shop SET shop_name = 'x'
DELETE FROM daily_revenue
TRUNCATE daily_traffic
MERGE INTO shop USING company ON false WHEN NOT MATCHED THEN INSERT DEFAULT VALUES
WITH gone AS (DELETE FROM shop RETURNING *) SELECT count(*) FROM gone
EXPLAIN ANALYZE DELETE FROM shop
DO $$ BEGIN DELETE FROM shop; END $$
SELECT * FROM shop FOR UPDATE
DO $$ BEGIN LOCK TABLE shop IN EXCLUSIVE MODE; END $$
SELECT * INTO copied FROM shop
CREATE TABLE made (a int)
CREATE TEMP TABLE made (a int)
CREATE VIEW made AS SELECT 1
CREATE SCHEMA made
CREATE FUNCTION made() RETURNS int LANGUAGE sql AS 'SELECT 1'
CREATE EXTENSION vector
CREATE DATABASE made
CREATE ROLE made
CREATE SEQUENCE made
DROP TABLE shop
DROP DATABASE citu_demo
ALTER TABLE shop ADD COLUMN made int
ALTER ROLE citu_reader SUPERUSER
ALTER SYSTEM SET work_mem = '1GB'
ALTER DATABASE citu_demo SET work_mem = '1GB'
COMMENT ON TABLE shop IS 'x'
GRANT citu_reader TO postgres
COPY shop FROM '/etc/passwd'
COPY shop TO '/tmp/shop'
COPY (SELECT 1) TO PROGRAM 'true'
SET ROLE postgres
SET SESSION AUTHORIZATION postgres
REINDEX TABLE shop
SELECT lo_create(0)
SELECT lo_from_bytea(0, 'x')
SELECT lo_import('/etc/passwd')
SELECT pg_logical_emit_message(true, 'a', 'b')
SELECT pg_notify('a', 'b')
SELECT pg_read_file('/etc/passwd')
SELECT pg_ls_dir('/')
SELECT pg_reload_conf()
SELECT pg_switch_wal()
SELECT pg_create_restore_point('x')
SELECT pg_stat_reset()
"""


@pytest.mark.parametrize("statement", WRITES.strip().splitlines())
def test_the_reader_is_refused_whatever_is_not_reading(demo_url: str, statement: str) -> None:
    """Even when it first leaves the read-only mode it starts in, so that what refuses is the lack
    of privileges.
    """
    with closing(psycopg2.connect(demo_url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("SET default_transaction_read_only = off")
        with pytest.raises(
            (psycopg2.errors.InsufficientPrivilege, psycopg2.errors.InvalidParameterValue)
        ):
            cursor.execute(statement)


def test_the_reader_starts_read_only_and_reads_everything(demo_url: str) -> None:
    assert value(demo_url, "SHOW transaction_read_only") == "on"
    assert value(demo_url, "SHOW is_superuser") == "off"
    for relation in (
        "company",
        "service_area",
        "shop",
        "daily_revenue",
        "daily_traffic",
        "service_area_daily_revenue",
    ):
        assert value(demo_url, f"SELECT count(*) FROM {relation}") > 0
