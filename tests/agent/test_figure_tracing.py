"""Each figure of an answer is traced to the call that it comes from, or named."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.answers.figure_tracing import (
    FigureSource,
    TracedFigures,
    traced_figures,
    tracing_warnings,
)
from common.values import QueryResult, Turn

TODAY = date(2026, 11, 22)


def rows(*columns: str, of: list[list[Any]]) -> QueryResult:
    return QueryResult(columns, ("text",) * len(columns), tuple(of))


AREAS = FigureSource(
    "areas",
    rows(
        "name", "total", of=[["G60 嘉兴", Decimal("1234567.80")], ["杭州", 0.354], ["宁波", -98765]]
    ),
    "SELECT name, total FROM t WHERE day >= '2019-09-12' AND n > 55 LIMIT 10",
)
MONTHS = FigureSource(
    "months", rows("month", "n", of=[["2025-03-01", 120], ["2025-02-01", 500]]), "SELECT 1"
)
GDP = FigureSource("gdp", rows("gdp", of=[[1_523_000_000_000]]))
SQL = FigureSource("sql", rows("n", of=[[0.25]]), "SELECT round(n / 96, 4) FROM sales_2017")
CLOCK = FigureSource("clock", rows("n", of=[[7]]), "SELECT n FROM t WHERE day >= CURRENT_DATE - 30")
FORECAST = FigureSource("forecast", text="The mean is 88.25; 3 of 24 months lie outside.")


def traced(
    text: str, *sources: FigureSource, question: str = "", turns: tuple[Turn, ...] = ()
) -> TracedFigures:
    return traced_figures(text, sources, question, turns, today=TODAY)


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("嘉兴收入 1,234,567.80 元", [("1,234,567.80", "areas")]),
        ("嘉兴约 123.46万元，占 35.4%", [("123.46万", "areas"), ("35.4%", "areas")]),
        ("1.23 million, a loss of 98,765", [("1.23 million", "areas"), ("98,765", "areas")]),
        ("从 500 降到 120", [("500", "months"), ("120", "months")]),
        ("2025年3月 为 120", [("2025", "months"), ("3", "months"), ("120", "months")]),
        ("共 3 个服务区", [("3", "areas")]),
        ("共有三个服务区", [("三", "areas")]),
        ("the top 3; there are 2 months", [("3", "areas"), ("2", "months")]),
        ("Jiaxing ranks 2nd, Ningbo 3rd", [("2", "months"), ("3", "areas")]),
        ("自 2019年9月12日 起", [("2019", "areas"), ("9", "areas"), ("12", "areas")]),
        ("超过 55 的", [("55", "areas")]),
        ("88.25 on average", [("88.25", "forecast")]),
        ("1. 嘉兴\n2. 杭州\n3. 宁波", []),
        ("Q1 was lower; 一季度即1季度", [("1", "months")]),
        ("```sql\nSELECT round(n / 96, 4) FROM sales_2017\n```", [("96", "sql"), ("4", "sql")]),
        ("GDP 1.52万亿元，约 1.52 trillion", [("1.52万亿", "gdp"), ("1.52 trillion", "gdp")]),
    ],
)
def test_figures_have_the_call_they_come_from(text: str, sources: list[tuple[str, str]]) -> None:
    found = traced(text, SQL, GDP, FORECAST, AREAS, MONTHS)
    assert list(found.sources) == sources
    assert (found.unknown, found.earlier) == ((), ())


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("收入下降了 380", ("380",)),
        ("下降 76%，即 3.8 万", ("76%", "3.8 万")),
        ("共有八家服务区，平均 42", ("八", "42")),
        ("前 8 名", ("8",)),
        ("In 2019 it was 121, and 121 again", ("121",)),
        ("自 2018年5月 起", ("2018", "5")),
        ("`SELECT n / 96`", ("96",)),
    ],
)
def test_figures_of_no_call_are_named(text: str, unknown: tuple[str, ...]) -> None:
    found = traced(text, AREAS, MONTHS)
    assert found.unknown == unknown
    for lang in ("zh", "en"):
        [warning] = tracing_warnings(found, lang)
        assert all(figure in warning for figure in unknown)


def test_of_several_calls_the_latest_counts_and_rows_before_anything_else() -> None:
    first = FigureSource("first", rows("n", of=[[500]]))
    again = FigureSource("again", rows("n", of=[[500]]))
    asked = FigureSource("asked", rows("n", of=[[1]]), "SELECT n FROM t WHERE n > 500")
    assert traced("It was 500.", first, again, asked).sources == (("500", "again"),)
    assert traced("It was 500.", asked).sources == (("500", "asked"),)


def test_figures_of_the_question_need_no_call() -> None:
    assert traced("超过 5000 的", question="哪些超过五千？") == TracedFigures()


def test_figures_of_earlier_turns_are_told_apart() -> None:
    turn = Turn(
        "run_1",
        "how many",
        "DATABASE",
        "agent",
        "There are 913.",
        "2026-11-22T00:00:00.000+00:00",
        "SELECT 1",
        1,
    )
    found = traced("It was 913, not 914.", turns=(turn,))
    assert (found.sources, found.earlier, found.unknown) == ((), ("913",), ("914",))
    assert len(tracing_warnings(found, "en")) == 2


@pytest.mark.parametrize(
    "text",
    [
        "In October 2026 it was 7.",
        "2026年10月为 7。",
        "On October 23, 2025 it was 7",
        "since 2026-10-23: 7",
    ],
)
def test_dates_that_the_clock_gives_come_from_the_call_that_reads_it(text: str) -> None:
    found = traced(text, CLOCK)
    assert found.unknown == ()
    assert {call_id for _, call_id in found.sources} == {"clock"}
    assert traced(text, FigureSource("fixed", rows("n", of=[[7]]), "SELECT 7")).unknown


@pytest.mark.parametrize("text", ["In October 2019 it was 7.", "2026 areas, 10 in all, it was 7"])
def test_the_clock_explains_no_other_figures(text: str) -> None:
    assert traced(text, CLOCK).unknown


CELLS = st.integers(-(10**9), 10**9) | st.decimals(-(10**9), 10**9, places=2)


@given(
    st.lists(CELLS, max_size=8),
    st.integers(11, 10**9),
    st.sampled_from(["It is {}.", "共计 {} 元", "({}) and more"]),
)
def test_any_figure_that_nothing_holds_is_named(
    cells: list[Any], figure: int, sentence: str
) -> None:
    known = [abs(float(cell)) for cell in cells]
    assume(all(abs(value - figure) > 1 for value in known))
    source = FigureSource("a", rows("n", of=[[cell] for cell in cells]), "SELECT n FROM t")
    found = traced(sentence.format(figure), source, question="how many?")
    assert found.unknown == (str(figure),)
    assert str(figure) in tracing_warnings(found, "en")[0]


@given(st.lists(st.integers(100, 10**6), min_size=1, max_size=5, unique=True), st.data())
def test_any_figure_of_a_call_is_traced_to_it(cells: list[int], data: st.DataObject) -> None:
    sources = [FigureSource(f"call_{cell}", rows("n", of=[[cell]])) for cell in cells]
    cell = data.draw(st.sampled_from(cells))
    written = data.draw(st.sampled_from([f"{cell}", f"{cell:,}"]))
    assert traced(f"It is {written}.", *sources).sources == ((written, f"call_{cell}"),)


@given(st.text(max_size=60))
def test_any_text_can_be_traced(text: str) -> None:
    traced(text, AREAS, CLOCK, FORECAST, question=text)
