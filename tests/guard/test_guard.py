"""The guard. `fixtures/guard/*.sql` are its specification; tests here cover what no list of
statements can.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from psycopg2.extensions import make_dsn, parse_dsn

from common.errors import ForbiddenObject, ForbiddenStatement, InvalidSql
from common.word_files import words
from databases.execution.guarded import GuardedDatabase
from guard import Guard
from tests.support.cases import all_cases
from tests.support.databases import open_asked, rows_of
from tests.support.guarded_statements import (
    ALLOWED,
    QUALIFIED,
    REJECTED,
    SCHEMA,
    GuardCase,
)
from tests.support.live import eventually


@pytest.fixture(scope="module")
def reader_url(make_database: Callable[[str], str]) -> str:
    return make_database(SCHEMA)


@pytest.fixture(scope="module")
def reader(reader_url: str) -> Iterator[GuardedDatabase]:
    """The database as Citu connects to it; the guard knows its catalogue."""
    database = open_asked(reader_url)
    asyncio.run(database.catalog())
    yield database
    database.close()


@pytest.fixture(scope="module")
def owner_url(make_database: Callable[[str], str], admin_url: str) -> str:
    """A throwaway database for a role that may do anything."""
    return make_dsn(admin_url, dbname=parse_dsn(make_database(SCHEMA))["dbname"])


def test_allowed_statements_run(reader: GuardedDatabase) -> None:
    async def run(sql: str) -> None:
        try:
            await reader.explain(sql)
            await reader.run(sql)
        except InvalidSql as error:
            if error.detail != "unsupported XML feature":  # which some servers are built without
                raise

    async def run_all() -> None:
        with all_cases() as cases:
            for case in ALLOWED:
                with cases.case(case):
                    await run(case.sql)

    asyncio.run(run_all())


# A guard that knows nothing of the server can't know that these are the user's.
NEEDS_CATALOGUE = (
    "ranges of the user's own",
    "an honest table whose name begins like a system table's",
    "a cast to the user's own type, written like a call",
)


def test_allowed_statements_pass_without_a_server() -> None:
    with all_cases() as cases:
        for case in ALLOWED:
            if case.reason not in NEEDS_CATALOGUE:
                with cases.case(case):
                    Guard().check(case.sql)


def test_rejected_statements_name_what_is_wrong(reader: GuardedDatabase) -> None:
    with all_cases() as cases:
        for case in REJECTED:
            with cases.case(case):
                _assert_named(reader, case)


def _assert_named(reader: GuardedDatabase, case: GuardCase) -> None:
    with pytest.raises((ForbiddenStatement, ForbiddenObject)) as caught:
        reader.check(case.sql)
    error = caught.value
    assert isinstance(error, ForbiddenStatement | ForbiddenObject)
    named = error.operation if isinstance(error, ForbiddenStatement) else error.name
    assert case.named in (named, named.rpartition(".")[2])
    assert named in error.text.zh
    assert named in error.text.en


# These are functions of the user's that look like columns, operators and casts; only the catalogue
# knows better.
NEEDS_SERVER = words(
    "wipe drop pick choose tally scale length spelled ==> + point3 boxed parcel watched "
    "watched_by_builtin "
    "_watched content label sealed owner depot keeper boxrange"
)


def test_rejected_statements_are_rejected_without_a_server() -> None:
    with all_cases() as cases:
        for case in REJECTED:
            if case.named not in NEEDS_SERVER:
                with cases.case(case), pytest.raises((ForbiddenStatement, ForbiddenObject)):
                    Guard().check(case.sql)


STATE = """
SELECT (SELECT json_agg(t) FROM customer t)::text, (SELECT count(*) FROM journal),
    (SELECT last_value FROM counter),
       (SELECT array_agg(relname || coalesce(relacl::text, '') ORDER BY oid)::text FROM pg_class),
       (SELECT array_agg(proname ORDER BY oid)::text FROM pg_proc WHERE oid > 16383),
       (SELECT array_agg(extname)::text FROM pg_extension),
       (SELECT array_agg(rolname ORDER BY oid)::text FROM pg_roles
           WHERE rolname NOT LIKE 'citu_test_%'),
       (SELECT count(*) FROM pg_largeobject_metadata),
       (SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE locktype = 'advisory' AND datname = current_database())
"""


def test_rejected_statements_change_nothing_even_for_a_superuser(owner_url: str) -> None:
    owner = open_asked(owner_url)

    async def attack() -> None:
        for case in REJECTED:
            for method in (owner.run, owner.explain):
                with pytest.raises((ForbiddenStatement, ForbiddenObject)):
                    await method(case.sql)
        for case in QUALIFIED:
            for method in (owner.run, owner.explain):
                with pytest.raises(InvalidSql, match="operator") as caught:
                    await method(case.sql)
                assert caught.value.position is None, "it would be one in what was sent"

    before = eventually(partial(_state_without_locks, owner_url))
    asyncio.run(attack())
    assert _state(owner_url) == before
    owner.close()


def _state(url: str) -> list[tuple[Any, ...]]:
    return rows_of(url, STATE)


def _state_without_locks(url: str) -> list[tuple[Any, ...]] | None:
    """Return the state once the server has ended connections that were closed before."""
    state = _state(url)
    locks = state[0][-1]
    return state if locks == 0 else None


@pytest.mark.parametrize("call", ["upper(o)", '"upper"(o.*)', "string_agg(o)", "upper(upper(o))"])
def test_a_function_with_side_effects_can_not_pass_for_the_builtin_of_its_name(
    owner_url: str, call: str
) -> None:
    owner = open_asked(owner_url)
    before = eventually(partial(_state_without_locks, owner_url))
    with pytest.raises(InvalidSql):
        asyncio.run(owner.run(f"SELECT {call} FROM orders o"))
    assert _state(owner_url) == before
    owner.close()


@pytest.mark.parametrize(
    "settings", [{"allowed_functions": ["public.upper"]}, {"forbidden_check": False}], ids=str
)
def test_a_function_that_may_be_called_may_share_a_builtins_name(
    reader_url: str, settings: dict[str, Any]
) -> None:
    reader = open_asked(reader_url, **settings)
    assert asyncio.run(reader.run("SELECT upper(o), upper('x') FROM orders o LIMIT 1")).rows == (
        ["x", "X"],
    )
    reader.close()
