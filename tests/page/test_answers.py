"""How answers look: exact numbers, portions, and text that must never become markup."""

import json

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browsing import (
    HOSTILE,
    RANKING,
    answer_with,
    ask,
    axe_violations,
    completed,
    expect_no_markup,
    expect_state,
    frame,
    load_axe,
    opened,
    progress,
    result,
)


@pytest.fixture
def page(used_page: Page) -> Page:
    return used_page


def test_markup_in_a_question_stays_text(page: Page) -> None:
    turn = ask(page, HOSTILE)

    expect(turn.locator(".question")).to_have_text(HOSTILE)
    expect(turn).not_to_have_attribute("data-state", "running")
    expect_no_markup(page)


def test_markup_in_an_answer_stays_text(page: Page) -> None:
    said = {"display_name": HOSTILE, "icon": HOSTILE, "details": HOSTILE, "sub_status": HOSTILE}
    rows = {
        "columns": [HOSTILE],
        "column_types": [HOSTILE],
        "rows": [[HOSTILE], [{HOSTILE: HOSTILE}]],
        "row_count": 2,
    }
    about = {"question_type": HOSTILE, "confidence": 1, "method": HOSTILE, "reason": HOSTILE}
    answer = completed(
        response=HOSTILE,
        summary=HOSTILE + "!",
        sql=HOSTILE,
        query_result=rows,
        warnings=[HOSTILE],
        classification_info=about,
        execution_path=[HOSTILE],
        timings_ms={HOSTILE: 1},
        conversation_id="citu_1",
        run_id=HOSTILE,
    )
    answer_with(page, frame(progress(**said)), frame(answer))

    turn = ask(page, "?")

    expect_state(turn, "done")
    for selector in (".step-name", ".answer-text >> nth=0", "td >> nth=0", "th", "pre", ".notes"):
        expect(turn.locator(selector)).to_contain_text(HOSTILE)
    expect_no_markup(page)


def test_markup_in_an_error_stays_text(page: Page) -> None:
    data = {
        "type": "error",
        "error": HOSTILE,
        "error_type": HOSTILE,
        "hint": HOSTILE,
        "request_id": HOSTILE,
    }
    answer_with(page, frame({"code": 500, "success": False, "message": HOSTILE, "data": data}))

    turn = ask(page, "?")

    expect(turn.get_by_role("alert")).to_contain_text(HOSTILE)
    expect_no_markup(page)


def test_numbers_keep_their_digits_and_null_is_not_text(page: Page) -> None:
    columns = ["名称", "金额", "大数", "shop_id", "比例", "明细"]
    types = ["text", "numeric", "int8", "int4", "float8", "jsonb"]
    rows = (
        '[["NULL", 1234567.50, 9007199254740993, 100234, 0.1, {"a": [1.10, null]}],'
        ' [null, null, -1234, 7, 1e+300, []], ["", 0.00, 12, 8, -0.5, "x"]]'
    )
    formats = [None, "number", "number", "plain", "number", None]
    answer_with(page, result(columns, types, rows, row_count=3, formats=formats))

    turn = ask(page, "?")

    expect(turn.locator("tbody tr").nth(0).locator("td")).to_have_text(
        ["NULL", "1,234,567.50", "9,007,199,254,740,993", "100234", "0.1", '{"a": [1.10, null]}']
    )
    expect(turn.locator("tbody tr").nth(1).locator("td")).to_have_text(
        ["NULL", "NULL", "-1,234", "7", "1e+300", "[]"]
    )
    expect(turn.locator("tbody tr").nth(2).locator("td")).to_have_text(
        ["", "0.00", "12", "8", "-0.5", "x"]
    )
    expect(turn.locator("td .null")).to_have_count(2)
    assert turn.locator("td data").first.get_attribute("value") == "1234567.50"
    expect(turn.locator("td").nth(1)).to_have_css("text-align", "right")
    expect(turn.locator("th").nth(1)).to_have_attribute("title", "numeric")


def test_a_cut_result_says_so(page: Page) -> None:
    answer_with(page, result(["n"], ["int4"], "[[1], [2]]", row_count=2, is_limited=True))

    turn = ask(page, "?")

    expect(turn.locator(".count")).to_have_text("只返回了前 2 行，数据库中还有更多")


def test_a_long_result_is_shown_in_portions(page: Page) -> None:
    rows = json.dumps([[number] for number in range(450)])
    answer_with(page, result(["n"], ["int4"], rows, row_count=450))

    turn = ask(page, "?")

    expect(turn.locator("tbody tr")).to_have_count(200)
    turn.get_by_role("button", name="再显示 200 行").click()
    turn.get_by_role("button", name="再显示 50 行").click()
    expect(turn.locator("tbody tr")).to_have_count(450)
    expect(turn.locator("tbody tr").last).to_have_text("449")


def test_no_rows_is_an_answer(page: Page) -> None:
    answer_with(page, result(["n"], ["int4"], "[]", row_count=0))

    turn = ask(page, "?")

    expect(turn.locator(".rows")).to_contain_text("没有符合条件的数据")


def test_sql_can_be_copied(browser: Browser, live_server: str) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    with opened(browser, live_server, permissions=permissions) as page:
        turn = ask(page, RANKING)
        expect_state(turn, "done")
        turn.get_by_role("button", name="复制", exact=True).click()
        expect(turn.locator(".sql .copy")).to_have_text("已复制")
        assert (
            page.evaluate("navigator.clipboard.readText()") == turn.locator("pre code").inner_text()
        )


def test_notes_and_run_details(page: Page) -> None:
    answer_with(
        page,
        frame(completed(response="好", warnings=["注意一", "注意二"], sql_repair_applied=True)),
    )

    turn = ask(page, "?")

    expect(turn.locator(".notes li")).to_have_text(["注意一", "注意二", "SQL 经过一次自动修复"])


def test_a_question_that_needs_more_information_is_not_an_error(page: Page) -> None:
    answer_with(page, frame(completed(response="请说明时间范围", sql_generation_failed=True)))

    turn = ask(page, "?")

    expect_state(turn, "done")
    expect(turn.locator(".prompt")).to_have_text("请说明时间范围")
    expect(turn.get_by_role("alert")).to_have_count(0)


def test_lines_of_a_list_are_one_list(page: Page) -> None:
    said = "由这些数据计算得到：\n- 第一 <b>项</b>\n- 第二项\n\n可以接着问：\n* 按月\n*不是* 标题"
    answer_with(page, frame(completed(response=said, response_type="CHAT")))
    turn = ask(page, "?")
    expect_state(turn, "done")
    expect(turn.locator(".answer li")).to_have_text(["第一 <b>项</b>", "第二项", "按月"])
    expect(turn.locator(".answer ul")).to_have_count(2)
    expect(turn.locator(".answer p")).to_have_text(
        ["由这些数据计算得到：", "可以接着问：", "*不是* 标题"]
    )


def test_markdown_of_a_model_is_shown_whole_and_never_as_html(used_page: Page) -> None:
    text = (
        "## 结论\n\n1. **甲** `x<y`\n2. 乙\n   - 丙\n\n> 引\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n"
        "```sql\nSELECT 1\n```\n[站](https://example.org) [坏](javascript:alert(1)) " + HOSTILE
    )
    answer_with(used_page, frame(completed(response=text, response_type="CHAT")))
    said = ask(used_page, "?").locator(".markdown")
    expect(said.locator("h4")).to_have_text("结论")
    expect(said.locator("ol > li")).to_have_count(2)
    expect(said.locator("ol strong")).to_have_text("甲")
    expect(said.locator("ol code")).to_have_text("x<y")
    expect(said.locator("ol ul li")).to_have_text("丙")
    expect(said.locator("blockquote")).to_have_text("引")
    expect(said.locator("tbody td")).to_have_text(["1", "2"])
    expect(said.locator("pre")).to_have_text("SELECT 1")
    expect(said.locator("a")).to_have_count(1)
    expect(said).to_contain_text("<script>")
    expect_no_markup(used_page)


def test_cards_of_renderers_are_shown_as_text(used_page: Page) -> None:
    cards = [
        {
            "title": HOSTILE,
            "text": "占 32%",
            "tone": "good",
            "facts": [{"label": "去年", "value": "<b>1</b>"}],
            "share": 0.32,
            "link": "https://example.com/x",
        },
        {"title": "二", "text": "", "tone": "attention", "facts": []},
    ]
    answer_with(used_page, frame(completed(response="好", response_type="CHAT", cards=cards)))
    turn = ask(used_page, "?")
    expect_state(turn, "done")
    first = turn.locator(".card").first
    expect(first.get_by_role("heading")).to_have_text(HOSTILE)
    expect(first.get_by_role("progressbar")).to_have_attribute("value", "0.32")
    expect(first.locator("dd")).to_have_text("<b>1</b>")
    assert first.get_by_role("link").get_attribute("rel") == "noopener noreferrer"
    load_axe(used_page)
    assert axe_violations(used_page) == []
    expect_no_markup(used_page)
