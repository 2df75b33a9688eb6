"""Why answers are wrong: by what the database said, what was corrected, what users say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import (
    CituError,
    CostExceeded,
    ForbiddenObject,
    ForbiddenStatement,
    InvalidSql,
    QueryTimeout,
    ValidationFailed,
)
from common.learning import FailureType
from common.text import Text
from common.values import PlanEstimate
from knowledge.learning.failure_analysis import Case, analysed
from sqltree.query_parts import differences, parts_of

SQL = (
    "SELECT s.name, sum(r.amount) FROM revenue r JOIN shop s ON s.id = r.shop_id "
    "WHERE s.kind = 'x' GROUP BY 1"
)
SLOW = Text("太慢", "too slow")


@pytest.mark.parametrize(
    ("refusal", "failure", "says"),
    [
        (
            InvalidSql('column "nme" does not exist', sqlstate="42703", suggestions=["name"]),
            "semantic_error",
            "name",
        ),
        (InvalidSql('relation "x" does not exist', sqlstate="42P01"), "semantic_error", "x"),
        (InvalidSql('syntax error at or near "+"', sqlstate="42601"), "syntax_error", "near"),
        (InvalidSql("division by zero", sqlstate="22012"), "logic_error", "zero"),
        (ForbiddenObject("secret", Text("不可用", "secret is closed")), "semantic_error", "secret"),
        (ForbiddenStatement("DELETE"), "requirement_mismatch", "DELETE"),
        (ValidationFailed(Text("过长", "too long")), "syntax_error", "too long"),
        (
            CostExceeded(SLOW, plan=PlanEstimate(1e9, 1, ("revenue",))),
            "performance_error",
            "too slow",
        ),
        (QueryTimeout(SLOW), "performance_error", "too slow"),
    ],
)
def test_a_refusal_tells_the_failure(refusal: CituError, failure: FailureType, says: str) -> None:
    analysis = analysed(Case("en", SQL, refusal=refusal, comment="nothing about it"))
    assert analysis is not None
    assert analysis.failure_type == failure
    assert says in analysis.root_cause
    assert analysis.avoidance_hint


@pytest.mark.parametrize(
    ("corrected", "failure", "says"),
    [
        (SQL.replace("revenue r", "takings r"), "semantic_error", "takings"),
        (SQL.replace("r.shop_id", "r.owner_id"), "logic_error", "revenue.owner_id = shop.id"),
        (SQL.replace("s.kind = 'x'", "s.kind = 'y'"), "logic_error", "shop.kind = 'y'"),
        (SQL.replace("sum(", "avg("), "logic_error", "avg(revenue.amount)"),
        (SQL.replace("GROUP BY 1", "GROUP BY 1, s.kind"), "logic_error", "shop.kind"),
        (
            SQL + " ORDER BY 2 DESC LIMIT 3",
            "requirement_mismatch",
            "sum(revenue.amount) DESC LIMIT 3",
        ),
    ],
)
def test_a_correction_tells_the_failure(corrected: str, failure: FailureType, says: str) -> None:
    analysis = analysed(Case("en", SQL, corrected=corrected, comment="太慢"))
    assert analysis is not None
    assert analysis.failure_type == failure
    assert says in analysis.root_cause
    assert says in analysis.avoidance_hint
    assert "太慢" in analysis.root_cause


@pytest.mark.parametrize(
    ("comment", "failure"),
    [
        ("takes forever", "performance_error"),
        ("查询太慢了", "performance_error"),
        ("It used the wrong table", "semantic_error"),
        ("用错了字段", "semantic_error"),
        ("revenue is counted twice", "logic_error"),
        ("合计不对，没有排除已删除的", "logic_error"),
        ("that's not what I asked", "requirement_mismatch"),
        ("答非所问", "requirement_mismatch"),
        ("hm", "requirement_mismatch"),
        (None, "requirement_mismatch"),
    ],
)
def test_a_comment_tells_the_failure(comment: str | None, failure: FailureType) -> None:
    analysis = analysed(Case("zh", SQL, comment=comment, row_count=3))
    assert analysis is not None
    assert analysis.failure_type == failure


def test_an_empty_result_points_at_the_filters() -> None:
    analysis = analysed(Case("en", SQL, row_count=0))
    assert analysis is not None
    assert (analysis.failure_type, "shop.kind = 'x'" in analysis.root_cause) == (
        "logic_error",
        True,
    )


def test_a_failure_of_the_service_teaches_nothing() -> None:
    assert analysed(Case("en", None, error_type="llm_unavailable", error="down")) is None
    assert analysed(Case("en", SQL, error_type="cancelled")) is None
    assert analysed(Case("en", SQL, error_type="query_timeout", error="too slow")) is not None
    assert analysed(Case("en", None)) is not None


def test_what_a_query_is_made_of() -> None:
    parts = parts_of(
        "WITH t AS (SELECT * FROM x.y) SELECT a.b, count(DISTINCT c) FROM t AS a LEFT JOIN d "
        "USING (k), e"
        " WHERE a.i = e.i AND NOT a.gone AND lower(a.n) IN ('p', 'q') AND a.z BETWEEN 1 AND 0"
        " AND a.w IS NOT NULL"
        " AND (a.v > 1.50 OR EXISTS (SELECT 1 FROM f)) HAVING count(*) > 3"
    )
    assert parts.tables == {"x.y", "t", "d", "e", "f"}
    assert parts.joins == {"e.i = t.i", "k"}
    assert {
        "NOT t.gone",
        "lower(t.n) IN ('p', 'q')",
        "t.w IS NOT NULL",
        "count(*) > 3",
    } <= parts.filters
    assert "t.z BETWEEN (1, 0)" in parts.filters
    assert parts.figures == {"count(DISTINCT c)", "count(*)"}


@given(
    one=st.text(max_size=80),
    other=st.sampled_from([SQL, "SELECT", "SELECT 1", "SELECT ((((1))))", "VALUES (1)"]),
)
def test_any_text_can_be_compared(one: str, other: str) -> None:
    differences(one, other)
    assert differences(other, other) == ()
    assert analysed(Case("zh", one, corrected=other)) is not None


@pytest.mark.parametrize(
    "sql",
    [
        (
            "SELECT count(*) FILTER (WHERE a > 1), row_number() OVER (PARTITION BY b ORDER BY c), "
            "CASE WHEN d THEN 1 END"
        ),
        (
            "SELECT ARRAY[1,2], (SELECT 1), a[1], b::int, COALESCE(x, 0), x IS DISTINCT FROM y, "
            "x NOT IN (1) FROM t"
        ),
        (
            "SELECT * FROM (SELECT 1) q, LATERAL (SELECT q.*) w, f(1) g, generate_series(1, 2) "
            "WHERE a LIKE 'x' OR NOT b"
        ),
        "SELECT 1 UNION SELECT 2 ORDER BY 1; ",
        "SELECT " + " + ".join(["a"] * 500),
        (
            "SELECT sum(x) FROM t GROUP BY ROLLUP (a, b), GROUPING SETS ((c)) ORDER BY x "
            "USING < NULLS FIRST LIMIT 3"
        ),
    ],
)
def test_every_sort_of_expression_has_a_text(sql: str) -> None:
    assert parts_of(sql) == parts_of(sql)


def test_columns_may_be_named_by_their_place_or_their_alias() -> None:
    sql = (
        "SELECT s.name, sum(r.amount) AS total FROM r JOIN s ON s.id = r.s_id GROUP BY s.name "
        "ORDER BY total DESC"
    )
    by_place = sql.replace("GROUP BY s.name ORDER BY total", "GROUP BY 1 ORDER BY 2")
    for corrected in (by_place, by_place.replace("ORDER BY 2", "ORDER BY sum(r.amount)")):
        analysis = analysed(Case("en", sql, corrected=corrected))
        assert analysis is not None and "instead of" not in analysis.root_cause
    other = analysed(Case("en", sql, corrected=by_place.replace("ORDER BY 2", "ORDER BY 1")))
    assert other is not None and "sum(r.amount) DESC instead of s.name DESC" in other.root_cause
