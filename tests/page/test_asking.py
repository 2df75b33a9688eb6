"""Asking: steps as they happen, the answer, and one question at a time."""

import json
import urllib.request

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browsing import (
    RANKING,
    answer_with,
    ask,
    expect_state,
    frame,
    opened,
    port_of,
    progress,
)
from tests.support.effort import slow_beyond
from tests.support.faulty_proxy import Fault, FaultyProxy

STEP_NODES = ["classify_question", "agent_sql_generation", "agent_sql_execution", "format_response"]


@pytest.fixture
def page(used_page: Page) -> Page:
    return used_page


def test_steps_arrive_in_order_then_answer_rows_and_sql(page: Page) -> None:
    turn = ask(page, RANKING)

    expect_state(turn, "done")
    steps = turn.locator(".step")
    assert [step.get_attribute("data-node") for step in steps.all()] == STEP_NODES
    assert {step.get_attribute("data-status") for step in steps.all()} == {"done"}
    expect(steps.locator(".step-name")).to_have_text(
        ["分析问题类型", "生成SQL查询", "执行数据查询", "整理结果"]
    )
    expect(turn.locator(".answer")).not_to_be_empty()
    expect(turn.locator("pre")).to_contain_text("SELECT")
    assert turn.locator("tbody tr").count() > 1
    amounts = [
        float(str(node.get_attribute("value")))
        for node in turn.locator("tbody td:last-child data").all()
    ]
    assert amounts == sorted(amounts, reverse=True)


def test_rows_shown_are_the_rows_the_api_sends(page: Page, live_server: str) -> None:
    body = json.dumps({"question": RANKING, "lang": "zh"}).encode()
    request = urllib.request.Request(
        f"{live_server}/api/v0/ask_agent", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        expected = json.load(reply, parse_float=str, parse_int=str)["data"]["query_result"]

    turn = ask(page, RANKING)
    expect_state(turn, "done")

    turn.locator(".view[data-view=table]").click()
    heads = [
        f"{label}{unit or ''}"
        for label, unit in zip(expected["labels"], expected["units"], strict=True)
    ]
    expect(turn.locator("thead th")).to_have_text(heads)
    shown = [
        [cell.replace(",", "") for cell in row.locator("td").all_inner_texts()]
        for row in turn.locator("tbody tr").all()
    ]
    assert shown == [
        ["NULL" if value is None else value for value in row] for row in expected["rows"]
    ]


def test_an_example_is_asked_with_one_click(page: Page) -> None:
    example = page.locator(".example").first
    question = example.inner_text()

    example.click()

    expect(page.locator(".turn .question")).to_have_text(question)
    expect_state(page.locator(".turn"), "done")
    expect(page.locator("#welcome")).to_be_hidden()


@pytest.mark.parametrize("lang", slow_beyond(1, ["zh", "en"]))
def test_every_example_has_an_answer(browser: Browser, live_server: str, lang: str) -> None:
    with opened(browser, live_server, locale={"zh": "zh-CN", "en": "en-GB"}[lang]) as page:
        expect(page.locator(".example").first).to_be_visible()
        for question in page.locator(".example").all_inner_texts():
            turn = ask(page, question)
            expect_state(turn, "done")
            expect(turn.locator(".chart, tbody tr").first).to_be_visible()


def test_a_stream_in_tiny_pieces_is_read_like_any_other(browser: Browser, live_server: str) -> None:
    with (
        FaultyProxy(port_of(live_server), Fault(piece=1)) as proxy,
        opened(browser, proxy.base_url) as page,
    ):
        turn = ask(page, RANKING)
        expect_state(turn, "done")
        assert turn.locator("tbody tr").count() > 1


def test_text_is_shown_while_it_is_written(page: Page) -> None:
    token = {"type": "token", "node": "agent_chat", "text": "你好"}
    first = frame(progress())
    pieces = [
        frame({"code": 200, "success": True, "message": "…", "data": token | {"text": t}})
        for t in "一二三"
    ]
    answer_with(page, first, *pieces)  # never completed, so that the pieces stay

    turn = ask(page, "你好")

    expect(turn.locator(".answer")).to_have_text("一二三")


# The proxy holds the answer back from its first bytes on: the server is there, and says nothing.
SILENT = Fault(after=b"HTTP/1", then="stall")


def test_enter_does_not_ask_twice_while_a_question_runs(browser: Browser, live_server: str) -> None:
    with (
        FaultyProxy(port_of(live_server), SILENT) as proxy,
        opened(browser, proxy.base_url) as page,
    ):
        ask(page, "一")
        ask(page, "二")
        expect(page.locator(".turn")).to_have_count(1)
        expect(page.locator("#question")).to_have_value("二")


def test_words_are_completed_by_the_keys_alone(page: Page) -> None:
    box, options = page.locator("#question"), page.locator("#completions [role=option]")
    box.press_sequentially("各服务区的营业")
    expect(options.first).to_be_visible()
    box.press("ArrowDown")
    marked = page.locator("#completions [aria-selected=true]")
    expect(box).to_have_attribute("aria-activedescendant", marked.get_attribute("id") or "")
    taken = marked.locator(".completion-text").inner_text()
    box.press("Enter")
    expect(box).to_have_value(f"各服务区的{taken}")
    expect(options).to_have_count(0)
    box.press_sequentially(" ser")
    expect(options.first).to_be_visible()
    box.press("Escape")
    expect(options).to_have_count(0)
    expect(page.locator(".turn")).to_have_count(0)
