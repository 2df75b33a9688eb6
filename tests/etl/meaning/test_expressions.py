"""What expressions are allowed, of which type they are, and that they give what PostgreSQL gives."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from sqlglot import exp

from etl.meaning.evaluation import Lookup, NotComputable, evaluate_expression
from etl.meaning.expressions import (
    DIALECT,
    ExpressionRefused,
    parse_expression,
    type_of,
    with_time_zone,
)

ZONE = "America/New_York"
TYPES = {
    "n": "numeric(12,2)",
    "m": "numeric",
    "i": "integer",
    "j": "bigint",
    "f": "double precision",
    "s": "text",
    "b": "boolean",
    "d": "date",
    "t": "timestamp without time zone",
    "z": "timestamp with time zone",
}
ROWS: tuple[dict[str, Any], ...] = (
    dict.fromkeys(TYPES),
    {
        "n": Decimal("7.25"),
        "m": Decimal("-0.003"),
        "i": 7,
        "j": -2,
        "f": 2.5,
        "s": " It's 50%_ ",
        "b": True,
        "d": date(2024, 3, 31),
        "t": datetime(2024, 3, 31, 23, 59, 59, 500000),
        "z": datetime(2024, 4, 1, 3, 30, tzinfo=UTC),
    },
    {
        "n": Decimal("0.00"),
        "m": Decimal(123456789),
        "i": 0,
        "j": 0,
        "f": -1.0,
        "s": "",
        "b": False,
        "d": date(2024, 12, 30),
        "t": datetime(2024, 1, 1),
        "z": datetime(2024, 11, 3, 5, 30, tzinfo=UTC),
    },
)
# Divisors are never 0 here: PostgreSQL refuses what an intent calls NULL.
SAME_AS_POSTGRESQL = (
    *("n + i", "n - m", "n * n", "n * f", "-n", "abs(m)", "i % 4", "j % 3", "-i * 2"),
    *("n / 3", "m / 7", "7.0 / 3", "n / (m + 1)", "100.00 / 8", "f / 2", "1.000000 / 3"),
    *("round(n, 1)", "round(m, 2)", "round(n)", "trunc(n, 1)", "ceil(m)", "floor(m)", "round(f)"),
    *("s || '!'", "s || i", "s || n", "concat(s, i, n)", "lower(s)", "upper(s)", "length(s)"),
    *("trim(s)", "left(s, 3)", "right(s, 2)", "left(s, -1)", "right(s, -1)", "substring(s, 2, 3)"),
    *("substring(s, 0, 3)", "replace(s, 'I', 'x')", "s LIKE '%50\\%%'", "s ILIKE ' it_s%'"),
    *("s LIKE ''", "s NOT LIKE '%5%'", "coalesce(n, 0)", "nullif(i, 0)", "nullif(s, '')"),
    *("greatest(n, m)", "least(i, 3)", "b AND n > 1", "b OR n > 1", "NOT b", "b IS NOT TRUE"),
    *("n IS NULL", "s IS NOT NULL", "b IS FALSE", "i IN (7, 8)", "i NOT IN (7, NULL)"),
    *("s NOT ILIKE '%X%'", "n NOT BETWEEN 1 AND 8", "rtrim(s, ' _')", "trim(both ' I' from s)"),
    *(
        "i BETWEEN 0 AND 7",
        "n = i",
        "n <> 7.250",
        "n IS DISTINCT FROM 0",
        "i IS NOT DISTINCT FROM j",
    ),
    *("CASE WHEN n > 1 THEN 'a' WHEN n IS NULL THEN 'b' END", "CASE i WHEN 7 THEN 1 ELSE 2.5 END"),
    *("n::integer", "m::integer", "i::text", "n::text", "b::text", "'12'::integer", "f::numeric"),
    *("n::numeric(12,1)", "d - DATE '2024-01-31'", "d + 1", "d - i", "d::text", "t::date"),
    *("extract(quarter FROM d)", "extract(week FROM d)", "extract(second FROM t)"),
    *("date_trunc('week', t)", "date_trunc('quarter', d)", "date_trunc('hour', z)", "z::date"),
    *("extract(hour FROM z)", "d = '2024-03-31'", "z >= '2024-03-31'", "z < DATE '2024-04-01'"),
    *("t BETWEEN '2024-03-31' AND '2024-04-01'", "t::text", "(n > 1)::text", "z > t", "d < t"),
)


@pytest.fixture(scope="module")
def connection(admin_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(admin_url, autocommit=True) as opened:
        opened.execute("SET TIME ZONE 'Asia/Shanghai'")
        yield opened


def _types(column: exp.Column) -> str:
    return TYPES[column.name]


def _lookup(row: dict[str, Any]) -> Lookup:
    return lambda column: row[column.name]


@pytest.mark.parametrize("text", SAME_AS_POSTGRESQL)
def test_an_expression_gives_what_postgresql_gives(
    text: str, connection: psycopg.Connection
) -> None:
    expression = with_time_zone(parse_expression(text), _types, ZONE)
    columns = ", ".join(f"%s::{type_} AS {name}" for name, type_ in TYPES.items())
    for row in ROWS:
        sql = f"SELECT {expression.sql(DIALECT)} FROM (SELECT {columns}) AS one"
        answer = connection.execute(
            sql.replace("%", "%%").replace("%%s::", "%s::"), list(row.values())
        )
        found = answer.fetchone()
        computed = evaluate_expression(expression, _lookup(row), ZONE)
        assert found is not None
        assert computed == found[0]
        if isinstance(found[0], Decimal) and "/" in text:
            assert str(computed) == str(found[0]), "to the same digits"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n * i", "numeric"),
        ("i / j", "numeric"),
        ("i + j", "bigint"),
        ("n * f", "double precision"),
        ("CASE WHEN b THEN 1 ELSE n END", "numeric"),
        ("coalesce(d, NULL)", "date"),
        ("d - d", "integer"),
        ("date_trunc('month', z)", "timestamp without time zone"),
        ("extract(year FROM d)", "numeric"),
        ("n > 1 AND s = 'x'", "boolean"),
        ("s || i", "text"),
        ("i::smallint", "smallint"),
    ],
)
def test_an_expression_has_a_type(text: str, expected: str) -> None:
    assert type_of(parse_expression(text), _types) == expected


@pytest.mark.parametrize("text", ["i / 0", "n / j", "i % j", "f / (f - f)"])
def test_division_by_zero_is_null(text: str) -> None:
    row = {**ROWS[1], "j": 0}
    expression = parse_expression(text)
    assert evaluate_expression(expression, _lookup(row), ZONE) is None


def test_integers_are_not_divided_as_integers() -> None:
    value = evaluate_expression(parse_expression("i / 2"), lambda _: 7, ZONE)
    assert value == Decimal("3.5")


def test_a_text_that_is_no_number_can_not_be_computed() -> None:
    with pytest.raises(NotComputable):
        evaluate_expression(parse_expression("s::integer"), lambda _: "seven", ZONE)


@pytest.mark.parametrize(
    "text",
    [
        *("", "1, 2", "1; DELETE FROM a", "n FROM a", "n AS m", "*", "a.*", "(SELECT 1)"),
        *("sum(n)", "row_number() OVER ()", "now()", "current_date", "random()", "pg_sleep(9)"),
        *("n IN (SELECT 1)", "EXISTS (SELECT 1)", "a.b.c", "$1", "ARRAY[1]", "s ~ 'x'", "n::money"),
        *(
            "n::a.b",
            "DISTINCT n",
            "INTERVAL '1 day'",
            "lo_import('/etc/passwd')",
            "n UNION SELECT 1",
        ),
        *("n WHERE true", "date_trunc('century', d)", "extract(epoch FROM t)", "1 +", "'open"),
        *(
            "n + s",
            "s || b",
            "NOT n",
            "n AND b",
            "abs(s)",
            "d + t",
            "t - t",
            "CASE WHEN n THEN 1 END",
        ),
        *("CASE WHEN b THEN 1 ELSE 'x' END", "n = s", "i IN (1, 'x')", "b > n", "lower(n)", "sum"),
        "+".join(["n"] * 600),
        "(" * 3000,
        "n" * 5000,
    ],
)
def test_what_is_not_allowed_is_refused(text: str) -> None:
    with pytest.raises((ExpressionRefused, KeyError)):
        type_of(parse_expression(text), _types)


def test_comments_never_reach_the_tree() -> None:
    expression = parse_expression("n /* {{ evil() }} */ + 1 -- {% x %}")
    assert expression.sql(DIALECT) == "n + 1"
