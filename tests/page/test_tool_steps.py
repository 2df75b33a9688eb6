"""Tool agents on the page: chosen in the settings, their calls and the rows they find below the
question, folded.
"""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from agent.flows.ask.labels import LABELS as ASK
from agent.flows.tool_graph.labels import LABELS as TOOL_GRAPH
from agent.flows.tool_loop.labels import LABELS as TOOL_LOOP
from agent.flows.workflow_flow import WorkflowFlow
from tests.page.browsing import (
    answer_with,
    ask,
    completed,
    expect_state,
    frame,
    opened,
    progress,
    tool,
)

SQL = "SELECT name, amount FROM sales"
ROWS = {
    "columns": ["name", "amount"],
    "column_types": ["text", "int4"],
    "rows": [["<b>Ann</b>", 12], ["Ben", 7]],
    "row_count": 2,
    "is_limited": False,
}
RESULT = {
    "code": 200,
    "success": True,
    "message": "中间结果",
    "data": {"type": "result", "call_id": "c1", "sql": SQL, "query_result": ROWS},
}
ANSWER = {"response": "12", "response_type": "DATABASE", "agent": "tool_loop"}
GIVEN = {"display_name": "执行查询", "arguments": {"sql": SQL, "limit": 5}}


@pytest.fixture
def page(used_page: Page) -> Page:
    return used_page


def test_calls_and_the_rows_they_find_are_folded_below_the_question(page: Page) -> None:
    answer_with(
        page,
        frame(progress(node="think", display_name="思考")),
        frame(tool("c1", "running", ms=None, summary=None, **GIVEN)),
        frame(RESULT),
        frame(tool("c1", "done", ms=41.2, summary="2 行", **GIVEN)),
        frame(
            tool("c2", "running", ms=None, summary=None, display_name="查找数据表", arguments={})
        ),
        frame(
            tool(
                "c2",
                "failed",
                ms=1500.0,
                summary="没有这个工具",
                display_name="查找数据表",
                arguments={},
            )
        ),
        frame(
            completed(
                response="12",
                response_type="DATABASE",
                agent="tool_loop",
                figures=[{"figure": "12", "call_id": "c1"}],
            )
        ),
    )

    turn = ask(page, "为什么三月下降？")

    expect_state(turn, "done")
    assert turn.locator(".steps").get_attribute("open") is None
    turn.locator(".steps > summary").click()
    calls = turn.locator(".tool-step")
    expect(calls.locator(".tool-name")).to_have_text(["执行查询", "查找数据表"])
    expect(calls.locator(".step-details")).to_have_text(["2 行", "没有这个工具"])
    expect(calls.locator(".step-time")).to_have_text(["41 ms", "1.50 s"])
    assert [call.get_attribute("data-status") for call in calls.all()] == ["done", "failed"]
    expect(calls.first.locator("tbody td").first).to_be_hidden()
    for fold in calls.first.locator("details > summary").all():
        fold.click()
    expect(calls.first.locator(".tool-arguments dd")).to_have_text([SQL, "5"])
    expect(calls.first.locator("tbody td").first).to_have_text("<b>Ann</b>")
    turn.locator(".about > summary").click()
    expect(turn.locator(".about")).to_contain_text("12 ← c1")


def test_offered_files_are_downloaded(page: Page) -> None:
    offers = [
        {"call_id": "c1", "format": "csv", "url": "/api/v0/runs/run_9/export?format=csv&call_id=c1"}
    ]
    answer_with(page, frame(completed(**ANSWER, run_id="run_9", exports=offers)))
    page.route(
        "**/runs/run_9/export?*", lambda route: route.fulfill(body="a,b", content_type="text/csv")
    )

    turn = ask(page, "给我文件")
    expect_state(turn, "done")
    with page.expect_download() as download, page.expect_request("**/export?*") as asked:
        turn.locator(".files button").click()

    assert "call_id=c1" in asked.value.url
    name = download.value.suggested_filename
    assert (name[:4], name[-4:]) == ("给我文件", ".csv")


def test_every_icon_has_a_drawing() -> None:
    script = (Path(__file__).parents[2] / "static/steps.js").read_text("utf-8")
    icons = {
        face.icon
        for faces in (ASK, TOOL_LOOP, TOOL_GRAPH, WorkflowFlow.labels)
        for face in faces.values()
    }
    assert [icon for icon in icons if f'"{icon}": ' not in script] == []


def test_the_chosen_agent_is_asked_and_remembered(browser: Browser, live_server: str) -> None:
    with opened(browser, live_server) as page:
        page.locator("#settings > summary").click()
        page.locator("#agent").select_option("tool_graph")
        expect(page.locator("#agent-help")).to_contain_text("状态图")
        page.reload()
        page.locator("#settings > summary").click()
        expect(page.locator("#agent")).to_have_value("tool_graph")
        with page.expect_request("**/ask_agent_stream") as asked:
            turn = ask(page, "有多少个服务区？")
        assert json.loads(asked.value.post_data or "")["agent"] == "tool_graph"
        expect_state(turn, "done")
        expect(turn.locator(".notes")).to_contain_text(
            "OPENAI_API_KEY"
        )  # no model here: the rules answer and say so
