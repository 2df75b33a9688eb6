"""The guard on extreme input: it always gives a verdict, soon, and the process survives."""

import asyncio
import json
import threading
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import postgast
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ForbiddenStatement, InvalidSql, StatementRejected, ValidationFailed
from guard import Guard, Inspection
from sqltree import parsing
from tests.support.databases import Opener
from tests.support.guarded_statements import ALLOWED, REJECTED

GUARD = Guard()
STATEMENTS = [case.sql for case in ALLOWED + REJECTED]
PIECES = [
    *(
        "'",
        '"',
        "$$",
        "$a$",
        "--",
        "/*",
        "*/",
        ";",
        "\\",
        "\n",
        "(",
        ")",
        "E'",
        "U&'",
        "\ufeff",
        "\u00a0",
        "\u3000",
        "，",
    ),
    *(
        " UNION ",
        " INTO t ",
        " FOR UPDATE",
        "; DROP TABLE customer",
        " FROM pg_authid ",
        "pg_sleep(1)",
        "::regclass",
    ),
    *(
        "WITH a AS (",
        "SELECT ",
        "DELETE FROM t",
        "EXPLAIN ",
        "COPY t TO PROGRAM 'x'",
        "set_config('a','b',false)",
    ),
]


def _is_accepted(sql: str) -> bool:
    try:
        GUARD.check(sql)
    except StatementRejected as error:
        assert error.text.zh
        assert error.text.en
        return False
    return True


def _assert_one_query(sql: str) -> None:
    """Checks the statement by the same grammar, but with another tree and another walk than the
    guard's.
    """
    try:
        (statement,) = postgast.parse(sql).stmts
    except DecodeError:  # protobuf's own limit of 100 levels
        return
    for node in postgast.walk(statement.stmt):
        kind = type(node[1]).DESCRIPTOR.name
        assert not kind.endswith("Stmt") or kind == "SelectStmt"
        assert kind not in ("IntoClause", "LockingClause")


@given(st.text())
def test_any_text(sql: str) -> None:
    if _is_accepted(sql):
        _assert_one_query(sql)


@given(st.text(st.characters()), st.sampled_from(STATEMENTS), st.text(st.characters()))
def test_any_text_around_a_statement(before: str, sql: str, after: str) -> None:
    if _is_accepted(before + sql + after):
        _assert_one_query(before + sql + after)


@given(st.binary())
def test_any_bytes(data: bytes) -> None:
    _is_accepted(data.decode("utf-8", "surrogateescape"))
    _is_accepted(data.decode("latin-1"))


@st.composite
def _mutated(draw: st.DrawFn) -> str:
    sql = draw(st.sampled_from(STATEMENTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(sql)))
        end = min(len(sql), start + draw(st.integers(0, 12)))
        other = draw(st.sampled_from(STATEMENTS))
        cut = draw(st.integers(0, len(other)))
        piece = draw(st.sampled_from(PIECES) | st.just(other[cut : cut + 20]) | st.just(""))
        sql = sql[:start] + piece + sql[end:]
    return sql


@given(_mutated())
def test_mutated_statements(sql: str) -> None:
    if _is_accepted(sql):
        _assert_one_query(sql)


@given(st.sampled_from(STATEMENTS), st.sampled_from(STATEMENTS))
def test_two_statements_are_never_one(first: str, second: str) -> None:
    first = first.rstrip().rstrip(";")
    with pytest.raises((ForbiddenStatement, InvalidSql)):
        GUARD.check(f"{first}\n;{second}")


SHAPES: dict[str, Callable[[int], str]] = {
    "operators": lambda n: "SELECT " + "+".join(["1"] * n),
    "minuses": lambda n: "SELECT " + "- " * n + "1",
    "nots": lambda n: "SELECT " + "NOT " * n + "true",
    "brackets": lambda n: "SELECT " + "(" * n + "1" + ")" * n,
    "open brackets": lambda n: "SELECT " + "(" * n,
    "close brackets": lambda n: "SELECT 1" + ")" * n,
    "casts": lambda n: "SELECT 1" + "::int" * n,
    "unions": lambda n: " UNION ".join(["SELECT 1, 2"] * n),
    "unions in brackets": lambda n: "(" * n + "SELECT 1" + " UNION SELECT 1)" * n,
    "joins": lambda n: "SELECT * FROM t" + " JOIN t ON true" * n,
    "cross joins": lambda n: "SELECT * FROM t" + ", t" * n,
    "subqueries": lambda n: "SELECT " + "(SELECT " * n + "1" + ")" * n,
    "subqueries in FROM": lambda n: "SELECT * FROM " + "(SELECT * FROM " * n + "t" + ") x" * n,
    "CTEs in CTEs": lambda n: "WITH a AS (" * n + "SELECT 1" + ") SELECT 1" * n,
    "CTEs": lambda n: "WITH " + ", ".join(f"a{i} AS (SELECT 1)" for i in range(n)) + " SELECT 1",
    "arrays": lambda n: "SELECT " + "ARRAY[" * n + "1" + "]" * n,
    "subscripts": lambda n: "SELECT a" + "[1]" * n,
    "fields": lambda n: "SELECT " + "(" * n + "a" + ").b" * n,
    "dots": lambda n: "SELECT a" + ".b" * n,
    "functions": lambda n: "SELECT " + "abs(" * n + "1" + ")" * n,
    "cases": lambda n: "SELECT " + "CASE WHEN true THEN " * n + "1" + " END" * n,
    "ands": lambda n: "SELECT " + " AND ".join(["true"] * n),
    "list": lambda n: "SELECT 1 WHERE 1 IN (" + ",".join(["1"] * n) + ")",
    "rows": lambda n: "VALUES " + ",".join(["(1,'a')"] * n),
    "statements": lambda n: ";".join(["SELECT 1"] * n),
    "semicolons": lambda n: "SELECT 1" + ";" * n,
    "comments": lambda n: "SELECT " + "/*" * n + "*/" * n + "1",
    "string": lambda n: "SELECT '" + "x" * n + "'",
    "quotes": lambda n: "SELECT '" + "''" * n + "'",
    "dollars": lambda n: "SELECT " + "$" * n,
    "identifier": lambda n: "SELECT " + "字" * n,
    "collations": lambda n: "SELECT 'a'" + ' COLLATE "C"' * n,
    "is null": lambda n: "SELECT 1" + " IS NULL" * n,
    "between": lambda n: "SELECT " + "1 BETWEEN 1 AND " * n + "1",
    "order": lambda n: "SELECT 1 ORDER BY " + ",".join(["1"] * n),
    "windows": lambda n: "SELECT " + "sum(" * n + "1" + ") OVER ()" * n,
    "rows in rows": lambda n: "SELECT " + "ROW(" * n + "1" + ")" * n,
    "time zones": lambda n: "SELECT now()" + " AT TIME ZONE 'UTC'" * n,
    "branches": lambda n: "SELECT CASE" + " WHEN 1 = 2 THEN 'a'" * n + " END",
    "concatenations": lambda n: "SELECT " + " || ".join(["'a'"] * n),
    "unions of tables": lambda n: " UNION ALL ".join(["SELECT 1, 2 FROM t"] * n),
    "CTEs of CTEs": lambda n: (
        "WITH a0 AS (SELECT 1)"
        + "".join(f", a{i} AS (TABLE a{i - 1})" for i in range(1, n))
        + "TABLE a0"
    ),
    "branches named like words of a CASE": lambda n: (
        "SELECT CASE WHEN " + "+".join(["a.when + a.end"] * n) + " THEN 1 END"
    ),
    "likes": lambda n: "SELECT 'a'" + " LIKE ('a'" * n + ")" * n,
}

# Longer texts than those of the last are refused by their length alone, as are they.
SIZES = (10, 100, 1000, 4000, 30_000, 100_000)


@pytest.mark.parametrize("shape", SHAPES)
def test_huge_statements_of_every_shape(shape: str) -> None:
    """On a thread with the smallest stack that is usual, 2 MB: a stack that overflows would end the
    process.
    """

    def judge() -> None:
        for size in SIZES:
            started = time.thread_time()
            _is_accepted(SHAPES[shape](size))
            slowest.append(time.thread_time() - started)

    slowest: list[float] = []
    previous = threading.stack_size(2 * 1024 * 1024)
    try:
        thread = threading.Thread(target=judge)
        thread.start()
    finally:
        threading.stack_size(previous)
    thread.join()
    assert len(slowest) == len(SIZES)
    assert max(slowest) < 10


@pytest.mark.parametrize(
    ("shape", "size"),
    [("operators", 250), ("unions", 300), ("subqueries", 80), ("ands", 3000), ("list", 20_000),
     ("rows", 8000),
     ("joins", 29), ("functions", 150), ("casts", 250), ("cases", 100), ("branches", 1100),
     ("concatenations", 1500),
     ("unions of tables", 500), ("CTEs of CTEs", 100), ("branches named like words of a CASE",
      500)],
)  # fmt: skip
def test_honest_sizes_pass(shape: str, size: int) -> None:
    GUARD.check(SHAPES[shape](size))


def _chain(length: int, first: str, step: str = "TABLE a{}") -> str:
    steps = "".join(f", a{i} AS ({step.format(i - 1)})" for i in range(1, length))
    return f"WITH a0 AS ({first}){steps} TABLE a{length - 1}"


@pytest.mark.parametrize(
    "sql",
    [
        SHAPES["CTEs of CTEs"](200),
        _chain(200, "SELECT 1"),
        _chain(100, "SELECT " + ", ".join(f"1 AS c{i}" for i in range(100))),
        _chain(50, "SELECT 1", "SELECT *, 1 FROM a{}"),
        _chain(20, "SELECT 1", "SELECT * FROM " + "(SELECT * FROM " * 10 + "a{}" + ") AS s" * 10),
    ],
    ids=["unread", "long", "wide", "ever wider", "with subqueries"],
)
def test_chains_of_queries_that_take_long_to_plan_are_refused(sql: str) -> None:
    """PostgreSQL puts them into each other, and looks at no timeout meanwhile: 400 CTEs take
    seconds, 3,500 hours.
    """
    with pytest.raises(ValidationFailed, match="nested too deeply"):
        GUARD.check(sql)


@pytest.mark.parametrize(
    "sql",
    [
        _chain(100, "SELECT 1, 2, 3"),
        _chain(25, "SELECT 1", "SELECT *, 1 FROM a{}"),
        "WITH RECURSIVE "
        + ", ".join(f"a{i} AS (SELECT 1 UNION ALL SELECT 1 FROM a{i})" for i in range(200))
        + "TABLE a1",
        "WITH " + ", ".join(f"a{i} AS (SELECT {i})" for i in range(1000)) + " SELECT 1",
    ],
    ids=["long", "ever wider", "recursive", "beside each other"],
)
def test_other_chains_of_queries_pass(sql: str) -> None:
    GUARD.check(sql)


@pytest.mark.parametrize(
    "sql",
    [
        SHAPES["joins"](80),
        SHAPES["cross joins"](31),
        "SELECT * FROM t WHERE " + " AND ".join(["a IN (SELECT b FROM u)"] * 80),
        "SELECT * FROM (SELECT t.a FROM t{0}) AS x, (SELECT t.a FROM t{0}) AS y".format(", t" * 15),
        "WITH c AS (SELECT t.a FROM t" + ", t" * 30 + ") SELECT * FROM c",
        "SELECT (SELECT max(t.a) FROM t" + ", t" * 30 + ")",
        "SELECT 1 UNION SELECT t.a FROM t" + " LEFT JOIN t ON true" * 40,
        "SELECT * FROM generate_series(1, 2) AS f" + ", generate_series(1, 2) AS f" * 40,
        "SELECT 1 FROM a, b JOIN c ON true" + ", d JOIN e USING (n)" * 14,
        "WITH c AS NOT MATERIALIZED (SELECT t.a FROM t" + ", t" * 15 + ") SELECT * FROM c, c AS d",
        "WITH c AS (SELECT t.a FROM t" + ", t" * 29 + ") SELECT * FROM c, public.c",
        "WITH c0 AS (SELECT a FROM t)"
        + "".join(
            f", c{n} AS NOT MATERIALIZED (SELECT 1 FROM c{n - 1} a, c{n - 1} b)"
            for n in range(1, 40)
        )
        + " SELECT * FROM c39",
    ],
)  # fmt: skip
def test_more_relations_than_can_be_planned_together_are_refused(sql: str) -> None:
    with pytest.raises(ValidationFailed, match="joined together"):
        GUARD.check(sql)


@pytest.mark.parametrize(
    "sql",
    [
        " UNION ALL ".join(["SELECT t.a FROM t, u"] * 40),
        "SELECT " + ", ".join(["(SELECT max(a) FROM t)"] * 60),
        "SELECT * FROM " + ", ".join(["(SELECT a, count(*) FROM t, u, v GROUP BY a) AS x"] * 20),
        "WITH c AS (SELECT t.a FROM t, u, v) SELECT * FROM " + ", ".join(["c"] * 15),
        "WITH c AS MATERIALIZED (SELECT t.a FROM t" + ", t" * 20 + ") SELECT * FROM c" + ", t" * 20,
    ],
    ids=["branches", "scalars", "groups", "a CTE read often", "a CTE read by itself"],
)
def test_relations_that_are_planned_apart_are_not_counted_together(sql: str) -> None:
    GUARD.check(sql)


@pytest.mark.parametrize(
    "unit", ["/**/", "/*", "*/", "/*/", "+", "-+", "+-+", "++-", "*/*", "=/*", "/*>"]
)
@pytest.mark.parametrize("before", ["SELECT 1", "SELECT /*", "SELECT '"])
def test_runs_of_operators_are_not_read_again_and_again(before: str, unit: str) -> None:
    """libpg_query would take seconds to minutes for them, and so would the server."""
    with pytest.raises(ValidationFailed, match="run of operator characters"):
        GUARD.check(before + unit * (90_000 // len(unit)))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 -- " + "-" * 3000,
        "\n".join(["-- +" + "-" * 78 + "+"] * 300 + ["SELECT 1"]),
        "/" + "*" * 2000 + " title " + "*" * 800 + "/ SELECT 1",
        "\n".join(["/* ===== */", "/*-+-+-+-*/"] * 500 + ["SELECT 1"]),
    ],
)
def test_comments_may_be_drawn(sql: str) -> None:
    GUARD.check(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT;" * 14_000,
        "SELECT " + "a," * 49_000 + "a",
        "WITH " + ",".join(f"a{i} AS (SELECT)" for i in range(4_500)) + "SELECT 1",
    ],
    ids=["statements", "names", "CTEs"],
)
def test_no_text_takes_much_memory(sql: str) -> None:
    tracemalloc.start()
    _is_accepted(sql)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64_000_000


def test_long_texts_are_judged_off_the_event_loop(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    judges: list[bool] = []
    judge = Guard.inspect

    def inspect(guard: Guard, sql: str) -> Inspection:
        judges.append(threading.current_thread() is threading.main_thread())
        return judge(guard, sql)

    monkeypatch.setattr(Guard, "inspect", inspect)
    database = opened("postgresql://nobody@127.0.0.1:1/nothing")
    long = "SELECT " + "1," * 1000 + "1"
    for sql in ("SELECT 1", long, long):
        assert asyncio.run(database.inspect(sql)).statement == sql
    assert judges == [True, False, True]  # the last one was remembered


def test_trees_deeper_than_pythons_decoder_goes_are_the_same() -> None:
    sql = (
        "SELECT "
        + " || ".join(["'a\"\\\n[{字'"] * 50 + ["b.c", "1.5", "$1", "NULL"])
        + " UNION TABLE t"
    )
    text = parsing._json_tree(sql.encode())
    assert parsing._decoded_flat(text) == json.loads(text)


@pytest.mark.parametrize(
    "sql", ["SELECT '\0'", "\0", "SELECT 1\0; DROP TABLE t", "SELECT '\ud800'", "SELECT \udfff"]
)
def test_what_is_no_text(sql: str) -> None:
    with pytest.raises(ValidationFailed):
        GUARD.check(sql)


@pytest.mark.parametrize("sql", ["", " ", ";", ";;", "-- nothing", "/* nothing */", "\n\t"])
def test_empty_statements(sql: str) -> None:
    with pytest.raises(InvalidSql):
        GUARD.check(sql)


@pytest.mark.parametrize("character", "{}")
def test_long_texts_with_characters_that_no_sql_has(character: str) -> None:
    with pytest.raises(InvalidSql):
        GUARD.check(f"SELECT {character} {'x' * 9_000}")


def test_positions_count_characters() -> None:
    sql = "SELECT '中文字符' FROM t WHERE name FORM x"
    with pytest.raises(InvalidSql) as caught:
        GUARD.check(sql)
    assert caught.value.position == sql.index("FORM") + 1


def test_many_threads_at_once() -> None:
    guard = Guard()

    def judge(sql: str) -> bool:
        try:
            guard.check(sql)
        except StatementRejected:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(judge, STATEMENTS * 5))
    assert verdicts == [judge(sql) for sql in STATEMENTS] * 5
