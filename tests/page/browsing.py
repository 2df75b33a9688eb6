"""What a reader does with the page, and answers put in the server's place that only trouble or
malice would give.
"""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page, Route, expect

AXE = Path(__file__).parent / "axe" / "axe-4.14.1.min.js"
_VIOLATIONS = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) =>
        nodes.map((node) => `${id}: ${node.html.slice(0, 200)}`));
}"""
RANKING = "查询各服务区的营业收入排行"
ASK = "**/api/v0/ask_agent_stream"
EVENT_STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
# Markup in a text, which shows at the page's root if it ever runs.
HOSTILE = (
    "<img src=x onerror=\"document.documentElement.id='hacked'\">"
    "<script>document.documentElement.id='hacked'</script>&lt;b&gt;"
)


@contextmanager
def opened(
    browser: Browser, base_url: str, *, also: Any = None, **context_options: Any
) -> Iterator[Page]:
    """Yield the page in Chinese, unless options say otherwise.

    Fails the test when a script fails, the content security policy is violated or anything foreign
    is loaded.

    Args:
        also: the beginning of other addresses that the browser may go to; None: of none.
    """
    known = (base_url, also or base_url)
    options: dict[str, Any] = {
        "locale": "zh-CN",
        "reduced_motion": "reduce",
        "viewport": {"width": 1280, "height": 900},
        **context_options,
    }
    context = browser.new_context(**options)
    context.set_default_timeout(60_000)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(f"script: {error}"))
    page.on(
        "console",
        lambda message: (
            problems.append(message.text) if "Security Policy" in message.text else None
        ),
    )
    page.on(
        "request",
        lambda request: None if request.url.startswith(known) else problems.append(request.url),
    )
    try:
        page.goto(base_url + "/")
        yield page
    finally:
        context.close()
    assert not problems, "; ".join(problems)


def load_axe(page: Page) -> None:
    """Add axe-core to the page."""
    page.evaluate(AXE.read_text())


def axe_violations(page: Page) -> list[str]:
    """Return what axe-core finds on the page as it is."""
    found: list[str] = page.evaluate(_VIOLATIONS)
    return found


def wait_until(page: Page, expression: str) -> None:
    """Wait until a script's expression is true.

    The page's content security policy keeps `wait_for_function` from looking more than once.
    """
    for _ in range(300):
        if page.evaluate(f"async () => Boolean(await ({expression}))"):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"it never came true: {expression}")


def ask(page: Page, question: str) -> Locator:
    """Asks and returns the turn, which may still be running."""
    page.locator("#question").fill(question)
    page.locator("#question").press("Enter")
    return page.locator(".turn").last


def start_over(page: Page) -> None:
    """Leaves the conversation for a new one, as the page was when it was opened."""
    if page.locator("dialog[open]").count():
        page.keyboard.press("Escape")
    # In one step of the page: it may hide the button between a look at it and a click on it.
    page.locator("#new-conversation").evaluate("button => button.hidden || button.click()")
    expect(page.locator(".turn")).to_have_count(0)


def expect_state(turn: Locator, state: str) -> None:
    """Wait for `running`, or for the end, which must be `state`."""
    if state == "running":
        expect(turn).to_have_attribute("data-state", state)
        return
    expect(turn).not_to_have_attribute("data-state", "running")
    assert turn.get_attribute("data-state") == state, turn.inner_text()


def port_of(base_url: str) -> int:
    port = urlsplit(base_url).port
    assert port is not None
    return port


_numbers = itertools.count(1)


def frame(envelope: dict[str, Any]) -> str:
    """One event; later ones have higher numbers."""
    return f"id: run_1:{next(_numbers)}\ndata: {json.dumps(envelope, ensure_ascii=False)}\n\n"


def completed(**data: Any) -> dict[str, Any]:
    return {
        "code": 200,
        "success": True,
        "message": "处理完成",
        "data": {"type": "completed", **data},
    }


def progress(**data: Any) -> dict[str, Any]:
    body = {"type": "progress", "node": "classify_question", "status": "running", **data}
    return {"code": 200, "success": True, "message": "正在执行", "data": body}


def tool(call_id: str, status: str, **data: Any) -> dict[str, Any]:
    body = {
        "type": "tool",
        "node": "think",
        "call_id": call_id,
        "name": "run_sql",
        "status": status,
        **data,
    }
    return {"code": 200, "success": True, "message": "工具", "data": body}


def answer_with(page: Page, *frames: str) -> None:
    """Every question gets these frames."""
    body = "retry: 3000\n\n" + "".join(frames)
    headers = {"Content-Type": "text/event-stream; charset=utf-8"}
    page.route(ASK, lambda route: route.fulfill(status=200, headers=headers, body=body))


def answer_as(reply: dict[str, Any], route: Route) -> None:
    """Handle a request by giving `reply`."""
    route.fulfill(**reply)


def result(columns: list[str], types: list[str], rows: str, *, row_count: int, **more: Any) -> str:
    """Return a completed frame with rows given as JSON text, so that its numbers keep their
    digits.
    """
    body = {
        "columns": columns,
        "column_types": types,
        "rows": "@",
        "row_count": row_count,
        "is_limited": False,
        **more,
    }
    answer = completed(response="好", response_type="DATABASE", sql="SELECT 1", query_result=body)
    return frame(answer).replace('"@"', rows)


def expect_no_markup(page: Page) -> None:
    expect(page.locator("#turns :is(img, script, b, iframe)")).to_have_count(0)
    expect(page.locator("#hacked")).to_have_count(0)
