"""Code of the user's that PostgreSQL runs although nobody named it.

None runs, whatever hook it hangs on, and what is beside it stays usable.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple

import psycopg2
import pytest

from common.actor import NOBODY
from common.errors import CituError, ForbiddenObject, InvalidSql
from databases.execution.guarded import RUN, GuardedDatabase, ProvenStatement
from databases.row_view import ALL_ROWS, RowView
from guard.row_rules import RowRules
from tests.support.cases import all_cases
from tests.support.databases import as_admin, execute, open_asked
from tests.support.guarded_statements import FIXTURES

_RAN = "ACTED"  # what each of the functions says


def _lines(name: str) -> list[str]:
    text = (FIXTURES / name).read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("--")]


RUNNING, HONEST = _lines("running.sql"), _lines("running_honest.sql")
SCHEMA = (FIXTURES / "running_schema.sql").read_text("utf-8")
# What nobody can read: their code runs for every row, or while the statement is planned.
CLOSED = [
    "parted",
    "parted_1",
    "spreaded",
    "spreaded_0",
    "indexed",
    "by_expression",
    "by_predicate",
    "by_statistics",
    "keyed",
    "keyed_1",
    "seen",
    "seen_again",
    "negated",
    "sorts",
    "shows",
    "guarded",
    "ancestor",
    "descendant",
]


class Marked(NamedTuple):
    """A database of which the functions are marked in one way."""

    mark: str
    url: str
    asked: GuardedDatabase


@pytest.fixture(scope="module", params=["VOLATILE", "IMMUTABLE SECURITY DEFINER", "STABLE"])
def marked(
    request: pytest.FixtureRequest, make_database: Callable[[str], str], admin_url: str
) -> Iterator[Marked]:
    """As a superuser has it, so that nothing but the guard stands in between. STABLE functions only
    count where something is closed.
    """
    mark: str = request.param
    url = as_admin(make_database(f"SET test.mark = '{mark}'; {SCHEMA}"), admin_url)
    execute(url, "INSERT INTO armed VALUES (1)")
    denied = {"denied_objects": ["public.armed"]} if mark == "STABLE" else {}
    asked = open_asked(url, **denied)
    asyncio.run(asked.catalog())
    yield Marked(mark, url, asked)
    asked.close()


async def _assert_none_runs(asked: GuardedDatabase, sql: str) -> None:
    for method in (asked.explain, asked.run):
        try:
            await method(sql)
        except InvalidSql as error:
            assert _RAN not in error.detail
        except CituError:
            pass


def test_nothing_runs(marked: Marked) -> None:
    async def ask_all() -> None:
        with all_cases() as cases:
            for sql in RUNNING:
                with cases.case(sql):
                    await _assert_none_runs(marked.asked, sql)

    asyncio.run(ask_all())


def test_each_statement_would_run_something(marked: Marked) -> None:
    if marked.mark != "VOLATILE":
        pytest.skip("it is the same code")
    with closing(psycopg2.connect(marked.url)) as connection, all_cases() as cases:
        for sql in RUNNING:
            with cases.case(sql), connection.cursor() as cursor:
                try:
                    with pytest.raises(psycopg2.Error, match=_RAN):
                        cursor.execute(sql)
                finally:
                    connection.rollback()


def test_what_is_beside_it_runs(marked: Marked) -> None:
    async def ask_all() -> None:
        with all_cases() as cases:
            for sql in HONEST:
                # A view of which the query calls a function that may read is closed by denials.
                if marked.mark != "STABLE" or "kept" not in sql:
                    with cases.case(sql):
                        await marked.asked.explain(sql)
                        await marked.asked.run(sql)

    asyncio.run(ask_all())


def test_it_is_not_shown(marked: Marked, caplog: pytest.LogCaptureFixture) -> None:
    shown = asyncio.run(marked.asked.catalog()).by_key
    assert not {("public", name) for name in CLOSED} & shown.keys()
    assert {("public", "plain"), ("public", "honest"), ("public", "beside")} <= shown.keys()
    assert [column.name for column in shown["public", "of_sorted"].columns] == ["id"]
    again = open_asked(marked.url, allowed_functions=["public.sorted_cmp"])
    shown = asyncio.run(again.catalog()).by_key
    assert [column.name for column in shown["public", "of_sorted"].columns] == ["id", "v"]
    said = [each.getMessage() for each in caplog.records if "may run public." in each.getMessage()]
    assert any("public.of_hashed.v" in message for message in said) or marked.mark == "STABLE"
    assert not any("may run public.sorted_cmp" in message for message in said)
    again.close()


def test_a_policy_runs_what_its_owner_wrote_unless_it_is_volatile(marked: Marked) -> None:
    if marked.mark == "VOLATILE":
        with pytest.raises(ForbiddenObject, match=r"public\.ruled") as caught:
            asyncio.run(marked.asked.run("SELECT name FROM ruled"))
        assert "public.ruled" in caught.value.text.zh
    else:
        asyncio.run(marked.asked.run("SELECT name FROM ruled"))


_RULES = """
tables:
  public.plain:
    - groups: everyone
      rows: id < 9 AND name IN (SELECT name FROM other) AND name BETWEEN 'a' AND 'z'
"""


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> RowView:
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    path.write_text(_RULES, "utf-8")
    return RowView(RowRules.load(path).of(NOBODY))


def test_nothing_runs_past_row_rules(marked: Marked, view: RowView) -> None:
    """Under row rules STABLE functions count, too, also in what the operator wrote."""

    async def ask_all() -> None:
        asked = open_asked(marked.url)
        with all_cases() as cases:
            for sql in RUNNING:
                with cases.case(sql):
                    await _assert_none_runs_for(asked, sql, view)
            for sql in HONEST:
                if "kept" not in sql:  # it shows rows of a ruled table
                    with cases.case(sql):
                        await asked.execute(sql, RUN, view)
        asked.close()

    asyncio.run(ask_all())


async def _assert_none_runs_for(asked: GuardedDatabase, sql: str, view: RowView) -> None:
    try:
        await asked.execute(sql, RUN, view)
    except InvalidSql as error:
        assert _RAN not in error.detail and "function of the database failed" not in error.detail
    except CituError:
        pass


def test_what_is_sent_means_built_in_code_and_what_is_answered_is_as_written(
    marked: Marked, view: RowView
) -> None:
    async def prove(sql: str, view: RowView) -> ProvenStatement:
        return await marked.asked.proven(sql, view)

    sql = (
        "SELECT lower(name), id + 1, repeat('x', id) FROM plain "
        "WHERE id BETWEEN 1 AND 3 AND name IN ('n1', 'x')"
    )
    for each in (ALL_ROWS, view):
        proven = asyncio.run(prove(sql, each))
        assert proven.statement == sql
        sent = proven.sql_as_run or ""
        assert "pg_catalog.lower(name), id OPERATOR(pg_catalog.+) 1" in sent
        assert "repeat('x', id::smallint)" in sent
        assert "BETWEEN" not in sent and " IN (" not in sent.replace(" IN (SELECT", "")
    assert asyncio.run(prove("SELECT id * 2 FROM other", ALL_ROWS)).sql_as_run is None
    assert asyncio.run(marked.asked.run(sql)).rows == (["n1", 2, "x"],)
