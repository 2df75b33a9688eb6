"""What transactions tell the server's policies: each whose it is, none anybody else's; and what
bypasses policies.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg2.extensions import make_dsn

from agent.runs.pauses import GivenAnswer
from app_config import ConfigurationError, Settings
from common.actor import NOBODY, Actor
from common.audit import Occasion
from common.errors import CostExceeded, ForbiddenObject, InvalidSql, ValidationFailed
from common.ports import Database
from databases.datasources import DEFAULT, Datasource, Datasources
from databases.options import by_group
from databases.row_context import BEGIN, RowContext
from guard.row_rules import RowRules
from postgres.connection import LEAVE, Connection
from tests.support.asking import Asking
from tests.support.databases import ENDLESS, SMALL, as_admin, execute, runs_endless, until
from tests.support.effort import tries

DDL = """
CREATE VIEW told AS SELECT current_setting('citu.user_id', true) AS user_id,
    current_setting('citu.groups', true) AS groups, to_jsonb(current_setting('citu.groups',
        true)::text[]) AS listed;
CREATE VIEW known AS SELECT current_setting('citu.attributes', true)::jsonb AS attributes;
CREATE TABLE note (id integer, owner text, words text);
INSERT INTO note VALUES (1, 'ann', 'hers'), (2, 'bo', 'his');
ALTER TABLE note ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON note USING (owner = current_setting('citu.user_id'));
CREATE TABLE area (region text, words text);
INSERT INTO area VALUES ('north', 'cold'), ('south', 'warm');
ALTER TABLE area ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON area
    USING (nullif(current_setting('citu.attributes', true), '')::jsonb -> 'region' ? region);
CREATE TABLE wide AS SELECT i, repeat('x', 1000) AS words FROM generate_series(1, 100) i;
"""
OPTIONS = replace(SMALL, pool_size=1, row_context=True, max_result_bytes=20_000)
ANN, BO = Actor("ann", ("sales", "north")), Actor("bo", ())
TOLD = "SELECT user_id, groups FROM told"
WHO = {ANN: ["ann", '{"north","sales"}'], BO: ["bo", "{}"], NOBODY: ["", "{}"]}


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str]) -> str:
    return make_database(DDL)


@asynccontextmanager
async def _opened(url: str, **changes: Any) -> AsyncIterator[Callable[..., Database]]:
    datasources = Datasources({DEFAULT: Datasource(lambda: url, replace(OPTIONS, **changes))})
    try:
        yield lambda actor, occasion=None: datasources.open(DEFAULT, actor, occasion)
    finally:
        datasources.close()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is sent to PostgreSQL."""
    texts: list[str] = []
    send = Connection._send

    def noted(self: Connection, sql: str, *more: Any) -> Any:
        texts.append(sql)
        return send(self, sql, *more)

    monkeypatch.setattr(Connection, "_send", noted)
    yield texts


def test_actors_who_take_turns_on_one_connection_are_told_apart(url: str) -> None:
    async def main() -> None:
        async with _opened(url) as opened:
            actors = [ANN, BO, NOBODY] * 20
            rows = await asyncio.gather(*(opened(actor).run(TOLD) for actor in actors))
            assert [list(result.rows[0]) for result in rows] == [WHO[actor] for actor in actors]
            found = await asyncio.gather(
                *(opened(actor).run("SELECT words FROM note") for actor in actors)
            )
            assert [[row[0] for row in result.rows] for result in found] == [
                ["hers"],
                ["his"],
                [],
            ] * 20

    asyncio.run(main())


def test_every_transaction_begins_with_whose_it_is(url: str, sent: list[str]) -> None:
    """Whatever is done for ann, in the same round trip as BEGIN; what nobody asks for says so."""

    async def stream(database: Database) -> None:
        rows = await database.stream("SELECT * FROM note", 10)
        assert [row[2] for row in await rows.page()] == ["hers"]
        await rows.aclose()

    async def main() -> None:
        async with _opened(url) as opened:
            await opened(ANN).catalog()
            _all_begin(sent, RowContext())
            for database in (opened(ANN), opened(ANN, Occasion("ask", "run_1", ANN))):
                too_large = database.run("SELECT * FROM wide")
                for act in (
                    database.run(TOLD),
                    database.explain(TOLD),
                    too_large,
                    stream(database),
                ):
                    sent.clear()
                    await act
                    _all_begin(sent, RowContext.of(ANN))
                    assert any(BEGIN in text for text in sent)

    asyncio.run(main())


def test_so_do_transactions_without_blocks(
    make_database: Callable[[str], str], sent: list[str]
) -> None:
    plain = make_database(DDL + "REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC")

    async def main() -> None:
        async with _opened(plain) as opened:
            for sql in (TOLD, "SELECT * FROM wide, told"):
                await opened(BO).explain(sql)
                assert (await opened(BO).run(sql)).rows[0][-2:] in (["bo", "{}"], ["{}", []])

    asyncio.run(main())
    assert sum(BEGIN in text for text in sent) > 4
    _all_begin([text for text in sent if "told" in text], RowContext.of(BO))


def _all_begin(sent: list[str], context: RowContext) -> None:
    for text in sent:
        assert BEGIN not in text or text.removeprefix(LEAVE).removeprefix("ROLLBACK; ").startswith(
            context.begin
        ), text


def test_a_cancelled_transaction_leaves_nothing(url: str, admin_url: str) -> None:
    async def main() -> None:
        async with _opened(url) as opened:
            for _ in range(3):
                endless = asyncio.create_task(opened(ANN).run(f"{ENDLESS}, told"))
                await until(lambda: runs_endless(as_admin(url, admin_url)))
                endless.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await endless
                for actor in (BO, NOBODY):
                    assert list((await opened(actor).run(TOLD)).rows[0]) == WHO[actor]
            stream = await opened(ANN).stream(TOLD, 10)
            assert list((await opened(BO).run(TOLD)).rows[0]) == WHO[BO]
            assert await stream.page() == [WHO[ANN]]
            await stream.aclose()
            assert await (await opened(BO).stream(TOLD, 10)).page() == [WHO[BO]]

    asyncio.run(main())


def test_a_statement_that_fails_leaves_nothing(url: str) -> None:
    async def main() -> None:
        async with _opened(url) as opened:
            with pytest.raises(InvalidSql):
                await opened(ANN).run("SELECT 1 / (id - id) FROM note")
            assert list((await opened(NOBODY).run(TOLD)).rows[0]) == WHO[NOBODY]

    asyncio.run(main())


_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_HOSTILE = st.sampled_from(
    ["', true); SELECT 1; --", "$citu$", "\\", '"', "{}", '{"south"}', "a,b", "NULL", "%s", "'"]
)


_NAMES = _TEXTS | _HOSTILE


def test_attributes_decide_rows_and_arrive_as_they_are(url: str) -> None:
    odd = "x'\\\"；\n"
    actors = [
        Actor("ann", attributes=(("level", (odd, "2")), ("region", ("north",)))),
        Actor("bo", attributes=(("region", ("south", "north")),)),
        Actor("cy"),
    ]

    async def main() -> None:
        async with _opened(url) as opened:
            read = "SELECT attributes::text FROM known"
            told = [(await opened(actor).run(read)).rows[0][0] for actor in actors * 3]
            assert [json.loads(text) for text in told] == [
                {"level": [odd, "2"], "region": ["north"]},
                {"region": ["south", "north"]},
                {},
            ] * 3
            read = "SELECT words FROM area ORDER BY 1"
            rows = [(await opened(actor).run(read)).rows for actor in actors]
            assert [[row[0] for row in found] for found in rows] == [["cold"], ["cold", "warm"], []]

    asyncio.run(main())
    broken = Actor("ann", attributes=(("region", ("a\0", "b")),))
    assert RowContext.of(broken).attributes == (("region", ("b",)),)


def test_any_name_arrives_as_it_is(url: str) -> None:
    with asyncio.Runner() as runner:
        datasources = Datasources({DEFAULT: Datasource(lambda: url, OPTIONS)})

        @settings(max_examples=tries(18))
        @given(user=_NAMES, groups=st.lists(_NAMES, max_size=4))
        def arrives(user: str, groups: list[str]) -> None:
            database = datasources.open(DEFAULT, Actor(user, tuple(groups)))
            row = runner.run(database.run("SELECT user_id, listed FROM told")).rows[0]
            assert row == [user, sorted(set(groups))]

        arrives()
        datasources.close()


def test_a_user_whom_nobody_vouches_for_is_nobody(url: str) -> None:
    claimed = replace(ANN, is_vouched_for=False)
    assert RowContext.of(claimed) == RowContext("", ("north", "sales"))
    assert GivenAnswer.from_json(GivenAnswer("yes", claimed).to_json()).actor == claimed
    assert GivenAnswer.from_json(GivenAnswer("yes", ANN).to_json()).actor == ANN
    assert RowContext.of(Actor("\ud800")) == RowContext.of(Actor("a\0")) == RowContext()
    with Asking(Settings(database_url=url, row_context=True, allow_anonymous=True)) as asking:
        for environ, user in (({"REMOTE_ADDR": "10.0.0.7"}, ""), ({}, "")):
            body = {"sql": TOLD, "user_id": "ann"}
            response = asking.client.post("/api/v0/sql/run", json=body, environ_overrides=environ)
            assert json.loads(response.get_data())["data"]["query_result"]["rows"] == [[user, "{}"]]
    with Asking(
        Settings(database_url=url, row_context=True)
    ) as asking:  # only this machine's own user can ask
        response = asking.client.post("/api/v0/sql/run", json={"sql": TOLD, "user_id": "ann"})
        assert json.loads(response.get_data())["data"]["query_result"]["rows"] == [["ann", "{}"]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT set_config('citu.user_id', 'bo', true), words FROM note",
        "SELECT current_setting('citu.user_id')",
        "SELECT words FROM note WHERE pg_catalog.set_config('citu.user_id', 'bo', false) = 'bo'",
        "SELECT setting FROM pg_settings WHERE name = 'citu.user_id'",
    ],
)
@pytest.mark.parametrize("forbidden_check", [True, False])
def test_statements_neither_read_nor_change_it(url: str, sql: str, forbidden_check: bool) -> None:
    """Not even where the guard is told to judge structure alone."""

    async def main() -> None:
        async with _opened(url, forbidden_check=forbidden_check) as opened:
            with pytest.raises(ForbiddenObject):
                await opened(ANN).run(sql)

    asyncio.run(main())


def test_without_it_nothing_is_told(url: str, sent: list[str]) -> None:
    async def main() -> None:
        async with _opened(url, row_context=False) as opened:
            assert opened(ANN) is opened(BO), "and nothing is done for each actor"
            await opened(ANN).run("SELECT 1")
            await opened(ANN).explain("SELECT 1")

    asyncio.run(main())
    assert not any("citu.user_id" in text for text in sent)


def test_limits_on_plans_hold_and_tell_no_figures(url: str) -> None:
    async def refusal(sql: str, **limit: int) -> CostExceeded:
        async with _opened(url, **limit) as opened:
            with pytest.raises(CostExceeded) as caught:
                await opened(ANN).explain(sql)
            return caught.value

    for limit in ({"max_plan_cost": 1}, {"max_plan_rows": 1}):
        hidden = asyncio.run(refusal("SELECT note.* FROM wide, note", **limit))
        assert "than allowed" in hidden.text.en
        assert (
            not any(character.isdigit() for character in hidden.text.en) and hidden.details() == {}
        )
        shown = asyncio.run(refusal("SELECT * FROM wide", **limit))
        assert shown.plan is not None and "plan" in shown.details() and "of 1" in shown.text.en


RULES = """
tables:
  public.wide:
    - groups: [sales]
      rows: i % 2 = length(:user_id) % 2
      masks: {words: "'***'"}
"""


def test_actors_of_one_group_share_what_is_seen_and_no_rows(url: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    odd, even, other = (
        Actor("ann", ("sales",)),
        Actor("anna", ("sales",)),
        Actor("ann", ("guests",)),
    )

    async def main() -> None:
        rules = RowRules.load(tmp_path / "rules.yaml")
        async with _opened(url, row_context=False, row_rules=rules) as opened:
            asked = "SELECT max(i), min(words) FROM wide"
            rows = await asyncio.gather(*(opened(who).run(asked) for who in (odd, even) * 9))
            assert [list(result.rows[0]) for result in rows] == [[99, "***"], [100, "***"]] * 9
            assert await opened(odd).catalog() is await opened(even).catalog()
            assert opened(odd).rows_seen == opened(replace(odd, acts_for_others=True)).rows_seen
            assert len({opened(who).rows_seen for who in (odd, even, other)}) == 3
            for nobody in (other, replace(odd, is_vouched_for=False)):
                assert list((await opened(nobody).run("SELECT count(*) FROM wide")).rows[0]) == [0]
            hiding = [
                table.name
                for table in (await opened(odd).catalog()).tables
                if table.has_hidden_rows
            ]
            assert hiding == ["wide"]

    asyncio.run(main())


# ------------------------------------------------------------------------------
# what bypasses policies

BYPASSES = """
CREATE TABLE secret (id integer, owner text); ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_setting('citu.user_id', true));
CREATE VIEW plain AS SELECT * FROM secret;
CREATE VIEW over_plain WITH (security_invoker = true) AS SELECT * FROM plain;
CREATE VIEW invoking WITH (security_invoker) AS SELECT * FROM secret;
CREATE VIEW over_invoking AS SELECT * FROM invoking;
CREATE VIEW closed AS SELECT * FROM secret;
CREATE VIEW unrelated AS SELECT 1 AS one;
CREATE MATERIALIZED VIEW stored AS SELECT * FROM invoking;
CREATE TABLE owned (id integer); ALTER TABLE owned ENABLE ROW LEVEL SECURITY;
ALTER TABLE owned OWNER TO citu_reader;
CREATE TABLE forced (id integer); ALTER TABLE forced ENABLE ROW LEVEL SECURITY;
ALTER TABLE forced OWNER TO citu_reader;
ALTER TABLE forced FORCE ROW LEVEL SECURITY;
CREATE TABLE parted (id integer) PARTITION BY RANGE (id);
ALTER TABLE parted ENABLE ROW LEVEL SECURITY;
CREATE TABLE part_low PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE part_high PARTITION OF parted FOR VALUES FROM (10) TO (20);
ALTER TABLE part_high ENABLE ROW LEVEL SECURITY;
CREATE VIEW over_part WITH (security_invoker) AS SELECT * FROM part_low;
CREATE TABLE general (id integer); CREATE TABLE special () INHERITS (general);
ALTER TABLE special ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION all_secrets() RETURNS SETOF secret LANGUAGE sql STABLE SECURITY DEFINER
    AS 'SELECT * FROM secret';
CREATE FUNCTION not_allowed() RETURNS SETOF secret LANGUAGE sql STABLE SECURITY DEFINER
    AS 'SELECT * FROM secret';
ALTER VIEW invoking OWNER TO citu_reader;
CREATE VIEW readers WITH (security_invoker = false) AS SELECT * FROM secret;
ALTER VIEW readers OWNER TO citu_reader;
"""


@pytest.fixture(scope="module")
def bypassed(make_database: Callable[[str], str]) -> str:
    return make_database(BYPASSES)


def test_what_bypasses_policies_is_listed(
    bypassed: str, admin_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    changes: dict[str, Any] = {
        "allowed_functions": ["public.all_secrets"],
        "denied_objects": ["public.closed"],
    }

    def problems(source: str) -> list[str]:
        options = replace(OPTIONS, **changes)
        datasources = Datasources({DEFAULT: Datasource(lambda: source, options)})
        asyncio.run(datasources.open(DEFAULT, NOBODY).catalog())
        datasources.close()
        found = datasources.row_problems(DEFAULT).context
        assert found is not None and all(problem.zh != problem.en for problem in found)
        return [problem.en for problem in found]

    with caplog.at_level(logging.WARNING, "databases.catalog.row_policies"):
        found = problems(bypassed)
    said = [
        record.getMessage()
        for record in caplog.records
        if record.name == "databases.catalog.row_policies"
    ]
    assert said == [f"ROW_CONTEXT: {problem}" for problem in found]
    subjects = {
        "owned": "FORCE ROW LEVEL SECURITY",
        "part_low": "partition or child of public.parted",
        "general": "reading public.general reads public.special",
        "over_part": "reads public.part_low, which has no row-level security of its own",
        "plain": "security_invoker = true",
        "over_plain": "security_invoker = true",
        "over_invoking": "security_invoker = true",
        "stored": "materialised view",
        "all_secrets": "SECURITY DEFINER",
    }
    about = {re.findall(r"public\.(\w+)", problem)[0]: problem for problem in found}
    assert about.keys() == subjects.keys() and len(found) == len(subjects)
    for name, words in subjects.items():
        assert words in about[name]
    assert problems(as_admin(bypassed, admin_url))[0].startswith("the role postgres is a superuser")


def test_ready_counts_what_bypasses_policies(bypassed: str, url: str) -> None:
    def state(source: str, **changes: Any) -> dict[str, Any]:
        with Asking(Settings(database_url=source, **changes)) as asking:
            asking.client.get("/api/v0/schema/tables")
            found: dict[str, Any] = json.loads(asking.client.get("/ready").get_data())["data"][
                "row_context"
            ]
            return found

    assert state(bypassed, row_context=True) == {"status": "degraded", "problems": 9}
    assert state(url, row_context=True) == {"status": "ok", "problems": 0}
    assert state(url) == {"status": "not_configured"}


# ------------------------------------------------------------------------------
# denials for groups


def test_denials_of_groups_are_a_setting(url: str) -> None:
    text = 'clerks : public.wide, "public"."note".words ;guests:told; clerks:told; a:b: told;'
    wanted = {
        "clerks": ("public.wide", '"public"."note".words', "told"),
        "guests": ("told",),
        "a:b": ("told",),
    }
    assert by_group(text) == wanted
    assert Settings.from_env({"GROUP_DENIED_OBJECTS": text}).group_denied_objects == text.strip()
    for wrong in (
        "clerks",
        "clerks:",
        "a b: public.note",
        ": public.note",
        "clerks: ; guests: told",
    ):
        with pytest.raises(ConfigurationError, match="GROUP_DENIED_OBJECTS"):
            Settings.from_env({"GROUP_DENIED_OBJECTS": wrong})
    with Asking(Settings(database_url=url, group_denied_objects="clerks: public.wide")) as asking:
        databases = asking.services.databases.of(None, NOBODY).schema
        names = asyncio.run(databases.tables(10, None, Actor("li", ("clerks",))))["tables"]
        assert [table["name"] for table in names] == ["area", "known", "note", "told"]


def test_a_user_whom_the_database_s_encoding_can_not_hold(admin_url: str) -> None:
    name = "citu_test_users"
    execute(admin_url, f"DROP DATABASE IF EXISTS {name}")
    execute(
        admin_url,
        (
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' "
            "LOCALE_PROVIDER libc LOCALE 'C'"
        ),
    )

    async def main() -> None:
        async with _opened(make_dsn(admin_url, dbname=name)) as opened:
            database = opened(Actor("Жук", ()))
            for ask in (
                database.run,
                database.explain,
                lambda sql: database.stream(sql, most_rows=5),
            ):
                with pytest.raises(ValidationFailed, match='can.t hold the user id "Жук"'):
                    await ask("SELECT 1")
            for actor in (Actor("Жук", ()), ANN):
                with pytest.raises(InvalidSql):
                    await opened(actor).run("SELECT 'Жук'")
            assert (await opened(Actor("Jürg", ())).run("SELECT 'ü'")).rows == (["ü"],)

    try:
        asyncio.run(main())
    finally:
        execute(admin_url, f"DROP DATABASE {name} WITH (FORCE)")
