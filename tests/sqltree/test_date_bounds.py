"""The days that a query is restricted to: said where its WHERE says so, and nowhere else."""

from datetime import date

import pytest

from common.text import Lang
from common.values import Catalog, Column, Table
from rules.answering.answer_period import period_of_sql
from sqltree.date_bounds import days_of

TODAY = date(2026, 11, 22)
CATALOG = Catalog(
    (
        Table(
            "public",
            "sale",
            "table",
            (
                Column("id", "integer", ""),
                Column("shop_id", "integer", ""),
                Column("sold_on", "date", "销售日期"),
                Column("paid_at", "timestamp with time zone", ""),
                Column("amount", "numeric(12,2)", ""),
                Column("month", "text", ""),
            ),
        ),
        Table(
            "public",
            "shop",
            "table",
            (Column("id", "integer", ""), Column("opened_on", "date", "")),
        ),
    )
)
SALE = "SELECT sum(amount) FROM sale"


def days(where: str, begin: str = SALE) -> tuple[str, str | None, str | None] | None:
    found = days_of(f"{begin} WHERE {where}", CATALOG, TODAY)
    if found is None:
        return None
    start, end = (day.isoformat() if day is not None else None for day in (found.start, found.end))
    return found.column.name, start, end


@pytest.mark.parametrize(
    ("where", "start", "end"),
    [
        ("sold_on >= '2026-10-01' AND sold_on < '2026-11-01'", "2026-10-01", "2026-11-01"),
        (
            "sold_on >= DATE '2026-10-01' AND sold_on <= '2026-10-31'::date",
            "2026-10-01",
            "2026-11-01",
        ),
        (
            "sold_on BETWEEN '2026-01-01' AND '2026-12-31' AND amount > 5",
            "2026-01-01",
            "2027-01-01",
        ),
        ("'2026-10-01' <= sold_on AND (shop_id = 3 OR shop_id = 4)", "2026-10-01", None),
        ("sold_on = CURRENT_DATE", "2026-11-22", "2026-11-23"),
        ("sold_on = now()::date - 1", "2026-11-21", "2026-11-22"),
        ("sold_on >= CURRENT_DATE - INTERVAL '7 days'", "2026-11-15", None),
        ("sold_on > '2026-10-31' AND sold_on IS NOT NULL", "2026-11-01", None),
        ("sale.sold_on < '2026-10-01 00:00:00'", None, "2026-10-01"),
        (
            "sold_on >= date_trunc('month', CURRENT_DATE) - INTERVAL '1 month' "
            "AND sold_on < date_trunc('month', CURRENT_DATE)",
            "2026-10-01",
            "2026-11-01",
        ),
        ("sold_on >= date_trunc('month', now() - interval '1 month')", "2026-10-01", None),
        ("sold_on >= (date_trunc('quarter', CURRENT_TIMESTAMP))::date", "2026-10-01", None),
        ("date_trunc('month', sold_on) = DATE '2026-10-01'", "2026-10-01", "2026-11-01"),
        (
            "date_trunc('month', sold_on) = date_trunc('month', CURRENT_DATE - INTERVAL '1 month')",
            "2026-10-01",
            "2026-11-01",
        ),
        ("EXTRACT(YEAR FROM sold_on) = 2025", "2025-01-01", "2026-01-01"),
        ("sold_on >= DATE '2026-03-31' - INTERVAL '1 month'", "2026-02-28", None),
        ("sold_on >= '2025-01-01' AND sold_on >= '2026-01-01'", "2026-01-01", None),
    ],
)
def test_bounds_that_a_where_states(where: str, start: str | None, end: str | None) -> None:
    assert days(where) == ("sold_on", start, end)


@pytest.mark.parametrize(
    "where",
    [
        "amount > 5",
        "sold_on >= '2026-10-01' OR amount > 5",
        "NOT sold_on >= '2026-10-01'",
        "sold_on >= '2026-10-01' AND paid_at < '2026-11-01'",
        "sold_on >= '2026-10-01' AND (sold_on < '2026-11-01' OR amount > 5)",
        "sold_on <> '2026-10-01'",
        "sold_on IN ('2026-10-01', '2026-10-02')",
        "sold_on >= paid_at",
        "sold_on >= $1",
        "sold_on >= 'yesterday'",
        "sold_on >= '2026-13-01'",
        "sold_on >= (SELECT max(opened_on) FROM shop)",
        "sold_on + 30 >= CURRENT_DATE",
        "to_char(sold_on, 'YYYY-MM') = '2026-10'",
        "month = '2026-10'",
        "paid_at <= '2026-10-31'",  # only up to the beginning of that day
        "paid_at >= now() - interval '1 day'",  # a time of day
        "date_trunc('month', sold_on) = DATE '2026-10-02'",
        "sold_on >= '2026-11-01' AND sold_on < '2026-10-01'",
        "sold_on >= CURRENT_DATE - INTERVAL '1' YEAR",
        "sold_on >= '9999-12-31' AND sold_on <= '9999-12-31'",
        "sold_on >= CURRENT_DATE - interval '9999 years'",
    ],
)
def test_what_can_not_be_told_is_not_said(where: str) -> None:
    assert days(where) is None


@pytest.mark.parametrize(
    ("begin", "where"),
    [
        ("SELECT 1 FROM (SELECT sold_on FROM sale) AS s", "sold_on >= '2026-10-01'"),
        ("WITH sale AS (SELECT * FROM shop) SELECT 1 FROM sale", "sold_on >= '2026-10-01'"),
        ("SELECT 1 FROM sale UNION ALL SELECT 1 FROM sale", "sold_on >= '2026-10-01'"),
        ("SELECT 1 FROM nowhere", "sold_on >= '2026-10-01'"),
        ("SELECT 1 FROM sale AS s (a, b, sold_on)", "sold_on >= '2026-10-01'"),
        ("SELECT 1 FROM sale a JOIN sale b ON a.id = b.id", "sold_on >= '2026-10-01'"),
        ("DELETE FROM sale", "sold_on >= '2026-10-01'"),
    ],
)
def test_rows_of_something_else_are_not_dated(begin: str, where: str) -> None:
    assert days(where, begin) is None


def test_columns_are_found_by_their_tables() -> None:
    joined = "SELECT 1 FROM sale AS s JOIN shop ON shop.id = s.shop_id"
    assert days("s.sold_on >= '2026-10-01'", joined) == ("sold_on", "2026-10-01", None)
    assert days("opened_on >= '2026-10-01'", joined) == ("opened_on", "2026-10-01", None)
    assert days("paid_at >= '2026-10-01' AND paid_at < '2026-11-01'") == (
        "paid_at",
        "2026-10-01",
        "2026-11-01",
    )
    assert days_of("SELECT 1 FROM sale", CATALOG, TODAY) is None
    assert days_of("SELECT (", CATALOG, TODAY) is None


@pytest.mark.parametrize(
    ("where", "lang", "clause"),
    [
        ("sold_on >= '2026-10-01' AND sold_on < '2026-11-01'", "en", " (by sold on, October 2026)"),
        ("sold_on >= '2026-10-01' AND sold_on < '2026-11-01'", "zh", "（按销售日期，2026-10）"),
        ("EXTRACT(YEAR FROM sold_on) = 2026", "en", " (by sold on, 2026, not over yet)"),
        ("sold_on BETWEEN '2026-07-01' AND '2026-09-30'", "en", " (by sold on, 2026-Q3)"),
        (
            "sold_on BETWEEN '2026-10-03' AND '2026-10-05'",
            "en",
            " (by sold on, 2026-10-03 to 2026-10-05)",
        ),
        ("sold_on >= '2026-10-15'", "zh", "（按销售日期，自2026-10-15起）"),
        ("sold_on = CURRENT_DATE", "en", " (by sold on, 2026-11-22, not over yet)"),
    ],
)
def test_the_sentence_says_them_as_of_any_query(where: str, lang: Lang, clause: str) -> None:
    dated = period_of_sql(f"{SALE} WHERE {where}", CATALOG, TODAY)
    assert dated is not None
    assert dated.clause(lang) == clause
