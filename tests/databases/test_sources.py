"""Where the two databases are, and that neither role can connect to the other database."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import parse_dsn

from common.errors import DatabaseUnavailable
from databases.app_database import ROLE, ensure_app_database
from databases.demo.loader import DemoServer
from databases.demo.reader import READER
from databases.embedded.embedded_server import EmbeddedServerError
from databases.source import (
    EmbeddedSource,
    InvalidDatabaseUrl,
    Unreachable,
    database_sources,
    probe,
    readable_tables,
)
from tests.support.databases import as_admin, execute, rows_of
from tests.support.folders import reachable_folder


def test_configured_databases_need_no_server() -> None:
    with reachable_folder() as folder:
        sources = database_sources("postgresql:///asked", "postgresql:///own", folder / "var")
        assert (sources.asked(), sources.app()) == ("postgresql:///asked", "postgresql:///own")
        sources.hold.release()
        assert not (folder / "var").exists()


@pytest.mark.slow
def test_one_hold_for_all_that_is_embedded() -> None:
    with reachable_folder() as folder:
        sources = database_sources("postgresql:///asked", "", folder / "var")
        other = EmbeddedSource(sources.hold, lambda server: server.url("postgres", "postgres"))
        try:
            execute(sources.app(), "CREATE TABLE kept ()")
            url = other()
            assert rows_of(
                url, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'citu_app'"
            ) == [(0,)]
        finally:
            sources.hold.release()
        with pytest.raises(psycopg2.OperationalError), closing(psycopg2.connect(url)):
            pass  # the server stopped when its only user released it
        assert rows_of(sources.app(), "SELECT count(*) FROM kept") == [(0,)]
        sources.hold.release()


def test_why_the_server_cannot_run_is_said_to_those_who_start_it_only() -> None:
    with reachable_folder() as folder:
        (folder / "var").write_text("a file")
        app = database_sources("", "", folder / "var").app
        assert isinstance(app, EmbeddedSource)
        with pytest.raises(EmbeddedServerError, match="DATA_DIR"):
            app.start()
        with pytest.raises(DatabaseUnavailable) as caught:
            app()
        assert str(folder) not in f"{caught.value} {caught.value.text}"


def test_made_once_however_many_ask(
    embedded_server: DemoServer, make_app_database: Callable[[], str]
) -> None:
    url = make_app_database()
    name = psycopg2.extensions.parse_dsn(url)["dbname"]
    execute(url, "CREATE TABLE kept ()")
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: ensure_app_database(embedded_server, name), range(6)))
    assert set(found) == {url}
    assert rows_of(url, "SELECT count(*) FROM kept") == [(0,)]


def test_neither_role_gets_into_the_others_database(
    embedded_server: DemoServer, demo_url: str, make_app_database: Callable[[], str]
) -> None:
    own = psycopg2.extensions.parse_dsn(make_app_database())["dbname"]
    demo = psycopg2.extensions.parse_dsn(demo_url)["dbname"]
    for database, role in ((own, READER), (demo, ROLE)):
        with (
            pytest.raises(psycopg2.OperationalError, match="permission denied"),
            closing(psycopg2.connect(embedded_server.url(database, role))),
        ):
            pass
    attributes = "rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
    assert rows_of(
        embedded_server.admin_url, f"SELECT {attributes} FROM pg_roles WHERE rolname = '{ROLE}'"
    ) == [(False,) * 5]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql://root:secret@db/shop", "mysql_fdw"),
        ("mysql+pymysql://root:secret@db/shop", "mysql_fdw"),
        ("mariadb://root:secret@db/shop", "MariaDB"),
        ("sqlite:///shop.db", "sqlite_fdw"),
        ("mongodb+srv://root:secret@db/shop", "mongo_fdw"),
        ("snowflake://root:secret@db/shop", "copy the data"),
        ("jdbc:postgresql://db/shop?password=secret", "without jdbc:"),
        ("postgresql+psycopg2://root:secret@db/shop", "without the name of a driver"),
        ("http://root:secret@db/shop", "is not a URL such as"),
    ],
)
def test_an_address_that_is_not_postgresqls_says_what_to_do(url: str, expected: str) -> None:
    with pytest.raises(InvalidDatabaseUrl, match=expected) as caught:
        database_sources(url, "", Path("nowhere"))
    assert "DATABASE_URL" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_missing_grants_are_named_with_their_statements(
    make_database: Callable[[str], str], admin_url: str
) -> None:
    url = make_database(
        "CREATE TABLE open (n integer); CREATE TABLE shut (n integer);"
        'CREATE SCHEMA "Private"; CREATE TABLE "Private".pay (n integer)'
    )
    reading = readable_tables(url)
    assert reading is not None
    assert not reading.is_useless
    admin = as_admin(url, admin_url)
    execute(
        admin,
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {READER}",
        f"GRANT SELECT ON open TO {READER}",
        f'REVOKE ALL ON ALL TABLES IN SCHEMA "Private" FROM {READER}',
        f'REVOKE ALL ON SCHEMA "Private" FROM {READER}',
    )
    reading = readable_tables(url)
    assert reading is not None
    assert (reading.readable, reading.closed) == (1, 2)
    assert reading.statements == (
        f'GRANT USAGE ON SCHEMA "Private" TO {READER};',
        f'GRANT SELECT ON ALL TABLES IN SCHEMA "Private" TO {READER};',
        f"GRANT SELECT ON public.shut TO {READER};",
    )
    execute(admin, *reading.statements)
    granted = readable_tables(url)
    assert granted is not None
    assert (granted.readable, granted.statements) == (3, ())
    execute(admin, f"REVOKE CONNECT ON DATABASE {parse_dsn(url)['dbname']} FROM {READER}")
    with pytest.raises(Unreachable, match="GRANT CONNECT ON DATABASE"):
        probe(url)
