"""The drawers: earlier conversations searched and cleared, the schema, what waits for a reviewer;
and the themes.
"""

from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.page.browsing import ASK, RANKING, answer_as, ask, expect_state, opened


@pytest.fixture
def page(used_page: Page) -> Page:
    return used_page


def _answered_with(data: dict[str, Any]) -> dict[str, Any]:
    return {"code": 200, "success": True, "message": "", "data": data}


def test_titles_are_searched_on_all_pages(page: Page) -> None:
    def listed(route: Route) -> None:
        first = 3 if "cursor=more" in route.request.url else 0
        about = {
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
            "turn_count": 1,
        }
        found = [
            {"conversation_id": f"c{n}", "title": f"Title {n}", **about}
            for n in range(first, first + 3)
        ]
        route.fulfill(
            json=_answered_with({"conversations": found, "next_cursor": None if first else "more"})
        )

    page.route("**/api/v0/conversations**", listed)
    page.get_by_role("button", name="历史").click()
    chats = page.get_by_role("dialog")
    expect(chats.locator(".chat")).to_have_count(3)
    chats.get_by_role("searchbox").fill("TITLE 4")
    expect(chats.locator(".chat:visible .chat-title")).to_have_text(["Title 4"])
    chats.get_by_role("searchbox").fill("nowhere")
    expect(chats).to_contain_text("没有标题包含这些文字")
    chats.get_by_role("searchbox").fill("")
    expect(chats.locator(".chat:visible")).to_have_count(6)


def test_all_conversations_are_cleared_after_a_question(page: Page) -> None:
    deleted: list[str] = []

    def clear(route: Route) -> None:
        if route.request.method != "DELETE":
            route.fallback()
            return
        deleted.append(route.request.url)
        route.fulfill(json=_answered_with({"deleted": 1}))

    expect_state(ask(page, RANKING), "done")
    page.route("**/api/v0/conversations", clear)
    page.get_by_role("button", name="历史").click()
    chats = page.get_by_role("dialog")
    chats.get_by_role("button", name="清空全部").click()
    chats.get_by_role("button", name="取消").click()
    assert deleted == []
    chats.get_by_role("button", name="清空全部").click()
    chats.locator("form").get_by_role("button", name="清空全部").click()
    expect(chats).to_contain_text("还没有对话")
    assert len(deleted) == 1
    expect(page.locator(".turn")).to_have_count(0)


def test_the_schema_is_listed_searched_and_described(page: Page) -> None:
    page.locator("#show-schema").click()
    schema = page.get_by_role("dialog")
    expect(schema.locator(".chat")).to_have_count(6)
    schema.get_by_role("searchbox").fill("店铺")
    expect(schema.locator(".chat-title").first).to_have_text("店铺")
    schema.locator(".chat-open").first.click()
    expect(schema.locator(".columns li").first).to_contain_text("shop_id")
    expect(schema.locator(".columns li").first).to_contain_text("主键")
    schema.get_by_role("button", name="所有表").click()
    schema.get_by_role("searchbox").fill("")
    question = schema.locator(".offer").first.inner_text()
    schema.locator(".offer").first.click()
    expect(schema).to_be_hidden()
    expect(page.locator(".question")).to_have_text(question)


def test_reviewers_decide_on_what_waits(page: Page) -> None:
    item = {
        "question": "<b>问</b>",
        "sql": "SELECT 1",
        "author": "wang",
        "created_at": "2026-01-01T00:00:00Z",
    }
    examples: list[dict[str, Any]] = [
        {**item, "example_id": f"ex_{number}", "trust": "candidate"} for number in range(3)
    ]
    nodes = [{"node": "ods_shop", "sql": "SELECT 1"}, {"node": "sales", "sql": "SELECT 2"}]
    examples[0]["etl"] = {"target": "sales", "code": nodes}
    lesson = {**item, "lesson_id": "le_1", "root_cause": "错在哪里", "avoidance_hint": None}
    decided: list[tuple[str, Any]] = []

    def take(route: Route) -> None:
        decided.append(
            (route.request.url.rpartition("/api/v0/knowledge/")[2], route.request.post_data_json)
        )
        if len(decided) > 1:
            route.fulfill(json=_answered_with({}))
            return
        data = {"error": "已由他人审核", "error_type": "conflict", "retryable": False}
        route.fulfill(
            status=409, json={"code": 409, "success": False, "message": "冲突", "data": data}
        )

    for kind, items in (("examples", examples), ("lessons", [lesson])):
        reply = {"json": _answered_with({kind: items, "next_cursor": None})}
        page.route(f"**/api/v0/knowledge/{kind}?*", partial(answer_as, reply))
    page.route("**/api/v0/knowledge/*/*/*", take)
    page.locator("#show-reviews").click()
    waiting = page.get_by_role("dialog").locator(".review")
    expect(waiting).to_have_count(4)
    expect(waiting.first).to_contain_text("<b>问</b>")
    expect(waiting.first).to_contain_text("ETL 草稿 · sales")
    expect(waiting.first.locator("details")).to_have_count(2)
    waiting.first.get_by_role("button", name="通过").click()
    expect(waiting.first.get_by_role("alert")).to_contain_text("已由他人审核")
    for number, verdict in enumerate(("通过", "认证", "驳回")):
        waiting.first.get_by_role("button", name=verdict).click()
        expect(waiting).to_have_count(3 - number)
    waiting.first.get_by_role("button", name="通过").click()
    expect(waiting).to_have_count(0)
    said = {"trust": "candidate"}
    assert decided[1:] == [
        ("examples/ex_0/approve", said),
        ("examples/ex_1/certify", said),
        ("examples/ex_2/reject", said),
        ("lessons/le_1/approve", {}),
    ]


def test_others_see_no_reviews(page: Page) -> None:
    page.route(
        "**/api/v0/me", lambda route: route.fulfill(json=_answered_with({"is_reviewer": False}))
    )
    with page.expect_response("**/api/v0/me"):
        page.reload()
    expect(page.locator("#show-schema")).to_be_visible()
    expect(page.locator("#show-reviews")).to_be_hidden()


@pytest.mark.slow
def test_a_theme_is_chosen_kept_and_shown_in_what_is_there(
    browser: Browser, live_server: str
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    drawn = "document.querySelector('canvas').toDataURL()"
    with opened(browser, live_server, color_scheme="light") as page:
        expect_state(ask(page, RANKING), "done")
        page.locator("canvas").wait_for()
        light, chart = page.evaluate(ground), page.evaluate(drawn)
        page.locator("#settings summary").click()
        page.get_by_label("外观").select_option("dark")
        assert page.evaluate(ground) != light
        assert page.evaluate(drawn) != chart
        page.reload()
        expect(page.locator("#settings")).to_be_visible()
        assert page.evaluate(ground) != light
        page.emulate_media(color_scheme="dark")
        page.locator("#settings summary").click()
        page.get_by_label("外观").select_option("light")
        assert page.evaluate(ground) == light
        page.get_by_label("外观").select_option("")
        assert page.evaluate(ground) != light


def test_an_offered_question_waits_while_another_is_answered(page: Page) -> None:
    asked: list[str] = []
    page.route(ASK, lambda _route: asked.append("one"))  # never answered
    ask(page, "?")
    page.locator("#show-schema").click()
    page.locator("#schema .offer").first.click()
    expect(page.locator(".turn")).to_have_count(1)
    assert asked == ["one"]
