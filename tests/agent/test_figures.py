"""The figures of a summary are checked against the rows."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.answers.figures_check import doubtful_figures, figures_warning
from common.values import QueryResult

ROWS: tuple[list[Any], ...] = (
    ["G60 嘉兴服务区", Decimal("1234567.80"), 0.354, "2024-05-01"],
    ["杭州服务区", Decimal("-98765.43"), None, "2024-06-01"],
    ["宁波", 0, True, [1.5, {"a": 77}]],
)
RESULT = QueryResult(
    ("name", "revenue", "share_2023", "month"), ("text", "numeric", "float8", "date"), ROWS
)


@pytest.mark.parametrize(
    "text",
    [
        "共 3 个服务区。",
        "G60 嘉兴服务区收入 1,234,567.80 元。",
        "嘉兴约 123.46万元，占 35.4%。",
        "嘉兴约 123 万元，占 35％。",
        "1.23 million for 嘉兴, 1235k to be exact",
        "杭州亏损 98765.43，即 98,765 元",
        "2024年5月最高，宁波为 0。",
        "1. 嘉兴 2. 杭州 3. 宁波",
        "In 2023 the share was 0.35; the list holds 1.5 and 77",
        "嘉兴排名第一，没有数字。",
        "共有三个服务区，排名前3的是嘉兴、杭州和宁波。",
        "There are 3 service areas; Jiaxing ranks 1st, Hangzhou 2nd.",
        "The 3 listed areas, top 2 first: 嘉兴 and 杭州 (No. 1 and no. 2)",
        "第2名是杭州，第3是宁波。",
        "一共3。 There are 3. 35.4 percent, 35.4 per cent",
        "嘉兴约一百二十三万元，占百分之三十五点四；杭州亏九万八千七百六十五元",
        (
            "nearly ninety-eight thousand seven hundred and sixty-five lost, seventy-seven kept, "
            "for two reasons"
        ),
        "Jiaxing is #1, Hangzhou #2",
        "2024年第二季度，即 2024Q2、Q2 2024、2季度或 2nd quarter",
        "十四五期间的二十一世纪，千万不要一五一十",
        "",
    ],
)
def test_figures_of_the_rows_are_no_doubt(text: str) -> None:
    assert doubtful_figures(text, RESULT) == []


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("合计 1,135,802.37 元", ["1,135,802.37"]),
        ("嘉兴 1234567.9 元", ["1234567.9"]),
        ("嘉兴约 124 万元，占 36%", ["124 万", "36%"]),
        ("共 17 个，平均 42", ["17", "42"]),
        ("1.30 million", ["1.30 million"]),
        # small ones are no better than others
        ("平均为 3，相差 4", ["3", "4"]),
        ("其中 3 个服务区亏损", ["3"]),
        ("4 of the areas lost money, by 9 percent on average, 3 days ago", ["4", "9 percent", "3"]),
        ("The average is 3. Two more follow.", ["3"]),
        ("每个服务区平均 3 家店铺", ["3"]),
        ("共有八家服务区", ["八"]),
        ("收入三百二十万元，占百分之七十", ["三百二十万", "百分之七十"]),
        ("twelve areas lost two hundred thousand", ["twelve", "two hundred thousand"]),
        ("In Q3 and Q4, 三季度即3季度", ["3", "4", "3"]),
        ("第4名是宁波，前8名都在浙江", ["4", "8"]),
        ("增长了 1 倍", []),
    ],
)
def test_made_up_figures_are_named(text: str, figures: list[str]) -> None:
    assert doubtful_figures(text, RESULT) == figures


def test_figures_of_the_question_are_no_doubt() -> None:
    assert doubtful_figures("超过 5000 的有 3 个", RESULT, "哪些超过5000？", "SELECT 1") == []
    assert (
        doubtful_figures(
            "超过 5000 元、占 12% 的前 8 名", RESULT, "超过五千、百分之十二的 top eight"
        )
        == []
    )
    assert doubtful_figures("1万以上", RESULT, "一万以上的") == []


def test_what_the_sql_compares_with_was_asked_for() -> None:
    sql = "SELECT round(a / 7, 4) FROM t WHERE day >= '2019-09-12' AND n > 55 ORDER BY 8 LIMIT 10"
    assert doubtful_figures("自 2019年9月12日 起，55 以上的 10 条", RESULT, "", sql) == []
    assert doubtful_figures("7, 4 and 8", RESULT, "", sql) == ["7", "4", "8"]


def test_the_warning_names_a_few_of_them_in_both_languages() -> None:
    figures = [str(number) for number in range(900, 920)]
    for lang in ("zh", "en"):
        warning = figures_warning(figures, lang)
        assert "900" in warning
        assert "919" not in warning


@given(st.decimals(min_value=-(10**12), max_value=10**12, places=2), st.integers(0, 2))
def test_every_rounding_of_a_cell_is_known(value: Decimal, decimals: int) -> None:
    result = QueryResult(("n",), ("numeric",), ([value],))
    assert doubtful_figures(f"{value:,.{decimals}f}", result) == []
    assert doubtful_figures(f"{value / 10000:.{decimals}f}万", result) == []


def test_numbers_that_are_none_do_not_hide_the_others() -> None:
    cells = [Decimal("NaN"), float("inf"), 10**400, 5000, Decimal("-Infinity")]
    assert doubtful_figures(
        "5000 和 6000", QueryResult(tuple("abcde"), ("numeric",) * 5, (cells,))
    ) == ["6000"]


@given(st.text(max_size=50))
def test_any_text_can_be_held_against_any_rows(text: str) -> None:
    doubtful_figures(text, QueryResult(("a",), ("text",), ([text],)), text)
