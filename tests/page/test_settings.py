"""Conversation, settings and language."""

from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browsing import ASK, RANKING, answer_as, ask, expect_state, opened


def asked_body(page: Page, question: str) -> dict[str, Any]:
    """Asks, waits for the end and returns the body that was sent."""
    with page.expect_request(ASK) as request:
        turn = ask(page, question)
    expect(turn).not_to_have_attribute("data-state", "running")
    body = request.value.post_data_json
    assert isinstance(body, dict)
    return body


def test_a_conversation_goes_on_until_a_new_one_is_begun(page: Page) -> None:
    first = asked_body(page, RANKING)
    second = asked_body(page, "服务区有多少个")
    page.get_by_role("button", name="新对话").click()
    expect(page.locator(".turn")).to_have_count(0)
    third = asked_body(page, RANKING)

    assert "conversation_id" not in first
    assert second["conversation_id"].startswith("citu_")
    assert "conversation_id" not in third


def test_the_routing_mode_is_sent_and_kept(page: Page) -> None:
    assert "routing_mode" not in asked_body(page, "你好")

    page.get_by_text("设置", exact=True).click()
    page.get_by_label("路由模式").select_option("chat_direct")
    page.keyboard.press("Escape")
    expect(page.get_by_label("路由模式")).to_be_hidden()
    assert asked_body(page, RANKING)["routing_mode"] == "chat_direct"

    page.reload()
    assert asked_body(page, RANKING)["routing_mode"] == "chat_direct"
    expect(page.locator(".turn").last).not_to_contain_text("SELECT")


@pytest.mark.parametrize(
    ("locale", "lang"),
    [
        ("zh-TW", "zh"),
        pytest.param("en-GB", "en", marks=pytest.mark.slow),
        ("fr-FR", "en"),
    ],
)
def test_the_language_is_the_browsers(
    browser: Browser, live_server: str, locale: str, lang: str
) -> None:
    with opened(browser, live_server, locale=locale) as page:
        expect(page.locator("html")).to_have_attribute("lang", {"zh": "zh-CN", "en": "en"}[lang])
        assert asked_body(page, RANKING)["lang"] == lang


def test_a_chosen_language_changes_everything_and_is_kept(page: Page) -> None:
    turn = ask(page, RANKING)
    expect_state(turn, "done")

    page.get_by_role("button", name="EN", exact=True).click()

    expect(page.get_by_role("button", name="Ask")).to_be_visible()
    expect(turn.locator(".steps summary")).to_contain_text("Done in")
    expect(turn.locator(".count")).to_contain_text("rows")
    assert asked_body(page, "Revenue ranking by service area")["lang"] == "en"
    names = page.locator(".turn").last.locator(".step-name").all_inner_texts()
    assert names
    assert all(name.isascii() for name in names)
    page.reload()
    expect(page.get_by_role("button", name="Ask")).to_be_visible()


def test_examples_are_the_connected_database_s_in_the_language_of_the_page(page: Page) -> None:
    expect(page.locator(".example").first).to_have_text("查询各服务区的营业收入排行")
    with page.expect_request("**/api/v0/examples?lang=en") as request:
        page.get_by_role("button", name="EN", exact=True).click()
    expect(page.locator(".example").first).to_have_text("Revenue ranking by service area")
    assert (
        request.value.headers["accept-language"] == "en"
    )  # so that what goes wrong is said in it too


@pytest.mark.slow
def test_without_examples_the_page_shows_none_and_asks_for_nothing(page: Page) -> None:
    expect(
        page.locator(".example").first
    ).to_be_visible()  # the answer to the first request is not waited for below
    for code in (401, 503):
        envelope: dict[str, Any] = {"code": code, "success": False, "message": "…", "data": {}}
        reply: dict[str, Any] = {"status": code, "json": envelope}
        page.route("**/api/v0/examples*", partial(answer_as, reply))
        with page.expect_response("**/api/v0/examples*") as response:
            page.reload()
        assert response.value.status == code
        expect(page.locator("#welcome")).to_be_visible()
        expect(page.get_by_text("试试这些问题")).to_be_hidden()
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.unroute("**/api/v0/examples*")


def test_nothing_on_the_page_is_left_in_the_other_language(
    browser: Browser, live_server: str
) -> None:
    with opened(browser, live_server, locale="en-GB") as page:
        turn = ask(page, "Revenue by shop category last month")
        expect_state(turn, "done")
        turn.locator(".about summary").click()
        page.locator("#settings summary").click()
        # What the database holds, and a button in its own language, stay as they are.
        assert (
            page.evaluate(_HAN_OUTSIDE, "td, th, .answer, pre, .step-body, [lang], noscript") == []
        )


_HAN_OUTSIDE = """(selector) => {
    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const { data, parentElement } = walker.currentNode;
        if (/\\p{Script=Han}/u.test(data) && !parentElement.closest(selector)) texts.push(data);
    }
    return texts;
}"""
