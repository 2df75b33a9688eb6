"""What the role may do beyond reading is found, warned about, and refused where the operator wants
that.
"""

import asyncio
from collections.abc import Callable

import pytest
from psycopg2.extensions import make_dsn, parse_dsn

from common.errors import (
    DatabaseUnavailable,
)
from databases.execution.guarded import GuardedDatabase
from databases.source import Unreachable, probe
from tests.support.databases import Opener, as_admin, execute, run


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str]) -> str:
    return make_database("CREATE TABLE person (id integer, name text)")


@pytest.fixture
def database(url: str, opened: Opener) -> GuardedDatabase:
    return opened(url)


def test_a_role_that_can_only_read_is_no_danger(database: GuardedDatabase, url: str) -> None:
    assert asyncio.run(database.role_dangers()) == ()
    probe(url, require_read_only_role=True)


def test_a_superuser_is_warned_about(
    url: str, admin_url: str, opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    database = opened(as_admin(url, admin_url))
    run(database, "SELECT 1")
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
    admin = as_admin(url, admin_url)
    execute(admin, "DROP ROLE IF EXISTS citu_test_danger", "CREATE ROLE citu_test_danger LOGIN")
    execute(
        admin,
        "GRANT USAGE ON SCHEMA public TO citu_test_danger",
        "GRANT SELECT ON t TO citu_test_danger",
    )
    execute(
        admin,
        f"GRANT CONNECT ON DATABASE {names['database']} TO citu_test_danger",
        grant.format(**names),
    )
    role_url = make_dsn(url, user="citu_test_danger")
    database = opened(role_url)
    try:
        danger, *_ = asyncio.run(database.role_dangers())
        assert DANGERS[grant] in danger.en
        assert danger.zh
        strict = opened(role_url, require_read_only_role=True)
        with pytest.raises(DatabaseUnavailable, match="REQUIRE_READ_ONLY_ROLE"):
            run(strict, "SELECT 1")
        strict.close()
        probe(role_url)
        with pytest.raises(Unreachable, match="REQUIRE_READ_ONLY_ROLE"):
            probe(role_url, require_read_only_role=True)
    finally:
        database.close()
        execute(
            admin,
            "REASSIGN OWNED BY citu_test_danger TO postgres",
            "DROP OWNED BY citu_test_danger",
        )
        execute(admin, "DROP ROLE citu_test_danger")
