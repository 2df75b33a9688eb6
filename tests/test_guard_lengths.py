"""The bounds of what a statement builds, held against what PostgreSQL builds of it."""

import math
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import ForbiddenObject
from databases.guard import Guard, lengths
from databases.guard.parsing import parse
from databases.guard.row_sizes import Place
from databases.guard.sizes import Size, TooLong
from tests.cases import all_cases
from tests.databases import rows_of
from tests.effort import tries

NUMBERS = st.integers(0, 9).map(str)
TEXTS = st.sampled_from(["''", "'a'", "'ab\"c\\'", "'12'", "'3'", "'&<>'", "'字'"]).map("{}::text".format)


def _numbers(inner: st.SearchStrategy[str], texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
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


def _texts(inner: st.SearchStrategy[str], numbers: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
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
        columns = lengths.Bounds(100_000).query(statement.node, Place()).columns
    except TooLong:
        return Size(math.inf, math.inf)
    assert columns is not None
    return columns["x"]


@settings(max_examples=tries(20), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(numbers=st.lists(SMALL_NUMBERS, min_size=5, max_size=20), texts=st.lists(SMALL_TEXTS, min_size=5, max_size=20))
def test_bounds_hold(demo_url: str, numbers: list[str], texts: list[str]) -> None:
    sizes = [f"length({text})" for text in texts]
    (row,) = rows_of(demo_url, "SELECT " + ", ".join(f"({n})::bigint" for n in [*numbers, *sizes]))
    for expression, value in zip(numbers, row, strict=False):
        assert value is None or abs(value) <= _bound(expression).number, expression
    for expression, value in zip(texts, row[len(numbers) :], strict=True):
        assert value is None or value <= _bound(expression).length, expression


CALLS = ["repeat({}, {})", "lpad({}, {})", "rpad({}, {})", "array_fill({}, ARRAY[{}])", "format('%*s', {1}, {0})"]
AMOUNTS = [
    "{}", "({}::text)::int", "(SELECT {})", "(VALUES ({}))", "({} + 0)", "(1 * {})", "abs(-{})", "greatest(1, {})",
    "CASE WHEN random() < 2 THEN {} END", "coalesce(NULL, {})", "(ARRAY[{}])[1]", "'{}'::int", "({} / 1)",
    "(SELECT n FROM (VALUES (1), ({})) AS t (n) ORDER BY n DESC LIMIT 1)",
    "(SELECT max(n) FROM unnest(ARRAY[{}]) AS n)",
    "(WITH c(n) AS (SELECT {}) SELECT n FROM c)", "(SELECT * FROM (SELECT {}) AS s)", "('[{}]'::jsonb ->> 0)::int",
    "(SELECT {} UNION SELECT 1 ORDER BY 1 DESC LIMIT 1)", "to_number('{}', '9999999999')::int", "nullif({}, 1)",
    "(SELECT (s).n FROM (SELECT {} AS n) AS s)",
    "(SELECT s.n FROM (SELECT {} AS n) AS t JOIN (SELECT {} AS n) AS s ON true)",
]  # fmt: skip


def test_no_way_of_writing_a_large_amount_passes() -> None:
    """And a small one does."""
    guard = Guard()
    with all_cases() as cases:
        for call, amount in product(CALLS, AMOUNTS):
            with cases.case((call, amount)):
                guard.check("SELECT " + call.format("'x'", amount.replace("{}", "12")))
                with pytest.raises(ForbiddenObject):
                    guard.check("SELECT " + call.format("'x'", amount.replace("{}", "1000000000")))
