"""The PostgreSQL adapter against a real server: values, shapes, caps, plans and errors."""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg2.extensions import parse_dsn

from common.envelope import to_bytes
from common.errors import (
    ForbiddenObject,
    InvalidSql,
    QueryTimeout,
    ValidationFailed,
)
from databases.execution.guarded import GuardedDatabase
from postgres.connecting import PostgresLimits, connect
from postgres.connection import Connection
from tests.support.cases import all_cases
from tests.support.databases import Opener, as_admin, execute, run
from tests.support.effort import tries
from tests.support.memory import peak_growth

DDL = """
CREATE TYPE mood AS ENUM ('happy', 'sad');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TABLE person (id integer PRIMARY KEY, name text, mood mood, age positive, ages positive[]);
INSERT INTO person VALUES (1, '李雷', 'happy', 30, '{1,2}'), (2, 'Han', 'sad', 31, NULL);
CREATE TABLE secret (token text);
CREATE VIEW failing AS SELECT 1 / (id - 1) AS broken FROM person;
"""


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str], admin_url: str) -> str:
    reader = make_database(DDL)
    execute(
        as_admin(reader, admin_url), f"REVOKE SELECT ON secret FROM {parse_dsn(reader)['user']}"
    )
    return reader


@pytest.fixture
def database(url: str, opened: Opener) -> GuardedDatabase:
    return opened(url)


@pytest.fixture
def small(url: str, opened: Opener) -> GuardedDatabase:
    return opened(url, max_result_bytes=3000)


# ------------------------------------------------------------------------------
# values

VALUES = [
    ("NULL", None),
    ("true", True),
    ("7::int2", 7),
    ("9223372036854775807::int8", 9223372036854775807),
    ("42::oid", 42),
    ("1.10::numeric(6,2)", Decimal("1.10")),
    ("12345678901234567890.123456789::numeric", Decimal("12345678901234567890.123456789")),
    ("'NaN'::numeric", "NaN"),
    ("'-Infinity'::float8", "-Infinity"),
    ("1.5::float8", 1.5),
    ("1.1::float4", 1.1),
    ("'文字'::text", "文字"),
    ("'x'::char(3)", "x  "),
    ("DATE '2024-02-29'", "2024-02-29"),
    ("DATE '0044-03-15 BC'", "0044-03-15 BC"),
    ("DATE '12000-01-01'", "12000-01-01"),
    ("'infinity'::date", "infinity"),
    ("TIMESTAMP '2024-02-29 10:20:30.5'", "2024-02-29T10:20:30.5"),
    ("'-infinity'::timestamp", "-infinity"),
    ("TIMESTAMP '0044-03-15 01:02:03 BC'", "0044-03-15T01:02:03 BC"),
    ("TIMESTAMPTZ '2024-02-29 10:20:30+00' AT TIME ZONE 'UTC'", "2024-02-29T10:20:30"),
    ("TIME '10:20:30'", "10:20:30"),
    ("TIMETZ '10:20:30+05:30'", "10:20:30+05:30"),
    ("TIMETZ '10:20:30-08'", "10:20:30-08:00"),
    ("INTERVAL '1 year 2 months -3 days 04:05:06.5'", "P1Y2M-3DT4H5M6.5S"),
    ("INTERVAL '-04:05:06'", "PT-4H-5M-6S"),
    ("INTERVAL '0'", "PT0S"),
    ("INTERVAL '10 days'", "P10D"),
    ("'\\x00ff'::bytea", "\\x00ff"),
    ("'a81bc81b-dead-4e5d-abff-90865d1e13b1'::uuid", "a81bc81b-dead-4e5d-abff-90865d1e13b1"),
    ("ARRAY[1, NULL, 3]", [1, None, 3]),
    ("ARRAY[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
    ("'{}'::int[]", []),
    ("'[0:1]={5,6}'::int[]", [5, 6]),
    ("""ARRAY['a"b', 'c\\d', '{x}', 'NULL', '', ' ', 'e,f', NULL]""",
     ['a"b', "c\\d", "{x}", "NULL", "", " ", "e,f", None]),
    ("ARRAY[1.10, 'NaN']::numeric[]", [Decimal("1.10"), "NaN"]),
    ("ARRAY[TIMESTAMP '2024-01-01 00:00']", ["2024-01-01T00:00:00"]),
    ("ARRAY[box '((0,0),(1,1))', box '((2,2),(3,3))']", ["(1,1),(0,0)", "(3,3),(2,2)"]),
    ("ARRAY['{\"a\": 1}'::jsonb]", [{"a": 1}]),
    ("'{\"a\": 1.10, \"b\": [null, true]}'::jsonb", {"a": Decimal("1.10"), "b": [None, True]}),
    ("'[1e400]'::json", [Decimal("1e400")]),
    ("'null'::json", None),
    ("int4range(1, 5)", "[1,5)"),
    ("'happy'::mood", "happy"),
    ("ARRAY['sad']::mood[]", ["sad"]),
    ("5::positive", 5),
    ("ARRAY[5, 6]::positive[]", [5, 6]),
    ("ROW(1, 'a')", "(1,a)"),
    ("'127.0.0.1'::inet", "127.0.0.1"),
    ("B'101'", "101"),
    ("'12'::\"char\"", "1"),
]  # fmt: skip


def test_values_are_json_ready_and_exact_beside_cut_ones_too(database: GuardedDatabase) -> None:
    async def ask_all() -> None:
        with all_cases() as cases:
            for expression, expected in VALUES:
                with cases.case(expression):
                    ((whole,),) = (await database.run(f"SELECT {expression}")).rows
                    cut = await database.run(f"SELECT {expression}, repeat('x', 1200000)")
                    assert cut.cut_columns == ("repeat",)
                    for value in (whole, cut.rows[0][0]):
                        assert value == expected
                        assert type(value) is type(expected)
                        assert str(value) == str(expected)  # the scale of decimals

    asyncio.run(ask_all())


@pytest.mark.parametrize("type_", ["numeric", "jsonb"])
def test_numbers_longer_than_json_readers_take_stay_text(
    database: GuardedDatabase, type_: str
) -> None:
    for size, kind in ((3999, Decimal if type_ == "numeric" else int), (4000, str), (100_000, str)):
        ((value,),) = run(database, f"SELECT ('1' || repeat('0', {size}))::{type_}").rows
        assert type(value) is kind
        assert str(value) == "1" + "0" * size


@pytest.mark.parametrize(("depth", "kind"), [(100, list), (101, str), (950, str)])
def test_json_nested_deeper_than_its_writers_go_stays_text(
    database: GuardedDatabase, depth: int, kind: type
) -> None:
    text = "[" * depth + "]" * depth
    assert isinstance(run(database, f"SELECT '{text}'::json").rows[0][0], kind)


def test_json_nested_too_deeply_for_python_stays_text(database: GuardedDatabase) -> None:
    ((value,),) = run(database, "SELECT (repeat('[', 4000) || repeat(']', 4000))::json").rows
    assert value == "[" * 4000 + "]" * 4000


def test_columns_types_and_duplicates(database: GuardedDatabase) -> None:
    result = run(
        database,
        "SELECT 1::int8 AS a, 2.5 AS a, 'x', now()::date, ARRAY[1], 'sad'::mood FROM person",
    )
    assert result.columns == ("a", "a", "?column?", "now", "array", "mood")
    assert result.column_types == ("int8", "numeric", "text", "date", "_int4", "mood")
    assert result.row_count == 2
    assert not result.is_limited


@pytest.mark.parametrize(
    ("sql", "columns", "rows"),
    [
        ("SELECT 1 AS n WHERE false", ("n",), ()),
        ("SELECT FROM person", (), ([], [])),
        ("SELECT", (), ([],)),
        ("VALUES (1), (2)", ("column1",), ([1], [2])),
        ("TABLE person", ("id", "name", "mood", "age", "ages"), None),
        ("SELECT 1 ; -- the end", ("?column?",), ([1],)),
        ("SELECT 1 -- no newline", ("?column?",), ([1],)),
        ("(SELECT 2 AS b) ORDER BY b", ("b",), ([2],)),
        ("WITH a AS (SELECT 3 AS c) SELECT c FROM a", ("c",), ([3],)),
        (
            "SELECT x FROM generate_series(1, 5) AS t (x) ORDER BY x DESC LIMIT 2",
            ("x",),
            ([5], [4]),
        ),
    ],
)
def test_shapes_of_queries(
    database: GuardedDatabase, sql: str, columns: tuple[str, ...], rows: Any
) -> None:
    result = run(database, sql)
    assert result.columns == columns
    assert rows is None or result.rows == rows


def test_order_survives(database: GuardedDatabase) -> None:
    result = run(
        database, "SELECT x FROM generate_series(1, 20000) AS t (x) ORDER BY x % 7, x DESC"
    )
    expected = sorted(range(1, 20001), key=lambda x: (x % 7, -x))[:50]
    assert [x for (x,) in result.rows] == expected


# ------------------------------------------------------------------------------
# caps


@pytest.mark.parametrize(
    ("rows", "is_limited"), [(49, False), (50, False), (51, True), (10_000_000, True)]
)
def test_row_cap(database: GuardedDatabase, rows: int, is_limited: bool) -> None:
    result = run(database, f"SELECT x FROM (SELECT generate_series(1, {rows})) AS t (x)")
    assert result.row_count == min(rows, 50)
    assert result.is_limited is is_limited


def test_byte_cap_keeps_whole_rows(url: str, opened: Opener) -> None:
    database = opened(url, max_result_bytes=10_000)
    result = run(database, "SELECT repeat('x', 3000) FROM generate_series(1, 10)")
    assert result.row_count == 3
    assert result.is_limited


def test_byte_cap_with_rows_too_wide_to_fetch_together(url: str, opened: Opener) -> None:
    database = opened(url, max_rows=5000, max_result_bytes=100_000)
    result = run(database, "SELECT x, repeat('x', x * 10000) FROM generate_series(1, 9) AS t (x)")
    assert [row[0] for row in result.rows] == [1, 2, 3]
    assert result.is_limited


def test_a_cell_beyond_the_byte_cap_is_cut(database: GuardedDatabase) -> None:
    sql = (
        "SELECT x, repeat('x', CASE x WHEN 3 THEN 5000000 ELSE 1 END) AS x "
        "FROM generate_series(1, 9) AS t (x)"
    )
    result = run(database, sql)
    assert [row[0] for row in result.rows] == list(range(1, 10))
    assert [row[1] for row in result.rows if row[0] != 3] == ["x"] * 8
    assert set(result.rows[2][1]) == {"x", "…"}
    assert result.rows[2][1].endswith("x…")
    assert result.is_limited
    assert result.cut_columns == ("x",)


def test_a_row_of_too_many_columns_for_the_cap_says_so(url: str, opened: Opener) -> None:
    database = opened(url, max_result_bytes=1000)
    with pytest.raises(ValidationFailed, match="larger than 1000 bytes"):
        run(database, f"SELECT {', '.join(['123456789'] * 500)} FROM generate_series(1, 40)")


# Each is far beyond 1,000,000 bytes as text, and most are small as they are stored.
LARGE = {
    "numbers": ("(SELECT 1e131000::numeric AS a FROM generate_series(1, 60)) s", "a, a AS b, a"),
    "compressed": ("generate_series(1, 60)", "repeat('中文', 60000) AS body"),
    "arrays": ("generate_series(1, 60)", "array_fill(1e1000::numeric, ARRAY[60]) AS a"),
    "composites": ("generate_series(1, 60) x", "ROW(x, repeat('x', 60000), NULL) AS r"),
    "bytes": ("generate_series(1, 3)", "decode(repeat('00', 600000), 'hex') AS b"),
    "json": ("generate_series(1, 60)", "json_build_array(repeat('x', 60000)) AS j, NULL::text"),
    "ranges": ("generate_series(1, 60)", "numrange(1e60000, 2e60000) AS r"),
    "domains": (
        "person p, generate_series(1, 30)",
        "array_fill(p.age, ARRAY[30000]), p.mood, p.*, p",
    ),
    "names": (
        "generate_series(1, 40)",
        ", ".join(f'1e131::numeric AS "{"列" * 20}{n}"' for n in range(400)),
    ),
}


@pytest.mark.parametrize("kind", LARGE)
def test_what_arrives_is_bounded_whatever_its_type(database: GuardedDatabase, kind: str) -> None:
    source, columns = LARGE[kind]
    described = run(database, f"SELECT {columns} FROM {source} LIMIT 0")
    with peak_growth() as growth:
        result = run(database, f"SELECT {columns} FROM {source}")
    assert growth.megabytes < 30
    assert result.is_limited
    assert result.rows
    assert (result.columns, result.column_types) == (described.columns, described.column_types)
    assert len(to_bytes(result.rows)) < 1_200_000


@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900)), min_size=1, max_size=9),
    st.sampled_from("x中😀"),
)
@settings(max_examples=tries(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_are_whole_or_cut_visibly_up_to_the_cap(
    small: GuardedDatabase, lengths: list[tuple[int, int]], letter: str
) -> None:
    rows = [[letter * length for length in row] for row in lengths]
    values = ", ".join(
        f"({', '.join(f'{cell!r}' for cell in row)}, repeat('x', 70000))" for row in rows
    )
    result = run(small, f"VALUES {values}")
    assert len(to_bytes(result.rows)) < 2 * 3000
    assert result.cut_columns[-1] == "column3"
    assert result.row_count == len(rows) or result.is_limited
    for given_row, (*cells, filler) in zip(rows, result.rows, strict=False):
        assert filler.endswith("x…")
        for whole, cell in zip(given_row, cells, strict=True):
            assert cell == whole or (
                cell.endswith("…") and whole.startswith(cell[:-1]) and len(whole.encode()) > 800
            )


@pytest.mark.parametrize("length", [30_000, 300_000, 3_000_000])
def test_statements_and_answers_of_any_length_pass(url: str, length: int) -> None:
    async def echo() -> None:
        connection = await connect(lambda: url, PostgresLimits())
        for _ in range(2):
            assert (await connection.query("SELECT %s", ["文" * length])).rows == [("文" * length,)]
        connection.close()

    asyncio.run(echo())


def test_an_ordinary_answer_is_one_message(
    database: GuardedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT id, name, mood FROM person"
    sent = []
    send = Connection._send

    async def use() -> None:
        has_left = asyncio.Event()

        def counting(connection: Connection, sql: str, parameters: Any = None) -> Any:
            sent.append(sql)
            if "person" not in sql:
                has_left.set()
            return send(connection, sql, parameters)

        await database.run(sql)
        monkeypatch.setattr(Connection, "_send", counting)
        await database.explain(sql)
        await database.run(sql)
        await has_left.wait()

    asyncio.run(use())
    # The transaction before is left in the same message; the last one by itself.
    assert [("BEGIN" in text, text.split(";")[0]) for text in sent] == [
        *[(True, "ROLLBACK")] * 2,
        (False, "ROLLBACK"),
    ]


@pytest.mark.parametrize("method", ["explain", "run"])
def test_positions_count_from_the_statement_whatever_is_sent_before_it(
    database: GuardedDatabase, method: str
) -> None:
    async def use() -> list[int | None]:
        positions = []
        for sql in ("SELECT nope FROM person", "SELECT id, nope FROM person"):
            with pytest.raises(InvalidSql) as caught:
                await getattr(database, method)(sql)
            positions.append(caught.value.position)
        return positions

    assert asyncio.run(use()) == [8, 12]


def test_huge_values_never_reach_this_process(url: str, opened: Opener) -> None:
    database = opened(url, forbidden_check=False)  # the guard refuses constants of this length
    run(database, "SELECT 1")
    with peak_growth() as growth:
        assert run(database, "SELECT repeat('x', 30000000)").is_limited
    assert growth.megabytes < 20


def test_json_and_arrays_too_long_to_be_read_stay_text(url: str, opened: Opener) -> None:
    database = opened(url, max_result_bytes=4_000_000)
    with peak_growth() as growth:
        sql = (
            "SELECT json_agg(x % 2 + 10), array_agg(x % 2 + 10), ARRAY[1] FROM generate_series(1, "
            "200000) AS t (x)"
        )
        ((json, array, short),) = run(database, sql).rows
    assert json.startswith("[11, 10")
    assert array.startswith("{11,10")
    assert short == [1]
    assert growth.megabytes < 40


@pytest.mark.parametrize("columns", ["", "x, x"])
def test_long_error_messages_are_cut_whatever_the_columns(
    database: GuardedDatabase, columns: str
) -> None:
    sql = (
        f"SELECT {columns} FROM generate_series(1, 2) AS t (x) WHERE repeat('9', "
        "3000000 * x)::int = 1"
    )
    with pytest.raises(InvalidSql, match="999…"):
        run(database, sql)


@pytest.mark.parametrize("method", ["explain", "run"])
@pytest.mark.parametrize("length", [5_000, 4_000_000])
def test_long_error_messages_are_cut(database: GuardedDatabase, method: str, length: int) -> None:
    # The planner computes the first, and leaves the second to the run.
    number = "1" if method == "explain" else "x"
    sql = (
        f"SELECT CAST(repeat('9', {length} * {number}) AS int) FROM generate_series(1, 2) AS t (x)"
    )
    with peak_growth() as growth, pytest.raises(InvalidSql) as caught:
        asyncio.run(getattr(database, method)(sql))
    assert caught.value.sqlstate == "22003"
    assert "99999…" in caught.value.detail
    assert len(caught.value.detail) <= 1001
    assert growth.megabytes < 20


@pytest.mark.slow
def test_long_notices_and_hints_are_not_kept(
    make_database: Callable[[str], str], opened: Opener
) -> None:
    url = make_database("""
        CREATE FUNCTION noisy(n integer) RETURNS integer STABLE LANGUAGE plpgsql AS $$ BEGIN
        RAISE WARNING '%', repeat('x', 20000000);
        IF n > 1 THEN RAISE 'no' USING HINT = repeat('x', 20000000), DETAIL = repeat('x',
            20000000); END IF;
        RETURN n; END $$;
        CREATE VIEW quiet AS SELECT noisy(1) AS n;
        CREATE VIEW loud AS SELECT noisy(x) AS n FROM generate_series(1, 2) AS t (x);
    """)
    database = opened(url)
    with peak_growth() as growth:
        assert run(database, "SELECT n FROM quiet").rows == ([1],)
        with pytest.raises(InvalidSql, match="no") as caught:
            run(database, "SELECT n FROM loud")
    assert len(caught.value.hint or "") <= 1001
    assert growth.megabytes < 20


# ------------------------------------------------------------------------------
# errors


@pytest.mark.parametrize(
    ("sql", "state", "at"),
    [
        ("SELECT nam FROM person", "42703", "nam"),
        ("SELECT '中文', nam FROM person", "42703", "nam"),
        ("SELECT 1 FROM persons", "42P01", "persons"),
        ("SELECT 'a' + 1", "22P02", "'a'"),
        ("SELECT upper(1, 2)", "42883", "upper"),
        ("SELECT $1", "42P02", "$1"),
        ("SELECT count(*), name FROM person", "42803", "name"),
        ("SELECT name FORM person x", "42601", "person"),
        ("SELECT no_such(1)", "42883", "no_such"),
        ("SELECT '中', no_such(1)", "42883", "no_such"),
    ],
)
def test_invalid_sql_says_where(database: GuardedDatabase, sql: str, state: str, at: str) -> None:
    for method in (database.explain, database.run):
        with pytest.raises(InvalidSql) as caught:
            asyncio.run(method(sql))
        assert caught.value.sqlstate == state
        assert caught.value.position == sql.index(at) + 1


def test_invalid_sql_keeps_the_hint(database: GuardedDatabase) -> None:
    with pytest.raises(InvalidSql) as caught:
        run(database, "SELECT person.nam FROM person")
    assert caught.value.hint is not None
    assert "person.name" in caught.value.hint
    assert caught.value.text.zh == f"SQL语法或结构错误: {caught.value.detail}"


@pytest.mark.parametrize(
    ("sql", "zh"),
    [("", "语句为空"), ("SELECT nothing_of_ours(1)", "函数 nothing_of_ours 不存在")],
)
def test_what_the_guard_says_of_invalid_sql_is_said_in_chinese(
    database: GuardedDatabase, sql: str, zh: str
) -> None:
    with pytest.raises(InvalidSql) as caught:
        run(database, sql)
    assert caught.value.text.zh == f"SQL语法或结构错误: {zh}"


@pytest.mark.parametrize(
    ("sql", "state", "zh"),
    [
        ("SELECT 1 / (id - 1) FROM person", "22012", "除数为零"),
        ("SELECT * FROM failing", "22012", "除数为零"),
        ("SELECT (SELECT id FROM person)", "21000", "子查询返回多于一行"),
        ("SELECT name::int FROM person", "22P02", "值的格式与类型不符"),
    ],
)
def test_failures_while_running(database: GuardedDatabase, sql: str, state: str, zh: str) -> None:
    with pytest.raises(InvalidSql) as caught:
        run(database, sql)
    assert caught.value.sqlstate == state
    assert caught.value.text.zh == f"SQL执行出错（{zh}）: {caught.value.detail}"
    assert caught.value.text.en == f"The SQL failed: {caught.value.detail}"
    assert run(database, "SELECT 1").row_count == 1


def test_a_user_can_not_imitate_the_width_error(database: GuardedDatabase) -> None:
    with pytest.raises((InvalidSql, ValidationFailed)):
        asyncio.run(database.explain("SELECT 'citu: row too wide'::int"))


def test_missing_privilege_names_the_table(database: GuardedDatabase) -> None:
    with pytest.raises(ForbiddenObject) as caught:
        run(database, "SELECT * FROM secret")
    assert caught.value.name == "secret"


def test_statement_timeout(url: str, opened: Opener) -> None:
    database = opened(url, statement_timeout_s=0.3)
    with pytest.raises(QueryTimeout):
        run(database, "SELECT count(*) FROM generate_series(1, 1000000000)")
    assert run(database, "SELECT 1").row_count == 1


def test_explain_without_plpgsql(make_database: Callable[[str], str], opened: Opener) -> None:
    database = opened(make_database("DROP EXTENSION plpgsql"))
    assert asyncio.run(database.explain("SELECT 1")).rows == 1
    with pytest.raises(InvalidSql) as caught:
        asyncio.run(database.explain("SELECT '中', x"))
    assert caught.value.position == 13


def test_explain_of_what_may_not_be_read(database: GuardedDatabase) -> None:
    with pytest.raises(ForbiddenObject, match="secret"):
        asyncio.run(database.explain("SELECT * FROM secret"))


def test_explain_estimates(database: GuardedDatabase) -> None:
    plan = asyncio.run(database.explain("SELECT * FROM generate_series(1, 1000)"))
    assert plan.rows == 1000
    assert plan.total_cost > 0


def test_plans_with_huge_constants_never_reach_this_process(url: str, opened: Opener) -> None:
    database = opened(url, forbidden_check=False)
    run(database, "SELECT 1")
    with peak_growth() as growth:
        plan = asyncio.run(
            database.explain("SELECT * FROM person WHERE name = repeat('x', 12000000)")
        )
    assert plan.total_cost > 0
    assert growth.megabytes < 10


@pytest.mark.parametrize("text", ["$citu$", "$citu$ $citu_$", "it''s", "\\", "{tag}", "%s"])
def test_any_text_may_be_in_a_statement(database: GuardedDatabase, text: str) -> None:
    sql = f"SELECT '{text}' FROM person"
    asyncio.run(database.explain(sql))
    assert run(database, sql).rows[0] == [text.replace("''", "'")]
    with pytest.raises(InvalidSql) as caught:
        asyncio.run(database.explain(f"SELECT '{text}', nam FROM person"))
    assert caught.value.position == len(f"SELECT '{text}', ") + 1
