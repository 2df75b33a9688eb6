"""The PostgreSQL adapter against a real server: values, caps, errors, cancellation, and faults of the server."""

import asyncio
import os
import resource
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import make_dsn, parse_dsn

from common.database import GuardedDatabase, open_database
from common.database.embedded import EmbeddedServer
from common.database.source import Unreachable, probe
from common.errors import (
    DatabaseUnavailable,
    ForbiddenObject,
    ForbiddenStatement,
    InvalidSql,
    QueryTimeout,
    ValidationFailed,
)
from common.values import QueryResult

DDL = """
CREATE TYPE mood AS ENUM ('happy', 'sad');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TABLE person (id integer PRIMARY KEY, name text, mood mood, age positive, ages positive[]);
INSERT INTO person VALUES (1, '李雷', 'happy', 30, '{1,2}'), (2, 'Han', 'sad', 31, NULL);
CREATE TABLE secret (token text);
CREATE VIEW failing AS SELECT 1 / (id - 1) AS broken FROM person;
"""


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str], admin_url: str) -> str:
    reader = make_database(DDL)
    with closing(psycopg2.connect(_as_admin(reader, admin_url))) as admin, admin, admin.cursor() as cursor:
        cursor.execute(f"REVOKE SELECT ON secret FROM {parse_dsn(reader)['user']}")
    return reader


def _as_admin(reader_url: str, admin_url: str) -> str:
    return make_dsn(admin_url, dbname=parse_dsn(reader_url)["dbname"])


Opener = Callable[..., GuardedDatabase]


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Opens databases and closes them afterwards."""
    databases: list[GuardedDatabase] = []

    def open_one(url: str, **changes: Any) -> GuardedDatabase:
        settings: dict[str, Any] = {
            "pool_size": 3,
            "pool_wait_s": 5.0,
            "statement_timeout_s": 20.0,
            "max_rows": 50,
            "max_result_bytes": 1_000_000,
            "catalog_ttl_s": 300.0,
        }
        databases.append(open_database(url, **(settings | changes)))
        return databases[-1]

    yield open_one
    for database in databases:
        database.close()


@pytest.fixture
def database(url: str, opened: Opener) -> GuardedDatabase:
    return opened(url)


def _run(database: GuardedDatabase, sql: str) -> QueryResult:
    return asyncio.run(database.run(sql))


# ------------------------------------------------------------------------------------------------------------- values

VALUES = [
    ("NULL", None),
    ("true", True),
    ("7::int2", 7),
    ("9223372036854775807::int8", 9223372036854775807),
    ("42::oid", 42),
    ("1.10::numeric(6,2)", Decimal("1.10")),
    ("12345678901234567890.123456789::numeric", Decimal("12345678901234567890.123456789")),
    ("'NaN'::numeric", "NaN"),
    ("'-Infinity'::float8", "-Infinity"),
    ("1.5::float8", 1.5),
    ("1.1::float4", 1.1),
    ("'文字'::text", "文字"),
    ("'x'::char(3)", "x  "),
    ("DATE '2024-02-29'", "2024-02-29"),
    ("DATE '0044-03-15 BC'", "0044-03-15 BC"),
    ("DATE '12000-01-01'", "12000-01-01"),
    ("'infinity'::date", "infinity"),
    ("TIMESTAMP '2024-02-29 10:20:30.5'", "2024-02-29T10:20:30.5"),
    ("'-infinity'::timestamp", "-infinity"),
    ("TIMESTAMP '0044-03-15 01:02:03 BC'", "0044-03-15T01:02:03 BC"),
    ("TIMESTAMPTZ '2024-02-29 10:20:30+00' AT TIME ZONE 'UTC'", "2024-02-29T10:20:30"),
    ("TIME '10:20:30'", "10:20:30"),
    ("TIMETZ '10:20:30+05:30'", "10:20:30+05:30"),
    ("TIMETZ '10:20:30-08'", "10:20:30-08:00"),
    ("INTERVAL '1 year 2 months -3 days 04:05:06.5'", "P1Y2M-3DT4H5M6.5S"),
    ("INTERVAL '-04:05:06'", "PT-4H-5M-6S"),
    ("INTERVAL '0'", "PT0S"),
    ("INTERVAL '10 days'", "P10D"),
    ("'\\x00ff'::bytea", "\\x00ff"),
    ("'a81bc81b-dead-4e5d-abff-90865d1e13b1'::uuid", "a81bc81b-dead-4e5d-abff-90865d1e13b1"),
    ("ARRAY[1, NULL, 3]", [1, None, 3]),
    ("ARRAY[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
    ("'{}'::int[]", []),
    ("'[0:1]={5,6}'::int[]", [5, 6]),
    ("""ARRAY['a"b', 'c\\d', '{x}', 'NULL', '', ' ', 'e,f', NULL]""",
     ['a"b', "c\\d", "{x}", "NULL", "", " ", "e,f", None]),
    ("ARRAY[1.10, 'NaN']::numeric[]", [Decimal("1.10"), "NaN"]),
    ("ARRAY[TIMESTAMP '2024-01-01 00:00']", ["2024-01-01T00:00:00"]),
    ("ARRAY[box '((0,0),(1,1))', box '((2,2),(3,3))']", ["(1,1),(0,0)", "(3,3),(2,2)"]),
    ("ARRAY['{\"a\": 1}'::jsonb]", [{"a": 1}]),
    ("'{\"a\": 1.10, \"b\": [null, true]}'::jsonb", {"a": Decimal("1.10"), "b": [None, True]}),
    ("'[1e400]'::json", [Decimal("1e400")]),
    ("'null'::json", None),
    ("int4range(1, 5)", "[1,5)"),
    ("'happy'::mood", "happy"),
    ("ARRAY['sad']::mood[]", ["sad"]),
    ("5::positive", 5),
    ("ARRAY[5, 6]::positive[]", [5, 6]),
    ("ROW(1, 'a')", "(1,a)"),
    ("'127.0.0.1'::inet", "127.0.0.1"),
    ("B'101'", "101"),
    ("'12'::\"char\"", "1"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "expected"), VALUES, ids=[expression for expression, _ in VALUES])
def test_values_are_json_ready_and_exact(database: GuardedDatabase, expression: str, expected: object) -> None:
    ((value,),) = _run(database, f"SELECT {expression}").rows
    assert value == expected
    assert type(value) is type(expected)
    assert str(value) == str(expected)  # the scale of decimals


def test_json_numbers_of_any_length(database: GuardedDatabase) -> None:
    ((value,),) = _run(database, "SELECT ('[1' || repeat('0', 5000) || ']')::jsonb").rows
    assert value == [Decimal(10) ** 5000]


def test_json_nested_too_deeply_for_python_stays_text(database: GuardedDatabase) -> None:
    ((value,),) = _run(database, "SELECT (repeat('[', 4000) || repeat(']', 4000))::json").rows
    assert value == "[" * 4000 + "]" * 4000


def test_columns_types_and_duplicates(database: GuardedDatabase) -> None:
    result = _run(database, "SELECT 1::int8 AS a, 2.5 AS a, 'x', now()::date, ARRAY[1], 'sad'::mood FROM person")
    assert result.columns == ("a", "a", "?column?", "now", "array", "mood")
    assert result.column_types == ("int8", "numeric", "text", "date", "_int4", "mood")
    assert result.row_count == 2
    assert not result.is_limited


@pytest.mark.parametrize(
    ("sql", "columns", "rows"),
    [
        ("SELECT 1 AS n WHERE false", ("n",), ()),
        ("SELECT FROM person", (), ([], [])),
        ("SELECT", (), ([],)),
        ("VALUES (1), (2)", ("column1",), ([1], [2])),
        ("TABLE person", ("id", "name", "mood", "age", "ages"), None),
        ("SELECT 1 ; -- the end", ("?column?",), ([1],)),
        ("SELECT 1 -- no newline", ("?column?",), ([1],)),
        ("(SELECT 2 AS b) ORDER BY b", ("b",), ([2],)),
        ("WITH a AS (SELECT 3 AS c) SELECT c FROM a", ("c",), ([3],)),
        ("SELECT x FROM generate_series(1, 5) AS t (x) ORDER BY x DESC LIMIT 2", ("x",), ([5], [4])),
    ],
)
def test_shapes_of_queries(database: GuardedDatabase, sql: str, columns: tuple[str, ...], rows: Any) -> None:
    result = _run(database, sql)
    assert result.columns == columns
    assert rows is None or result.rows == rows


def test_order_survives(database: GuardedDatabase) -> None:
    result = _run(database, "SELECT x FROM generate_series(1, 20000) AS t (x) ORDER BY x % 7, x DESC")
    expected = sorted(range(1, 20001), key=lambda x: (x % 7, -x))[:50]
    assert [x for (x,) in result.rows] == expected


# --------------------------------------------------------------------------------------------------------------- caps


@pytest.mark.parametrize(("rows", "is_limited"), [(49, False), (50, False), (51, True), (10_000_000, True)])
def test_row_cap(database: GuardedDatabase, rows: int, is_limited: bool) -> None:
    result = _run(database, f"SELECT x FROM (SELECT generate_series(1, {rows})) AS t (x)")
    assert result.row_count == min(rows, 50)
    assert result.is_limited is is_limited


def test_byte_cap_keeps_whole_rows(url: str, opened: Opener) -> None:
    database = opened(url, max_result_bytes=10_000)
    result = _run(database, "SELECT repeat('x', 3000) FROM generate_series(1, 10)")
    assert result.row_count == 3
    assert result.is_limited


def test_byte_cap_with_rows_too_wide_to_fetch_together(url: str, opened: Opener) -> None:
    database = opened(url, max_rows=5000, max_result_bytes=100_000)
    result = _run(database, "SELECT x, repeat('x', x * 10000) FROM generate_series(1, 9) AS t (x)")
    assert [row[0] for row in result.rows] == [1, 2, 3]
    assert result.is_limited


def test_a_row_beyond_the_byte_cap_ends_the_result(database: GuardedDatabase) -> None:
    result = _run(database, "SELECT x, repeat('x', CASE x WHEN 3 THEN 5000000 ELSE 1 END) FROM generate_series(1, 9) x")
    assert [row[0] for row in result.rows] == [1, 2]
    assert result.is_limited


def test_a_first_row_beyond_the_byte_cap_says_so(database: GuardedDatabase) -> None:
    with pytest.raises(ValidationFailed, match="larger than 1000000 bytes"):
        _run(database, "SELECT repeat('x', 5000000)")


def test_huge_values_never_reach_this_process(database: GuardedDatabase) -> None:
    _run(database, "SELECT 1")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((ValidationFailed, QueryTimeout)):
        _run(database, "SELECT repeat('x', 120000000)")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("method", ["explain", "run"])
@pytest.mark.parametrize(
    ("sql", "state", "at"),
    [
        ("SELECT nam FROM person", "42703", "nam"),
        ("SELECT '中文', nam FROM person", "42703", "nam"),
        ("SELECT 1 FROM persons", "42P01", "persons"),
        ("SELECT 'a' + 1", "22P02", "'a'"),
        ("SELECT upper(1, 2)", "42883", "upper"),
        ("SELECT $1", "42P02", "$1"),
        ("SELECT count(*), name FROM person", "42803", "name"),
        ("SELECT name FORM person x", "42601", "person"),
        ("SELECT no_such(1)", "42883", "no_such"),
        ("SELECT '中', no_such(1)", "42883", "no_such"),
    ],
)
def test_invalid_sql_says_where(database: GuardedDatabase, method: str, sql: str, state: str, at: str) -> None:
    with pytest.raises(InvalidSql) as caught:
        asyncio.run(getattr(database, method)(sql))
    assert caught.value.sqlstate == state
    assert caught.value.position == sql.index(at) + 1


def test_invalid_sql_keeps_the_hint(database: GuardedDatabase) -> None:
    with pytest.raises(InvalidSql) as caught:
        _run(database, "SELECT person.nam FROM person")
    assert caught.value.hint is not None
    assert "person.name" in caught.value.hint


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("SELECT 1 / (id - 1) FROM person", "22012"),
        ("SELECT * FROM failing", "22012"),
        ("SELECT (SELECT id FROM person)", "21000"),
        ("SELECT name::int FROM person", "22P02"),
    ],
)
def test_failures_while_running(database: GuardedDatabase, sql: str, state: str) -> None:
    with pytest.raises(InvalidSql) as caught:
        _run(database, sql)
    assert caught.value.sqlstate == state
    assert _run(database, "SELECT 1").row_count == 1


def test_a_user_can_not_imitate_the_width_error(database: GuardedDatabase) -> None:
    with pytest.raises((InvalidSql, ValidationFailed)):
        asyncio.run(database.explain("SELECT 'citu: row too wide'::int"))


def test_missing_privilege_names_the_table(database: GuardedDatabase) -> None:
    with pytest.raises(ForbiddenObject) as caught:
        _run(database, "SELECT * FROM secret")
    assert caught.value.name == "secret"


def test_statement_timeout(url: str, opened: Opener) -> None:
    database = opened(url, statement_timeout_s=0.3)
    with pytest.raises(QueryTimeout):
        _run(database, "SELECT count(*) FROM generate_series(1, 1000000000)")
    assert _run(database, "SELECT 1").row_count == 1


def test_explain_without_plpgsql(make_database: Callable[[str], str], opened: Opener) -> None:
    database = opened(make_database("DROP EXTENSION plpgsql"))
    assert asyncio.run(database.explain("SELECT 1")).rows == 1
    with pytest.raises(InvalidSql) as caught:
        asyncio.run(database.explain("SELECT '中', x"))
    assert caught.value.position == 13


def test_explain_of_what_may_not_be_read(database: GuardedDatabase) -> None:
    with pytest.raises(ForbiddenObject, match="secret"):
        asyncio.run(database.explain("SELECT * FROM secret"))


def test_explain_estimates(database: GuardedDatabase) -> None:
    plan = asyncio.run(database.explain("SELECT * FROM generate_series(1, 1000)"))
    assert plan.rows == 1000
    assert plan.total_cost > 0


def test_plans_with_huge_constants_never_reach_this_process(database: GuardedDatabase) -> None:
    _run(database, "SELECT 1")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    plan = asyncio.run(database.explain("SELECT * FROM person WHERE name = repeat('x', 60000000)"))
    assert plan.total_cost > 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes


@pytest.mark.parametrize("text", ["$citu$", "$citu$ $citu_$", "it''s", "\\", "{tag}", "%s"])
def test_any_text_may_be_in_a_statement(database: GuardedDatabase, text: str) -> None:
    sql = f"SELECT '{text}' FROM person"
    asyncio.run(database.explain(sql))
    assert _run(database, sql).rows[0] == [text.replace("''", "'")]
    with pytest.raises(InvalidSql) as caught:
        asyncio.run(database.explain(f"SELECT '{text}', nam FROM person"))
    assert caught.value.position == len(f"SELECT '{text}', ") + 1


# -------------------------------------------------------------------------------------------------------- transactions


def test_writes_are_stopped_even_if_the_guard_allowed_them(
    make_database: Callable[[str], str], admin_url: str, opened: Opener
) -> None:
    ddl = """
    CREATE TABLE t (n integer);
    CREATE FUNCTION write() RETURNS integer LANGUAGE sql AS 'INSERT INTO t VALUES (1) RETURNING n';
    """
    url = _as_admin(make_database(ddl), admin_url)
    database = opened(url, allowed_functions=["public.write"])
    with pytest.raises(ForbiddenStatement, match="INSERT"):
        _run(database, "SELECT write()")
    assert _run(database, "SELECT count(*) FROM t").rows == ([0],)


def test_connections_leave_no_transaction(opened: Opener, url: str, admin_url: str) -> None:
    database = opened(url, pool_size=1)

    async def use() -> None:
        await database.run("SELECT * FROM person")
        await database.explain("SELECT * FROM person")
        await _until(lambda: [state for _, state in _activity(url, admin_url)] == ["idle"])

    asyncio.run(use())


def _activity(url: str, admin_url: str) -> list[tuple[Any, ...]]:
    sql = "SELECT pid, state FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'citu'"
    return _as_rows(_as_admin(url, admin_url), sql)


def _as_rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


# -------------------------------------------------------------------------------------------------------- cancellation

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) AS endless, generate_series(1, 1000000) AS b"


def _running(url: str, admin_url: str) -> int:
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND datname = current_database()"
        " AND query LIKE '%endless%' AND pid <> pg_backend_pid()"
    )
    return int(_as_rows(_as_admin(url, admin_url), sql)[0][0])


async def _until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - it is another process that gets there
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("is_impatient", [False, True])
def test_a_cancelled_caller_stops_the_statement_in_the_server(
    url: str, admin_url: str, is_impatient: bool, opened: Opener
) -> None:
    database = opened(url, pool_size=1)

    async def leave() -> None:
        task = asyncio.create_task(database.run(ENDLESS))
        await _until(lambda: _running(url, admin_url) == 1)
        task.cancel()
        if is_impatient:
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await _until(lambda: _running(url, admin_url) == 0, 2.0)
        assert (await database.run("SELECT 1")).rows == ([1],)

    asyncio.run(leave())


def test_cancelled_at_any_moment_the_pool_stays_usable(url: str, opened: Opener) -> None:
    database = opened(url, pool_size=2)

    async def storm() -> None:
        for turn in range(60):
            tasks = [asyncio.create_task(database.run(f"SELECT {n}, pg_typeof({n})")) for n in range(6)]
            for _ in range(turn % 20):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert [(await database.run(f"SELECT {n}")).rows for n in range(6)] == [([n],) for n in range(6)]

    asyncio.run(storm())


# ---------------------------------------------------------------------------------------------------------------- pool


def test_pool_exhausted(url: str, opened: Opener) -> None:
    database = opened(url, pool_size=1, pool_wait_s=0.1)

    async def crowd() -> None:
        await database.ping()
        busy = asyncio.create_task(database.run(ENDLESS))
        await asyncio.sleep(0)
        with pytest.raises(DatabaseUnavailable) as caught:
            await database.run("SELECT 1")
        assert caught.value.retryable
        assert caught.value.retry_after_s
        busy.cancel()
        await asyncio.gather(busy, return_exceptions=True)
        assert (await database.run("SELECT 1")).rows == ([1],)

    asyncio.run(crowd())


def test_many_at_once_share_the_pool(url: str, admin_url: str, opened: Opener) -> None:
    database = opened(url, pool_size=3)

    async def crowd() -> list[QueryResult]:
        results = await asyncio.gather(*(database.run(f"SELECT {n}") for n in range(60)))
        assert len(_activity(url, admin_url)) <= 3
        return results

    assert [result.rows for result in asyncio.run(crowd())] == [([n],) for n in range(60)]


def test_one_object_serves_one_loop_after_another(database: GuardedDatabase) -> None:
    for n in range(3):
        assert _run(database, f"SELECT {n}").rows == ([n],)


def test_opens_nothing_before_it_is_used(opened: Opener) -> None:
    threads = threading.active_count()
    database = opened("postgresql://nobody@127.0.0.1:1/nothing")
    assert threading.active_count() == threads
    database.check("SELECT 1")
    database.close()


def test_survives_a_fork(database: GuardedDatabase) -> None:
    assert _run(database, "SELECT 1").rows == ([1],)
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            answer = _run(database, "SELECT 2").rows == ([2],)
        finally:
            os._exit(0 if answer else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert _run(database, "SELECT 3").rows == ([3],)


# -------------------------------------------------------------------------------------------------------------- faults


def test_nobody_listens_there(opened: Opener) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        database = opened(f"postgresql://someone:hunter2@127.0.0.1:{port}/secretdb")
        with pytest.raises(DatabaseUnavailable) as caught:
            _run(database, "SELECT 1")
    for secret in ("hunter2", "someone", "secretdb", "127.0.0.1", str(port)):
        assert secret not in f"{caught.value} {caught.value.text}"


def test_what_is_forbidden_is_said_even_without_a_database(opened: Opener) -> None:
    database = opened("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(ForbiddenStatement):
        _run(database, "DROP TABLE person")


def test_logs_name_no_host_and_no_role(caplog: pytest.LogCaptureFixture, url: str, opened: Opener) -> None:
    broken = make_dsn(url, dbname="no_such_database_42")
    with pytest.raises(DatabaseUnavailable):
        _run(opened(broken), "SELECT 1")
    assert "does not exist" in caplog.text
    assert "no_such_database_42" not in caplog.text


def _terminate(url: str, admin_url: str, condition: str = "true") -> int:
    sql = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        f" WHERE datname = current_database() AND pid <> pg_backend_pid() AND {condition}"
    )
    return int(_as_rows(_as_admin(url, admin_url), sql)[0][0])


def test_connections_lost_while_idle_are_replaced(url: str, admin_url: str, opened: Opener) -> None:
    database = opened(url)

    async def lose() -> None:
        await asyncio.gather(*(database.ping() for _ in range(3)))
        assert _terminate(url, admin_url, "application_name = 'citu'") >= 1
        await _until(lambda: not _activity(url, admin_url))
        assert (await database.run("SELECT 1")).rows == ([1],)

    asyncio.run(lose())


def test_a_connection_lost_in_the_middle(url: str, admin_url: str, opened: Opener) -> None:
    database = opened(url)

    async def lose() -> None:
        task = asyncio.create_task(database.run(ENDLESS))
        await _until(lambda: _running(url, admin_url) == 1)
        _terminate(url, admin_url, "query LIKE '%endless%'")
        with pytest.raises(DatabaseUnavailable):
            await task
        assert (await database.run("SELECT 1")).rows == ([1],)

    asyncio.run(lose())


# ---------------------------------------------------------------------------------------------------------- privileges


def test_a_role_that_can_only_read_is_no_danger(database: GuardedDatabase, url: str) -> None:
    assert asyncio.run(database.role_dangers()) == ()
    probe(url, require_read_only_role=True)


def test_a_superuser_is_warned_about(
    url: str, admin_url: str, opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    database = opened(_as_admin(url, admin_url))
    _run(database, "SELECT 1")
    assert "superuser" in caplog.text


DANGERS = {
    "GRANT INSERT ON t TO {role}": "change public.t",
    "GRANT UPDATE (n) ON t TO {role}": "change public.t",
    "GRANT CREATE ON SCHEMA public TO {role}": "objects in the schema public",
    "GRANT CREATE ON DATABASE {database} TO {role}": "schemas in the database",
    "GRANT pg_read_server_files TO {role}": "pg_read_server_files",
    "ALTER TABLE t OWNER TO {role}": "owns public.t",
    "ALTER ROLE {role} CREATEDB": "create databases",
    "ALTER ROLE {role} BYPASSRLS": "row-level security",
    "GRANT postgres TO {role}": "superuser",
}


@pytest.mark.parametrize("grant", DANGERS)
def test_every_right_beyond_reading_is_found(
    make_database: Callable[[str], str], admin_url: str, opened: Opener, grant: str
) -> None:
    url = make_database("CREATE TABLE t (n integer)")
    names = {"role": "citu_test_danger", "database": parse_dsn(url)["dbname"]}
    admin = _as_admin(url, admin_url)
    _execute(admin, "DROP ROLE IF EXISTS citu_test_danger", "CREATE ROLE citu_test_danger LOGIN")
    _execute(admin, "GRANT USAGE ON SCHEMA public TO citu_test_danger", "GRANT SELECT ON t TO citu_test_danger")
    _execute(admin, f"GRANT CONNECT ON DATABASE {names['database']} TO citu_test_danger", grant.format(**names))
    role_url = make_dsn(url, user="citu_test_danger")
    database = opened(role_url)
    try:
        danger, *_ = asyncio.run(database.role_dangers())
        assert DANGERS[grant] in danger.en
        assert danger.zh
        strict = opened(role_url, require_read_only_role=True)
        with pytest.raises(DatabaseUnavailable, match="REQUIRE_READ_ONLY_ROLE"):
            _run(strict, "SELECT 1")
        strict.close()
        probe(role_url)
        with pytest.raises(Unreachable, match="REQUIRE_READ_ONLY_ROLE"):
            probe(role_url, require_read_only_role=True)
    finally:
        database.close()
        _execute(admin, "REASSIGN OWNED BY citu_test_danger TO postgres", "DROP OWNED BY citu_test_danger")
        _execute(admin, "DROP ROLE citu_test_danger")


def _execute(url: str, *statements: str) -> None:
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        for statement in statements:
            cursor.execute(statement)


# ------------------------------------------------------------------------------------------------- a server that dies


@pytest.fixture
def own_server() -> Iterator[EmbeddedServer]:
    """A server that a test may kill."""
    data_dir = Path(tempfile.mkdtemp(prefix="citu-test-"))
    data_dir.chmod(0o755)
    server = EmbeddedServer.acquire(data_dir)
    yield server
    server.release()
    shutil.rmtree(data_dir)


def test_the_server_stops_at_once_and_comes_back(own_server: EmbeddedServer, opened: Opener) -> None:
    database = opened(own_server.admin_url)

    async def survive() -> None:
        await asyncio.gather(*(database.run("SELECT 1") for _ in range(3)))
        running = asyncio.create_task(database.run(ENDLESS))
        await _until(lambda: _is_active(own_server.admin_url))
        _kill(own_server)
        with pytest.raises(DatabaseUnavailable):
            await running
        own_server.ensure_running()
        assert (await database.run("SELECT 1")).rows == ([1],)

    asyncio.run(survive())


def _is_active(url: str) -> bool:
    sql = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%endless%' AND pid <> pg_backend_pid()"
    return bool(_as_rows(url, sql))


def _kill(server: EmbeddedServer) -> None:
    (record,) = server.home.rglob("postmaster.pid")
    os.kill(int(record.read_text().split()[0]), signal.SIGQUIT)


def test_while_the_server_is_away_the_error_is_retryable(own_server: EmbeddedServer, opened: Opener) -> None:
    database = opened(own_server.admin_url)
    assert _run(database, "SELECT 1").rows == ([1],)
    own_server.release()
    with pytest.raises(DatabaseUnavailable) as caught:
        _run(database, "SELECT 1")
    assert caught.value.retryable
    assert "socket" not in str(caught.value)


# ------------------------------------------------------------------------------------------------- odd databases


def test_a_database_that_does_not_know_its_encoding(admin_url: str, opened: Opener) -> None:
    _execute(admin_url, "DROP DATABASE IF EXISTS citu_test_ascii")
    _execute(
        admin_url,
        "CREATE DATABASE citu_test_ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C'",
    )
    database = opened(make_dsn(admin_url, dbname="citu_test_ascii"))
    try:
        with pytest.raises((ValidationFailed, InvalidSql)):
            _run(database, "SELECT convert_from('\\xff'::bytea, 'SQL_ASCII')")
        assert _run(database, "SELECT '中'").rows == (["中"],)
    finally:
        database.close()
        _execute(admin_url, "DROP DATABASE citu_test_ascii WITH (FORCE)")


@pytest.mark.parametrize(
    "setting",
    [
        "standard_conforming_strings = off",
        "DateStyle = 'German, DMY'",
        "IntervalStyle = iso_8601",
        "bytea_output = escape",
        "extra_float_digits = -15",
        "search_path = public, pg_catalog",
        "default_transaction_read_only = off",
        "client_encoding = LATIN1",
        "xmloption = document",
    ],
)
def test_the_role_s_defaults_do_not_matter(
    make_database: Callable[[str], str], admin_url: str, opened: Opener, setting: str
) -> None:
    ddl = "CREATE FUNCTION lower(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT ''hidden''::text'"
    url = make_database(ddl)
    parts = parse_dsn(url)
    _execute(_as_admin(url, admin_url), f"ALTER ROLE {parts['user']} IN DATABASE {parts['dbname']} SET {setting}")
    sql = (
        "SELECT '\\' || 'x', DATE '2024-02-03', INTERVAL '1 day', '\\x00'::bytea, 0.1::float8 + 0.2, lower('A'), '文',"
        " TIMESTAMP '2024-02-03 04:05:06'"
    )
    assert _run(opened(url), sql).rows == (
        ["\\x", "2024-02-03", "P1D", "\\x00", 0.30000000000000004, "a", "文", "2024-02-03T04:05:06"],
    )
