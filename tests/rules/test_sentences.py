"""The sentence of an answer: figures as people write them, and nothing that is not in the rows."""

import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.text import Lang
from common.values import Catalog, Column, QueryResult, Table
from knowledge.language.inflection import plural
from knowledge.results.result_columns import as_period, result_columns
from knowledge.results.written_values import joined
from rules.answering.answer_period import AnswerPeriod
from rules.answering.summarize import AnsweredQuestion, summary_pieces

SALES = Catalog(
    (
        Table(
            "public",
            "sale",
            "table",
            (
                Column("sale_id", "integer", "编号"),
                Column("shop", "text", "店铺"),
                Column("sold_on", "date", "销售日期", period=("2024-11-20", "2026-11-20")),
                Column("amount", "numeric(12,2)", "金额（元）"),
                Column("price", "numeric", "单价（$）"),
                Column("people", "integer", "人数（人）"),
            ),
            primary_key=("sale_id",),
        ),
    )
)
TODAY = date(2026, 11, 22)
MONTHLY = (
    "SELECT date_trunc('month', sold_on)::date AS month, sum(amount) AS total FROM sale "
    "GROUP BY 1 ORDER BY 1"
)
BY_SHOP = "SELECT shop, sum(amount) AS total_amount FROM sale GROUP BY shop ORDER BY 2 DESC"
Rows = tuple[list[Any], ...]


def told(
    sql: str,
    rows: Rows,
    types: tuple[str, ...],
    lang: Lang = "en",
    dated: AnswerPeriod | None = None,
    today: date = TODAY,
    **more: Any,
) -> str:
    names = tuple(f"c{place}" for place in range(len(types)))
    result = QueryResult(names, types, rows, **more)
    columns = result_columns(sql, result, SALES, lang)
    is_whole = not result.is_limited and "LIMIT" not in sql
    return "".join(summary_pieces(AnsweredQuestion(result, columns, lang, today, is_whole, dated)))


@pytest.mark.parametrize(
    ("sql", "kind", "value", "en", "zh"),
    [
        (
            "SELECT sum(amount) AS t FROM sale",
            "numeric",
            Decimal("1234567.5"),
            "1,234,567.50元",
            "1,234,567.50元",
        ),
        ("SELECT avg(amount) AS t FROM sale", "numeric", Decimal("3.14159"), "3.14元", "3.14元"),
        ("SELECT max(price) AS t FROM sale", "numeric", Decimal(-12), "-$12.00", "-$12.00"),
        ("SELECT sum(people) AS t FROM sale", "int8", 12345, "12,345人", "12,345人"),
        (
            "SELECT extract(year FROM sold_on) AS y FROM sale LIMIT 1",
            "numeric",
            Decimal(2026),
            "2026",
            "2026",
        ),
        ("SELECT sale_id FROM sale LIMIT 1", "int4", 1234567, "1234567", "1234567"),
        ("SELECT count(*) AS n FROM sale", "int8", 1, ": 1.", "为 1。"),
    ],
)
def test_figures_are_written_as_people_write_them(
    sql: str, kind: str, value: object, en: str, zh: str
) -> None:
    assert en in told(sql, ([value],), (kind,))
    assert zh in told(sql, ([value],), (kind,), "zh")


@pytest.mark.parametrize(
    ("value", "period", "expected"),
    [
        ("2026-10-01", "month", "2026-10"),
        ("2026-10-01T00:00:00+08:00", "quarter", "2026-Q4"),
        ("2026-10-01 00:00:00", "year", "2026"),
        ("2025年 第3季度 (July)", "quarter", "2025年 第3季度 (July)"),
        ("2025 Jun 01", "quarter", "2025 Jun 01"),
        ("2025 June     ", "month", "2025 June     "),
        ("0044-03-01 BC", "month", "0044-03-01 BC"),
        ("12026-09-01", "month", "12026-09-01"),
        ("123456-09-01", "quarter", "123456-09-01"),
    ],
)
def test_only_dates_of_four_digit_years_are_cut_to_their_periods(
    value: str, period: str, expected: str
) -> None:
    assert as_period(value, period) == expected


@pytest.mark.parametrize(
    ("form", "role", "period"),
    [
        ("YYYY Month", "category", None),
        ("YYYY Mon DD", "category", None),
        ("MM/YYYY", "category", None),
        ("YYYY-FMMM", "category", None),
        ('YYYY"年"MM"月"', "time", "month"),
        ('YYYY"年 第"Q"季度"', "time", "quarter"),
        ("yyyy-mm-dd hh24:00", "time", "month"),
        ("YYYY", "time", "year"),
    ],
)
def test_months_that_are_written_out_of_order_are_no_times(
    form: str, role: str, period: str | None
) -> None:
    """A line from April to September by way of August would tell a course that never was."""
    sql = (
        f"SELECT to_char(date_trunc('month', sold_on), '{form}') AS m, sum(amount) AS total "
        "FROM sale GROUP BY 1"
    )
    result = QueryResult(("m", "total"), ("text", "numeric"), (["x", Decimal(1)],))
    column = result_columns(sql, result, SALES, "en")[0]
    assert (column.role, column.period) == (role, period)


TOP: Rows = (["A", Decimal(9)], ["B", Decimal(5)], ["C", Decimal(4)])


def test_the_first_of_a_cut_list_are_named_and_only_a_whole_list_has_a_lowest() -> None:
    types = ("text", "numeric")
    assert told(f"{BY_SHOP} LIMIT 3", TOP, types).endswith(
        "highest for A (9.00元), B (5.00元) and C (4.00元)."
    )
    assert told(f"{BY_SHOP} LIMIT 3", TOP, types, "zh").endswith(
        "最高的是A（9.00元）、B（5.00元）、C（4.00元）。"
    )
    assert told(BY_SHOP, TOP, types).endswith("highest for A (9.00元) and lowest for C (4.00元).")
    assert "lowest" not in told(BY_SHOP, TOP, types, is_limited=True)


def test_a_period_that_is_not_over_or_not_whole_is_called_so() -> None:
    rows: Rows = (
        ["2024-11-01", Decimal(1)],
        ["2026-10-01", Decimal(3)],
        ["2026-11-01", Decimal(2)],
    )
    said = told(MONTHLY, rows, ("date", "numeric"))
    assert "highest in 2026-10 (3.00元)" in said
    assert said.endswith("Data of 2024-11 begin on 2024-11-20. 2026-11 is not over yet.")
    assert told(MONTHLY, rows, ("date", "numeric"), "zh").endswith("2026-11 尚未结束。")
    assert "over yet" not in told(MONTHLY, rows[1:2] * 2, ("date", "numeric"))
    later = told(MONTHLY, rows, ("date", "numeric"), today=date(2027, 2, 1))
    assert later.endswith("Data of 2026-11 end on 2026-11-20.")


def _dated(start: date | None, end: date | None, grain: str | None) -> AnswerPeriod:
    column = SALES.tables[0].column("sold_on")
    assert column is not None
    return AnswerPeriod(column, start, end, grain, TODAY)


@pytest.mark.parametrize(
    ("dated", "en", "zh"),
    [
        (
            _dated(date(2026, 10, 1), date(2026, 11, 1), "month"),
            "(by sold on, October 2026)",
            "（按销售日期，2026-10）",
        ),
        (
            _dated(date(2026, 1, 1), date(2027, 1, 1), "year"),
            "(by sold on, 2026, not over yet)",
            "（按销售日期，2026，尚未结束）",
        ),
        (_dated(date(2026, 7, 1), date(2026, 10, 1), "quarter"), "2026-Q3)", "2026-Q3）"),
        (
            _dated(date(2026, 7, 1), date(2026, 7, 8), None),
            "2026-07-01 to 2026-07-07)",
            "2026-07-01至2026-07-07）",
        ),
        (_dated(date(2026, 7, 1), None, None), "since 2026-07-01)", "自2026-07-01起）"),
        (_dated(None, date(2026, 7, 1), None), "before 2026-07-01)", "早于2026-07-01）"),
    ],
)
def test_the_period_and_its_date_are_said(dated: AnswerPeriod, en: str, zh: str) -> None:
    sql = "SELECT count(*) AS n FROM sale"
    assert en in told(sql, ([7],), ("int8",), dated=dated)
    assert zh in told(sql, ([7],), ("int8",), "zh", dated)


def test_nothing_found_says_until_when_there_are_data() -> None:
    later, earlier = _dated(date(2027, 1, 1), None, None), _dated(None, date(2020, 1, 1), None)
    assert told(BY_SHOP, (), ("text", "numeric"), dated=later).endswith(
        "Data by sold on end on 2026-11-20."
    )
    assert told(BY_SHOP, (), ("text", "numeric"), "zh", earlier).endswith(
        "数据自 2024-11-20 开始。"
    )
    sums: Rows = ([None],)
    assert "end on 2026-11-20" in told(
        "SELECT sum(amount) AS t FROM sale", sums, ("numeric",), dated=later
    )


def test_names_are_joined_and_plurals_are_words() -> None:
    assert joined([], "en") == "" and joined(["A"], "zh") == "A"
    assert joined(["A", "B"], "en") == "A and B" and joined(["A", "B", "C"], "zh") == "A、B、C"
    assert (plural("order"), plural("ks"), plural("company")) == ("orders", "ks", "companies")


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.decimals(allow_nan=True, allow_infinity=True, places=3),
    st.floats(),
    st.text(max_size=8),
    st.dates().map(date.isoformat),
    st.lists(st.integers(), max_size=2),
)
TYPES = st.sampled_from(["text", "int8", "numeric", "float8", "date", "timestamp", "jsonb", "bool"])
SQL = st.sampled_from(
    [MONTHLY, BY_SHOP, f"{BY_SHOP} LIMIT 3", "SELECT 1", "not sql", "SELECT * FROM sale"]
)


@st.composite
def results(draw: st.DrawFn) -> tuple[Rows, tuple[str, ...]]:
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=5))
    return tuple(rows), tuple(draw(st.lists(TYPES, min_size=width, max_size=width)))


@given(results(), SQL, st.sampled_from(["zh", "en"]), st.booleans())
@example(((["2000-01-30", 1], ["9999-12-31", 1]), ("text", "int8")), MONTHLY, "en", False)
def test_any_rows_can_be_told(
    given_rows: tuple[Rows, tuple[str, ...]], sql: str, lang: Lang, is_limited: bool
) -> None:
    rows, types = given_rows
    dated = _dated(TODAY - timedelta(days=3), None, None) if is_limited else None
    assert told(sql, rows, types, lang, dated, is_limited=is_limited)


@given(
    st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from(["zh", "en"]),
)
def test_every_figure_that_is_said_stands_in_the_rows_or_counts_them(
    figures: list[Decimal], is_cut: bool, lang: Lang
) -> None:
    rows: Rows = tuple(
        ["x" * (place + 1), figure] for place, figure in enumerate(sorted(figures, reverse=True))
    )
    said = told(f"{BY_SHOP} LIMIT 9" if is_cut else BY_SHOP, rows, ("text", "numeric"), lang)
    numbers = {
        Decimal(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*(?:\.\d+)?", said)
    }
    assert numbers <= {*figures, Decimal(len(rows))}, said
