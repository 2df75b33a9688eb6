"""The document by which clients of MCP show an answer, in a sandbox as they make it."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from tests.page.browsing import HOSTILE, RANKING, wait_until

# What clients allow a document that names no address: nothing from anywhere.
_POLICY = (
    "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">"
)
_CLIENT = """([view, result, context]) => {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.style.width = "800px";
    frame.style.height = "700px";
    globalThis.said = [];
    globalThis.tell = (message) =>
        frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
    addEventListener("message", ({ source, data }) => {
        if (source !== frame.contentWindow) return;
        said.push(data);
        if (data.method === "ui/initialize") {
            tell({ id: data.id, result: {
                protocolVersion: "2026-01-26", hostInfo: { name: "test", version: "1" },
                hostCapabilities: {}, hostContext: context } });
        }
        if (data.method === "ui/notifications/initialized") {
            tell({ method: "ui/notifications/tool-input", params: { arguments: {} } });
            tell({ method: "ui/notifications/tool-result", params: result });
        }
    });
    frame.srcdoc = view;
    document.body.append(frame);
}"""


def called(address: str, method: str, **params: Any) -> Any:
    """Return what the service answers over MCP."""
    headers = {"Accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    reply = httpx2.post(f"{address}/mcp", json=body, headers=headers, timeout=60)
    return json.loads(reply.text)["result"]


@pytest.fixture
def blank(browser: Browser) -> Iterator[Page]:
    """A page that stands for a client."""
    context = browser.new_context(viewport={"width": 900, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text))
    page.on("request", lambda request: problems.append(request.url))
    page.set_content("<!doctype html><title>client</title>")
    yield page
    context.close()
    assert problems == [], "it breaks nothing, and asks nobody for anything"


def shown(page: Page, live_server: str, result: Any, **context: str) -> FrameLocator:
    """Return the view of a result, in a client."""
    [tool] = [one for one in called(live_server, "tools/list")["tools"] if one["name"] == "ask"]
    uri = tool["_meta"]["ui"]["resourceUri"]
    [content] = called(live_server, "resources/read", uri=uri)["contents"]
    assert content["mimeType"] == "text/html;profile=mcp-app"
    assert content["_meta"]["ui"]["csp"] == {"connectDomains": [], "resourceDomains": []}
    page.evaluate(_CLIENT, [_POLICY + content["text"], result, context])
    return page.frame_locator("iframe")


def test_an_answer_is_drawn_in_a_sandbox(blank: Page, live_server: str) -> None:
    arguments = {"question": RANKING}
    result = called(live_server, "tools/call", name="ask", arguments=arguments)
    view = shown(blank, live_server, result, theme="dark", locale="zh-CN")
    expect(view.locator(".answer-text").first).to_have_text(result["structuredContent"]["response"])
    expect(view.locator("canvas")).to_be_visible()
    assert view.locator("html").evaluate("node => getComputedStyle(node).colorScheme") == "dark"
    view.locator("[data-view=table]").click()
    rows = result["structuredContent"]["query_result"]["rows"]
    expect(view.locator("tbody tr")).to_have_count(len(rows))
    expect(view.locator("html")).to_have_attribute("lang", "zh-CN")
    wait_until(blank, "said.some(({ method }) => method === 'ui/notifications/size-changed')")
    blank.evaluate("tell({ id: 7, method: 'ping' })")
    wait_until(blank, "said.some(({ id, result }) => id === 7 && result)")
    blank.evaluate(
        "tell({ method: 'ui/notifications/host-context-changed', params: { theme: 'light' } })"
    )
    expect(view.locator("html")).to_have_css("color-scheme", "light")


def test_what_the_database_holds_stays_text(blank: Page, live_server: str) -> None:
    rows = {
        "columns": [HOSTILE, "n"],
        "column_types": ["text", "int8"],
        "rows": [[HOSTILE, 9007199254740993], [None, 2]],
        "row_count": 2,
        "is_limited": False,
    }
    answer = {"response": HOSTILE, "query_result": rows, "warnings": [HOSTILE]}
    view = shown(blank, live_server, {"content": [], "structuredContent": answer})
    expect(view.locator(".answer-text")).to_have_text(HOSTILE)
    expect(view.locator(":is(img, #hacked, b)")).to_have_count(0)


def test_a_failure_is_said(blank: Page, live_server: str) -> None:
    arguments = {"sql": "DELETE FROM company"}
    result = called(live_server, "tools/call", name="run_sql", arguments=arguments)
    view = shown(blank, live_server, result)
    expect(view.locator(".answer-text")).to_contain_text("forbidden_keywords")
