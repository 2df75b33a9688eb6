"""Rules on schemas, tables and columns: what they close stays closed, however it is asked; the rest
stays open.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg2.extensions import make_dsn, parse_dsn

from common.errors import ForbiddenObject, InvalidSql, StatementRejected
from common.values import Catalog
from databases.catalog.catalog import read_knowledge
from databases.execution.error_redaction import without_hidden_names
from databases.execution.guarded import GuardedDatabase
from guard import BUILTIN, AccessRuleError, AccessRules, Guard, ServerFacts, parse_rule
from guard.facts import Name
from guard.row_rules.unseen_reading import UnseenReading
from postgres.connecting import PostgresLimits, connect
from tests.support.cases import all_cases
from tests.support.databases import as_admin, execute, open_asked, run
from tests.support.effort import tries

DDL = """
CREATE TABLE person (id integer PRIMARY KEY, name text, salary integer, "身份证号" text,
                     bonus integer GENERATED ALWAYS AS (salary * 2) STORED);
COMMENT ON TABLE person IS 'staff; salary in yuan, see diary';
COMMENT ON COLUMN person.name IS 'name（身份证号另列）';
INSERT INTO person VALUES (1, 'Han', 777, 'X777'), (2, 'Li', 778, 'X778');
CREATE TABLE trip (id integer, person_id integer, salary integer, cost integer);
INSERT INTO trip VALUES (1, 1, 5, 10);
CREATE TABLE total (total integer);
CREATE TABLE diary (entry text, n serial);
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
CREATE VIEW bonuses AS SELECT id, bonus AS extra FROM person;
CREATE MATERIALIZED VIEW kept AS SELECT id, salary AS pay FROM person;
CREATE VIEW kept_view AS SELECT pay FROM kept;
CREATE VIEW by_pay AS SELECT id FROM person ORDER BY salary;
CREATE VIEW statistics AS SELECT most_common_vals::text AS v FROM pg_stats;
CREATE VIEW by_text AS SELECT query_to_xml('SELECT salary FROM person', true, true,
    '')::text AS doc;
CREATE FUNCTION pay_of(i integer) RETURNS integer LANGUAGE sql STABLE
    AS 'SELECT salary FROM person WHERE id = i';
CREATE VIEW by_function AS SELECT id, pay_of(id) AS pay FROM trip;
CREATE FUNCTION pays(i integer, n integer) RETURNS integer LANGUAGE sql STABLE
    AS 'SELECT n * pay_of(i)';
CREATE OPERATOR ### (LEFTARG = integer, RIGHTARG = integer, FUNCTION = pays);
CREATE FUNCTION regional(i integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT i';
CREATE VIEW by_harmless_function AS SELECT regional(id) AS id, current_setting('work_mem') AS m
    FROM trip;
CREATE VIEW by_operator AS SELECT id ### 1 AS pay FROM trip;
CREATE VIEW finance.trips AS SELECT * FROM trip;
CREATE VIEW finance.people AS SELECT id, name FROM person;
CREATE TABLE ledger (at date NOT NULL, entry text) PARTITION BY RANGE (at);
CREATE TABLE ledger_2024 PARTITION OF ledger FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE note (at date NOT NULL, entry text) PARTITION BY RANGE (at);
CREATE TABLE note_2023 PARTITION OF note FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE note_2024 PARTITION OF note FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO note VALUES ('2023-02-02', 'open'), ('2024-02-02', '777');
CREATE TABLE animal (name text);
CREATE TABLE finance.animal () INHERITS (public.animal);
INSERT INTO animal VALUES ('dog');
INSERT INTO finance.animal VALUES ('777');
CREATE VIEW animals AS SELECT name FROM animal;
CREATE VIEW own_animals AS SELECT name FROM ONLY animal;
CREATE TABLE part (id integer, code text);
CREATE TABLE special_part () INHERITS (part);
INSERT INTO special_part VALUES (1, '777');
CREATE TABLE base (id integer, hush text);
CREATE TABLE derived (x integer, loud text GENERATED ALWAYS
    AS (hush || '!') STORED) INHERITS (base);
INSERT INTO derived (id, hush, x) VALUES (1, '777', 2);
CREATE TABLE weird (a text);
CREATE TABLE "we[i]rd" (a text);
CREATE TABLE "wei?d" (a text);
INSERT INTO "we[i]rd" VALUES ('777');
CREATE UNIQUE INDEX ON person (salary);
CREATE TABLE loan (id integer REFERENCES person, amount integer REFERENCES person (salary));
CREATE TABLE half (open text, closed text);
CREATE TABLE unread (n integer);
CREATE VIEW unread_view AS SELECT n FROM unread;
"""

DENIED = [
    *(
        "public.person.salary",
        "*.*.身份证号",
        "public.diary",
        "public.ledger",
        "public.event.secret",
        "finance",
        '"人事".*',
    ),
    *(
        "public.note_2024",
        "public.special_part.code",
        "public.base.hush",
        'public."we[i]rd"',
        'public."wei?d"',
    ),
]


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str], admin_url: str) -> str:
    url = make_database(DDL)
    role = parse_dsn(url)["user"]
    execute(
        as_admin(url, admin_url),
        f"REVOKE ALL ON half, unread FROM {role}",
        f"GRANT SELECT (open) ON half TO {role}",
        f"ALTER VIEW unread_view OWNER TO {role}",
    )
    return url


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
    "SELECT count(*) FROM ledger",
    "SELECT count(*) FROM ledger_2024",
    "SELECT secret FROM event",
    "SELECT secret FROM event_2024",
    "SELECT * FROM event_2024",
    "SELECT iban FROM finance.account",
    'SELECT n FROM "人事"."工资"',
    "SELECT n FROM 人事.工资",
    # what computes with it, stores it or runs SQL on it
    "SELECT bonus FROM person",
    "SELECT p.* FROM (SELECT id, bonus FROM person) p",
    "SELECT extra FROM bonuses",
    "SELECT pay FROM kept",
    "SELECT pay FROM kept_view",
    "SELECT id FROM by_pay",
    "SELECT v FROM statistics",
    "SELECT doc FROM by_text",
    "SELECT pay FROM by_function",
    "SELECT pay FROM by_operator",
    "SELECT 1 ### 1",
    "SELECT id FROM finance.trips",
    # what inherits from a table is read with it
    "SELECT entry FROM note",
    "SELECT count(*) FROM note",
    "SELECT entry FROM note_2024",
    "SELECT name FROM animal",
    "SELECT name FROM animal*",
    "SELECT name FROM animal TABLESAMPLE system (100)",
    "SELECT a.name FROM ONLY animal o, animal a",
    "SELECT a.name FROM animal o, ONLY animal a",
    "SELECT name FROM animals",
    "SELECT code FROM part",
    "SELECT * FROM part",
    "SELECT p FROM part p",
    "SELECT a.code FROM ONLY part o, part a",
    "SELECT hush FROM derived",
    "SELECT loud FROM derived",
    "SELECT * FROM derived",
    # characters that stand for others elsewhere
    'SELECT a FROM "we[i]rd"',
    'SELECT a FROM "wei?d"',
    # row types show columns
    "SELECT NULL::person",
    "SELECT NULL::public.diary[]",
    "SELECT NULL::_diary",
    "SELECT '(1)'::finance.account",
    "SELECT finance.account '(1)'",
    "SELECT * FROM json_populate_record(NULL::person, '{}')",
    "SELECT * FROM jsonb_populate_recordset(NULL::diary, '[{}]')",
    "SELECT * FROM json_to_record('{}') AS x (a person)",
    "SELECT * FROM jsonb_to_recordset('[{}]') AS x (a _person)",
    "SELECT pg_typeof(NULL::person)",
    # a name that is a CTE's elsewhere
    "WITH diary AS (SELECT entry FROM diary) SELECT entry FROM diary",
    "WITH a AS (SELECT * FROM diary), diary AS (SELECT 1) SELECT * FROM a",
    "SELECT * FROM (WITH diary AS (SELECT 1 AS n) SELECT n FROM diary) s, diary",
    "WITH diary AS (SELECT 1) SELECT * FROM public.diary",
    "(WITH diary AS (SELECT 'a' AS e) SELECT e FROM diary) UNION SELECT entry FROM diary",
    # rows by other roads
    "SELECT x.p FROM (SELECT p FROM person p) x",
    "SELECT l.* FROM person p, LATERAL (SELECT p.*) l",
    "SELECT count(p) FROM person p",
    "SELECT p IS NULL FROM person p",
    "SELECT (ARRAY[p])[1] FROM person p",
    "SELECT format('%s', p) FROM person p",
    "SELECT rank() OVER (ORDER BY p) FROM person p",
    "SELECT t.id FROM trip t JOIN person p USING (id, salary)",
    "SELECT string_agg(name, ',' ORDER BY salary) FROM person",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY salary) FROM person",
    "SELECT DISTINCT ON (salary) id FROM person",
    "SELECT id FROM person LIMIT (SELECT max(salary) FROM person)",
    "SELECT * FROM ROWS FROM (unnest(ARRAY(SELECT salary FROM person))) AS r (x)",
    r'SELECT U&"sal\0061ry" FROM person',
    "SELECT id FROM person GROUP BY GROUPING SETS ((id), (salary))",
    "TABLE ONLY diary",
    "SELECT * FROM diary_n_seq, diary",
    "SELECT most_common_vals FROM pg_stats",
    "SELECT definition FROM pg_views",
    "SELECT table_to_xml('diary', true, true, '')",
    "SELECT 'diary'::regclass",
]


def test_denied_objects_never_leak(denying: GuardedDatabase) -> None:
    async def ask_all() -> None:
        with all_cases() as cases:
            for sql, method in product(LEAKS, (denying.run, denying.explain)):
                with cases.case(sql):
                    with pytest.raises(ForbiddenObject) as caught:
                        await method(sql)
                    assert caught.value.name in caught.value.text.zh

    asyncio.run(ask_all())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT salary(p) FROM person p",
        "SELECT pg_input_is_valid('(1)', 'public.diary[]')",
        "SELECT (pg_input_error_info('(1)', 'person')).message",
        "SELECT last_value FROM diary_n_seq",
    ],
)
def test_what_is_refused_for_one_reason_or_another(denying: GuardedDatabase, sql: str) -> None:
    with pytest.raises(StatementRejected):
        asyncio.run(denying.run(sql))


@pytest.mark.parametrize(
    "sql", ["SELECT GEHÄLTER FROM a", "SELECT É.gehälter FROM a é", "SELECT é FROM a É", "TABLE Ä"]
)
def test_accented_letters_are_folded_by_some_servers(sql: str) -> None:
    tables = {("public", "a"): ("id", "gehälter"), ("public", "ä"): ("id",)}
    rules = AccessRules(denied=[("public", "a", "gehälter"), ("public", "ä")])
    guard = Guard(access=rules)
    guard.learn(replace(BUILTIN, relations=frozenset(tables), columns=tables))
    guard.check("SELECT id FROM a")
    with pytest.raises(StatementRejected):
        guard.check(sql)


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
    "SELECT entry FROM ONLY note",
    "SELECT entry FROM note_2023",
    "SELECT name FROM ONLY animal",
    "SELECT name FROM ONLY animal TABLESAMPLE system (100)",
    "SELECT name FROM own_animals",
    "SELECT id FROM by_harmless_function",
    "SELECT id FROM part",
    "SELECT * FROM ONLY part",
    "SELECT o.code FROM ONLY part o, part a",
    "SELECT x FROM derived",
    "SELECT a FROM weird",
    "SELECT u.* FROM trip t JOIN person p USING (id) AS u",
    "WITH RECURSIVE diary AS (SELECT 1 AS entry) SELECT entry FROM diary",
]


def test_what_is_not_denied_stays_open(denying: GuardedDatabase) -> None:
    async def ask_all() -> None:
        with all_cases() as cases:
            for sql in HONEST:
                with cases.case(sql):
                    await denying.explain(sql)
                    assert "777" not in repr(await denying.run(sql))

    asyncio.run(ask_all())


def test_denied_objects_are_not_in_the_catalogue(denying: GuardedDatabase) -> None:
    catalog = asyncio.run(denying.catalog())
    names = {
        ".".join((*table.key, column.name)) for table in catalog.tables for column in table.columns
    }
    assert {"public.person.id", "public.trip.salary", "public.event.kind"} <= names
    assert not {
        name
        for name in names
        if "身份证号" in name or name.startswith(("finance", "人事", "public.diary."))
    }
    assert not {"public.person.salary", "public.event.secret"} & names
    person = catalog.by_key["public", "person"]
    assert (person.comment, person.columns[1].comment) == (
        "staff; … in yuan, see …",
        "name（…另列）",
    )
    assert [key.target_columns for key in catalog.by_key["public", "loan"].foreign_keys] == [
        ("id",)
    ]
    assert "777" not in repr(catalog)


@pytest.fixture(scope="module")
def known(url: str) -> tuple[Catalog, ServerFacts]:
    """All that the role can read, and what the guard knows of the server."""

    async def read() -> tuple[Catalog, ServerFacts]:
        with closing(await connect(lambda: url, PostgresLimits())) as connection:
            knowledge = await read_knowledge(connection, show=lambda catalog, _: catalog)
        return knowledge.catalog, knowledge.facts

    return asyncio.run(read())


_NAMES = [
    "public",
    "finance",
    "person",
    "payroll",
    "kept",
    "trip",
    "note_2024",
    "event",
    "part",
    "base",
    "animal",
]
_COLUMNS = ["id", "name", "salary", "pay", "secret", "bonus", "hush", "entry", "code"]
_MASKS = st.sampled_from([*_NAMES, "*", "*a*", "p*"])
_RULES = st.lists(
    st.one_of(
        st.tuples(_MASKS),
        st.tuples(_MASKS, _MASKS),
        st.tuples(_MASKS, _MASKS, st.sampled_from([*_COLUMNS, "*", "*y"])),
    ),
    max_size=4,
)


@settings(max_examples=tries(15))  # each looks at every column
@given(allowed=_RULES, denied=_RULES)
def test_the_catalogue_shows_what_statements_may_read_and_nothing_else(
    known: tuple[Catalog, ServerFacts], allowed: list[Name], denied: list[Name]
) -> None:
    whole, facts = known
    guard = Guard(access=AccessRules(allowed=allowed, denied=denied))
    guard.learn(facts)
    shown = guard.visible(whole, facts)
    for table in whole.tables:
        for column in table.columns:
            visible = shown.by_key.get(table.key)
            sql = f'SELECT "{column.name}" FROM "{table.schema}"."{table.name}"'
            assert (
                visible is not None and visible.column(column.name) is not None
            ) == _is_accepted(guard, sql), sql


def _is_accepted(guard: Guard, sql: str) -> bool:
    try:
        guard.check(sql)
    except StatementRejected:
        return False
    return True


def test_closed_names_are_not_in_what_is_said(denying: GuardedDatabase) -> None:
    for sql in (
        "SELECT p.salry FROM person p",
        "SELECT salry FROM person",
        "SELECT h.closd FROM half h",
        "SELECT e.secrt FROM event_2024 e",
        "SELECT x.salry FROM (SELECT id, name FROM person) x",
    ):
        with pytest.raises(InvalidSql) as caught:
            asyncio.run(denying.run(sql))
        assert caught.value.hint is None
        assert caught.value.position == 8
    with pytest.raises(InvalidSql) as caught:
        asyncio.run(denying.explain("SELECT t.persn_id FROM trip t"))
    assert "t.person_id" in (caught.value.hint or "")
    with pytest.raises(ForbiddenObject) as refused:
        asyncio.run(denying.run("SELECT n FROM unread_view"))
    assert refused.value.text.en == "The database role may not read something that the query needs."
    with pytest.raises(ForbiddenObject, match="half"):
        asyncio.run(denying.run("SELECT closed FROM half"))


def test_what_postgresql_says_loses_closed_names(known: tuple[Catalog, ServerFacts]) -> None:
    whole, facts = known
    catalog = replace(whole, tables=tuple(table for table in whole.tables if table.name == "trip"))

    def told(detail: str, sql: str) -> str:
        error = InvalidSql(detail, sqlstate="55000", position=3)
        shown = without_hidden_names(error, sql, catalog, facts)
        assert isinstance(shown, InvalidSql)
        assert (shown.sqlstate, shown.position) == ("55000", 3)
        return shown.detail

    hidden = without_hidden_names(
        InvalidSql('view "kept" fails', sqlstate="22012"), "SELECT 1 FROM trip", catalog, facts
    )
    assert (
        hidden.text.zh
        == "SQL执行出错（除数为零）: PostgreSQL 的错误信息提到了不可读取的对象，因此不予显示"
    )
    assert "kept" not in told(
        'materialized view "kept" has not been populated', "SELECT 1 FROM trip"
    )
    assert "kept" not in told('物化视图"public.kept"尚未被初始化', "SELECT 1 FROM trip")
    for detail, sql in (
        ('view "kept" is not ready', "TABLE kept"),
        ('column "nosuch" does not exist', "SELECT 1"),
    ):
        assert told(detail, sql) == detail


def test_a_view_made_after_the_catalogue_was_read_is_not_known_yet(
    url: str, admin_url: str
) -> None:
    database = open_asked(url, denied_objects=DENIED)
    asyncio.run(database.catalog())
    admin = as_admin(url, admin_url)
    execute(
        admin,
        "CREATE VIEW later AS SELECT salary AS pay FROM person",
        "GRANT SELECT ON later TO PUBLIC",
    )
    with pytest.raises(InvalidSql, match="later") as caught:
        asyncio.run(database.run("SELECT '工', pay FROM later"))
    assert (caught.value.sqlstate, caught.value.position) == ("42P01", 22)
    execute(admin, "DROP VIEW later")
    database.close()


@pytest.mark.parametrize(
    ("allowed", "open_sql", "closed_sql"),
    [
        (["public.trip"], "SELECT * FROM trip", "SELECT id FROM person"),
        (["finance"], "SELECT iban FROM finance.account", "SELECT id FROM trip"),
        (["public.t*"], "SELECT * FROM total", "SELECT id FROM person"),
        (
            ["public.person.id", "public.person.name"],
            "SELECT id, name FROM person",
            "SELECT salary FROM person",
        ),
        (["public.person.id"], "SELECT p.id FROM person p", "SELECT * FROM person"),
        (["public.event"], "SELECT kind FROM event", "SELECT kind FROM event_2024"),
        (["public.payroll"], "SELECT pay FROM payroll", "SELECT salary FROM person"),
        # a view opened by a pattern or with its schema is followed to what it reads, one opened by
        # name is not
        (["public.trip", "finance"], "SELECT * FROM finance.trips", "SELECT * FROM finance.people"),
        (["public.pay*"], "SELECT 1", "SELECT pay FROM payroll"),
        (
            ["public.payroll", "public.payroll_*"],
            "SELECT * FROM payroll_of_payroll",
            "SELECT * FROM public_person",
        ),
        (["public.payroll.id"], "SELECT id FROM payroll", "SELECT pay FROM payroll"),
        (
            ["public.person.id", "public.person.b*"],
            "SELECT id FROM person",
            "SELECT bonus FROM person",
        ),
        (["public.person.bonus"], "SELECT bonus FROM person", "SELECT salary FROM person"),
        (["public.animal"], "SELECT * FROM animal", "SELECT * FROM finance.animal"),
        (
            ["public.t[r]ip", "public.?rip", "public.Total", "public.total"],
            "TABLE total",
            "TABLE trip",
        ),
    ],
)
def test_allowed_objects_close_everything_else(
    url: str, allowed: list[str], open_sql: str, closed_sql: str
) -> None:
    database = open_asked(url, allowed_objects=allowed)
    asyncio.run(database.run(open_sql))
    with pytest.raises(ForbiddenObject):
        asyncio.run(database.run(closed_sql))
    database.close()


def test_a_denial_wins_and_a_view_allowed_by_name_is_a_window(url: str) -> None:
    database = open_asked(
        url,
        allowed_objects=["*", "public.payroll"],
        denied_objects=["public.person.salary", "public.diary"],
    )
    assert asyncio.run(database.run("SELECT max(pay) FROM payroll")).rows == ([778],)
    for sql in ("SELECT salary FROM person", "SELECT doc FROM person_rows", "SELECT * FROM diary"):
        with pytest.raises(ForbiddenObject):
            asyncio.run(database.run(sql))
    database.close()


def test_a_view_s_function_may_be_vouched_for(url: str) -> None:
    rules = {"denied_objects": ["public.diary"], "allowed_functions": ["public.pay_of"]}
    database = open_asked(url, **rules)
    assert asyncio.run(database.run("SELECT pay FROM by_function")).rows == ([777],)
    with pytest.raises(ForbiddenObject, match="by_operator"):
        asyncio.run(database.run("SELECT pay FROM by_operator"))
    database.close()


def test_a_denial_of_nothing_is_said_in_the_log(url: str, caplog: pytest.LogCaptureFixture) -> None:
    idle = ["public.Person", "hr", "public.person.Salary", "*.*.工资"]
    database = open_asked(
        url, denied_objects=[*DENIED, *idle, "public.event_2024.secret", "public.half.closed"]
    )
    asyncio.run(database.catalog())
    said = [
        record.getMessage() for record in caplog.records if "DENIED_OBJECTS" in record.getMessage()
    ]
    assert [message.split()[1] for message in said] == sorted(idle)
    database.close()


def test_rules_hold_when_the_forbidden_check_is_off(url: str) -> None:
    database = open_asked(url, denied_objects=DENIED, forbidden_check=False)
    for sql in (
        "SELECT salary FROM person",
        "SELECT query_to_xml('TABLE diary', true, true, '')",
        "TABLE pg_stats",
    ):
        with pytest.raises(ForbiddenObject):
            asyncio.run(database.run(sql))
    database.close()


@pytest.mark.parametrize("rule", ["", ".", "a.b.c.d", "a..b", '"a', 'a"b', " "])
def test_rules_that_are_none(rule: str) -> None:
    with pytest.raises(AccessRuleError):
        parse_rule(rule)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=3)
)
def test_quoted_rules_hold_any_name(parts: list[str]) -> None:
    text = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    assert parse_rule(text) == tuple(parts)


# ------------------------------------------------------------------------------------- servers of
# another encoding

LONG = "ä" * 31  # one more byte, and the parser cuts the name
STORED = ("ärger", "Übel", "übel", "item", f"{LONG}zehn", "z" * 62 + "é", f"plain_{LONG}", "订单")
MISREAD = (
    'WITH "Ärger" AS (SELECT 1 AS id) SELECT * FROM Ärger',
    'WITH Ärger AS (SELECT 1 AS id) SELECT * FROM "Ärger"',
    'SELECT * FROM (WITH "Ärger" AS (SELECT 1 AS id) SELECT * FROM ÄRGER) x',
    "WITH RECURSIVE Ärger AS (SELECT 1 AS id UNION SELECT id FROM Ärger) SELECT 1",
    'WITH "İtem" AS (SELECT 1 AS id) SELECT * FROM İtem',
    f'WITH "{LONG}z" AS (SELECT 1 AS id) SELECT * FROM {LONG}zehn',
    f'WITH "{LONG}zwei" AS (SELECT 1 AS id) SELECT * FROM "{LONG}zehn"',
    f'WITH "{"z" * 62}" AS (SELECT 1 AS id) SELECT * FROM {"z" * 62}é',
    "SELECT * FROM Übel",
    'SELECT * FROM public."Übel"',
    "SELECT * FROM pg_settİngs",
)
READ_AS_WRITTEN = (
    'SELECT * FROM "ärger", ärger AS "Ärger"',
    "WITH plain AS (SELECT * FROM ärger) SELECT * FROM plain",
    "WITH Änderung AS (SELECT * FROM ärger) SELECT * FROM Änderung",
    "WITH 订单 AS (SELECT * FROM public.订单) SELECT * FROM 订单",
    f"WITH {'月' * 20} AS (SELECT 1 AS 金额) SELECT * FROM {'月' * 20}",
)


def _facts_of(encoding: str) -> ServerFacts:
    relations = frozenset(("public", name) for name in STORED)
    attributes = dict.fromkeys(relations, ())
    columns = {key: frozenset(("id",)) for key in relations}
    return replace(
        BUILTIN, encoding=encoding, relations=relations, attributes=attributes, columns=columns,
        is_complete=True,
        is_followable=True, system_relations=frozenset(("pg_settings",)),
    )  # fmt: skip


@pytest.mark.parametrize("forbidden_check", [True, False])
def test_names_that_the_server_reads_as_other_tables_are_refused(forbidden_check: bool) -> None:
    guard = Guard(forbidden_check=forbidden_check)
    guard.learn(_facts_of("LATIN5"))
    for sql in MISREAD:
        with pytest.raises(ForbiddenObject, match="encoding is not UTF-8|System tables"):
            guard.check(sql)
        with pytest.raises(ForbiddenObject):
            UnseenReading(frozenset()).check(sql, _facts_of("LATIN5"))
    for sql in READ_AS_WRITTEN:
        guard.check(sql)
    guard.learn(_facts_of("UTF8"))
    for sql in (*MISREAD[:-1], *READ_AS_WRITTEN):
        guard.check(sql)


def test_a_column_is_closed_however_the_server_reads_its_name() -> None:
    key = ("public", "item")
    columns = frozenset(("id", "item", f"{LONG}zehn"))
    guard = Guard(access=AccessRules(denied=[(*key, "item"), (*key, f"{LONG}zehn")]))
    for encoding, sqls in {
        "LATIN5": (
            "SELECT İtem FROM item",
            f"SELECT {LONG}zehn FROM item",
            f"SELECT t.{LONG}zwei FROM item AS t",
        ),
        "UTF8": ("SELECT item FROM item",),
    }.items():
        guard.learn(replace(_facts_of(encoding), columns={key: columns}))
        guard.check("SELECT id FROM item")
        for sql in sqls:
            with pytest.raises(ForbiddenObject):
                guard.check(sql)


def test_a_view_with_a_cte_that_may_be_a_closed_table_is_closed() -> None:
    key, definition = (
        ("public", "v"),
        f'WITH "{LONG}zwei" AS (SELECT 1 AS id) SELECT id FROM "{LONG}zehn"',
    )
    guard = Guard(access=AccessRules(denied=[("public", f"{LONG}zehn")]))
    for encoding, is_open in {"LATIN1": False, "UTF8": True}.items():
        facts = _facts_of(encoding)
        guard.learn(
            replace(facts, relations=facts.relations | {key}, view_definitions={key: definition})
        )
        if is_open:
            guard.check("SELECT id FROM v")
        else:
            with pytest.raises(ForbiddenObject, match="The view public.v reads"):
                guard.check("SELECT id FROM v")


def test_a_database_of_another_encoding(admin_url: str) -> None:
    name = "citu_test_latin1"
    execute(admin_url, f"DROP DATABASE IF EXISTS {name}")
    execute(
        admin_url,
        (
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' "
            "LOCALE_PROVIDER libc LOCALE 'C'"
        ),
    )
    url = make_dsn(admin_url, dbname=name, client_encoding="UTF8")
    database = open_asked(url, denied_objects=[f'public."{LONG}zehn"'])
    try:
        execute(
            url, f'CREATE TABLE "{LONG}zehn" (id) AS SELECT 777', "CREATE TABLE plain (id integer)"
        )
        for sql in (f'SELECT id FROM "{LONG}zehn"', MISREAD[5]):
            with pytest.raises(StatementRejected):
                run(database, sql)
        assert run(database, "WITH Ärger AS (SELECT 1 AS id) SELECT * FROM Ärger").rows == ([1],)
    finally:
        database.close()
        execute(admin_url, f"DROP DATABASE {name} WITH (FORCE)")
