"""Rows are shown as a chart where one says more, as a table that can be sorted, and can be taken
elsewhere.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.page.browsing import (
    answer_with,
    ask,
    completed,
    expect_state,
    frame,
    opened,
    wait_until,
)

MONTHS = "每个月的营业收入"
CLIPBOARD = ["clipboard-read", "clipboard-write"]


@pytest.fixture
def page(used_page: Page) -> Page:
    return used_page


def _answer(page: Page, chart: dict[str, Any] | None, **result: Any) -> None:
    body = {
        "column_types": ["text", "int8"],
        "row_count": len(result["rows"]),
        "is_limited": False,
        **result,
    }
    more = {"chart": chart} if chart else {}
    answer_with(page, frame(completed(sql="SELECT 1", query_result=body, **more)))


def _bars(**changes: Any) -> dict[str, Any]:
    return {
        "type": "bar",
        "x": "c",
        "y": "n",
        "series": None,
        "title": "数量（按类别）",
        "unit": None,
        **changes,
    }


def test_months_are_a_chart_and_a_table_of_months(page: Page) -> None:
    turn = ask(page, MONTHS)
    expect_state(turn, "done")
    expect(turn.locator("canvas")).to_be_visible()
    expect(turn.locator("table")).to_be_hidden()
    expect(turn.locator(".chart-note")).to_have_text("* 尚未结束")
    turn.locator(".view[data-view=table]").click()
    expect(turn.locator("canvas")).to_be_hidden()
    first = turn.locator("tbody td").first
    assert len(first.inner_text()) == len("2026-10")
    assert first.inner_text()[4] == "-"


def test_a_line_goes_forward_in_time_whatever_the_order_of_rows(page: Page) -> None:
    rows = [["2026-03", 9], ["2026-01", 7], ["2026-02", 5]]
    _answer(page, _bars(type="line"), columns=["c", "n"], rows=rows)
    turn = ask(page, "?")
    expect(turn.locator("canvas")).to_be_visible()
    wait_until(page, "globalThis.Chart?.getChart(document.querySelector('canvas'))")
    data = "Chart.getChart(document.querySelector('canvas')).data"
    assert page.evaluate(f"{data}.labels") == ["2026-01", "2026-02", "2026-03"]
    assert page.evaluate(f"{data}.datasets[0].data") == [7, 5, 9]


@pytest.mark.parametrize(
    ("chart", "types", "rows", "labels", "figures"),
    [
        ({}, ["text", "int8"], [["Ann", 1], ["Ann", 2]], ["Ann", "Ann (2)"], [[1, 2]]),
        (
            {"others": ["m"]},
            ["text", "int8", "int8"],
            [["a", 1, 5], ["b", 2, 6]],
            ["a", "b"],
            [[1, 2], [5, 6]],
        ),
        (
            {"step": 10},
            ["int8", "int8"],
            [[31, 4], [11, 1], [19, 2]],
            ["10–20", "20–30", "30–40"],
            [[3, 0, 4]],
        ),
    ],
)
def test_namesakes_several_figures_and_steps_are_drawn_apart(
    page: Page,
    chart: dict[str, Any],
    types: list[str],
    rows: list[list[Any]],
    labels: list[str],
    figures: list[list[int]],
) -> None:
    columns = ["c", "n", "m"][: len(types)]
    _answer(page, _bars(**chart), columns=columns, column_types=types, rows=rows)
    expect(ask(page, "?").locator("canvas")).to_be_visible()
    wait_until(page, f"globalThis.Chart && {_DRAWN}")
    assert page.evaluate(f"{_DRAWN}.data.labels") == labels
    assert page.evaluate(f"{_DRAWN}.data.datasets.map((set) => set.data)") == figures
    steps = page.evaluate(f"{_DRAWN}.scales.y.ticks.map((tick) => tick.value)")
    assert steps == [int(step) for step in steps], "things are counted one by one"


_DRAWN = "Chart.getChart(document.querySelector('canvas'))"
_SHARES = {"columns": ["c", "n"], "labels": ["类别", "数量"], "totals": [None, 4]}


def test_a_result_is_shown_in_every_kind_that_fits_by_keyboard(page: Page) -> None:
    _answer(page, _bars(), **_SHARES, rows=[["一个名字很长很长很长很长很长的类别", 3], ["b", 1]])
    turn = ask(page, "?")
    wait_until(page, "globalThis.Chart?.getChart(document.querySelector('canvas'))")
    kinds = turn.locator(".view[data-view]")
    assert [kind.get_attribute("data-view") for kind in kinds.all()] == [
        *("bar", "horizontal", "line", "area", "pie", "number", "table")
    ]
    drawn = {"bar": "bar", "horizontal": "bar", "line": "line", "area": "line", "pie": "pie"}
    kinds.first.focus()
    for kind, type_drawn in drawn.items():
        page.keyboard.press("Enter")
        expect(turn.locator(f".view[data-view={kind}]")).to_have_attribute("aria-pressed", "true")
        wait_until(page, f"{_DRAWN}?.config.type === '{type_drawn}'")
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(turn.locator(".big-number")).to_have_text("4")
    expect(turn.locator("figure")).to_contain_text("2 行之和")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(turn.locator("table")).to_be_visible()
    expect(turn.locator("figure")).to_be_hidden()


def test_axes_begin_at_zero_and_say_so_where_they_do_not(page: Page) -> None:
    _answer(page, _bars(type="line"), **_SHARES, rows=[["很" * 60, 3], ["b", 1]])
    turn = ask(page, "?")
    wait_until(page, "globalThis.Chart?.getChart(document.querySelector('canvas'))")
    assert page.evaluate(f"{_DRAWN}.scales.y.min") == 0
    names = page.evaluate(f"{_DRAWN}.scales.x.ticks.map((tick) => tick.label)")
    assert names[0] == "b"
    assert names[1].startswith("很" * 15) and names[1].endswith("…")
    turn.locator("[data-option=zero]").click()
    wait_until(page, f"{_DRAWN}?.scales.y.min > 0")
    expect(turn.locator(".chart-note")).to_have_text("坐标轴不从零开始")


def test_a_chart_is_taken_away_as_it_is_seen(page: Page, tmp_path: Path) -> None:
    _answer(page, _bars(), **_SHARES, rows=[["甲", 3], ["乙", 1]])
    turn = ask(page, "各类/数量?")
    wait_until(page, "globalThis.Chart?.getChart(document.querySelector('canvas'))")
    for option in ("values", "percent"):
        turn.locator(f"[data-option={option}]").click()
    files = {}
    for kind in ("png", "svg"):
        with page.expect_download() as started:
            turn.locator(f"[data-picture={kind}]").click()
        name = started.value.suggested_filename
        assert name.startswith("各类 数量 2")
        assert name.endswith(f".{kind}")
        started.value.save_as(tmp_path / name)
        files[kind] = (tmp_path / name).read_bytes()
    assert files["png"].startswith(b"\x89PNG")
    drawing = files["svg"].decode()
    for text in ("甲", "乙", "数量（按类别）", "3 · 75.0%", "1 · 25.0%"):
        assert f">{text}</text>" in drawing


def test_a_table_writes_numbers_as_the_sentence_does_and_moments_readably(page: Page) -> None:
    formats = ["money", "money", "number", "plain", None, "percent", None, None]
    types = ["numeric", "numeric", "float8", "int4", "text", "numeric", "timestamptz", "interval"]
    body = {
        "columns": list("abcdefgh"),
        "column_types": types,
        "formats": formats,
        "rows": "@",
        "row_count": 2,
    }
    rows = (
        '[[1234567.8, 0.125, 1234567, 2025, "1234", 33.3333, "2025-03-01T09:30:00+08:00",'
        '"PT43M25.202983S"],[-5, 2.3451, 0.97863699508, 1, "x", 100.0, "infinity", "P-1DT-2H"]]'
    )
    answer = frame(
        completed(response="好", response_type="DATABASE", sql="SELECT 1", query_result=body)
    )
    answer_with(page, answer.replace('"@"', rows))

    turn = ask(page, "任意问题")
    expect_state(turn, "done")
    shown = [row.locator("td").all_inner_texts() for row in turn.locator("tbody tr").all()]
    assert shown == [
        [
            "1,234,567.80",
            "0.12",
            "1,234,567",
            "2025",
            "1234",
            "33.33",
            "2025-03-01 09:30:00 +08:00",
            "43分25秒",
        ],
        ["-5.00", "2.35", "0.9786", "1", "x", "100", "infinity", "-1天2小时"],
    ]
    assert turn.locator("tbody data").nth(7).get_attribute("value") == "0.97863699508"


def test_a_table_is_sorted_by_figures_and_by_words(page: Page) -> None:
    _answer(
        page,
        None,
        columns=["c", "n"],
        labels=["类别", "数量"],
        rows=[["b", 9], ["a", 10], ["c", None]],
    )
    turn = ask(page, "?")
    expect(turn.locator(".view[data-view=table]")).to_have_attribute("aria-pressed", "true")
    expect(turn.locator("thead th")).to_have_text(["类别", "数量"])
    head = turn.locator("th").nth(1)
    for order, shown in (
        ("descending", ["a10", "b9", "cNULL"]),
        ("ascending", ["b9", "a10", "cNULL"]),
        ("none", ["b9", "a10", "cNULL"]),
    ):
        head.locator(".sort").click()
        expect(head).to_have_attribute("aria-sort", order)
        expect(turn.locator("tbody tr")).to_have_text(shown)
    turn.locator("th").nth(0).locator(".sort").click()
    expect(turn.locator("tbody tr")).to_have_text(["cNULL", "b9", "a10"])


def test_a_column_of_keys_is_read_and_sorted_by_names(page: Page) -> None:
    _answer(
        page,
        None,
        columns=["member_id", "n"],
        column_types=["int4", "int8"],
        labels=["会员", "数量"],
        value_labels=[{"1": "Zoe", "2": "Ann"}, None],
        rows=[[1, 5], [2, 6], [None, 7]],
    )
    turn = ask(page, "?")
    head, cells = turn.locator("th").first, turn.locator("tbody tr td:first-child")
    expect(cells).to_have_text(["Zoe", "Ann", "NULL"])
    expect(cells.first).to_have_attribute("title", "1")
    expect(head).not_to_have_class("number")
    head.locator("button").click()
    head.locator("button").click()
    expect(cells).to_have_text(["Ann", "Zoe", "NULL"])


def test_a_table_adds_up_what_may_be_added_and_asks_for_rows_by_their_cells(page: Page) -> None:
    rows = [["甲", 3, 0.5, "左"], ["乙", 1, 0.7, "右"]]
    _answer(
        page,
        None,
        columns=["c", "n", "a", "s"],
        labels=["类别", "数量", "平均", "位置"],
        column_types=["text", "int8", "numeric", "text"],
        totals=[None, 4, None, None],
        rows=rows,
    )
    turn = ask(page, "?")
    expect(turn.locator("tfoot td")).to_have_text(["合计（2 行）", "4", "", ""])
    turn.locator(".condition").first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".turn .question")).to_have_text(["?", "只看类别为乙的"])
    turns = page.locator(".turn")
    expect_state(turns.last, "done")
    turns.first.locator(".condition").first.click()  # what is said goes on from the latest answer
    expect(turns).to_have_count(2)


def test_rows_beyond_the_limit_are_counted_on_demand(page: Page) -> None:
    turn = ask(page, "SELECT * FROM daily_revenue -- all;")
    expect_state(turn, "done")
    expect(turn.locator(".count").first).to_contain_text("还有更多")
    turn.get_by_role("button", name="数一数共有多少行").click()
    expect(turn.locator(".count").first).to_contain_text("，共")


def test_a_table_can_be_copied(browser: Browser, live_server: str) -> None:
    with opened(browser, live_server, permissions=CLIPBOARD) as page:
        _answer(
            page,
            None,
            columns=["c", "n"],
            labels=["类|别", "数量"],
            rows=[["a\tb", 10], ["c\nd", None]],
        )
        turn = ask(page, "?")
        turn.get_by_role("button", name="复制为表格").click()
        expect(turn.locator(".result-tools")).to_contain_text("已复制")
        assert page.evaluate("navigator.clipboard.readText()") == "类|别\t数量\na b\t10\nc d\t"
        turn.get_by_role("button", name="复制为 Markdown").click()
        wait_until(page, "navigator.clipboard.readText().then((text) => text.startsWith('|'))")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == "| 类\\|别 | 数量 |\n| --- | --- |\n| a\tb | 10 |\n| c d |  |"


def test_all_rows_are_downloaded(page: Page, tmp_path: Path) -> None:
    turn = ask(page, MONTHS)
    expect_state(turn, "done")
    with page.expect_download() as started:
        turn.get_by_role("button", name="下载 JSON").click()
    started.value.save_as(tmp_path / "rows.json")
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    turn.locator(".view[data-view=table]").click()
    expect(turn.locator("tbody tr")).to_have_count(len(rows))


def test_the_table_stands_in_for_a_chart_that_cannot_be_drawn(
    browser: Browser, live_server: str
) -> None:
    with opened(browser, live_server) as page:
        page.route("**/vendor/**", lambda route: route.abort())
        _answer(page, _bars(), columns=["c", "n"], rows=[["a", 1], ["b", 2]])
        turn = ask(page, "?")
        expect(turn.locator("tbody tr")).to_have_text(["a1", "b2"])
        expect(turn.locator(".views")).to_have_count(0)


def test_one_figure_is_written_large(page: Page) -> None:
    _answer(
        page, _bars(type="number", x=None), columns=["n"], column_types=["int8"], rows=[[1234567]]
    )
    turn = ask(page, "?")
    expect(turn.locator(".big-number")).to_have_text("1,234,567")


_CORRECTED = {
    "columns": ["n"],
    "column_types": ["int4"],
    "rows": [[22]],
    "row_count": 1,
    "is_limited": False,
}


def test_an_answer_can_be_rated_and_corrected(page: Page) -> None:
    said: list[Any] = []

    def take(route: Route) -> None:
        said.append(route.request.post_data_json)
        data: dict[str, Any] = (
            {"warnings": [], "example": {"question": MONTHS}, "query_result": _CORRECTED}
            if len(said) > 1
            else {"type": "error", "error": "SQL 不可用"}
        )
        code = 200 if len(said) > 1 else 422
        envelope = {"code": code, "success": code == 200, "message": "", "data": data}
        route.fulfill(status=code, json=envelope)

    page.route("**/api/v0/feedback", take)
    turn = ask(page, MONTHS)
    expect_state(turn, "done")
    turn.get_by_role("button", name="不对").click()
    turn.locator("textarea.code").fill("SELECT 2")
    turn.get_by_role("button", name="提交").click()
    expect(turn.locator(".feedback-status")).to_have_text("SQL 不可用")
    turn.get_by_role("button", name="提交").click()
    expect(turn.locator(".feedback-status")).to_have_text(
        f"感谢反馈。已记为这个问题的示例：{MONTHS}"
    )
    expect(turn.locator(".corrected td")).to_have_text("22")
    expect(turn.locator(".correction")).to_have_count(0)
    turn.get_by_role("button", name="对", exact=True).click()
    wait_until(page, "document.querySelectorAll('.rate[aria-pressed=true]').length === 1")
    assert [one["rating"] for one in said] == [
        "need_modification",
        "need_modification",
        "satisfied",
    ]
    assert said[0]["modified_sql"] == "SELECT 2"
    assert {one["run_id"] for one in said} == {turn.get_attribute("data-run")}


def test_figures_about_the_rows_come_with_how_they_were_computed(page: Page) -> None:
    turn = ask(page, MONTHS)
    expect_state(turn, "done")
    turn.get_by_role("button", name="分析").click()
    expect(turn.locator(".analysis li").first).to_contain_text("平均")
    methods = turn.locator(".analysis .methods")
    expect(methods.locator("li").first).to_be_hidden()
    methods.locator("summary").click()
    expect(methods.locator("li").first).to_contain_text("SQL")
    refused = {"error": "不再保留", "error_type": "not_found", "retryable": False}
    envelope = {"code": 404, "success": False, "message": "没有找到", "data": refused}
    page.route("**/analyze", lambda route: route.fulfill(status=404, json=envelope))
    turn.get_by_role("button", name="分析").click()
    expect(turn.locator(".analysis").get_by_role("alert")).to_contain_text("不再保留")


def test_a_number_says_what_it_counts_and_of_which_rows(page: Page) -> None:
    turn = ask(page, "上个月的营业收入")
    expect_state(turn, "done")
    expect(turn.locator("figcaption")).to_contain_text("营业收入")
    expect(turn.locator(".card-conditions")).to_contain_text("范围：营业日期 20")
    number = {"type": "number", "x": None, "y": "n", "series": None, "title": "数量", "unit": None}
    one = {"columns": ["n"], "column_types": ["numeric"], "rows": [[1234.5]]}
    for conditions, said in (([], ["全部数据，没有筛选条件"]), (None, [])):
        told: dict[str, Any] = {} if conditions is None else {"conditions": conditions}
        page.unroute_all()
        _answer(page, number, **one, formats=["money"], **told)
        turn = ask(page, "?")
        expect(turn.locator(".big-number")).to_have_text("1,234.50")
        expect(turn.locator(".card-conditions")).to_have_text(said)


def test_dots_can_be_bars_by_name(page: Page) -> None:
    dots = {**_bars(type="scatter"), "x": "m", "y": "n"}
    rows = [["甲", 5, 10], ["乙", 6, 20], ["丙", 7, 30]]
    types = ["text", "int8", "int8"]
    _answer(page, dots, columns=["c", "m", "n"], column_types=types, rows=rows)
    turn = ask(page, "?")
    wait_until(page, f"globalThis.Chart && {_DRAWN}")
    assert page.evaluate(f"[{_DRAWN}.scales.x.min, {_DRAWN}.scales.y.min]") == [5, 0]
    turn.locator(".view[data-view=bar]").click()
    wait_until(page, f"{_DRAWN}?.config.type === 'bar'")
    assert page.evaluate(f"{_DRAWN}.data.labels") == ["甲", "乙", "丙"]
    assert page.evaluate(f"{_DRAWN}.data.datasets[0].data") == [5, 6, 7]
