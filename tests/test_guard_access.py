"""Rules on schemas, tables and columns: what they close stays closed, however it is asked; the rest stays open."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.database import AccessRuleError, GuardedDatabase
from common.database.guard import parse_rule
from common.errors import ForbiddenObject, StatementRejected
from tests.databases import open_asked

DDL = """
CREATE TABLE person (id integer PRIMARY KEY, name text, salary integer, "身份证号" text);
INSERT INTO person VALUES (1, 'Han', 777, 'X777'), (2, 'Li', 778, 'X778');
CREATE TABLE trip (id integer, person_id integer, salary integer, cost integer);
INSERT INTO trip VALUES (1, 1, 5, 10);
CREATE TABLE total (total integer);
CREATE TABLE diary (entry text);
INSERT INTO diary VALUES ('777');
CREATE VIEW public_person AS SELECT id, name FROM person;
CREATE VIEW payroll AS SELECT id, salary AS pay FROM person;
CREATE VIEW person_rows AS SELECT row_to_json(p) AS doc FROM person p;
CREATE VIEW payroll_of_payroll AS SELECT pay FROM payroll;
CREATE VIEW diary_view AS SELECT * FROM diary;
CREATE TABLE event (at date NOT NULL, secret text, kind text) PARTITION BY RANGE (at);
CREATE TABLE event_2024 PARTITION OF event FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO event VALUES ('2024-02-02', '777', 'k');
CREATE SCHEMA finance;
CREATE TABLE finance.account (iban text);
CREATE SCHEMA "人事";
CREATE TABLE "人事"."工资" (n integer);
"""

DENIED = ["public.person.salary", "*.*.身份证号", "public.diary", "public.event.secret", "finance", '"人事".*']


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str]) -> str:
    return make_database(DDL)


@pytest.fixture(scope="module")
def denying(url: str) -> Iterator[GuardedDatabase]:
    database = open_asked(url, denied_objects=DENIED)
    yield database
    database.close()


LEAKS = [
    "SELECT salary FROM person",
    "SELECT person.salary FROM person",
    "SELECT p.salary FROM person p",
    "SELECT p.SALARY FROM public.person AS p",
    "SELECT public.person.salary FROM public.person",
    'SELECT "身份证号" FROM person',
    "SELECT 身份证号 FROM person",
    "SELECT * FROM person",
    "SELECT p.* FROM person p",
    "SELECT public.person.* FROM public.person",
    "TABLE person",
    "SELECT p FROM person p",
    "SELECT person FROM person",
    "SELECT public.person FROM public.person",
    "SELECT p::text FROM person p",
    "SELECT row_to_json(p) FROM person p",
    "SELECT to_jsonb(person) FROM person",
    "SELECT json_agg(p) FROM person AS p",
    "SELECT (p).salary FROM person p",
    "SELECT ROW(p.*) FROM person p",
    "SELECT array_agg(p.*) FROM person p",
    "SELECT total FROM person AS total",
    "SELECT c FROM person AS x (a, b, c, d)",
    "SELECT x.c FROM person AS x (a, b, c)",
    "SELECT id FROM person WHERE salary > 700",
    "SELECT id FROM person ORDER BY salary",
    "SELECT count(*) FROM person GROUP BY salary",
    "SELECT sum(salary) OVER () FROM person",
    "SELECT max(id) FILTER (WHERE salary > 1) FROM person",
    "SELECT t.id FROM trip t JOIN person p ON p.salary = t.salary",
    "SELECT t.id FROM trip t JOIN person p USING (salary)",
    "SELECT t.id FROM trip t NATURAL JOIN person p",
    "SELECT j.salary FROM (trip t JOIN person p ON true) AS j (a, b, c)",
    "SELECT j.b FROM (person p CROSS JOIN trip t) AS j (x, y, b)",
    "SELECT b FROM (trip t JOIN (person p JOIN trip u ON true) ON true) AS j (a, c, d, e, f, g, b)",
    "SELECT j.* FROM (trip t JOIN person p ON p.id = t.id) AS j",
    "SELECT j FROM (trip t JOIN person p ON p.id = t.id) AS j",
    "SELECT * FROM trip, person",
    "SELECT s.pay FROM (SELECT salary AS pay FROM person) s",
    "SELECT * FROM (SELECT * FROM person) s",
    "WITH a AS (SELECT * FROM person) SELECT name FROM a",
    "WITH a (x, y, z) AS (TABLE person) SELECT z FROM a",
    "WITH person AS (SELECT * FROM person) SELECT salary FROM person",
    "SELECT (SELECT salary FROM person LIMIT 1)",
    "SELECT id FROM trip WHERE id IN (SELECT salary FROM person)",
    "SELECT name FROM public_person UNION SELECT salary::text FROM person",
    "SELECT l.s FROM person p, LATERAL (SELECT p.salary AS s) l",
    "SELECT l.s FROM person p, LATERAL (SELECT p AS s) l",
    "SELECT salary FROM person TABLESAMPLE system (100)",
    "SELECT * FROM ONLY person",
    "SELECT pay FROM payroll",
    "SELECT doc FROM person_rows",
    "SELECT pay FROM payroll_of_payroll",
    "SELECT * FROM diary",
    "SELECT entry FROM public.diary",
    "SELECT entry FROM diary_view",
    "SELECT 1 FROM trip WHERE EXISTS (SELECT 1 FROM diary)",
    "SELECT secret FROM event",
    "SELECT secret FROM event_2024",
    "SELECT * FROM event_2024",
    "SELECT iban FROM finance.account",
    'SELECT n FROM "人事"."工资"',
    "SELECT n FROM 人事.工资",
]


@pytest.mark.parametrize("sql", LEAKS)
def test_denied_objects_never_leak(denying: GuardedDatabase, sql: str) -> None:
    for method in (denying.run, denying.explain):
        with pytest.raises(ForbiddenObject) as caught:
            asyncio.run(method(sql))
        assert caught.value.name in caught.value.text.zh


def test_a_column_written_like_a_function(denying: GuardedDatabase) -> None:
    with pytest.raises(StatementRejected):
        asyncio.run(denying.run("SELECT salary(p) FROM person p"))


HONEST = [
    "SELECT id, name FROM person",
    "SELECT p.id, p.name FROM public.person p WHERE p.name = 'Han' ORDER BY p.id",
    "SELECT count(*) FROM person",
    "SELECT t.salary, p.name FROM trip t JOIN person p ON p.id = t.person_id",
    "SELECT t.* FROM trip t JOIN person p ON p.id = t.person_id",
    "SELECT * FROM trip",
    "SELECT salary FROM trip",
    "SELECT t FROM trip t",
    "SELECT p.name, s.* FROM person p JOIN (SELECT * FROM trip) s ON s.person_id = p.id",
    "SELECT t.id FROM trip t JOIN person p USING (id)",
    "SELECT * FROM public_person",
    "WITH a AS (SELECT id, name FROM person) SELECT * FROM a",
    "WITH diary AS (SELECT 1 AS n) SELECT * FROM diary",
    "SELECT total FROM total",
    "SELECT at, kind FROM event",
    "SELECT e.kind FROM event_2024 e",
    "SELECT 'salary', 1 AS pay",
]


@pytest.mark.parametrize("sql", HONEST)
def test_what_is_not_denied_staysopen_asked(denying: GuardedDatabase, sql: str) -> None:
    asyncio.run(denying.explain(sql))
    asyncio.run(denying.run(sql))


def test_denied_objects_are_not_in_the_catalogue(denying: GuardedDatabase) -> None:
    catalog = asyncio.run(denying.catalog())
    names = {".".join((*table.key, column.name)) for table in catalog.tables for column in table.columns}
    assert {"public.person.id", "public.trip.salary", "public.event.kind"} <= names
    assert not {name for name in names if "身份证号" in name or name.startswith(("finance", "人事", "public.diary."))}
    assert not {"public.person.salary", "public.event.secret"} & names


@pytest.mark.parametrize(
    ("allowed", "open_sql", "closed_sql"),
    [
        (["public.trip"], "SELECT * FROM trip", "SELECT id FROM person"),
        (["finance"], "SELECT iban FROM finance.account", "SELECT id FROM trip"),
        (["public.t*"], "SELECT * FROM total", "SELECT id FROM person"),
        (["public.person.id", "public.person.name"], "SELECT id, name FROM person", "SELECT salary FROM person"),
        (["public.person.id"], "SELECT p.id FROM person p", "SELECT * FROM person"),
        (["public.event"], "SELECT kind FROM event", "SELECT kind FROM event_2024"),
        (["public.payroll"], "SELECT pay FROM payroll", "SELECT salary FROM person"),
    ],
)
def test_allowed_objects_close_everything_else(url: str, allowed: list[str], open_sql: str, closed_sql: str) -> None:
    database = open_asked(url, allowed_objects=allowed)
    asyncio.run(database.run(open_sql))
    with pytest.raises(ForbiddenObject):
        asyncio.run(database.run(closed_sql))
    database.close()


def test_a_denial_wins_and_a_view_allowed_by_name_is_a_window(url: str) -> None:
    database = open_asked(
        url, allowed_objects=["*", "public.payroll"], denied_objects=["public.person.salary", "public.diary"]
    )
    assert asyncio.run(database.run("SELECT max(pay) FROM payroll")).rows == ([778],)
    for sql in ("SELECT salary FROM person", "SELECT doc FROM person_rows", "SELECT * FROM diary"):
        with pytest.raises(ForbiddenObject):
            asyncio.run(database.run(sql))
    database.close()


def test_rules_hold_when_the_forbidden_check_is_off(url: str) -> None:
    database = open_asked(url, denied_objects=DENIED, forbidden_check=False)
    with pytest.raises(ForbiddenObject):
        asyncio.run(database.run("SELECT salary FROM person"))
    database.close()


@pytest.mark.parametrize("rule", ["", ".", "a.b.c.d", "a..b", '"a', 'a"b', " "])
def test_rules_that_are_none(rule: str) -> None:
    with pytest.raises(AccessRuleError):
        parse_rule(rule)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=3))
def test_quoted_rules_hold_any_name(parts: list[str]) -> None:
    text = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    assert parse_rule(text) == tuple(parts)
