"""What an answer offers besides its rows: questions to ask next, its SQL to change and run, and a
kind refusal.
"""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browsing import (
    ASK,
    HOSTILE,
    RANKING,
    answer_with,
    ask,
    completed,
    expect_no_markup,
    expect_state,
    frame,
    opened,
)


@pytest.fixture
def page(used_page: Page) -> Page:
    return used_page


def test_offered_questions_are_asked_in_the_same_conversation(page: Page) -> None:
    offers = {
        "choices": ["按营业收入", "按订单数"],
        "rewrites": ["每月营业收入"],
        "follow_ups": ["和去年比", HOSTILE, 7, ""],
    }
    answer_with(page, frame(completed(response="好", conversation_id="citu_1", **offers)))
    turn = ask(page, "?")
    expect_state(turn, "done")
    expect(turn.locator(".offer")).to_have_text(
        ["按营业收入", "按订单数", "每月营业收入", "和去年比", HOSTILE]
    )
    expect_no_markup(page)
    with page.expect_request(ASK) as request:
        turn.get_by_role("button", name="按订单数").click()
    body = request.value.post_data_json
    assert body is not None
    assert (body["question"], body["conversation_id"]) == ("按订单数", "citu_1")


def test_what_offers_nothing_shows_nothing(page: Page) -> None:
    answer_with(page, frame(completed(response="好", choices=[], follow_ups=None)))
    turn = ask(page, "?")
    expect_state(turn, "done")
    expect(turn.locator(".suggestions")).to_have_count(0)


def test_a_refusal_offers_what_can_be_asked_instead(page: Page) -> None:
    data = {
        "type": "error",
        "error": "不允许的操作: DELETE。",
        "error_type": "forbidden_keywords",
        "rewrites": ["有哪些服务区"],
    }
    answer_with(
        page, frame({"code": 403, "success": False, "message": "SQL验证失败", "data": data})
    )
    turn = ask(page, "?")
    expect_state(turn, "failed")
    alert = turn.get_by_role("alert")
    expect(alert.locator("h3")).to_have_text("Citu 只读数据，没有改动任何内容")
    expect(alert.get_by_text("不允许的操作")).to_be_hidden()
    alert.locator("summary").click()
    expect(alert.get_by_text("不允许的操作")).to_be_visible()
    expect(turn.locator(".offer")).to_have_text("有哪些服务区")


def test_sql_is_coloured_and_keeps_every_character(page: Page) -> None:
    sql = (
        "SELECT \"select\", 'it''s -- no' || $x$ FROM $x$ -- from\nFROM t1 /* 12 */ "
        "WHERE n > 1.50e3 AND 名称 = 'open"
    )
    answer_with(page, frame(completed(response="好", sql=sql)))
    turn = ask(page, "?")
    expect_state(turn, "done")
    assert turn.locator("pre code").text_content() == sql
    expect(turn.locator(".sql-keyword")).to_have_text(["SELECT", "FROM", "WHERE", "AND"])
    expect(turn.locator(".sql-string")).to_have_text(["'it''s -- no'", "$x$ FROM $x$", "'open"])
    expect(turn.locator(".sql-comment")).to_have_text(["-- from", "/* 12 */"])
    expect(turn.locator(".sql-number")).to_have_text("1.50e3")


def test_sql_is_changed_and_run(page: Page) -> None:
    expect_state(ask(page, RANKING), "done")
    turn = page.locator(".turn").first
    turn.get_by_role("button", name="编辑").click()
    field = turn.locator(".sql-editor textarea")
    expect(field).to_be_focused()
    for sql, shown in (
        ("SELECT nam FROM service_area", "service_area_name"),
        ("DELETE FROM service_area", "没有改动任何内容"),
        ("SELECT 'a' AS c, 7 AS n", "a7"),
    ):
        field.fill(sql)
        field.press("Control+Enter")
        expect(turn.locator(".sql-outcome").first).to_contain_text(shown)
        expect(turn.locator(".sql-outcome > .turn")).not_to_have_attribute("data-state", "running")
    # It is an answer like any other: with files and analysis, and kept in the conversation.
    for name in ("分析", "下载 CSV"):
        expect(turn.locator(".sql-outcome").first.get_by_role("button", name=name)).to_be_visible()
    field.press("Escape")
    expect(turn.locator(".sql-editor")).to_have_count(0)
    expect(turn.locator("pre").first).to_contain_text("service_area")
    page.reload()
    expect(page.locator(".turn.past .question").last).to_have_text("SELECT 'a' AS c, 7 AS n")


def test_an_earlier_result_is_run_again(page: Page) -> None:
    question = "每个公司有多少个服务区？"
    expect_state(ask(page, question), "done")
    page.reload()
    past = page.locator(".turn.past")
    past.get_by_role("button", name="重新运行").click()
    expect(past.locator(".sql-outcome .rows")).to_contain_text("行")
    expect(past.locator(".sql-outcome :is(canvas, tbody tr)").first).to_be_attached()


def test_a_time_ticks_while_a_question_runs(page: Page) -> None:
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.route(ASK, lambda _route: None)  # never answered
    turn = ask(page, "?")
    expect_state(turn, "running")
    page.evaluate("document.querySelector('.steps').hidden = false")
    page.clock.run_for(2500)
    expect(turn.locator(".steps-time")).to_have_text("2.5 秒")
    page.locator("#stop").click()
    expect(turn.locator(".steps-time")).to_have_count(0)


def test_a_long_question_is_folded(page: Page) -> None:
    answer_with(page, frame(completed(response="好")))
    turn = ask(page, "很长的问题\n" * 30)
    expect_state(turn, "done")
    heading = turn.locator(".question")
    folded = heading.bounding_box()
    turn.get_by_role("button", name="展开全部").click()
    whole = heading.bounding_box()
    assert folded is not None
    assert whole is not None
    assert folded["height"] < 250 < whole["height"]
    turn.get_by_role("button", name="收起").click()
    expect(turn.get_by_role("button", name="展开全部")).to_be_visible()


def test_arrows_bring_back_what_was_asked(page: Page) -> None:
    answer_with(page, frame(completed(response="好")))
    for question in ("一", "二"):
        expect_state(ask(page, question), "done")
    box = page.locator("#question")
    for key, shown in (
        ("ArrowUp", "二"),
        ("ArrowUp", "一"),
        ("ArrowUp", "一"),
        ("ArrowDown", "二"),
        ("ArrowDown", ""),
    ):
        box.press(key)
        expect(box).to_have_value(shown)
    box.fill("三")
    box.press("ArrowUp")
    expect(box).to_have_value("三")


def test_drawings_and_what_was_asked_stay_when_the_server_is_gone(page: Page) -> None:
    expect_state(ask(page, RANKING), "done")
    page.route("**/*", lambda route: route.abort("connectionrefused"))
    turn = ask(page, "还在吗")
    expect_state(turn, "failed")
    for name in page.locator("use").evaluate_all(
        "uses => uses.map((use) => use.getAttribute('href'))"
    ):
        assert page.locator(f"symbol{name}").count() == 1, name
    expect(page.locator(".question")).to_have_text([RANKING, "还在吗"])


def test_a_chart_of_hostile_names_is_only_drawn(page: Page) -> None:
    names = [HOSTILE, "=cmd()", "\u202eabc", "😀", "'; DROP TABLE x; --"]
    rows: dict[str, Any] = {
        "columns": [HOSTILE, "n"],
        "labels": [HOSTILE, "=n"],
        "units": [HOSTILE, "\u202e元"],
        "column_types": ["text", "int8"],
        "rows": [[name, number] for number, name in enumerate(names)],
        "row_count": len(names),
        "is_limited": False,
    }
    chart = {
        "type": "bar",
        "x": HOSTILE,
        "y": "n",
        "series": None,
        "title": HOSTILE,
        "unit": HOSTILE,
    }
    answer_with(
        page, frame(completed(response="好", query_result=rows, chart=chart, follow_ups=[HOSTILE]))
    )
    turn = ask(page, "?")
    expect_state(turn, "done")
    expect(turn.locator("figcaption")).to_contain_text(HOSTILE)
    turn.locator(".view[data-view=table]").click()
    expect(turn.locator("th").first).to_contain_text(HOSTILE)
    expect(turn.locator("tbody td:first-child")).to_have_text(names)
    expect_no_markup(page)


@pytest.mark.slow
def test_ten_thousand_cells_are_a_table_that_sorts(browser: Browser, live_server: str) -> None:
    columns = [f"c{number}" for number in range(10)]
    rows = [[row * 10 + column for column in range(10)] for row in range(1000)]
    body = {
        "columns": columns,
        "column_types": ["int8"] * 10,
        "rows": rows,
        "row_count": 1000,
        "is_limited": False,
    }
    with opened(browser, live_server, viewport={"width": 360, "height": 740}) as page:
        answer_with(page, frame(completed(response="好", query_result=body)))
        turn = ask(page, "?")
        expect_state(turn, "done")
        turn.locator(".sort").first.click()
        expect(turn.locator("tbody td").first).to_have_text("9,990")
        while turn.locator(".table-place > .secondary").count():
            turn.locator(".table-place > .secondary").click()
        expect(turn.locator("tbody td")).to_have_count(10_000)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
