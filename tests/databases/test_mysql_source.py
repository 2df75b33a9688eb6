"""Tables of MySQL in a hub mean what PostgreSQL means.

Needs a PostgreSQL with mysql_fdw (CITU_TEST_MYSQL_HUB_URL, a superuser's), a MySQL or MariaDB
(CITU_TEST_MYSQL_URL, such as mysql://root@127.0.0.1:3306) and the program `mysql`.
"""

import asyncio
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from psycopg2.extensions import make_dsn

from common.errors import DatabaseUnavailable, InvalidSql, QueryTimeout
from common.values import ForeignKey
from databases.demo.reader import READER
from databases.sources import mysql_source
from databases.sources.__main__ import main
from databases.sources.mysql_source import hub_type
from tests.support.databases import Opener, execute, rows_of, run

_HUB, _MYSQL = "CITU_TEST_MYSQL_HUB_URL", "CITU_TEST_MYSQL_URL"
_TABLES = """
CREATE TABLE customer (id int PRIMARY KEY AUTO_INCREMENT, name varchar(40) NOT NULL UNIQUE
    COMMENT 'Their name', state char(2), kind enum('a', 'b'), born date, photo blob)
    COMMENT = 'Who buys 客户' CHARACTER SET utf8mb4;
CREATE TABLE sale (id bigint unsigned PRIMARY KEY, customer_id int, amount decimal(10,2),
    at datetime, n int, d int, FOREIGN KEY (customer_id) REFERENCES customer (id));
CREATE TABLE line (sale_id int, number int, PRIMARY KEY (sale_id, number));
INSERT INTO line VALUES (1, 1), (1, 2), (5, 1), (9, 1);
INSERT INTO customer VALUES (1, 'Ann 安', 'TX', 'a', '2024-02-01', NULL),
    (2, 'Bob', 'tx', 'b', '2024-03-05', NULL);
INSERT INTO sale VALUES (1, 1, 12.5, '2024-05-01 10:00:00', 7, 2),
    (18446744073709551615, 2, 3, '2024-05-02 11:00:00', 7, 0);
"""

TYPES = {
    "int(11)": "integer",
    "int(10) unsigned": "bigint",
    "bigint(20) unsigned": "numeric(20)",
    "decimal(10,2)": "numeric(10,2)",
    "tinyint(1)": "smallint",
    "datetime(6)": "timestamp",
    "enum('x','y')": "text",
    "double": "double precision",
    "blob": None,
    "geometry": None,
}


def test_types_of_mysql_have_types_of_the_hub() -> None:
    assert {kind: hub_type(kind) for kind in TYPES} == TYPES


def test_what_mysql_fdw_complains_about_is_understood(
    make_database: Callable[[str], str], opened: Opener
) -> None:
    url = make_database(
        """
        CREATE FUNCTION complain(said text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
            $$ BEGIN RAISE EXCEPTION '%', said USING ERRCODE = 'HV00L'; END $$;
        """
    )
    database = opened(url, allowed_functions=["public.complain"])
    for said, kind, told in (
        ("failed to execute the MySQL query: \nQuery execution was interrupted"
         " (max_statement_time exceeded)", QueryTimeout, "longer than allowed"),
        ("failed to execute the MySQL query: Query execution was interrupted, maximum statement"
         " execution time exceeded", QueryTimeout, "longer than allowed"),
        ("failed to connect to MySQL: unknown host 10.0.0.9",
         DatabaseUnavailable, "A MySQL source can't be reached"),
    ):  # fmt: skip
        with pytest.raises(kind, match=told):
            run(database, f"SELECT complain('{said}')")


def _mysql(statements: str) -> None:
    parts = urlsplit(os.environ[_MYSQL])
    command = [
        "mysql",
        "--default-character-set=utf8mb4",
        f"-h{parts.hostname}",
        f"-P{parts.port or 3306}",
        f"-u{parts.username}",
    ]
    if parts.password:
        command.append(f"-p{parts.password}")
    subprocess.run(command, input=statements, text=True, check=True)


@contextmanager
def _source() -> Iterator[str]:
    """Yield the URL of a database of MySQL for a user that can only read it."""
    name = f"citu_{uuid.uuid4().hex[:8]}"
    _mysql(
        f"CREATE DATABASE {name}; USE {name}; {_TABLES}"
        f"CREATE USER {name} IDENTIFIED BY 'secret'; GRANT SELECT ON {name}.* TO {name};"
    )
    parts = urlsplit(os.environ[_MYSQL])
    try:
        yield f"mysql://{name}:secret@{parts.hostname}:{parts.port or 3306}/{name}"
    finally:
        _mysql(f"DROP USER {name}; DROP DATABASE {name}")


@pytest.fixture
def hub() -> Iterator[str]:
    """Yield a superuser's URL of an empty database with the role that asks."""
    if not {_HUB, _MYSQL} <= os.environ.keys() or shutil.which("mysql") is None:
        pytest.skip(f"needs {_HUB}, {_MYSQL} and the program mysql")
    admin = os.environ[_HUB]
    name = f"citu_test_{uuid.uuid4().hex[:12]}"
    if rows_of(admin, f"SELECT FROM pg_roles WHERE rolname = '{READER}'") == []:
        execute(admin, f"CREATE ROLE {READER} LOGIN")
    execute(admin, f"CREATE DATABASE {name}")
    try:
        yield make_dsn(admin, dbname=name)
    finally:
        execute(admin, f"DROP DATABASE {name} WITH (FORCE)")


def test_tables_of_mysql_mean_what_postgresql_means(
    hub: str,
    opened: Opener,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mysql_source, "_RANGE_ROWS", 1)
    with _source() as source:
        attach = ["--hub", hub, "attach", "my", source, "--reader", READER]
        assert main(attach) == 0
        assert "customer.photo is left out" in capsys.readouterr().out
        assert main(["--hub", hub, "check"]) == 0
        (session,) = rows_of(hub, "SELECT array_to_string(srvoptions, ' ') FROM pg_foreign_server")
        assert "max_statement_time = 30" in session[0]
        for table, joints in (("customer", 1), ("line", 2)):
            (view,) = rows_of(hub, f"SELECT pg_get_viewdef('my.{table}'::regclass)")
            assert view[0].count("UNION ALL") == joints, "they are read by ranges of their key"
        assert rows_of(hub, "SELECT count(*), sum(number) FROM my.line") == [(4, 5)]
        execute(hub, "COMMENT ON COLUMN my.customer.state IS 'Where they pay taxes'")
        assert main(["--hub", hub, "refresh", "my"]) == 0
        database = opened(make_dsn(hub, user=READER))
        assert run(
            database,
            "SELECT c.name, s.n / 2, c.born - DATE '2024-01-01' FROM my.customer c"
            " JOIN my.sale s ON s.customer_id = c.id WHERE c.state = 'TX'",
        ).rows == (["Ann 安", 3, 31],)
        with pytest.raises(InvalidSql, match="division by zero"):
            run(database, "SELECT n / d FROM my.sale")
        tables = asyncio.run(database.catalog()).by_key
        assert set(tables) == {("my", "customer"), ("my", "sale"), ("my", "line")}
        customer = tables["my", "customer"]
        assert (customer.comment, customer.primary_key) == ("Who buys 客户", ("id",))
        assert customer.unique_keys == (("name",),)
        state = customer.column("state")
        assert state is not None
        assert state.comment == "Where they pay taxes", "what was said in the hub stays"
        key = ForeignKey(("customer_id",), ("my", "customer"), ("id",))
        assert tables["my", "sale"].foreign_keys == (key,)
        database.close()
        assert main(["--hub", hub, "detach", "my"]) == 0
        user = urlsplit(source).username
        _mysql(
            f"CREATE DATABASE {user}_more; CREATE TABLE {user}_more.note (id int PRIMARY KEY);"
            f"CREATE VIEW {user}.texan AS SELECT id, name FROM {user}.customer;"
            f"GRANT SELECT ON {user}_more.* TO {user}"
        )
        try:
            assert main([*attach, "--schemas", f"{user},{user}_more", "--views"]) == 0
            names = rows_of(
                hub,
                "SELECT table_schema, table_name FROM information_schema.views"
                " WHERE table_schema LIKE 'my%' ORDER BY 1, 2",
            )
            tables_of_user = [
                (f"my_{user}", name) for name in ("customer", "line", "sale", "texan")
            ]
            assert names == [*tables_of_user, (f"my_{user}_more", "note")]
            assert main(["--hub", hub, "refresh", "my"]) == 0
            assert main(["--hub", hub, "detach", "my"]) == 0
        finally:
            _mysql(f"DROP DATABASE {user}_more")
        _mysql(f"GRANT INSERT ON {user}.sale TO {user}")
        assert main(attach) == 1
        assert "its user may INSERT" in capsys.readouterr().err
    assert rows_of(hub, "SELECT count(*) FROM pg_foreign_server") == [(0,)]
