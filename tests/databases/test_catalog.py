"""The catalogue of a real database: what is in it, what is not, its cost, and how it is kept."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import psycopg2
import pytest
from psycopg2.extensions import parse_dsn

from common.actor import NOBODY
from common.errors import DatabaseUnavailable
from common.meanings import ColumnMeaning
from common.values import Catalog, Column, ForeignKey, Table
from databases.catalog import sampling
from databases.catalog.sampling_permission import SamplingPermission
from databases.catalog.value_lists import value_lists
from databases.datasources import DEFAULT, Datasource, Datasources
from databases.options import DatabaseOptions
from guard import BUILTIN
from guard.facts import Key
from tests.support.databases import as_admin, execute, open_asked, rows_of, until

DDL = """
CREATE TYPE mood AS ENUM ('happy', 'sad', 'never used');
CREATE DOMAIN code AS varchar(10);
CREATE TABLE area (id integer PRIMARY KEY, name text NOT NULL, province text, grade code, note text,
    mood mood);
COMMENT ON TABLE area IS '服务区';
COMMENT ON COLUMN area.name IS '名称 O''Hara "x"';
INSERT INTO area
    SELECT n, '服务区' || n, CASE WHEN n % 2 = 0 THEN '江西' ELSE '湖南' END, 'A' || n % 3,
        repeat('long', n * 20),
           CASE WHEN n > 3 THEN 'sad' ELSE 'happy' END::mood
    FROM generate_series(1, 20) AS n;
CREATE TABLE day (area_id integer REFERENCES area, day date, amount numeric(12, 2),
    PRIMARY KEY (area_id, day));
CREATE TABLE detail (area_id integer, day date, line integer,
                     FOREIGN KEY (area_id, day) REFERENCES day (area_id, day), gone text);
ALTER TABLE detail DROP COLUMN gone;
INSERT INTO day SELECT 1, DATE '2024-01-01' + n, n FROM generate_series(1, 100) AS n;
CREATE TABLE wide (name text);
INSERT INTO wide SELECT 'value ' || n FROM generate_series(1, 501) AS n;
CREATE VIEW busy AS SELECT name, province FROM area WHERE id > 10;
COMMENT ON VIEW busy IS 'busy areas';
CREATE VIEW broken AS SELECT 1 / (id - id) AS n, name FROM area;
CREATE MATERIALIZED VIEW totals AS SELECT area_id, sum(amount) AS total FROM day GROUP BY area_id;
CREATE TABLE log (at date NOT NULL, level text) PARTITION BY RANGE (at);
CREATE TABLE log_2024 PARTITION OF log FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO log VALUES ('2024-01-01', 'info'), ('2024-01-02', 'error');
CREATE DOMAIN size AS text CHECK (VALUE IN ('S', 'M'));
CREATE TABLE rule (code text, "Level" smallint CHECK ("Level" IN (1, 2, -3)), size size,
    moods mood[],
                   status varchar(9) CHECK (status IS NULL OR status = 'on'
                       OR status IN ('off', 'O''Neill')),
                   score integer CHECK (score BETWEEN 0 AND 100), note text
                       CHECK (lower(note) = 'x'),
                   kind text CHECK (kind = ANY ('{a,"b c"}')), begun timestamptz, never date,
                       clock time,
                   UNIQUE (code, "Level"));
INSERT INTO rule (begun, never) VALUES ('2024-02-29 12:00+00', 'infinity'),
    ('1999-12-31 12:00+00', NULL);
CREATE SCHEMA "销售";
CREATE TABLE "销售"."大区 ""A"" 1" (编号 integer, "Name" text);
INSERT INTO "销售"."大区 ""A"" 1" VALUES (1, 'a''b"c\\d,{}');
CREATE TABLE secret (token text);
CREATE TABLE half (id integer, open text, closed text);
CREATE SCHEMA hidden;
CREATE TABLE hidden.t (n integer);
CREATE TABLE pg_orders (note text);
"""


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str], admin_url: str) -> str:
    url = make_database(DDL)
    role = parse_dsn(url)["user"]
    execute(
        as_admin(url, admin_url),
        f"REVOKE ALL ON secret, half FROM {role}",
        f"GRANT SELECT (id, open) ON half TO {role}",
        f"REVOKE ALL ON SCHEMA hidden FROM {role}",
    )
    return url


@pytest.fixture(scope="module")
def catalog(url: str) -> Catalog:
    database = open_asked(url)
    catalog = asyncio.run(database.catalog())
    database.close()
    return catalog


def _table(catalog: Catalog, name: str, schema: str = "public") -> Table:
    return catalog.by_key[schema, name]


def _column(catalog: Catalog, table: str, name: str) -> Column:
    column = _table(catalog, table).column(name)
    assert column is not None
    return column


def test_what_the_role_can_read_and_nothing_else(catalog: Catalog) -> None:
    assert {table.key for table in catalog.tables} == {
        *(
            ("public", name)
            for name in ("area", "day", "detail", "wide", "busy", "broken", "totals", "log", "half")
        ),
        ("public", "pg_orders"),
        ("public", "rule"),
        ("销售", '大区 "A" 1'),
    }
    assert [column.name for column in _table(catalog, "half").columns] == ["id", "open"]
    assert [column.name for column in _table(catalog, "detail").columns] == [
        "area_id",
        "day",
        "line",
    ]


def test_kinds(catalog: Catalog) -> None:
    kinds = {table.name: table.kind for table in catalog.tables}
    assert kinds["area"] == kinds["log"] == "table"
    assert kinds["busy"] == "view"
    assert kinds["totals"] == "materialized view"


def test_comments_types_and_nullability(catalog: Catalog) -> None:
    assert _table(catalog, "area").comment == "服务区"
    assert _table(catalog, "busy").comment == "busy areas"
    assert _table(catalog, "day").comment is None
    name = _column(catalog, "area", "name")
    assert (name.type, name.comment, name.nullable) == ("text", '名称 O\'Hara "x"', False)
    assert _column(catalog, "day", "amount").type == "numeric(12,2)"
    assert _column(catalog, "area", "province").nullable


def test_keys(catalog: Catalog) -> None:
    assert _table(catalog, "area").primary_key == ("id",)
    assert _table(catalog, "day").primary_key == ("area_id", "day")
    assert _table(catalog, "day").foreign_keys == (
        ForeignKey(("area_id",), ("public", "area"), ("id",)),
    )
    assert _table(catalog, "detail").foreign_keys == (
        ForeignKey(("area_id", "day"), ("public", "day"), ("area_id", "day")),
    )


def test_unique_keys(catalog: Catalog) -> None:
    assert _table(catalog, "rule").unique_keys == (("code", "Level"),)
    assert _table(catalog, "area").unique_keys == ()


def test_values_that_a_column_is_confined_to(catalog: Catalog) -> None:
    assert _column(catalog, "area", "mood").allowed == ("happy", "sad", "never used")
    assert {
        column.name: column.allowed for column in _table(catalog, "rule").columns if column.allowed
    } == {
        "Level": ("1", "2", "-3"),
        "size": ("S", "M"),
        "moods": ("happy", "sad", "never used"),
        "status": ("on", "off", "O'Neill"),
        "kind": ("a", "b c"),
    }


@pytest.mark.parametrize(
    "expression",
    [
        "(h >= 1) AND (h <= 3)",
        "NOT (a = 'x'::text)",
        "(a = 'x') OR (b = 'y')",
        "a <> 'x'",
        "a = b",
        "((",
        "a = NULL",
    ],
)
def test_other_conditions_confine_to_no_list(expression: str) -> None:
    assert value_lists(expression) == {}


def test_the_days_a_column_spans(catalog: Catalog) -> None:
    assert _column(catalog, "day", "day").period == ("2024-01-02", "2024-04-10")
    assert _column(catalog, "log", "at").period == ("2024-01-01", "2024-01-02")
    assert _column(catalog, "rule", "begun").period == ("1999-12-31", "2024-02-29")
    assert [_column(catalog, "rule", name).period for name in ("never", "clock", "code")] == [
        None,
        None,
        None,
    ]


def test_row_estimates(catalog: Catalog) -> None:
    assert _table(catalog, "area").row_estimate == 20
    assert _table(catalog, "log").row_estimate == 2
    assert _table(catalog, "busy").row_estimate == -1


def test_stored_values_of_small_tables_are_complete(catalog: Catalog) -> None:
    province = _column(catalog, "area", "province")
    assert (set(province.values), province.is_complete) == ({"江西", "湖南"}, True)
    assert _column(catalog, "area", "grade").values == ("A0", "A1", "A2")
    mood = _column(catalog, "area", "mood")
    assert (mood.values, mood.is_complete) == (("happy", "sad"), True)
    assert set(_column(catalog, "log", "level").values) == {"info", "error"}
    (odd,) = _table(catalog, '大区 "A" 1', "销售").columns[1].values
    assert odd == "a'b\"c\\d,{}"


def test_values_that_are_many_long_or_not_text_are_left_out(catalog: Catalog) -> None:
    assert _column(catalog, "wide", "name").values == ()
    assert _column(catalog, "area", "id").values == ()
    note = _column(catalog, "area", "note")
    assert all(len(value) <= 100 for value in note.values)
    assert not note.is_complete


def test_a_view_that_fails_harms_nothing(catalog: Catalog) -> None:
    assert [column.name for column in _table(catalog, "broken").columns] == ["n", "name"]
    assert set(_column(catalog, "busy", "province").values) == {"江西", "湖南"}


# Each construct takes a lock of its own number, which neither a rollback nor READ ONLY stops.
LOCKING = """
CREATE FUNCTION lock(n integer) RETURNS text LANGUAGE plpgsql
    AS 'BEGIN PERFORM pg_advisory_lock(n); RETURN 1; END';
CREATE FUNCTION stable_lock(n integer) RETURNS text STABLE LANGUAGE sql AS 'SELECT lock(n)';
CREATE TABLE item (name text, n integer);
INSERT INTO item VALUES ('a', 1), ('b', 2);
CREATE VIEW by_built_in AS SELECT pg_advisory_lock(1)::text AS t;
CREATE VIEW by_function AS SELECT lock(2) AS t;
CREATE VIEW by_view AS SELECT t FROM by_function;
CREATE VIEW by_condition AS SELECT name FROM item WHERE stable_lock(3) IS NOT NULL;
CREATE OPERATOR <-*-> (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4mul);
CREATE FUNCTION locked(integer, integer) RETURNS text STABLE LANGUAGE sql AS 'SELECT lock(4)';
CREATE OPERATOR <-+-> (LEFTARG = integer, RIGHTARG = integer, FUNCTION = locked);
CREATE VIEW by_operator AS SELECT n <-+-> n AS t FROM item;
CREATE DOMAIN checked AS text CHECK (lock(5) IS NOT NULL);
CREATE VIEW by_domain AS SELECT name::checked AS t FROM item;
CREATE TYPE mood AS ENUM ('happy', 'sad');
CREATE FUNCTION told(mood) RETURNS text LANGUAGE sql AS 'SELECT lock(6)';
CREATE CAST (mood AS text) WITH FUNCTION told(mood);
CREATE TABLE felt (mood mood);
INSERT INTO felt VALUES ('sad');
CREATE TYPE label;
CREATE FUNCTION label_in(cstring) RETURNS label IMMUTABLE STRICT LANGUAGE internal AS 'textin';
CREATE FUNCTION label_out(label) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'textout';
CREATE TYPE label (INPUT = label_in, OUTPUT = label_out, LIKE = text, CATEGORY = 'S');
CREATE FUNCTION told(label) RETURNS text LANGUAGE sql AS 'SELECT lock(7)';
CREATE CAST (label AS text) WITH FUNCTION told(label);
CREATE DOMAIN tag AS label;
CREATE TABLE labelled (label label, tag tag);
INSERT INTO labelled VALUES ('x', 'y');
CREATE TABLE tenant (name text);
INSERT INTO tenant VALUES ('a'), ('b');
ALTER TABLE tenant ENABLE ROW LEVEL SECURITY;
CREATE POLICY locks ON tenant USING (lock(8) IS NOT NULL);
CREATE TABLE lodger (name text, n integer);
INSERT INTO lodger VALUES ('a', 1);
ALTER TABLE lodger ENABLE ROW LEVEL SECURITY;
CREATE POLICY locks ON lodger USING (n <-+-> n IS NOT NULL);
CREATE VIEW tenants AS SELECT name FROM tenant;
CREATE VIEW harmless AS SELECT upper(name) AS name, n <-*-> n AS product FROM item
    WHERE n IN (SELECT n FROM item);
CREATE TABLE own_rows (name text);
INSERT INTO own_rows VALUES ('mine'), ('theirs');
ALTER TABLE own_rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON own_rows USING (name IN (SELECT lower('MINE')));
CREATE DOMAIN plain AS varchar(10);
CREATE DOMAIN plainer AS plain;
CREATE TABLE domains (name plainer);
INSERT INTO domains VALUES ('p');
"""


def test_nothing_runs_unasked_but_what_a_question_might_run(
    make_database: Callable[[str], str], admin_url: str
) -> None:
    url = make_database(LOCKING)
    database = open_asked(url, allowed_functions=["public.*"])
    catalog = asyncio.run(database.catalog())
    locks = (
        "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid "
        "FROM pg_database"
    )
    locks += " WHERE datname = current_database())"
    assert rows_of(as_admin(url, admin_url), locks) == []
    values = {
        table.name: table.columns[0].values for table in catalog.tables if table.columns[0].values
    }
    assert values == {
        "item": ("a", "b"),
        "harmless": ("A", "B"),
        "own_rows": ("mine",),
        "domains": ("p",),
    }
    database.close()


def test_a_server_that_hides_its_views_is_not_read_unasked(
    make_database: Callable[[str], str], admin_url: str
) -> None:
    url = make_database(
        "CREATE TABLE item (name text); INSERT INTO item VALUES ('a'); CREATE VIEW v AS TABLE item"
    )
    execute(as_admin(url, admin_url), "REVOKE SELECT ON pg_rewrite FROM PUBLIC")
    database = open_asked(url)
    assert [table.columns[0].name for table in asyncio.run(database.catalog()).tables] == [
        "name",
        "name",
    ]
    assert asyncio.run(database.run("SELECT name FROM v")).rows == (["a"],)
    database.close()
    closed = open_asked(url, denied_objects=["public.other"])
    with pytest.raises(DatabaseUnavailable, match="DENIED_OBJECTS"):
        asyncio.run(closed.run("SELECT name FROM item"))
    closed.close()


def test_other_servers_tables_are_not_read_unasked() -> None:
    def key(name: str) -> Key:
        return ("public", name)

    facts = replace(
        BUILTIN,
        relations=frozenset(map(key, ("here", "there", "whole", "view"))),
        parents={key("there"): frozenset((key("whole"),))},
        view_definitions={key("view"): "SELECT n FROM here, there", key("unread"): ""},
        read_conditions={key("there"): (None,)},
        is_followable=True,
    )
    unasked = SamplingPermission(facts)
    harmless = [
        name
        for name in ("here", "there", "whole", "view", "unread")
        if unasked.is_harmless(key(name))
    ]
    assert harmless == ["here"]


def test_keys_name_only_what_the_role_may_read(
    make_database: Callable[[str], str], admin_url: str
) -> None:
    url = make_database(
        "CREATE TABLE one (id integer, part integer, PRIMARY KEY (id, part));"
        "CREATE TABLE two (id integer PRIMARY KEY, one integer, part integer, closed integer"
        " REFERENCES two,"
        " FOREIGN KEY (one, part) REFERENCES one)"
    )
    role = parse_dsn(url)["user"]
    grants = "GRANT SELECT (id) ON one TO {0}", "GRANT SELECT (id, one, part) ON two TO {0}"
    execute(
        as_admin(url, admin_url),
        f"REVOKE ALL ON one, two FROM {role}",
        *(grant.format(role) for grant in grants),
    )
    catalog = asyncio.run(open_asked(url).catalog())
    assert [(table.primary_key, table.foreign_keys) for table in catalog.tables] == [
        ((), ()),
        (("id",), ()),
    ]


def test_search_path(catalog: Catalog) -> None:
    assert catalog.search_path == ("public",)


def test_statistics_stand_in_for_large_tables(make_database: Callable[[str], str]) -> None:
    url = make_database(
        "CREATE TABLE large (kind text, filler text, day date, paid timestamp);"
        "INSERT INTO large SELECT 'k' || n % 5, repeat(md5(n::text), 8),"
        " DATE '2001-01-01' + n % 3000,"
        " TIMESTAMP '2020-01-01 08:00' + n % 3 * INTERVAL '1 day' FROM generate_series(1,"
        " 70000) AS n"
    )
    catalog = asyncio.run(open_asked(url).catalog())
    kind = _column(catalog, "large", "kind")
    assert set(kind.values) == {f"k{n}" for n in range(5)}
    assert kind.is_complete
    assert _column(catalog, "large", "filler").values == ()
    assert _column(catalog, "large", "day").period == ("2001-01-01", "2009-03-19")
    assert _column(catalog, "large", "paid").period == ("2020-01-01", "2020-01-03")


def test_when_time_is_up_statistics_still_tell_values(
    make_database: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_database(
        "CREATE TABLE shop (kind text, opened date); CREATE TABLE fresh (kind text);"
        "INSERT INTO shop SELECT 'k' || n % 5, DATE '2001-01-01' + n % 300"
        " FROM generate_series(1, 900) AS n;"
        "INSERT INTO fresh VALUES ('new'); ANALYZE shop"
    )
    monkeypatch.setattr(sampling, "_SAMPLING_S", -1.0)
    catalog = asyncio.run(open_asked(url).catalog())
    kind = _column(catalog, "shop", "kind")
    assert kind.values == ("k0", "k1", "k2", "k3", "k4") and kind.is_complete
    assert _column(catalog, "shop", "opened").period == ("2001-01-01", "2001-10-27")
    assert _column(catalog, "fresh", "kind").values == (), "it would have to be read"


def test_nothing_is_known_of_what_sensitive_columns_hold(
    make_database: Callable[[str], str],
) -> None:
    filled = (
        "SELECT 'secret ' || n % 3, 'k' || n % 3, DATE '2001-01-01' + n % 30 "
        "FROM generate_series(1, 90) AS n"
    )
    url = make_database(
        "CREATE TABLE read (pay text, kind text, born date); CREATE TABLE analysed (LIKE read);"
        f"INSERT INTO read {filled}; INSERT INTO analysed {filled}; ANALYZE analysed"
    )

    async def annotate(catalog: Catalog, *_: object) -> Catalog:
        def told(column: Column) -> Column:
            return replace(
                column, meaning=ColumnMeaning(is_sensitive=column.name in ("pay", "born"))
            )

        tables = (
            replace(table, columns=tuple(map(told, table.columns))) for table in catalog.tables
        )
        return replace(catalog, tables=tuple(tables))

    asked = Datasources({DEFAULT: Datasource(lambda: url, DatabaseOptions(), annotate)})
    catalog = asyncio.run(asked.open(DEFAULT, NOBODY).catalog())
    for table in ("read", "analysed"):
        assert _column(catalog, table, "kind").values == ("k0", "k1", "k2")
        assert (
            _column(catalog, table, "pay").values == ()
            and _column(catalog, table, "born").period is None
        )
    kinds = [_column(catalog, table, "kind") for table in ("read", "analysed")]
    assert kinds[0] is kinds[1], "equal columns are one object"


def test_an_empty_database(make_database: Callable[[str], str]) -> None:
    assert asyncio.run(open_asked(make_database("")).catalog()).tables == ()


def test_hundreds_of_tables_are_read_at_once(make_database: Callable[[str], str]) -> None:
    create = "EXECUTE format('CREATE TABLE t%s (id integer PRIMARY KEY, name text)', n)"
    url = make_database(f"DO $$ BEGIN FOR n IN 1..400 LOOP {create}; END LOOP; END $$")
    assert len(asyncio.run(open_asked(url).catalog()).tables) == 400


# ------------------------------------------------------------------------------
# keeping it


def test_kept_for_a_while_and_shared_by_callers(url: str) -> None:
    database = open_asked(url)

    async def ask() -> None:
        first, second = await asyncio.gather(database.catalog(), database.catalog())
        assert first is second
        assert await database.catalog() is first

    asyncio.run(ask())
    database.close()


def test_read_again_when_it_is_old(make_database: Callable[[str], str], admin_url: str) -> None:
    url = make_database("CREATE TABLE one (n integer)")
    database = open_asked(url, catalog_ttl_s=0.001)

    async def ask() -> None:
        before = await database.catalog()
        admin = as_admin(url, admin_url)
        role = parse_dsn(url)["user"]
        await asyncio.to_thread(
            execute, admin, "CREATE TABLE two (n integer)", f"GRANT SELECT ON two TO {role}"
        )
        after = await database.catalog()
        assert (len(before.tables), len(after.tables)) == (1, 2)

    asyncio.run(ask())
    database.close()


def test_the_previous_copy_serves_while_the_database_is_away(url: str) -> None:
    where = [url]
    database = open_asked(lambda: where[0], catalog_ttl_s=0.001)
    before = asyncio.run(database.catalog())
    database.close()
    where[0] = "postgresql://nobody@127.0.0.1:1/nothing"
    assert asyncio.run(database.catalog()) is before
    with pytest.raises(DatabaseUnavailable):
        asyncio.run(database.run("SELECT 1"))


def test_steady_traffic_never_waits_for_a_reload(
    make_database: Callable[[str], str], admin_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_database("CREATE TABLE one (n integer)")
    owner_url = as_admin(url, admin_url)
    now = 0.0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("databases.catalog.catalog.time", clock)
    database = open_asked(url, catalog_ttl_s=10)

    async def ask() -> None:
        nonlocal now
        before = await database.catalog()
        execute(owner_url, "CREATE TABLE two (n integer)", "GRANT SELECT ON two TO PUBLIC")
        now += 11
        with closing(psycopg2.connect(owner_url)) as admin, admin.cursor() as cursor:
            cursor.execute("LOCK TABLE pg_description")  # which the reload reads
            assert await database.catalog() is before
            await until(lambda: _waits_for_lock(owner_url))
            assert await database.catalog() is before
        async with asyncio.timeout(10):
            while (catalog := await database.catalog()) is before:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0)
        assert len(catalog.tables) == 2

    asyncio.run(ask())
    database.close()


def _waits_for_lock(url: str) -> bool:
    sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    return rows_of(url, f"{sql} AND datname = current_database()") != [(0,)]


def test_one_caller_leaving_does_not_spoil_it_for_the_others(url: str) -> None:
    database = open_asked(url)

    async def ask() -> None:
        leaving = asyncio.create_task(database.catalog())
        staying = asyncio.create_task(database.catalog())
        await asyncio.sleep(0)
        leaving.cancel()
        assert (await staying).tables
        with pytest.raises(asyncio.CancelledError):
            await leaving

    asyncio.run(ask())
    database.close()
