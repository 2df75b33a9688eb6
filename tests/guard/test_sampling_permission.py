"""SQL that the server reads differently from our grammar, and functions that PostgreSQL runs
implicitly.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import CituError, ForbiddenObject, InvalidSql
from databases.execution.guarded import GuardedDatabase
from guard import BUILTIN, Guard
from guard.grammar import SYNTAX_SINCE
from tests.support.databases import as_admin, open_asked, rows_of, run
from tests.support.guarded_statements import ALLOWED, REJECTED, SCHEMA

# Everything that our grammar reads as a syntax of its own although it can be written as a plain
# call.
CALLS = {
    "normalize": "normalize('x')",
    "json_array": "json_array(1, 2)",
    "json_arrayagg": "json_arrayagg(1)",
    "json_object": "json_object('{a,b}')",
    "json_objectagg": "json_objectagg('a': 1)",
    "json": "json('1')",
    "json_exists": "json_exists('{}', '$')",
    "json_query": "json_query('{}', '$')",
    "json_scalar": "json_scalar(1)",
    "json_serialize": "json_serialize('{}')",
    "json_table": "(SELECT count(*) FROM json_table('{}', '$' COLUMNS (a integer)) AS t)",
    "json_value": "json_value('{}', '$')",
}
REFUSED_ANYWAY = {
    "merge_action",
    "system_user",
}  # which say something about the session, or belong to writing


OLD_BUILTIN = "json_object"  # a function in every version, besides its syntax


def _server(version: int, *routines: str) -> Guard:
    """A guard for a server of the version that has these functions, with side effects, in its
    schema `public`.
    """
    builtins = {
        name: True for name in BUILTIN.builtins if name == OLD_BUILTIN or name not in SYNTAX_SINCE
    }
    guard = Guard()
    guard.learn(
        replace(
            BUILTIN,
            builtins=builtins,
            version=version * 10_000,
            is_complete=True,
            routines={name: frozenset(("public",)) for name in routines},
            risky_routines=frozenset(("public", name) for name in routines),
        )
    )
    return guard


def test_every_word_that_is_newer_than_a_server_is_known() -> None:
    assert set(SYNTAX_SINCE) == set(CALLS) | REFUSED_ANYWAY


@pytest.mark.parametrize("name", CALLS)
def test_a_syntax_is_a_call_where_the_server_is_older(name: str) -> None:
    sql = f"SELECT {CALLS[name]}"
    for version in range(12, 19):
        guard = _server(version, name)
        if version >= SYNTAX_SINCE[name] and name != "normalize":
            assert guard.inspect(sql).sent == sql
        elif version < SYNTAX_SINCE[name] and name == OLD_BUILTIN:
            sent = guard.inspect(sql).sent.replace('"', "")
            assert sent == f"SELECT pg_catalog.{CALLS[name]}"
        elif version < SYNTAX_SINCE[name]:
            with pytest.raises(ForbiddenObject, match=f"public.{name}"):
                guard.check(sql)


@pytest.mark.parametrize(
    "name", sorted({*CALLS} - {OLD_BUILTIN, "json", "normalize"})
)  # json(…) may be a cast
def test_a_syntax_that_the_server_does_not_know_is_a_missing_function(name: str) -> None:
    with pytest.raises(InvalidSql, match=name):
        _server(15).check(f"SELECT {CALLS[name]}")


@pytest.mark.parametrize("number", ["1_000", "0x1F", "0o17", "0b101", "1.5_5", "1e1_0"])
def test_numbers_that_an_older_server_reads_as_a_number_and_a_name(number: str) -> None:
    sql = f"SELECT '文', a1_2, '0x1', {number} FROM t0x1"
    _server(16).check(sql)
    with pytest.raises(InvalidSql, match="trailing junk") as caught:
        _server(15).check(sql)
    assert caught.value.position == sql.index(number) + 1


@pytest.fixture(scope="module")
def owner_url(make_database: Callable[[str], str], admin_url: str) -> str:
    return as_admin(make_database(SCHEMA), admin_url)


@pytest.fixture(scope="module")
def owner(owner_url: str) -> Iterator[GuardedDatabase]:
    """The database as a superuser has it, so that nothing but the guard stands in between."""
    database = open_asked(owner_url)
    asyncio.run(database.catalog())
    yield database
    database.close()


LOCKS = """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
WHERE locktype = 'advisory' AND datname = current_database()"""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT json_value(note, '$') FROM depot",
        "SELECT json_array(1, 2)",
        "SELECT json(1)",
        "SELECT json_object(c) FROM customer c",
    ],
)
def test_a_function_of_the_users_is_not_called_for_a_syntax(
    owner: GuardedDatabase, owner_url: str, sql: str
) -> None:
    with contextlib.suppress(CituError):
        run(owner, sql)
    assert rows_of(owner_url, LOCKS) == [(0,)]


QUERIES = [
    case.sql.rstrip(";")
    for case in ALLOWED + REJECTED
    if case.sql.startswith(("SELECT", "WITH", "VALUES"))
]


@given(st.sampled_from(QUERIES), st.sampled_from(QUERIES))
def test_statements_made_of_others_get_a_verdict_by_the_servers_facts(
    owner: GuardedDatabase, one: str, other: str
) -> None:
    for sql in (
        f"({one}\n) UNION ({other}\n)",
        (
            f"SELECT z.pick, (z).v FROM ({one}\n) AS z (a, b), depot AS d "
            f"WHERE d.content = ({other}\n)"
        ),
        (
            f"WITH q AS ({one}\n) SELECT ({other}\n), q.*, coalesce(q.owner, 1) FROM q, "
            "depot ORDER BY 1"
        ),
    ):
        with contextlib.suppress(CituError):
            owner.check(sql)


def test_a_function_that_may_be_called_may_be_written_like_a_field(owner_url: str) -> None:
    database = open_asked(owner_url, allowed_functions=["public.spelled", "public.lock"])
    assert run(database, "SELECT (c).contact.spelled FROM customer c LIMIT 1").rows == (["x"],)
    database.close()


def test_casts_of_which_the_operator_allows_the_function_are_allowed(owner_url: str) -> None:
    database = open_asked(owner_url, allowed_functions=["public.*", "pg_catalog.pg_advisory_lock"])
    assert run(database, "SELECT 'y'::watched").rows == (["y"],)
    database.close()
