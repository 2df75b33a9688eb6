"""Databases by name and actor: verdicts and results for one actor are never used for one with other
rights.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from agent.bootstrap import bootstrap
from agent.services.sql_service import GivenSql
from app_config import Settings
from common.actor import NOBODY, Actor
from common.audit import CallOutcome, Occasion, StatementOutcome
from common.errors import ForbiddenObject, InvalidSql, NotFound
from common.ports import Database
from databases.datasources import DEFAULT, Datasource, Datasources
from databases.options import DatabaseOptions, database_options
from guard import AccessRuleError
from tests.support.databases import SMALL, as_admin, connections, execute

DDL = """
CREATE TABLE person (id integer PRIMARY KEY, name text, salary integer);
COMMENT ON TABLE person IS 'staff and their salary';
INSERT INTO person VALUES (1, 'Han', 777);
CREATE VIEW payroll AS SELECT id, salary AS pay FROM person;
CREATE TABLE visitor (badge text, visits text);
CREATE VIEW shown AS SELECT badge AS text FROM visitor;
"""
PAY = "SELECT salary FROM person"
CLERK = Actor("li", groups=("readers", "clerks"))
GUEST = Actor("wang", groups=("guests",))
OPTIONS = replace(
    SMALL,
    pool_size=1,
    group_denied_objects={
        "clerks": ["public.person.salary"],
        "guests": ["public.person", "public.visitor.visits"],
    },
)


class Notes:
    """An audit log in memory."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def record(self, _occasion: Occasion, sql: str, outcome: StatementOutcome) -> None:
        """Keeps the statement and what became of it."""
        self.lines.append((sql, outcome.verdict))

    def record_call(self, _occasion: Occasion, _arguments: object, _outcome: CallOutcome) -> None:
        """Keeps no calls of tools."""


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str]) -> str:
    return make_database(DDL)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def datasources(url: str, notes: Notes) -> Iterator[Datasources]:
    found = Datasources({DEFAULT: Datasource(lambda: url, OPTIONS)}, audit=notes)
    yield found
    found.close()


def test_an_unknown_name_is_answered_with_the_names_there_are(url: str) -> None:
    place = Datasource(lambda: url, SMALL)
    with pytest.raises(NotFound) as caught:
        Datasources({"stock": place, DEFAULT: place}).open("stok", NOBODY)
    assert caught.value.text.en == "There is no database named stok; there are: default, stock."
    assert caught.value.text.zh == "没有名为 stok 的数据库，可用的数据库：default、stock。"


def _each(*acts: Callable[[], Awaitable[object]]) -> list[object]:
    """What each of the acts gives, or the name of what it raises."""

    async def all_of_them() -> list[object]:
        found: list[object] = []
        for act in acts:
            try:
                found.append(await act())
            except ForbiddenObject as refusal:
                found.append(refusal.name)
        return found

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("act", ["inspect", "explain", "run"])
@pytest.mark.parametrize("first", [NOBODY, CLERK])
def test_a_verdict_is_never_somebody_elses(
    datasources: Datasources, act: str, first: Actor
) -> None:
    order = (first, CLERK if first is NOBODY else NOBODY) * 2
    outcomes = _each(
        *(
            lambda actor=actor: getattr(datasources.open(DEFAULT, actor), act)(PAY)
            for actor in order
        )
    )
    refused = [isinstance(outcome, str) for outcome in outcomes]
    assert refused == [actor is CLERK for actor in order]


def test_actors_with_equal_rights_share_what_is_remembered(datasources: Datasources) -> None:
    def opened(*groups: str) -> Database:
        return datasources.open(DEFAULT, Actor("somebody", groups=groups))

    assert opened("clerks") is opened("readers", "clerks") is datasources.open(DEFAULT, CLERK)
    assert opened() is opened("readers") is datasources.open(DEFAULT, NOBODY)
    assert (
        len(
            {
                id(opened()),
                id(opened("clerks")),
                id(opened("guests")),
                id(opened("guests", "clerks")),
            }
        )
        == 4
    )


async def _is_unknown(database: Database, sql: str) -> bool:
    try:
        await database.inspect(sql)
    except InvalidSql:
        return True
    except ForbiddenObject:  # it is there, but not among those that may be called
        pass
    return False


def test_what_an_actor_sees_stays_the_same_object_while_only_functions_change(
    url: str, admin_url: str
) -> None:
    """So nothing that is worked out of it is worked out again."""
    options = replace(OPTIONS, catalog_ttl_s=0.001)
    asked = Datasources({DEFAULT: Datasource(lambda: url, options)})
    call = "SELECT added_later(1)"

    async def main() -> None:
        clerk = asked.open(DEFAULT, CLERK)
        before = await clerk.catalog()
        function = (
            "CREATE FUNCTION added_later(n integer) RETURNS integer LANGUAGE sql IMMUTABLE "
            "AS 'SELECT n'"
        )
        await asyncio.to_thread(execute, as_admin(url, admin_url), function)
        async with asyncio.timeout(20):
            while await _is_unknown(clerk, call):
                assert await clerk.catalog() is before
        assert await clerk.catalog() is before

    try:
        asyncio.run(main())
    finally:
        asked.close()
        execute(as_admin(url, admin_url), "DROP FUNCTION added_later")


def test_of_several_groups_all_denials_count(datasources: Datasources) -> None:
    both = datasources.open(DEFAULT, Actor("zhao", groups=("guests", "clerks")))
    statements = (
        "SELECT visits FROM visitor",
        PAY,
        "SELECT name FROM person",
        "SELECT badge FROM visitor",
    )
    outcomes = _each(*(lambda sql=sql: both.inspect(sql) for sql in statements))
    assert [isinstance(outcome, str) for outcome in outcomes] == [True, True, True, False]


def test_a_catalogue_shows_what_its_actor_may_read(datasources: Datasources) -> None:
    async def main() -> None:
        whole = await datasources.open(DEFAULT, NOBODY).catalog()
        clerks = await datasources.open(DEFAULT, CLERK).catalog()
        guests = await datasources.open(DEFAULT, GUEST).catalog()
        assert [table.name for table in whole.tables] == ["payroll", "person", "shown", "visitor"]
        assert [table.name for table in clerks.tables] == ["person", "shown", "visitor"]
        assert [table.name for table in guests.tables] == ["shown", "visitor"]
        (person,) = clerks.by_name["person"]
        assert [column.name for column in person.columns] == ["id", "name"]
        assert person.comment == "staff and their …" and person.columns[1].values == ("Han",)
        assert await datasources.open(DEFAULT, CLERK).catalog() is clerks, (
            "questions keep what they worked out for it"
        )

    asyncio.run(main())


def test_what_postgresql_says_names_nothing_that_is_closed(datasources: Datasources) -> None:
    async def hint(actor: Actor) -> str | None:
        with pytest.raises(InvalidSql) as caught:
            await datasources.open(DEFAULT, actor).run("SELECT p.salry FROM person p")
        return caught.value.hint

    async def main() -> None:
        assert "salary" in (await hint(NOBODY) or "")
        assert await hint(CLERK) is None

    asyncio.run(main())


def test_a_view_that_comes_to_show_what_is_closed_is_closed(url: str, admin_url: str) -> None:
    datasources = Datasources(
        {DEFAULT: Datasource(lambda: url, replace(OPTIONS, catalog_ttl_s=0.001))}
    )
    shown = "CREATE OR REPLACE VIEW shown AS SELECT {} AS text FROM visitor"

    async def main() -> None:
        guests = datasources.open(DEFAULT, GUEST)
        assert "shown" in (await guests.catalog()).by_name
        await asyncio.to_thread(execute, as_admin(url, admin_url), shown.format("visits"))
        async with asyncio.timeout(10):
            while "shown" in (await guests.catalog()).by_name:  # noqa: ASYNC110 - nobody is told of it
                await asyncio.sleep(0)
        assert "shown" in (await datasources.open(DEFAULT, NOBODY).catalog()).by_name

    try:
        asyncio.run(main())
    finally:
        execute(as_admin(url, admin_url), shown.format("badge"))
        datasources.close()


def test_all_actors_share_one_pool(datasources: Datasources, url: str, admin_url: str) -> None:
    async def main() -> None:
        for actor in (NOBODY, CLERK, GUEST):
            await datasources.open(DEFAULT, actor).run("SELECT 1")
        assert len(await asyncio.to_thread(connections, url, admin_url)) == 1

    asyncio.run(main())


def test_statements_are_noted_for_their_occasion_and_no_other(
    datasources: Datasources, notes: Notes
) -> None:
    noted = datasources.open(DEFAULT, CLERK, Occasion("sql_run", "run_1"))
    silent = datasources.open(DEFAULT, CLERK)
    _each(lambda: noted.run("SELECT 1"), lambda: noted.run(PAY), lambda: silent.run(PAY))
    assert notes.lines == [("SELECT 1", "executed"), (PAY, "refused")]


def test_given_sql_is_judged_by_the_rights_of_who_gives_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.bootstrap.database_options", lambda _: OPTIONS)
    settings = Settings(
        database_url=url, app_database_url=os.environ["APP_DATABASE_URL"], audit_log="off"
    )
    services = bootstrap(settings)
    asked = services.databases.of(None, NOBODY)

    async def main() -> None:
        for actor in (NOBODY, CLERK, NOBODY):
            given = GivenSql(PAY, "en", actor)
            verdict = await asked.sql.validate(given)
            assert verdict["verdict"] == ("refused" if actor is CLERK else "accepted")
            if actor is CLERK:
                with pytest.raises(ForbiddenObject):
                    await asked.sql.run(given)
            else:
                assert (await asked.sql.run(given))["query_result"]["rows"] == [[777]]
        assert any("salary" in question for question in await asked.examples("en", NOBODY))
        assert not any("salary" in question for question in await asked.examples("en", CLERK))
        await services.aclose()

    asyncio.run(main())


def test_rules_are_read_before_anything_is_opened() -> None:
    for wrong in (
        {"denied_objects": ["a.b.c.d"]},
        {"group_denied_objects": {"clerks": ["a..b"]}},
        {"allowed_functions": ["public.st_*"]},
        {"allowed_functions": ["*"]},
    ):
        with pytest.raises(AccessRuleError):
            Datasources({DEFAULT: Datasource(lambda: "", replace(SMALL, **wrong))})


def test_the_options_of_untouched_settings_are_the_defaults() -> None:
    assert database_options(Settings()) == DatabaseOptions()
