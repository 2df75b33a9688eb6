"""What the reader is told when there is no answer."""

import json
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.browsing import (
    ASK,
    EVENT_STREAM,
    RANKING,
    answer_as,
    ask,
    expect_state,
    frame,
    progress,
)


@pytest.fixture
def page(used_page: Page) -> Page:
    return used_page


def test_a_refused_statement_is_explained(page: Page) -> None:
    turn = ask(page, "DELETE FROM service_area")

    expect_state(turn, "failed")
    alert = turn.get_by_role("alert")
    expect(alert).to_contain_text("DELETE")
    expect(alert).to_contain_text("forbidden_keywords")
    expect(alert.get_by_role("button")).to_have_count(0)
    expect(turn.locator('.step[data-status="running"]')).to_have_count(0)


def test_a_request_refused_before_the_stream_is_explained(page: Page) -> None:
    turn = ask(page, "长" * 2001)

    expect_state(turn, "failed")
    expect(turn.get_by_role("alert")).to_contain_text("invalid_request")
    expect(turn.get_by_role("alert")).to_contain_text("2001")
    expect(page.locator("#question")).to_have_value("长" * 2001)


def test_a_passing_failure_can_be_tried_again(page: Page) -> None:
    data = {
        "error": "请稍候",
        "error_type": "too_many_streams",
        "retryable": True,
        "retry_after_s": 3,
    }
    busy = json.dumps({"code": 503, "success": False, "message": "服务繁忙", "data": data})
    page.route(
        ASK,
        lambda route: route.fulfill(status=503, content_type="application/json", body=busy),
        times=1,
    )
    turn = ask(page, RANKING)
    expect_state(turn, "failed")
    expect(turn.get_by_role("alert")).to_contain_text("建议 3 秒后重试")

    turn.get_by_role("button", name="重试").click()

    expect(page.locator(".turn")).to_have_count(1)
    expect_state(page.locator(".turn"), "done")


BROKEN_REPLIES: dict[str, tuple[dict[str, Any], str]] = {
    "ends without a result": ({"headers": EVENT_STREAM, "body": frame(progress())}, "stream_ended"),
    "frame that is not JSON": ({"headers": EVENT_STREAM, "body": "data: {oops\n\n"}, "bad_answer"),
    "frame that is not an envelope": (
        {"headers": EVENT_STREAM, "body": "data: 7\n\n"},
        "bad_answer",
    ),
    "a proxy's page": (
        {"status": 502, "content_type": "text/html", "body": "<h1>Bad Gateway</h1>"},
        "bad_answer",
    ),
    "somebody else's JSON": (
        {"status": 404, "content_type": "application/json", "body": "[]"},
        "bad_answer",
    ),
}


def test_broken_replies_are_said_to_be_broken(page: Page) -> None:
    for number, (name, (reply, error_type)) in enumerate(BROKEN_REPLIES.items(), 1):
        page.route(ASK, partial(answer_as, reply))

        turn = ask(page, RANKING)

        expect(page.locator(".turn"), name).to_have_count(number)
        expect_state(turn, "failed")
        expect(turn.get_by_role("alert"), name).to_contain_text(error_type)
        expect(turn.locator('.step[data-status="running"]'), name).to_have_count(0)
        expect(page.get_by_role("button", name="提问"), name).to_be_visible()
        page.unroute(ASK)


def test_a_caller_who_asks_too_often_is_told_when_to_try_again(page: Page) -> None:
    data = {"error": "请求过于频繁", "error_type": "rate_limited", "retryable": True}
    body = json.dumps({"code": 429, "success": False, "message": "请求过于频繁", "data": data})
    headers = {"Content-Type": "application/json", "Retry-After": "17"}
    page.route(ASK, lambda route: route.fulfill(status=429, headers=headers, body=body))

    turn = ask(page, RANKING)

    expect(turn.get_by_role("alert")).to_contain_text("建议 17 秒后重试")


def test_an_unreachable_server_is_said(page: Page) -> None:
    page.route(ASK, lambda route: route.abort("connectionrefused"))

    turn = ask(page, RANKING)

    expect(turn.get_by_role("alert")).to_contain_text("无法连接服务器")
    expect(turn.locator(".steps")).to_be_hidden()
