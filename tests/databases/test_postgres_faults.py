"""The PostgreSQL adapter when callers leave, connections break and servers die."""

import asyncio
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from psycopg2.extensions import make_dsn, parse_dsn

from common.actor import charged_to
from common.errors import (
    DatabaseUnavailable,
    ForbiddenStatement,
    InvalidSql,
    QueryTimeout,
    ValidationFailed,
)
from common.values import QueryResult
from databases.embedded.embedded_server import EmbeddedServer
from databases.execution.guarded import GuardedDatabase
from databases.source import Unreachable, probe
from tests.support.databases import (
    ENDLESS,
    Opener,
    as_admin,
    connections,
    execute,
    rows_of,
    run,
    runs_endless,
    until,
)


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str]) -> str:
    return make_database("CREATE TABLE person (id integer, name text)")


@pytest.fixture
def database(url: str, opened: Opener) -> GuardedDatabase:
    return opened(url)


# ------------------------------------------------------------------------------
# transactions


def test_writes_are_stopped_even_if_the_guard_allowed_them(
    make_database: Callable[[str], str], admin_url: str, opened: Opener
) -> None:
    ddl = """
    CREATE TABLE t (n integer);
    CREATE FUNCTION write() RETURNS integer LANGUAGE sql AS 'INSERT INTO t VALUES (1) RETURNING n';
    """
    url = as_admin(make_database(ddl), admin_url)
    database = opened(url, allowed_functions=["public.write"])
    with pytest.raises(ForbiddenStatement, match="INSERT"):
        run(database, "SELECT write()")
    assert run(database, "SELECT count(*) FROM t").rows == ([0],)


def test_connections_leave_no_transaction(opened: Opener, url: str, admin_url: str) -> None:
    database = opened(url, pool_size=1)

    async def use() -> None:
        await database.run("SELECT * FROM person")
        await database.explain("SELECT * FROM person")
        await until(lambda: [state for _, state in connections(url, admin_url)] == ["idle"])

    asyncio.run(use())


# ------------------------------------------------------------------------------
# cancellation


@pytest.mark.parametrize("is_impatient", [False, True])
def test_a_cancelled_caller_stops_the_statement_in_the_server(
    url: str, admin_url: str, is_impatient: bool, opened: Opener
) -> None:
    database = opened(url, pool_size=1)

    async def leave() -> None:
        task = asyncio.create_task(database.run(ENDLESS))
        await until(lambda: runs_endless(as_admin(url, admin_url)))
        task.cancel()
        if is_impatient:
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not runs_endless(as_admin(url, admin_url)), 2.0)
        assert (await database.run("SELECT 1")).rows == ([1],)

    asyncio.run(leave())


def test_cancelled_at_any_moment_the_pool_stays_usable(
    url: str, admin_url: str, opened: Opener
) -> None:
    database = opened(url, pool_size=2)

    async def storm() -> None:
        for turn in range(60):
            tasks = [
                asyncio.create_task(database.run(f"SELECT {n}, pg_typeof({n})")) for n in range(6)
            ]
            for _ in range(turn % 20):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert len(connections(url, admin_url)) <= 2
        assert [(await database.run(f"SELECT {n}")).rows for n in range(6)] == [
            ([n],) for n in range(6)
        ]

    asyncio.run(storm())


# ---------------------------------------------------------------------------------- statements that
# nothing can stop


@contextmanager
def stopped(url: str, admin_url: str, count: int) -> Iterator[None]:
    """Stops the backends of `count` endless statements in the block, so that no timeout or cancel
    reaches them.
    """
    sql = (
        "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%endless%' "
        "AND pid <> pg_backend_pid()"
    )
    pids = [int(pid) for (pid,) in rows_of(as_admin(url, admin_url), sql)]
    assert len(pids) == count
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("ends_by", ["cancel", "deadline"])
def test_a_slot_is_held_until_the_backend_is_gone(
    url: str, admin_url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch, ends_by: str
) -> None:
    monkeypatch.setattr("databases.execution.postgres._RESET_S", 0.2)
    monkeypatch.setattr("databases.execution.postgres._GRACE_S", 0.5)
    monkeypatch.setattr("postgres.pool._HOPELESS_S", 0)
    database = opened(
        url,
        pool_size=2,
        pool_wait_s=30.0,
        statement_timeout_s=3.0 if ends_by == "deadline" else 20.0,
    )

    def count() -> int:
        return len(connections(url, admin_url))

    async def go_on() -> None:
        await database.catalog()
        tasks = [asyncio.create_task(database.run(ENDLESS)) for _ in range(2)]
        await until(lambda: len(_running(url, admin_url)) == 2)
        with stopped(url, admin_url, 2):
            if ends_by == "cancel":
                for task in tasks:
                    task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(end) for end in ended} == {
                asyncio.CancelledError if ends_by == "cancel" else QueryTimeout
            }
            await until(lambda: database.stuck_connections == 2)
            for use in (
                database.ping,
                lambda: database.run("SELECT 1"),
                lambda: database.explain("SELECT 1"),
            ):
                with pytest.raises(
                    DatabaseUnavailable, match="All 2 .* PostgreSQL can't stop"
                ) as caught:
                    await use()
                assert caught.value.retryable
            assert count() <= 3  # including the one that counts
            assert database.stuck_connections == 2
            assert (await database.catalog()).tables
        await until(lambda: count() == 0)
        await until(lambda: database.stuck_connections == 0)
        results = await asyncio.gather(*(database.run("SELECT 1") for _ in range(4)))
        assert [result.rows for result in results] == [([1],)] * 4
        await until(lambda: count() <= 2)

    asyncio.run(go_on())


def test_a_statement_that_goes_on_counts_for_its_caller_alone(
    url: str, admin_url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("databases.execution.postgres._RESET_S", 0.2)
    monkeypatch.setattr("postgres.pool._HOPELESS_S", 0)
    database = opened(url, pool_size=2, pool_wait_s=30.0, caller_share=0.5)
    greedy, other = ("user", "greedy"), ("user", "other")

    async def go_on() -> None:
        await database.catalog()
        with charged_to(greedy):
            task = asyncio.create_task(database.run(ENDLESS))
        await until(lambda: len(_running(url, admin_url)) == 1)
        with stopped(url, admin_url, 1):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await until(lambda: database.stuck_connections == 1)
            with (
                charged_to(greedy),
                pytest.raises(DatabaseUnavailable, match="statements of yours") as caught,
            ):
                await database.run("SELECT 1")
            assert caught.value.retry_after_s
            with charged_to(other):
                for number in range(3):
                    assert (await database.run(f"SELECT {number}")).rows == ([number],)
        await until(lambda: database.stuck_connections == 0)
        with charged_to(greedy):
            assert (await database.run("SELECT 1")).rows == ([1],)

    asyncio.run(go_on())


def test_fifty_statements_of_one_caller_delay_another_s_first_by_one(
    url: str, admin_url: str, opened: Opener
) -> None:
    database, answered = opened(url, pool_size=1), list[str]()
    waiting = database._inner._pool._slots._waiting

    async def ask(name: str) -> None:
        await database.run("SELECT * FROM person")
        answered.append(name)

    def started(name: str, count: int) -> list[asyncio.Task[None]]:
        with charged_to(("user", name)):
            return [asyncio.create_task(ask(name)) for _ in range(count)]

    async def crowd() -> None:
        await database.catalog()
        holder = asyncio.create_task(database.run(ENDLESS))
        await until(lambda: len(_running(url, admin_url)) == 1)
        tasks = started("greedy", 50)
        await until(lambda: [len(turns) for turns in waiting.values()] == [50])
        tasks += started("other", 1)
        await until(lambda: [len(turns) for turns in waiting.values()] == [50, 1])
        holder.cancel()
        await asyncio.gather(holder, *tasks, return_exceptions=True)

    asyncio.run(crowd())
    assert answered == ["greedy", "other", *["greedy"] * 49]


def _running(url: str, admin_url: str) -> list[int]:
    """The backends that run `ENDLESS`."""
    sql = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%endless%'"
    return [
        int(pid)
        for (pid,) in rows_of(as_admin(url, admin_url), f"{sql} AND pid <> pg_backend_pid()")
    ]


def test_slots_are_held_across_loops_and_while_nobody_can_look(
    url: str, admin_url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("databases.execution.postgres._RESET_S", 0.2)
    address = [url]
    database = opened(lambda: address[0], pool_size=1, pool_wait_s=0.2)

    async def begin() -> None:
        task = asyncio.create_task(database.run(ENDLESS))
        await until(lambda: len(_running(url, admin_url)) == 1)
        frozen.enter_context(stopped(url, admin_url, 1))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def refused() -> None:
        with pytest.raises(DatabaseUnavailable, match="can't stop"):
            await database.ping()

    async def works() -> None:
        async with asyncio.timeout(10):
            while True:
                with suppress(DatabaseUnavailable):
                    return await database.ping()

    with ExitStack() as frozen:
        asyncio.run(begin())
        address[0] = "postgresql://nobody@127.0.0.1:1/nothing"
        asyncio.run(refused())
        address[0] = url
        asyncio.run(refused())
    asyncio.run(works())


# ------------------------------------------------------------------------------
# what connections carry


CARRIED = {
    "locks": "PERFORM pg_advisory_lock(815), pg_advisory_lock_shared(816)",
    "prepares": "EXECUTE 'PREPARE kept AS SELECT 1'",
    "sets": (
        "PERFORM set_config('citu.kept', 'x', false), set_config('search_path', 'nowhere', false)"
    ),
    "holds": "EXECUTE 'DECLARE kept CURSOR WITH HOLD FOR SELECT 1'",
    "listens": "EXECUTE 'LISTEN kept'",
    "makes": "EXECUTE 'CREATE TEMP TABLE kept ()'",
}
CARRIES = """
    CREATE FUNCTION {name}() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN 1; END $$;
    CREATE VIEW v_{name} AS SELECT {name}() AS n;
"""
LOOKS = """
    CREATE VIEW looks AS SELECT concat_ws(',',
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
        (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors
            WHERE name = 'kept'),
        (SELECT count(*) FROM pg_listening_channels()), nullif(current_setting('citu.kept',
            true), ''),
        (SELECT count(*) FROM pg_class WHERE relname = 'kept'), current_setting('search_path')) AS n
"""


def test_nothing_survives_a_connection_s_return(
    make_database: Callable[[str], str], opened: Opener
) -> None:
    views = "".join(CARRIES.format(name=name, body=body) for name, body in CARRIED.items())
    database = opened(make_database(views + LOOKS), pool_size=1, allowed_functions=["public.*"])

    async def use() -> None:
        for name in CARRIED:
            with suppress(
                ForbiddenStatement
            ):  # no temporary table is made in a transaction that is READ ONLY
                assert (await database.run(f"SELECT n FROM v_{name}")).rows == ([1],)
            assert (await database.run("SELECT n FROM looks")).rows == (["0,0,0,0,0,public"],), name

    asyncio.run(use())


# ------------------------------------------------------------------------------
# pool


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
        assert len(connections(url, admin_url)) <= 3
        return results

    assert [result.rows for result in asyncio.run(crowd())] == [([n],) for n in range(60)]


def test_one_object_serves_one_loop_after_another(database: GuardedDatabase) -> None:
    for n in range(3):
        assert run(database, f"SELECT {n}").rows == ([n],)


def test_opens_nothing_before_it_is_used(opened: Opener) -> None:
    threads = threading.active_count()
    database = opened("postgresql://nobody@127.0.0.1:1/nothing")
    assert threading.active_count() == threads
    database.check("SELECT 1")
    database.close()


def test_survives_a_fork(database: GuardedDatabase) -> None:
    assert run(database, "SELECT 1").rows == ([1],)
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            answer = run(database, "SELECT 2").rows == ([2],)
        finally:
            os._exit(0 if answer else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert run(database, "SELECT 3").rows == ([3],)


# ------------------------------------------------------------------------------
# faults


def test_nobody_listens_there(opened: Opener) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        database = opened(f"postgresql://someone:hunter2@127.0.0.1:{port}/secretdb")
        with pytest.raises(DatabaseUnavailable) as caught:
            run(database, "SELECT 1")
    for secret in ("hunter2", "someone", "secretdb", "127.0.0.1", str(port)):
        assert secret not in f"{caught.value} {caught.value.text}"


def test_what_is_forbidden_is_said_even_without_a_database(opened: Opener) -> None:
    database = opened("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(ForbiddenStatement):
        run(database, "DROP TABLE person")


def test_logs_name_no_host_and_no_role(
    caplog: pytest.LogCaptureFixture, url: str, opened: Opener
) -> None:
    broken = make_dsn(url, dbname="no_such_database_42")
    with pytest.raises(DatabaseUnavailable):
        run(opened(broken), "SELECT 1")
    assert "does not exist" in caplog.text
    assert "no_such_database_42" not in caplog.text


def _terminate(url: str, admin_url: str, condition: str = "true") -> int:
    sql = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        f" WHERE datname = current_database() AND pid <> pg_backend_pid() AND {condition}"
    )
    return int(rows_of(as_admin(url, admin_url), sql)[0][0])


def test_connections_lost_while_idle_are_replaced(url: str, admin_url: str, opened: Opener) -> None:
    database = opened(url)

    async def lose() -> None:
        await asyncio.gather(*(database.ping() for _ in range(3)))
        assert _terminate(url, admin_url, "application_name = 'citu'") >= 1
        await until(lambda: not connections(url, admin_url))
        assert (await database.run("SELECT 1")).rows == ([1],)

    asyncio.run(lose())


def test_a_connection_lost_in_the_middle(url: str, admin_url: str, opened: Opener) -> None:
    database = opened(url)

    async def lose() -> None:
        task = asyncio.create_task(database.run(ENDLESS))
        await until(lambda: runs_endless(as_admin(url, admin_url)))
        _terminate(url, admin_url, "query LIKE '%endless%'")
        with pytest.raises(DatabaseUnavailable):
            await task
        assert (await database.run("SELECT 1")).rows == ([1],)

    asyncio.run(lose())


# ------------------------------------------------------------------------------
# a server that dies


@pytest.fixture
def own_server() -> Iterator[EmbeddedServer]:
    """A server that a test may kill."""
    data_dir = Path(tempfile.mkdtemp(prefix="citu-test-"))
    data_dir.chmod(0o755)
    server = EmbeddedServer.acquire(data_dir)
    yield server
    server.release()
    shutil.rmtree(data_dir)


def test_the_server_stops_at_once_and_comes_back(
    own_server: EmbeddedServer, opened: Opener
) -> None:
    database = opened(own_server.admin_url)

    async def survive() -> None:
        await asyncio.gather(*(database.run("SELECT 1") for _ in range(3)))
        running = asyncio.create_task(database.run(ENDLESS))
        await until(lambda: runs_endless(own_server.admin_url))
        _kill(own_server)
        with pytest.raises(DatabaseUnavailable):
            await running
        own_server.ensure_running()
        assert (await database.run("SELECT 1")).rows == ([1],)

    asyncio.run(survive())


def _kill(server: EmbeddedServer) -> None:
    (record,) = server.home.rglob("postmaster.pid")
    os.kill(int(record.read_text().split()[0]), signal.SIGQUIT)


@pytest.mark.slow
def test_while_the_server_is_away_the_error_is_retryable(
    own_server: EmbeddedServer, opened: Opener
) -> None:
    database = opened(own_server.admin_url)
    assert run(database, "SELECT 1").rows == ([1],)
    own_server.release()
    with pytest.raises(DatabaseUnavailable) as caught:
        run(database, "SELECT 1")
    assert caught.value.retryable
    assert "socket" not in str(caught.value)


# ------------------------------------------------------------------------------
# odd databases


def test_an_error_code_of_the_users_own_is_the_statements_error(
    make_database: Callable[[str], str], opened: Opener
) -> None:
    url = make_database("""
        CREATE FUNCTION refuse() RETURNS integer STABLE LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no figures on Sundays' USING ERRCODE = 'ZZ999'; END $$;
        CREATE VIEW figures AS SELECT refuse() AS n;
    """)
    with pytest.raises(InvalidSql, match="no figures on Sundays"):
        run(opened(url), "SELECT n FROM figures")


def test_a_database_that_does_not_know_its_encoding(admin_url: str, opened: Opener) -> None:
    execute(admin_url, "DROP DATABASE IF EXISTS citu_test_ascii")
    execute(
        admin_url,
        (
            "CREATE DATABASE citu_test_ascii TEMPLATE template0 ENCODING 'SQL_ASCII' "
            "LOCALE_PROVIDER libc LOCALE 'C'"
        ),
    )
    url = make_dsn(admin_url, dbname="citu_test_ascii")
    execute(
        url,
        r"CREATE TABLE cafe (name text CHECK (name IN (E'caf\xe9', 'tea')))",
        r"CREATE TYPE drink AS ENUM (E'caf\xe9')",
        r"INSERT INTO cafe SELECT E'caf\xe9' FROM generate_series(1, 10)",
        r"COMMENT ON TABLE cafe IS E'caf\xe9'",
        r"COMMENT ON COLUMN cafe.name IS E'caf\xe9'",
        "ANALYZE",
    )
    database = opened(url)
    try:
        assert [table.name for table in asyncio.run(database.catalog()).tables] == ["cafe"]
        for sql in ("SELECT convert_from('\\xff'::bytea, 'SQL_ASCII')", "SELECT name FROM cafe"):
            with pytest.raises(ValidationFailed):
                run(database, sql)
        with pytest.raises(InvalidSql):
            run(database, r"SELECT E'\xff'")
        assert run(database, "SELECT '中'").rows == (["中"],)
        orders = ('CREATE TABLE "订单" ("金额" numeric)', 'INSERT INTO "订单" VALUES (12.50)')
        execute(make_dsn(url, client_encoding="UTF8"), *orders)
        probe(url)
        later = opened(url)
        assert [table.name for table in asyncio.run(later.catalog()).tables] == ["cafe", "订单"]
        assert run(later, 'SELECT * FROM "订单"').columns == ("金额",)
        execute(url, r"DO $$ BEGIN EXECUTE E'CREATE TABLE \"\xb6\xa9\" ()'; END $$")
        with pytest.raises(Unreachable, match="not UTF-8"):
            probe(url)
        with pytest.raises(DatabaseUnavailable, match="not UTF-8"):
            run(opened(url), "SELECT 1")
    finally:
        database.close()
        execute(admin_url, "DROP DATABASE citu_test_ascii WITH (FORCE)")


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
    ddl = (
        "CREATE FUNCTION lower(text) RETURNS text IMMUTABLE LANGUAGE sql "
        "AS 'SELECT ''hidden''::text'"
    )
    url = make_database(ddl)
    parts = parse_dsn(url)
    execute(
        as_admin(url, admin_url),
        f"ALTER ROLE {parts['user']} IN DATABASE {parts['dbname']} SET {setting}",
    )
    sql = (
        "SELECT '\\' || 'x', DATE '2024-02-03', INTERVAL '1 day', '\\x00'::bytea, "
        "0.1::float8 + 0.2, lower('A'), '文',"
        " TIMESTAMP '2024-02-03 04:05:06'"
    )
    assert run(opened(url), sql).rows == (
        [
            "\\x",
            "2024-02-03",
            "P1D",
            "\\x00",
            0.30000000000000004,
            "a",
            "文",
            "2024-02-03T04:05:06",
        ],
    )
