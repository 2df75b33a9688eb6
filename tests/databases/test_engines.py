"""A server that does not do what must hold is not asked; one that lacks something is, and says so.

A proxy before a real server changes what is sent to it, so that it seems to be another engine.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from agent.thinking.llm.schema_text import SchemaText
from common.errors import DatabaseUnavailable, InvalidSql, StatementRejected
from common.values import Catalog
from databases.engines.capabilities import Lack, Need
from databases.engines.engine_names import engine_of
from databases.execution.guarded import GuardedDatabase
from databases.probe import main
from databases.source import Unreachable, probe
from tests.support.databases import Opener, rows_of, run
from tests.support.folders import reachable_folder
from tests.support.rewriting_wire import RewritingWire

_MOST_S = 5.0


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str]) -> str:
    return make_database("CREATE TABLE person (id integer, name text)")


Engines = Callable[..., str]


@pytest.fixture
def engine(url: str) -> Iterator[Engines]:
    """Give the URL of a server that reads statements otherwise."""
    with ExitStack() as stack:

        def make(changes: Mapping[str, str], *, loses_cancels: bool = False) -> str:
            folder = stack.enter_context(reachable_folder())
            wire = RewritingWire(url, folder, changes, loses_cancels=loses_cancels)
            return stack.enter_context(wire).url

        yield make


_NO_TIMEOUT = {r"statement_timeout = '?\d+'?": "statement_timeout = 0"}
UNFIT: Mapping[Need, tuple[Mapping[str, str], str]] = {
    Need.READ_ONLY: ({"BEGIN READ ONLY": "BEGIN READ WRITE"}, "lets writes pass"),
    Need.TIMEOUT: (_NO_TIMEOUT, "does not obey statement_timeout"),
    Need.CANCEL: ({}, "does not stop a statement"),
    Need.STRINGS: (
        {"standard_conforming_strings = 'on'": "standard_conforming_strings = 'off'"},
        "reads strings",
    ),
    Need.ONE_STATEMENT: ({r"\(SELECT 1; SELECT 2\)": "(SELECT 1)"}, "several statements"),
    Need.SETTINGS: (
        {"default_transaction_read_only = 'on'": "default_transaction_read_only = 'off'"},
        "session's settings",
    ),
}


@pytest.mark.parametrize("need", UNFIT, ids=str)
def test_what_must_hold_is_proven_before_anything_is_asked(
    engine: Engines, opened: Opener, need: Need
) -> None:
    changes, reason = UNFIT[need]
    place = engine(changes, loses_cancels=need is Need.CANCEL)
    began = time.monotonic()
    with pytest.raises(Unreachable, match=reason):
        probe(place)
    assert time.monotonic() - began < _MOST_S
    database = opened(place)
    with pytest.raises(DatabaseUnavailable, match=reason):
        run(database, "SELECT name FROM person")


@pytest.mark.slow
def test_neither_timeout_nor_cancel_is_found_in_time(engine: Engines) -> None:
    place = engine(_NO_TIMEOUT, loses_cancels=True)
    began = time.monotonic()
    with pytest.raises(Unreachable, match="statement_timeout; .*cancelled"):
        probe(place)
    assert time.monotonic() - began < _MOST_S


LACKING: Mapping[Lack, Mapping[str, str]] = {
    Lack.PLAN_FORMAT: {r"EXPLAIN \(FORMAT JSON\)": "EXPLAIN (FORMAT CSV)"},
    Lack.PLAN_COSTS: {r"EXPLAIN \(FORMAT JSON\)": "EXPLAIN (COSTS OFF, FORMAT JSON)"},
    Lack.BLOCKS: {r"\bDO (\$\w+\$)": r"DO UNKNOWN \1"},
    Lack.VOLATILITY: {r"\bp\.provolatile\b": "p.volatility"},
}


@pytest.mark.parametrize("lack", LACKING, ids=str)
def test_what_is_missing_is_replaced_and_said(engine: Engines, opened: Opener, lack: Lack) -> None:
    place = engine(LACKING[lack])
    found = probe(place)
    assert lack in found.lacks
    database = opened(place)
    result = run(database, "SELECT name, upper(name) FROM person")
    assert (result.columns, result.notices) == (("name", "upper"), found.notices)
    plan = asyncio.run(database.explain("SELECT name FROM person"))
    assert plan.total_cost == 0 or lack not in (Lack.PLAN_FORMAT, Lack.PLAN_COSTS)


def test_the_command_says_what_a_server_is(
    url: str, engine: Engines, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([url]) == 0
    assert "All that must hold holds." in capsys.readouterr().out
    assert main([engine(UNFIT[Need.READ_ONLY][0])]) == 1
    assert "lets writes pass" in capsys.readouterr().err


def test_postgresql_lacks_nothing(url: str, opened: Opener) -> None:
    assert probe(url).lacks == frozenset()
    database: GuardedDatabase = opened(url)
    assert run(database, "SELECT 1").notices == ()


NAMES = [
    ("PostgreSQL 16.4 (Debian 16.4-1) on x86_64", {}, ("PostgreSQL", "16.4", None)),
    ("PostgreSQL 16.4 on x86_64", {"citus": "12.1-1"}, ("Citus", "12.1-1", "16.4")),
    ("PostgreSQL 16.4 on x86_64", {"timescaledb": "2.14.2"}, ("TimescaleDB", "2.14.2", "16.4")),
    (
        "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27)",
        {},
        ("CockroachDB", "23.1.11", None),
    ),
    (
        "PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang",
        {},
        ("YugabyteDB", "2.20.1.0", None),
    ),
    (
        "PostgreSQL 8.0.2 on i686-pc-linux-gnu, Redshift 1.0.62896",
        {},
        ("Redshift", "1.0.62896", None),
    ),
    ("something else", {}, ("PostgreSQL", None, None)),
]


def test_engines_are_known_by_what_they_say() -> None:
    for version, extensions, expected in NAMES:
        found = engine_of(version, extensions)
        assert (found.name, found.version, found.extends) == expected


def test_citus_is_known_with_its_distribution_columns(
    make_database: Callable[[str], str], opened: Opener
) -> None:
    url = make_database(
        """
        CREATE TABLE orders (id integer, customer_id integer);
        CREATE TABLE country (code text);
        CREATE TABLE dist (logicalrelid regclass, partkey text);
        INSERT INTO dist VALUES ('orders', 'customer_id'), ('country', NULL);
        CREATE FUNCTION dist_column(regclass, text) RETURNS text IMMUTABLE
            LANGUAGE sql AS 'SELECT $2'
        """
    )
    changes = {
        r"SELECT extname, extversion FROM pg_catalog.pg_extension": "SELECT 'citus', '12.1-1'",
        r"pg_catalog\.pg_dist_partition": "dist",
        r"pg_catalog\.column_to_column_name": "dist_column",
    }
    with reachable_folder() as folder, RewritingWire(url, folder, changes) as wire:
        found = probe(wire.url)
        assert found.engine.name == "Citus"
        tables = asyncio.run(opened(wire.url).catalog()).by_name
    assert tables["orders"][0].distributed_by == ("customer_id",)
    assert tables["country"][0].distributed_by == ()
    shown = SchemaText(Catalog(tables["orders"])).details("orders")
    assert "distributed by (customer_id)" in shown


REFUSED = {
    "could not run distributed query with GROUPING SETS, CUBE, or ROLLUP": "UNION ALL",
    "recursive CTEs are not supported in distributed queries": "recurse",
    "complex joins are only supported when all distributed tables are co-located and joined on"
    " their distribution columns": "equal distribution columns",
    "cannot perform distributed planning on this query": "",
}


def test_what_is_refused_across_shards_is_explained(
    make_database: Callable[[str], str], opened: Opener
) -> None:
    url = make_database(
        """
        CREATE FUNCTION refuse(said text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
            $$ BEGIN RAISE EXCEPTION '%', said USING ERRCODE = '0A000'; END $$;
        """
    )
    database = opened(url, allowed_functions=["public.refuse"])
    for said, meaning in REFUSED.items():
        with pytest.raises(InvalidSql) as caught:
            run(database, f"SELECT refuse('{said}')")
        assert said in caught.value.detail
        assert meaning in caught.value.detail
        assert ("多个节点" in caught.value.message("zh")) is bool(meaning)


# extension → what makes a table of it, the functions that are allowed, a statement and its rows
EXTENSIONS: dict[str, tuple[str, list[str], str, list[Any]]] = {
    "vector": (
        "CREATE TABLE item (id integer, place vector(2));"
        "INSERT INTO item VALUES (1, '[0,0]'), (2, '[3,4]')",
        ["public.l2_distance"],
        "SELECT id, l2_distance(place, '[0,0]') AS far FROM item ORDER BY far DESC LIMIT 1",
        [2, 5],
    ),
    "postgis": (
        "CREATE TABLE item (id integer, place geometry(point));"
        "INSERT INTO item VALUES (1, ST_MakePoint(0, 0)), (2, ST_MakePoint(3, 4))",
        ["public.st_distance", "public.st_makepoint"],
        "SELECT id, ST_Distance(place, ST_MakePoint(0, 0)) FROM item ORDER BY 2 DESC LIMIT 1",
        [2, 5],
    ),
    "timescaledb": (
        "CREATE TABLE item (id integer, at timestamp NOT NULL);"
        "SELECT create_hypertable('item', 'at'); INSERT INTO item VALUES (1, '2025-01-05 10:07')",
        ["public.time_bucket"],
        "SELECT id, time_bucket('1 hour', at)::text FROM item",
        [1, "2025-01-05 10:00:00"],
    ),
}


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_functions_of_an_extension_are_called_when_they_are_allowed(
    make_database: Callable[[str], str], admin_url: str, opened: Opener, extension: str
) -> None:
    known = f"SELECT FROM pg_available_extensions WHERE name = '{extension}'"
    if rows_of(admin_url, known) == []:
        pytest.skip(f"the server has no {extension}")
    ddl, functions, sql, row = EXTENSIONS[extension]
    url = make_database(f"CREATE EXTENSION {extension};{ddl}")
    with pytest.raises(StatementRejected, match=functions[0].removeprefix("public.")):
        run(opened(url), sql)
    assert run(opened(url, allowed_functions=functions), sql).rows == (row,)
