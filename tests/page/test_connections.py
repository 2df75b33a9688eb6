"""Connections that break, tabs that reload: the question goes on, and is not asked twice."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from tests.page.browsing import (
    ASK,
    EVENT_STREAM,
    RANKING,
    ask,
    completed,
    expect_state,
    frame,
    opened,
    port_of,
    progress,
)
from tests.support.effort import slow_beyond
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.live import eventually

EVENTS = "**/api/v0/runs/*/events*"
NODES = ["classify_question", "agent_sql_generation", "agent_sql_execution", "format_response"]


@pytest.fixture
def asked(page: Page) -> list[dict[str, Any]]:
    """Bodies of the questions that reach the network, each with its Idempotency-Key as `key`."""
    bodies: list[dict[str, Any]] = []

    def note(request: Request) -> None:
        if request.url.endswith("ask_agent_stream"):
            bodies.append(
                {**(request.post_data_json or {}), "key": request.headers["idempotency-key"]}
            )

    page.on("request", note)
    return bodies


def broken_off(*frames: str) -> dict[str, Any]:
    """What `route.fulfill` takes for a stream without an end."""
    return {"headers": EVENT_STREAM, "body": "".join(frames)}


@pytest.mark.parametrize("node", slow_beyond(1, ["agent_sql_execution", "classify_question"]))
def test_a_lost_connection_is_taken_up_where_it_broke(
    browser: Browser, live_server: str, node: str
) -> None:
    fault = Fault(after=f'"node":"{node}","st'.encode())
    with FaultyProxy(port_of(live_server), fault) as proxy, opened(browser, proxy.base_url) as page:
        turn = ask(page, RANKING)
        # Broken in its first frame a run has no name yet, and its question is sent once more. So it
        # is when a browser drops what came at once with the end.
        expect_state(turn, "done")
        assert [step.get_attribute("data-node") for step in turn.locator(".step").all()] == NODES
        assert turn.locator("tbody tr").count() > 1
        page.reload()
        expect(page.locator(".turn")).to_have_count(1)  # one turn, however often it was sent


def test_a_silent_connection_is_made_anew(browser: Browser, live_server: str) -> None:
    fault = Fault(after=b'"node":"agent_sql_generation","status":"running"', then="stall")
    with FaultyProxy(port_of(live_server), fault) as proxy, opened(browser, proxy.base_url) as page:
        page.clock.install()
        turn = ask(page, RANKING)
        expect(turn.locator(".step")).to_have_attribute(
            "data-status", "done"
        )  # the stream has begun
        with page.expect_request(EVENTS):  # what the page says meanwhile may be gone at once
            page.clock.fast_forward(51_000)
        expect_state(turn, "done")


@pytest.mark.slow
def test_only_what_is_missing_is_asked_for_until_it_comes(page: Page) -> None:
    first, second = (
        frame(progress(display_name="一")),
        frame(progress(display_name="二", status="done")),
    )
    page.route(ASK, lambda route: route.fulfill(**broken_off(first)))
    last_seen = first.partition("\n")[0].rpartition(":")[2]
    wanted: list[str] = []

    def follow(route: Route) -> None:
        wanted.append(parse_qs(urlsplit(route.request.url).query)["after"][0])
        if len(wanted) == 1:
            route.fulfill(status=502, body="<h1>Bad Gateway</h1>")
        else:
            route.fulfill(**broken_off(first, second, frame(completed(response="好"))))

    page.route(EVENTS, follow)
    turn = ask(page, "?")
    expect_state(turn, "done")
    assert wanted == [last_seen] * 2
    expect(turn.locator(".step-name")).to_have_text(["二"])
    expect(turn.locator(".answer")).to_have_text("好")


@pytest.mark.parametrize("frames", [[frame(progress())], []], ids=["named", "nameless"])
def test_a_run_that_stays_out_of_reach_is_given_up(
    page: Page, frames: list[str], asked: list[dict[str, Any]]
) -> None:
    page.clock.install()
    page.route(ASK, lambda route: route.fulfill(**broken_off(*frames)))
    page.route(EVENTS, lambda route: route.abort("connectionreset"))
    turn = ask(page, "?")
    expect(turn).to_contain_text("正在恢复")
    page.clock.run_for(60_000)
    expect_state(turn, "running")
    page.clock.run_for(90_000)
    expect_state(turn, "failed")
    expect(turn.get_by_role("alert")).to_contain_text("stream_ended")
    assert len({body["key"] for body in asked}) == 1
    assert (len(asked) == 1) == bool(frames)


def test_the_same_question_sent_again_has_the_same_key(
    page: Page, asked: list[dict[str, Any]]
) -> None:
    page.route(ASK, lambda route: route.abort("connectionreset"), times=1)
    turn = ask(page, RANKING)
    expect_state(turn, "failed")
    turn.get_by_role("button", name="重试").click()
    expect_state(page.locator(".turn"), "done")
    ask(page, RANKING)
    expect_state(page.locator(".turn").last, "done")

    assert asked[0] == asked[1]
    assert asked[2]["key"] != asked[1]["key"]
    assert {body["on_disconnect"] for body in asked} == {"continue"}


@pytest.fixture
def held(page: Page) -> Iterator[list[str]]:
    """Streams begin and stay silent, also after a reload, until frames are put here."""
    later: list[str] = []

    def follow(route: Route) -> None:
        if later:
            route.fulfill(**broken_off(*later))
        else:
            route.fulfill(
                status=503, json={"code": 503, "success": False, "message": "", "data": {}}
            )

    begun = frame(progress(display_name="分析", run_id="run_1", conversation_id="c"))
    page.context.route(ASK, lambda route: route.fulfill(**broken_off(begun)))
    page.context.route(EVENTS, follow)
    yield later


def test_a_question_goes_on_after_a_reload(
    page: Page, held: list[str], asked: list[dict[str, Any]]
) -> None:
    turn = ask(page, "还在吗")
    expect(turn).to_contain_text("正在恢复")

    page.reload()

    expect(page.locator(".question")).to_have_text("还在吗")
    expect(page.get_by_role("button", name="停止")).to_be_visible()
    held += [frame(progress(display_name="分析", status="done")), frame(completed(response="在"))]
    expect_state(page.locator(".turn"), "done")
    expect(page.locator(".answer")).to_have_text("在")
    assert len(asked) == 1
    page.reload()
    expect(
        page.locator("#welcome")
    ).to_be_visible()  # conversation c was never kept, and nothing runs any more


@pytest.mark.slow
def test_a_run_that_has_expired_meanwhile_is_said(page: Page, held: list[str]) -> None:
    expect(ask(page, "还在吗")).to_contain_text("正在恢复")
    # Only who has lost everything asks for events from the first on.
    page.context.route(
        "**/events?after=0", lambda route: route.fulfill(status=404, json={"code": 404, "data": {}})
    )
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("run_gone")


@pytest.mark.slow
def test_a_new_conversation_leaves_the_question_to_itself(page: Page, held: list[str]) -> None:
    cancelled: list[str] = []
    page.route("**/cancel", lambda route: cancelled.append(route.request.url))
    expect(ask(page, "还在吗")).to_contain_text("正在恢复")
    page.get_by_role("button", name="新对话").click()
    expect(page.get_by_role("button", name="提问")).to_be_visible()
    page.reload()
    expect(page.locator("#welcome")).to_be_visible()
    assert cancelled == []


@pytest.mark.parametrize("how", ["button", "escape"])
def test_stop_cancels_the_run_at_the_server(browser: Browser, live_server: str, how: str) -> None:
    fault = Fault(after=b'"node":"agent_sql_generation","status":"running"', then="stall")
    with FaultyProxy(port_of(live_server), fault) as proxy, opened(browser, proxy.base_url) as page:
        turn = ask(page, RANKING)
        expect(turn.locator(".step")).to_have_attribute("data-status", "done")
        expect_state(turn, "running")
        with page.expect_response("**/api/v0/runs/*/cancel") as response:
            if how == "button":
                page.get_by_role("button", name="停止").click()
            else:
                page.keyboard.press("Escape")
        expect_state(turn, "stopped")
        expect(turn).to_contain_text("已停止")
        expect(turn.get_by_role("alert")).to_have_count(0)
        expect(page.get_by_role("button", name="提问")).to_be_visible()
        assert proxy.client_left.wait(60)
        assert response.value.ok


def test_stop_before_the_run_has_a_name_cancels_it_when_it_has(page: Page) -> None:
    waiting: list[Route] = []
    page.route(ASK, lambda route: waiting.append(route))
    turn = ask(page, "?")
    expect(page.get_by_role("button", name="停止")).to_be_visible()
    page.get_by_role("button", name="停止").click()
    expect_state(turn, "stopped")

    with page.expect_request("**/api/v0/runs/run_1/cancel") as request:
        waiting[0].fulfill(**broken_off(frame(progress())))

    assert request.value.method == "POST"
    expect_state(turn, "stopped")


def test_stop_works_when_the_server_never_says_anything(browser: Browser, live_server: str) -> None:
    silent = Fault(after=b"HTTP/1", then="stall")
    with (
        FaultyProxy(port_of(live_server), silent) as proxy,
        opened(browser, proxy.base_url) as page,
    ):
        page.clock.install()
        turn = ask(page, RANKING)
        page.get_by_role("button", name="停止").click()
        expect_state(turn, "stopped")
        page.clock.fast_forward(6000)
        assert proxy.client_left.wait(60)


def test_a_closed_tab_does_not_end_its_question(browser: Browser, live_server: str) -> None:
    fault = Fault(after=b'"node":"classify_question","status":"done"', then="stall")
    with FaultyProxy(port_of(live_server), fault) as proxy, opened(browser, proxy.base_url) as page:
        question = "上个月收入最高的店铺"
        expect(ask(page, question).locator(".step")).to_have_count(1)
        page.close()
        assert proxy.client_left.wait(60)
        eventually(lambda: question in latest_titles(live_server))


def latest_titles(base_url: str) -> list[str]:
    """Of more than one conversation: other tests' services may keep theirs in the same store."""
    with urllib.request.urlopen(f"{base_url}/api/v0/conversations?limit=50", timeout=10) as reply:
        conversations: list[dict[str, Any]] = json.load(reply)["data"]["conversations"]
    return [str(conversation["title"]) for conversation in conversations]
