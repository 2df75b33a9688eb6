"""The API key: asked for when the server wants one, kept as the reader says, given up by signing
out.
"""

import json

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.page.browsing import RANKING, ask, axe_violations, expect_state, load_axe

RIGHT = "citu_right"


def guard(page: Page) -> None:
    """From now on the API lets nobody in without the right key."""

    def check(route: Route) -> None:
        if route.request.headers.get("authorization") == f"Bearer {RIGHT}":
            headers = {
                name: value
                for name, value in route.request.headers.items()
                if name != "authorization"
            }
            route.continue_(headers=headers)
            return
        data = {"error": "需要密钥", "error_type": "unauthorized", "retryable": False}
        body = json.dumps({"code": 401, "success": False, "message": "未授权", "data": data})
        route.fulfill(status=401, content_type="application/json", body=body)

    page.context.route("**/api/v0/**", check)


def give(page: Page, key: str) -> None:
    page.get_by_label("API 密钥", exact=True).fill(key)
    page.get_by_role("button", name="使用此密钥").click()


def ask_with_key(page: Page) -> Locator:
    turn = ask(page, RANKING)
    give(page, RIGHT)
    return turn


def test_a_key_is_asked_for_and_a_wrong_one_said_to_be_wrong(page: Page) -> None:
    guard(page)
    turn = ask(page, RANKING)
    expect(page.get_by_role("dialog")).to_contain_text("请输入 API 密钥")
    expect(page.get_by_label("API 密钥", exact=True)).to_be_focused()

    give(page, "密钥")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("密钥不含空格")
    give(page, "citu_wrong")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("密钥无效")
    give(page, RIGHT)

    expect_state(turn, "done")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.reload()
    expect(page.locator(".turn")).to_have_count(
        1
    )  # read with the key, which is not asked for again


@pytest.mark.slow
def test_giving_no_key_is_an_answer_too(page: Page) -> None:
    guard(page)
    turn = ask(page, RANKING)
    page.get_by_role("button", name="取消").click()
    expect_state(turn, "failed")
    expect(turn.get_by_role("alert")).to_contain_text("unauthorized")

    turn.get_by_role("button", name="再问一次").click()
    give(page, RIGHT)

    expect_state(page.locator(".turn"), "done")


@pytest.mark.slow
def test_the_key_is_kept_as_long_as_the_reader_says(page: Page, live_server: str) -> None:
    guard(page)
    turn = ask(page, RANKING)
    give(page, RIGHT)
    expect_state(turn, "done")

    other = page.context.new_page()
    other.goto(live_server)
    turn = ask(other, RANKING)
    other.get_by_label("在此设备上记住").check()
    give(other, RIGHT)
    expect_state(turn, "done")

    third = page.context.new_page()
    third.goto(live_server)
    expect_state(ask(third, RANKING), "done")


@pytest.mark.slow
def test_the_settings_say_whose_key_it_is(page: Page) -> None:
    guard(page)
    me = {"code": 200, "success": True, "message": "处理完成", "data": {"user_id": "<b>王芳</b>"}}
    page.context.route("**/api/v0/me", lambda route: route.fulfill(json=me))
    expect_state(ask_with_key(page), "done")
    page.get_by_text("设置", exact=True).click()
    expect(page.locator("#key-row")).to_contain_text("正在使用 API 密钥。 <b>王芳</b>")
    page.get_by_role("button", name="退出").click()
    expect(page.locator("#key-user")).to_have_text("")


def test_signing_out_forgets_the_key_and_what_was_shown(page: Page) -> None:
    guard(page)
    turn = ask(page, RANKING)
    page.get_by_label("在此设备上记住").check()
    give(page, RIGHT)
    expect_state(turn, "done")
    page.get_by_text("设置", exact=True).click()
    page.get_by_role("button", name="退出").click()

    expect(page.locator(".turn")).to_have_count(0)
    assert (
        page.evaluate("[...Object.values(localStorage), ...Object.values(sessionStorage)].join()")
        == ""
    )
    page.get_by_role("button", name="历史").click()
    expect(page.locator("#key-dialog")).to_be_visible()
    page.get_by_role("button", name="取消").click()
    expect(page.locator("#history").get_by_role("alert")).to_contain_text("unauthorized")


def test_before_the_key_the_page_says_what_is_needed(page: Page) -> None:
    guard(page)
    page.reload()
    expect(page.locator("#examples")).to_contain_text("此服务需要 API 密钥")
    load_axe(page)
    assert axe_violations(page) == []
    page.get_by_role("button", name="输入密钥").click()
    give(page, RIGHT)
    expect(page.locator(".example")).to_have_count(4)
    expect(page.get_by_role("button", name="输入密钥")).to_have_count(0)
