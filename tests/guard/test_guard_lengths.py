"""What a statement builds and how long PostgreSQL works on it.

The guard's bounds are held against what PostgreSQL does.
"""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import product
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import CostExceeded, ForbiddenObject, InvalidSql, QueryTimeout, ValidationFailed
from databases.execution.guarded import GuardedDatabase
from guard import Guard, lengths
from guard.document_paths import json_path_degree
from guard.row_sizes import Place
from guard.sizes import Size, TooLong
from sqltree.parsing import parse
from tests.support.cases import all_cases
from tests.support.databases import open_asked, rows_of
from tests.support.effort import tries

NUMBERS = st.integers(0, 9).map(str)
TEXTS = st.sampled_from(["''", "'a'", "'ab\"c\\'", "'12'", "'3'", "'&<>'", "'字'"]).map(
    "{}::text".format
)


def _numbers(
    inner: st.SearchStrategy[str], texts: st.SearchStrategy[str]
) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda p: f"({p[0]} + {p[1]})"),
        pair.map(lambda p: f"({p[0]} - {p[1]})"),
        pair.map(lambda p: f"({p[0]} * {p[1]})"),
        pair.map(lambda p: f"({p[0]} / greatest(1, {p[1]}))"),
        pair.map(lambda p: f"({p[0]} % greatest(1, {p[1]}))"),
        pair.map(lambda p: f"least({p[0]}, {p[1]})"),
        pair.map(lambda p: f"CASE WHEN {p[0]} > 3 THEN {p[1]} ELSE 2 END"),
        pair.map(lambda p: f"(SELECT max(v) FROM (VALUES ({p[0]}), ({p[1]})) AS t (v))"),
        pair.map(lambda p: f"(SELECT n FROM (SELECT {p[0]}, {p[1]}) AS s (n, m))"),
        pair.map(lambda p: f"(WITH c AS (SELECT {p[0]} AS x) SELECT x + {p[1]} FROM c)"),
        pair.map(lambda p: f"(SELECT count(*)::int FROM generate_series({p[0]}, {p[1]}))"),
        inner.map(lambda n: f"abs({n})"),
        inner.map(lambda n: f"({n} || '1')::numeric::int % 100"),
        texts.map(lambda t: f"length({t})"),
    )


def _texts(
    inner: st.SearchStrategy[str], numbers: st.SearchStrategy[str]
) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    amount = st.tuples(inner, numbers.map(lambda n: f"least({n}, 20)"))
    return st.one_of(
        amount.map(lambda p: f"repeat({p[0]}, {p[1]})"),
        amount.map(lambda p: f"lpad({p[0]}, {p[1]})"),
        amount.map(lambda p: f"left({p[0]}, {p[1]})"),
        amount.map(lambda p: f"substr({p[0]}, 1, abs({p[1]}))"),
        pair.map(lambda p: f"({p[0]} || {p[1]})"),
        pair.map(lambda p: f"concat({p[0]}, {p[1]}, 'x')"),
        pair.map(lambda p: f"concat_ws({p[0]}, {p[1]}, 'x', 'y')"),
        pair.map(lambda p: f"replace({p[0]}, 'a', {p[1]})"),
        pair.map(lambda p: f"regexp_replace({p[0]}, '.', {p[1]}, 'g')"),
        pair.map(lambda p: f"format('%5s|%s|%1$s', {p[0]}, {p[1]})"),
        pair.map(lambda p: f"array_to_string(ARRAY['a', 'b', {p[0]}], {p[1]})"),
        pair.map(lambda p: f"json_build_object('k', {p[0]}, 'l', {p[1]})::text"),
        amount.map(lambda p: f"(SELECT string_agg({p[0]}, ',') FROM generate_series(1, {p[1]}))"),
        amount.map(lambda p: f"array_fill({p[0]}, ARRAY[abs({p[1]}), 2])::text"),
        inner.map(lambda t: f"to_json({t})::text"),
        inner.map(lambda t: f"quote_literal({t})"),
        inner.map(lambda t: f"encode(convert_to({t}, 'UTF8'), 'hex')"),
        inner.map(lambda t: f"({t})::char(30)::text || 'x'"),
        inner.map(lambda t: f"upper(trim({t}))"),
    )


SMALL_NUMBERS = st.recursive(NUMBERS, lambda inner: _numbers(inner, TEXTS), max_leaves=6)
SMALL_TEXTS = st.recursive(TEXTS, lambda inner: _texts(inner, SMALL_NUMBERS), max_leaves=5)


def _bound(expression: str) -> Size:
    (statement,) = parse(f"SELECT {expression} AS x")
    try:
        columns = lengths.Bounds(100_000, ()).query(statement.node, Place()).columns
    except TooLong:
        return Size(length=math.inf)
    assert columns is not None
    return columns["x"]


@settings(
    max_examples=tries(12),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    numbers=st.lists(SMALL_NUMBERS, min_size=5, max_size=20),
    texts=st.lists(SMALL_TEXTS, min_size=5, max_size=20),
)
def test_bounds_hold(demo_url: str, numbers: list[str], texts: list[str]) -> None:
    sizes = [f"length({text})" for text in texts]
    (row,) = rows_of(demo_url, "SELECT " + ", ".join(f"({n})::bigint" for n in [*numbers, *sizes]))
    for expression, value in zip(numbers, row, strict=False):
        bound = _bound(expression)
        assert value is None or bound.low <= value <= bound.high, expression
    for expression, value in zip(texts, row[len(numbers) :], strict=True):
        assert value is None or value <= _bound(expression).length, expression


CALLS = [
    "repeat({}, {})",
    "lpad({}, {})",
    "rpad({}, {})",
    "array_fill({}, ARRAY[{}])",
    "format('%*s', {1}, {0})",
]
AMOUNTS = [
    "{}",
    "({}::text)::int",
    "(SELECT {})",
    "(VALUES ({}))",
    "({} + 0)",
    "(1 * {})",
    "abs(-{})",
    "greatest(1, {})",
    "CASE WHEN random() < 2 THEN {} END",
    "coalesce(NULL, {})",
    "(ARRAY[{}])[1]",
    "'{}'::int",
    "({} / 1)",
    "(SELECT n FROM (VALUES (1), ({})) AS t (n) ORDER BY n DESC LIMIT 1)",
    "(SELECT max(n) FROM unnest(ARRAY[{}]) AS n)",
    "(WITH c(n) AS (SELECT {}) SELECT n FROM c)",
    "(SELECT * FROM (SELECT {}) AS s)",
    "('[{}]'::jsonb ->> 0)::int",
    "(SELECT {} UNION SELECT 1 ORDER BY 1 DESC LIMIT 1)",
    "to_number('{}', '9999999999')::int",
    "nullif({}, 1)",
    "(SELECT (s).n FROM (SELECT {} AS n) AS s)",
    "(SELECT s.n FROM (SELECT {} AS n) AS t JOIN (SELECT {} AS n) AS s ON true)",
    "(SELECT n FROM generate_series({0}, {0}) AS n)",
    "least({}, {})",
    "round({}.4)::int",
    "(SELECT sum({})::int)",
]


def test_no_way_of_writing_a_large_amount_passes() -> None:
    """And a small one does."""
    guard = Guard()
    with all_cases() as cases:
        for call, amount in product(CALLS, AMOUNTS):
            with cases.case((call, amount)):
                for number, is_small in (("12", True), ("1000000000", False)):
                    written = amount.replace("{}", number).replace("{0}", number)
                    sql = "SELECT " + call.format("'x'", written)
                    if is_small:
                        guard.check(sql)
                        continue
                    with pytest.raises(ForbiddenObject):
                        guard.check(sql)


UNPROVEN_AMOUNTS = [
    "width_bucket(2.0, 0, 1, 2000000000)",
    "1000 * ascii('x')",
    "('100.0.0.0'::inet - '0.0.0.0'::inet)::int",
    "('0/FFFFFFF'::pg_lsn - '0/0'::pg_lsn)::int",
    "hashtext('x')",
    "X'0FFFFFFF'::int",
    "'$999,999,999'::money::numeric::int",
    "to_number('999,999,999', '999G999G999')::int",
    "reverse('00000000091')::int",
    "split_part('0.1000000000', '.', 2)::int",
    "extract(day FROM interval '900000000 days')::int",
    "(1 / random() * 100000)::int",
    "factorial(12)::int",
    "lcm(99991, 9973)::int",
    "({}::jsonb ->> 'n')::int".format(
        r"""'{"n":"\\u0039\\u0039\\u0039\\u0039\\u0039\\u0039\\u0039\\u0039\\u0039"}'"""
    ),
    "(jsonb_path_query('{\"n\": 30000}', '$.n * $.n') #>> '{}')::int",
    "(SELECT sum(n)::int FROM generate_series(1, 100000) AS n)",
    (
        "(WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1000000 FROM r "
        "WHERE n < 1000000000) SELECT max(n) FROM r)"
    ),
]


def test_an_amount_that_nothing_proves_to_be_small_is_refused() -> None:
    guard = Guard()
    with all_cases() as cases:
        for amount in UNPROVEN_AMOUNTS:
            with cases.case(amount), pytest.raises(ForbiddenObject):
                guard.check(f"SELECT repeat('abcdefghij', {amount})")


GATHERED = [
    "string_agg(name, '') LIKE string_agg('%' || name, '')",
    "translate(string_agg(name, ''), string_agg(name, 'x'), '')",
    "jsonb_agg(name) - array_agg(name)",
    "jsonb_agg(name) @> jsonb_agg(id)",
    "array_agg(id) && array_agg(-id)",
    "normalize(string_agg(name, ''))",
    "ts_rank_cd(to_tsvector(string_agg(name, '')), 'a & b')",
    "string_agg('(0,0)', ',')::path <-> string_agg('(1,1)', ',')::path",
    "jsonb_path_exists(jsonb_agg(id), '$[*] ? (@ == $[*])')",
    "jsonb_agg(id) @? '$[*] ? (@[*] > @[*])'",
    "string_agg(name, '') LIKE ANY (array_agg(name))",
    "repeat(string_agg(name, ''), 1000)",
    (
        "min(name) FILTER (WHERE (SELECT string_agg(name, '') "
        "FROM customer) LIKE (SELECT string_agg(name, '') FROM customer))"
    ),
]


def test_two_gathered_values_meet_only_in_what_is_known_to_be_quick() -> None:
    guard = Guard()
    with all_cases() as cases:
        for call in GATHERED:
            with cases.case(call), pytest.raises(ForbiddenObject):
                guard.check(f"SELECT {call} FROM customer")
            with cases.case((call, "from a subquery")), pytest.raises(ForbiddenObject):
                guard.check(
                    f"WITH a AS (SELECT 1 AS id, 'x' AS name FROM customer) SELECT {call} FROM a"
                )


@pytest.mark.parametrize(
    ("path", "degree"),
    [
        ('$.a.b[*] ? (@.c > 1 && @.d[*] == "x").e', 1),
        ("strict $.**.price", 1),
        ('$[*] ? (exists(@.tags[*] ? (@ like_regex "^a")))', 1),
        ("$.a ? (@.price * @.quantity > 5)", 1),
        ("$.items[*] ? (@.price > $.limit)", 2),
        ("$[*] ? (@.a[*] == @.b[*])", 2),
        ('$[*] ? (@.a."b" == @.b)', 2),
        ("$.**.**", None),
        ("$.** ? (@ == $.**)", None),
        ("$[*] ? (exists($[*] ? (@ == $[*])))", None),
        ("$[0,0][0,0][0,0]", None),
        ("$.keyvalue().keyvalue()", None),
        ("$[$[*]]", None),
    ],
)
def test_json_paths_are_judged_by_how_often_they_look(path: str, degree: int | None) -> None:
    assert json_path_degree(path) == degree


FIXTURES = Path(__file__).parents[1] / "fixtures" / "guard"


def _statements(name: str) -> list[str]:
    lines = (FIXTURES / name).read_text("utf-8").splitlines()
    return [line for line in lines if not line.startswith("--")]


ANALYSES, AMOUNTS_OF_TABLES = _statements("analyses.sql"), _statements("amounts.sql")
MANY = """
CREATE TABLE pile AS SELECT n AS id, 'a' || n AS t, int4range(2 * n, 2 * n + 1) AS r
    FROM generate_series(1, 60000) AS n;
ANALYZE pile;
CREATE TABLE hoard AS SELECT n AS id, 'a' || n AS t FROM generate_series(40000, 60000, 10000) AS n;
CREATE TABLE packed AS SELECT repeat('x', 100000) AS v;
CREATE VIEW tens AS SELECT a.id FROM customer a, customer b, customer c, customer d, customer e,
    (SELECT o.id FROM orders o, orders p, orders q, orders r, orders s) AS f;
CREATE VIEW twice AS SELECT t.id FROM tens t JOIN tens u USING (id);
CREATE VIEW wide AS SELECT t.id FROM twice t, twice u;
CREATE MATERIALIZED VIEW kept AS SELECT t.id FROM twice t WHERE false;
CREATE VIEW counted AS SELECT t.id, count(*) FROM twice t GROUP BY t.id;
"""


@pytest.fixture(scope="module")
def analysed_url(make_database: Callable[[str], str]) -> str:
    """The tables of the guard's specification, one of 60,000 rows, and one of large numbers."""
    schema = (FIXTURES / "schema.sql").read_text("utf-8")
    tables, _, _ = schema.partition("CREATE FUNCTION")  # not what shares symbols with built-ins
    return make_database(tables + MANY)


@pytest.fixture(scope="module")
def analysed(analysed_url: str) -> Iterator[GuardedDatabase]:
    database = open_asked(analysed_url)
    asyncio.run(database.catalog())
    yield database
    database.close()


def test_what_analysts_write_is_accepted_and_runs(analysed: GuardedDatabase) -> None:
    async def run_all() -> None:
        for sql in ANALYSES:
            with cases.case(sql):
                # The embedded server knows no XML.
                await (analysed.inspect(sql) if "xml" in sql else analysed.run(sql))

    with all_cases() as cases:
        asyncio.run(run_all())


def _answer(cursor: Any, sql: str) -> tuple[list[str], list[Any]]:
    cursor.execute(sql)
    return [column.name for column in cursor.description], cursor.fetchall()


def test_what_is_sent_to_be_measured_gives_what_was_written(
    analysed: GuardedDatabase, analysed_url: str
) -> None:
    async def sent(sql: str) -> str | None:
        return (await analysed.proven(sql)).sql_as_run

    measured = 0
    with closing(psycopg2.connect(analysed_url)) as connection, all_cases() as cases:
        cursor = connection.cursor()
        cursor.execute("SET enable_hashagg = off")
        for sql in ANALYSES:
            as_run = asyncio.run(sent(sql))
            if as_run is None or "xml" in sql:
                continue
            measured += 1
            with cases.case(sql):
                assert _answer(cursor, as_run) == _answer(cursor, sql)
    assert measured > 100


def test_amounts_that_come_from_tables_are_refused_before_anything_is_built(
    analysed: GuardedDatabase,
) -> None:
    async def all_refused() -> None:
        for sql in AMOUNTS_OF_TABLES:
            with cases.case(sql), pytest.raises(InvalidSql, match=r"least\(n, 1000\)"):
                await analysed.run(sql)

    with all_cases() as cases:
        asyncio.run(all_refused())


# Conditions of which the planner expects one row in 200 each.
_ALWAYS = " AND ".join(f"a.id + {n} = a.id + {n}" for n in range(6))
PILES = [
    f"SELECT length(string_agg(v, '')) FROM packed, pile a WHERE {_ALWAYS}",
    f"SELECT cardinality(ARRAY(SELECT v FROM packed, pile a WHERE {_ALWAYS}))",
    "SELECT range_agg(r)::text FROM pile",
    "SELECT array_agg(point(id, id)) FROM pile",
    "SELECT length(string_agg(repeat('x', 100000), '')) FROM pile",
    "SELECT sum(length(s)) FROM (SELECT string_agg(v, ',') AS s FROM packed, pile) AS s",
    "SELECT string_agg(DISTINCT v || id, '') FROM packed, pile WHERE id < 700",
    "SELECT length(json_agg(p)::text) FROM packed p, generate_series(1, 1000)",
    "SELECT jsonb_object_agg(v || id, 1) FROM packed, pile",
    "SELECT (array_agg(v))[1] FROM packed, pile",
    "SELECT max(length(s)) FROM (SELECT string_agg(v, '') OVER () AS s FROM packed, pile) AS s",
    "SELECT json_agg((SELECT array_agg(v) FROM packed, pile a WHERE b.id > 0)) FROM pile b",
    "SELECT k, length(string_agg(v, '')) FROM packed, pile, generate_series(1, 3) k GROUP BY k",
]


def test_what_is_gathered_is_limited_while_it_is(analysed: GuardedDatabase) -> None:
    async def refused(act: object, sql: str) -> None:
        with cases.case(sql), pytest.raises(CostExceeded, match="gathers from many rows"):
            await act(sql)  # type: ignore[operator]

    async def all_refused() -> None:
        for sql in PILES:
            await refused(analysed.run, sql)
        await refused(lambda sql: analysed.stream(sql, 10), PILES[0])

    with all_cases() as cases:
        asyncio.run(all_refused())


MODEST = [
    "SELECT count(*) FROM pile a, pile b WHERE a.id = b.id",
    (
        "SELECT length(string_agg(t, ',')), cardinality(array_agg(id)), "
        "json_array_length(json_agg(id)) FROM pile"
    ),
    (
        "SELECT max(n) FROM (SELECT cardinality(array_agg(a.t)) AS n FROM pile a, "
        "generate_series(1, 3) AS b GROUP BY a.id) AS s"
    ),
    (
        "SELECT string_agg(m, ',') FROM (SELECT (a.id % 5)::text AS m, count(*) FROM pile a, "
        "generate_series(1, 20) AS b GROUP BY 1) AS s"
    ),
]


NAMED = (
    "SELECT string_agg(DISTINCT t, ',') FILTER (WHERE id < 3), (array_agg(id))[2], "
    "ARRAY(SELECT id FROM pile WHERE id < 0), (SELECT json_agg(id) FROM pile WHERE id < 0), "
    "k FROM pile, (SELECT jsonb_agg(id) AS k FROM pile WHERE id < 0) AS s "
    "WHERE pile.id < 9 GROUP BY k"
)


def test_modest_lists_of_many_rows_are_gathered(analysed: GuardedDatabase) -> None:
    async def run_all() -> None:
        for sql in MODEST:
            with cases.case(sql):
                await analysed.run(sql)
        result = await analysed.run(NAMED)
        assert result.columns == ("string_agg", "array_agg", "array", "json_agg", "k")
        assert result.rows == (["a1,a2", 2, [], None, None],)

    with all_cases() as cases:
        asyncio.run(run_all())


def test_a_view_counts_as_the_relations_that_its_query_joins(analysed: GuardedDatabase) -> None:
    for few in ("twice, tens", "wide", "kept, kept a, twice", "counted, counted c, twice"):
        asyncio.run(analysed.inspect(f"SELECT 1 FROM {few}"))
    for many in ("twice, twice t", "twice t JOIN tens u USING (id), orders", "wide, orders"):
        with pytest.raises(ValidationFailed, match="joined together"):
            asyncio.run(analysed.inspect(f"SELECT 1 FROM {many}"))


QUICK = [
    "SELECT string_agg(t, '') LIKE '%a%b%a%c', translate(string_agg(t, ''), '123', '') FROM pile",
    (
        "SELECT array_agg(id) @> ARRAY[-1], array_position(array_agg(t), 'x'), "
        "'x' = ANY (array_agg(t)) FROM pile"
    ),
    (
        "SELECT length(regexp_replace(string_agg(t, ''), 'a(1|2)*', '', 'g')), md5(string_agg(t, "
        "'')) FROM pile"
    ),
    (
        "SELECT jsonb_path_exists(jsonb_agg(t), '$[*] ? (@ == \"x\")'), jsonb_agg(id) - 5, "
        "jsonb_agg(t) ? 'x' FROM pile"
    ),
    (
        "SELECT jsonb_pretty(jsonb_object_agg(t, id)) LIKE '%x', "
        "length(array_to_string(array_agg(t), ', ')) FROM pile"
    ),
    "SELECT strpos(repeat('a', 1000000), repeat('a', 100) || 'b'), length(repeat('x', 10000000))",
    (
        "SELECT length(('[' || repeat('1,', 100000) || '1]')::json::text), "
        "cardinality(string_to_array(repeat('a,', 900000), ','))"
    ),
    "SELECT factorial(20000) % (factorial(10000) + 1) > 0",
]


def test_what_is_accepted_leaves_no_backend_at_work(analysed: GuardedDatabase) -> None:

    async def run_all() -> None:
        for sql in QUICK:
            with cases.case(sql):
                with suppress(QueryTimeout):
                    await analysed.run(sql)
                assert analysed.stuck_connections == 0

    with all_cases() as cases:
        asyncio.run(run_all())
