"""Conversations on the page: going on, found again, named, deleted; and asking without them."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.page.browsing import (
    ASK,
    RANKING,
    answer_with,
    ask,
    completed,
    expect_state,
    frame,
    opened,
    progress,
)

CONVERSATIONS = "**/api/v0/conversations**"


@pytest.fixture
def page(used_page: Page) -> Page:
    return used_page


def drawer(page: Page) -> Locator:
    """The drawer, opened by a key: on a busy machine Playwright looks only after a click whether it
    met the button, finds the drawer above it, and clicks in vain again.
    """
    page.get_by_role("button", name="历史").press("Enter")
    return page.get_by_role("dialog")


def answered(page: Page, question: str) -> Locator:
    turn = ask(page, question)
    expect_state(turn, "done")
    return turn


def refused(code: int, error_type: str, **data: Any) -> dict[str, Any]:
    """What `route.fulfill` takes for an error."""
    body = {
        "code": code,
        "success": False,
        "message": error_type,
        "data": {"error_type": error_type, **data},
    }
    return {"status": code, "content_type": "application/json", "body": json.dumps(body)}


def test_a_conversation_is_found_again_and_goes_on(page: Page) -> None:
    question = "每个公司有多少个服务区？"
    turn = answered(page, question)
    said, sql = turn.locator(".answer").inner_text(), turn.locator("pre").inner_text()
    shown = turn.locator(".rows")
    chart = shown.locator("figcaption").inner_text()
    kinds = shown.locator(".view").all_inner_texts()
    shown.locator(".view[data-view=table]").click()
    table = shown.locator("table").inner_text()
    assert "合计" in table
    page.get_by_role("button", name="新对话").click()
    answered(page, "你好，新的对话")

    drawer(page).get_by_role("button", name=question).first.click()

    past = page.locator(".turn")
    expect(past).to_have_count(1)
    expect(past.locator(".question")).to_have_text(question)
    expect(past.locator(".answer-text")).to_have_text(said)
    expect(past.locator("pre")).to_have_text(sql)
    expect(page).to_have_title(f"{question} · Citu")
    expect(past.locator("figcaption")).to_have_text(chart)
    assert past.locator(".view").all_inner_texts() == kinds
    past.locator(".view[data-view=table]").click()
    assert past.locator("table").inner_text() == table
    with page.expect_request(ASK) as request:
        answered(page, "一共有多少个服务区")
    asked = request.value.post_data_json
    assert asked is not None
    assert asked["conversation_id"].startswith("citu_")
    assert asked["context_type"] == "DATABASE"
    page.reload()
    expect(page.locator(".turn .question")).to_have_text([question, "一共有多少个服务区"])


def test_what_failed_or_was_refused_is_there_after_a_reload(page: Page) -> None:
    refused = ask(page, "DROP TABLE company")
    expect_state(refused, "failed")
    said = refused.locator(".failure h3").inner_text()
    clarified = answered(page, "最好的服务区")
    choices = clarified.locator(".offer").all_inner_texts()
    assert choices

    page.reload()

    expect(page.locator(".turn .question")).to_have_text(["DROP TABLE company", "最好的服务区"])
    past = page.locator(".turn").first
    expect(past).to_have_attribute("data-state", "failed")
    expect(past.locator(".failure h3")).to_have_text(said)
    expect(past.locator("pre")).to_have_text("DROP TABLE company")
    expect(past.get_by_role("button", name="重新运行")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)  # old news is not read out
    expect(page.locator(".offer")).to_have_text(choices)
    page.locator(".offer").first.click()
    expect(page.locator(".turn")).to_have_count(3)
    expect_state(page.locator(".turn").last, "done")
    page.reload()
    expect(page.locator(".turn").nth(1).locator(".offer")).to_have_count(
        0
    )  # only the latest offers something


@pytest.mark.parametrize(
    ("error_type", "state", "shows"),
    [
        ("query_timeout", "failed", "太久了"),
        ("cancelled", "stopped", "服务停止或重启，未取得完整结果"),
    ],
)
def test_what_ended_early_says_so_and_can_be_asked_again(
    page: Page, error_type: str, state: str, shows: str
) -> None:
    failure = {"error_type": error_type, "message": "超时", "error": "太久了", "retryable": True}
    nothing: dict[str, Any] = {
        "question_type": None,
        "routing_mode": None,
        "sql": None,
        "row_count": None,
        "columns": [],
        "rows": [],
    }
    turn = {
        "run_id": "r",
        "question": "问",
        "response": "太久了",
        "failure": failure,
        "asked_at": "2026-01-01T00:00:00Z",
    }
    data: dict[str, Any] = {"conversation": {}, "turns": [{**nothing, **turn}], "next_cursor": None}
    body = {"code": 200, "success": True, "message": "", "data": data}
    page.route("**/api/v0/conversations/**", lambda route: route.fulfill(json=body))
    answer_with(page, frame(completed(response="好", conversation_id="c", run_id="other")))
    answered(page, "?")
    page.reload()
    past = page.locator(".turn").first
    expect(past).to_have_attribute("data-state", state)
    expect(past).to_contain_text(shows)
    if state == "failed":
        past.get_by_role("button", name="重试").click()
        expect(page.locator(".turn .question")).to_have_text(["问", "问"])
        expect(page.locator("#question")).to_be_focused()


def test_a_conversation_is_given_a_name(page: Page) -> None:
    answered(page, "各路段有多少个服务区")
    chats = drawer(page)
    chats.get_by_role("listitem").first.get_by_role("button", name="重命名").click()
    field = chats.get_by_role("textbox")
    expect(field).to_be_focused()
    expect(field).to_have_value("各路段有多少个服务区")
    field.fill("不要了")
    field.press("Escape")
    expect(chats.locator(".chat-title").first).to_have_text("各路段有多少个服务区")
    expect(chats.locator(".chat-open").first).to_be_focused()

    chats.get_by_role("button", name="重命名").first.click()
    field.fill("  <b>路段</b>  ")
    field.press("Enter")

    expect(chats.locator(".chat-title").first).to_have_text("<b>路段</b>")
    expect(page).to_have_title("<b>路段</b> · Citu")
    page.keyboard.press("Escape")
    expect(chats).to_be_hidden()
    expect(drawer(page).locator(".chat-title").first).to_have_text("<b>路段</b>")


def test_deleting_asks_first_and_clears_the_page_of_what_is_gone(page: Page) -> None:
    answered(page, "本月的天气")
    chats = drawer(page)
    chats.get_by_role("button", name="删除").first.click()
    expect(chats).to_contain_text("删除这个对话？")
    chats.get_by_role("button", name="取消").click()
    expect(chats.locator(".chat-title").first).to_have_text("本月的天气")

    chats.get_by_role("button", name="删除").first.click()
    chats.locator("form").get_by_role("button", name="删除").click()

    expect(chats.get_by_text("本月的天气")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("#welcome")).to_be_visible()
    page.reload()
    expect(page.locator("#welcome")).to_be_visible()


def test_a_change_that_fails_can_be_tried_again(page: Page) -> None:
    answered(page, "你好，失败一次")
    one = "**/api/v0/conversations/*"
    page.route(
        one,
        lambda route: route.fulfill(**refused(503, "store_unavailable", retryable=True)),
        times=1,
    )
    chats = drawer(page)
    chats.get_by_role("button", name="重命名").first.click()
    chats.get_by_role("textbox").fill("新标题")
    chats.get_by_role("textbox").press("Enter")
    expect(chats.get_by_role("alert")).to_contain_text("store_unavailable")
    expect(chats.locator(".chat-title").first).to_have_text("失败一次")

    chats.get_by_role("button", name="重试").click()

    expect(chats.locator(".chat-title").first).to_have_text("新标题")
    expect(chats.get_by_role("alert")).to_have_count(0)


def test_what_was_deleted_elsewhere_leaves_the_list(page: Page) -> None:
    answered(page, "你好，在别处")
    page.route(
        "**/api/v0/conversations/*", lambda route: route.fulfill(**refused(404, "not_found"))
    )
    chats = drawer(page)
    chats.get_by_role("button", name="删除").first.click()
    chats.locator("form").get_by_role("button", name="删除").click()
    expect(chats.get_by_text("你好，在别处")).to_have_count(0)
    expect(chats.get_by_role("alert")).to_have_count(0)


def test_longer_lists_come_in_portions(page: Page) -> None:
    def listed(route: Route) -> None:
        first = 3 if "cursor=more" in route.request.url else 0
        ids = range(first, first + 3)
        about = {
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
            "turn_count": 1,
        }
        found = [
            {"conversation_id": f"c{number}", "title": f"第 {number} 个", **about} for number in ids
        ]
        data = {"conversations": found, "next_cursor": None if first else "more"}
        route.fulfill(json={"code": 200, "success": True, "message": "", "data": data})

    page.route(re.compile(r"/conversations\?"), listed)  # not the one that is open
    chats = drawer(page)
    expect(chats.locator(".chat")).to_have_count(3)
    chats.get_by_role("button", name="更早的对话").click()
    expect(chats.locator(".chat-title")).to_have_text([f"第 {number} 个" for number in range(6)])
    expect(chats.get_by_role("button", name="更早的对话")).to_have_count(0)


def test_earlier_questions_come_when_wanted(page: Page) -> None:
    def turn(number: int) -> dict[str, Any]:
        said = {
            "question_type": "CHAT",
            "routing_mode": "hybrid",
            "response": "好",
            "sql": None,
            "row_count": None,
        }
        about = {"columns": [], "rows": [], "asked_at": "2026-01-01T00:00:00Z"}
        return {"run_id": f"run_{number}", "question": f"问题 {number}", **said, **about}

    def read(route: Route) -> None:
        is_earlier = "cursor=earlier" in route.request.url
        turns = [turn(number) for number in ((1, 2) if is_earlier else (3, 4))]
        data: dict[str, Any] = {
            "conversation": {},
            "turns": turns,
            "next_cursor": None if is_earlier else "earlier",
        }
        route.fulfill(json={"code": 200, "success": True, "message": "", "data": data})

    page.route("**/api/v0/conversations/**", read)
    answer_with(
        page,
        frame(progress(conversation_id="c")),
        frame(completed(response="好", conversation_id="c")),
    )
    answered(page, "?")
    page.reload()
    expect(page.locator(".question")).to_have_text(["问题 3", "问题 4"])
    page.get_by_role("button", name="更早的问题").click()
    expect(page.locator(".question")).to_have_text([f"问题 {number}" for number in (1, 2, 3, 4)])
    expect(page.get_by_role("button", name="更早的问题")).to_have_count(0)


@pytest.mark.slow
def test_without_the_store_the_page_says_so_and_asking_works(page: Page) -> None:
    answered(page, RANKING)
    page.route(
        CONVERSATIONS,
        lambda route: route.fulfill(**refused(503, "store_unavailable", retryable=True)),
    )

    page.reload()

    expect(page.locator("#turns")).to_contain_text("之前的问题暂时无法显示，仍可继续提问")
    answered(page, "一共有多少个服务区")
    chats = drawer(page)
    expect(chats.get_by_role("alert")).to_contain_text("store_unavailable")
    page.unroute(CONVERSATIONS)
    chats.get_by_role("button", name="重试").click()
    expect(chats.locator(".chat-title").first).to_have_text(RANKING.removeprefix("查询"))
    page.keyboard.press("Escape")
    page.locator(".unread").get_by_role("button", name="重试").click()
    expect(page.locator(".turn .question")).to_have_text(
        [RANKING, "一共有多少个服务区"]
    )  # neither of them twice


def test_a_conversation_that_is_gone_is_left(page: Page) -> None:
    answered(page, RANKING)
    page.route(CONVERSATIONS, lambda route: route.fulfill(**refused(404, "not_found")))
    page.reload()
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_drawer_fits_a_narrow_window(browser: Browser, live_server: str) -> None:
    with opened(browser, live_server, viewport={"width": 360, "height": 740}) as page:
        answered(page, "很长的问题" * 30)
        chats = drawer(page)
        expect(chats.locator(".chat").first).to_be_visible()
        chats.get_by_role("button", name="重命名").first.click()
        chats.get_by_role("button", name="删除").last.click()
        assert page.evaluate(
            "document.querySelector('.drawer-body').scrollWidth <= innerWidth - 40"
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
