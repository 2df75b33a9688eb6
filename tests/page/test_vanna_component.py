"""Vanna's own web component, `<vanna-chat>`, over a running Citu, in a page without a content
security policy.

The component is not part of Citu: its bundle, plain or gzipped, is looked for under the path in
CITU_VANNA_COMPONENT, then in tests/clients/. It is built from the public sources of Vanna 2
(frontends/webcomponent).
"""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from api.vanna.chunks import ChunkEnvelope, Translation
from common.envelope import to_json
from tests.page.browsing import EVENT_STREAM, port_of
from tests.support.http_stream import delete_json, get_json
from tests.support.live import Citu, serving
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.vanna_events import completed, progress, result, token, tool

SSE = "/api/vanna/v2/chat_sse"
MOMENT = "2026-11-22T10:00:00.000+00:00"
# Fires wherever it is read as HTML; `fire` is a function of the page.
IMAGE = "<img src=x onerror=fire()>"
TEXT = (
    f"{IMAGE}<script>fire()</script> **b** [l](javascript:fire()) <a "
    "href=javascript:fire()>a</a> &lt;b&gt;"
)
HOST = """<!doctype html><meta charset="utf-8"><title>Host</title>
<script>
console.log = console.trace = () => {};  // the component writes every chunk there
window.answered = 0;
addEventListener("chunk-received", ({detail}) => {
  // The last part of every answer. The event comes just before it is shown.
  if (detail.chunk.rich.type === "chat_input_update") setTimeout(() => window.answered++);
});
window.fired = []; window.fire = () => window.fired.push(new Error().stack);
const ask = window.fetch.bind(window);
window.cutAfter = 0;  // chunks of bytes of the next stream, after which its connection breaks
window.fetch = async (address, options) => {
  if (!window.cutAfter || !String(address).endsWith("chat_sse")) return ask(address, options);
  let left = window.cutAfter; window.cutAfter = 0;
  const connection = new AbortController();
  const answer = await ask(address, {...options, signal: connection.signal});
  const reader = answer.body.getReader();
  return new Response(new ReadableStream({async pull(stream) {
    if (left-- <= 0) { connection.abort(); stream.error(new TypeError("cut")); return; }
    const {value, done} = await reader.read();
    done ? stream.close() : stream.enqueue(value);
  }}, {highWaterMark: 0}));
};
</script>
<script type="module" src="/__vanna.js"></script>
<vanna-chat api-base="" sse-endpoint="/api/vanna/v2/chat_sse"
  ws-endpoint="/api/vanna/v2/chat_websocket"
  poll-endpoint="/api/vanna/v2/chat_poll"></vanna-chat>"""


@pytest.fixture(scope="module")
def component() -> bytes:
    """The bundle; tests that need it are skipped where there is none."""
    folder = Path(__file__).parent.parent / "clients"
    named = [
        os.environ.get("CITU_VANNA_COMPONENT", ""),
        *(str(folder / f"vanna-components.js{end}") for end in (".gz", "")),
    ]
    path = next((Path(name) for name in named if name and Path(name).is_file()), None)
    if path is None:
        pytest.skip("Vanna's web component is not here: name its bundle in CITU_VANNA_COMPONENT")
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


class Chat:
    """The component on a page of its own, beside Citu's address."""

    def __init__(self, page: Page, base_url: str) -> None:
        self.page = page
        self.base_url = base_url
        self.asked: list[
            dict[str, Any]
        ] = []  # bodies of requests to Citu, in order, with their `path`
        page.on("request", self._note)

    def _note(self, request: Any) -> None:
        if "/api/vanna/" in request.url:
            self.asked.append(
                {**json.loads(request.post_data), "path": request.url.rsplit("/", 1)[1]}
            )

    def find(self, selector: str) -> Locator:
        return self.page.locator(f"vanna-chat {selector}")

    def ask(self, question: str) -> None:
        """Types a question, and waits until the component has its whole answer."""
        with self.answering():
            self.find("textarea").fill(question)
            self.find("textarea").press("Enter")

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Wait at the end until the component shows the whole answer to what was done."""
        before = self.page.evaluate("window.answered")
        yield
        self.page.wait_for_function(f"window.answered > {before}")

    @property
    def fired(self) -> list[str]:
        return list(self.page.evaluate("window.fired"))


@contextmanager
def chatting(
    browser: Browser,
    component: bytes,
    base_url: str,
    *,
    errors: int = 0,
    stream: Callable[[Route], None] | None = None,
) -> Iterator[Chat]:
    """The component, once it has been greeted. Fails the test when the console shows errors.

    Args:
        stream: answers in the service's place.
    """
    context = browser.new_context(
        locale="zh-CN", reduced_motion="reduce", viewport={"width": 1200, "height": 900}
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: problems.append(message.text) if message.type == "error" else None,
    )
    page.route(
        "**/__vanna.html",
        lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=HOST),
    )
    page.route(
        "**/__vanna.js",
        lambda route: route.fulfill(content_type="text/javascript; charset=utf-8", body=component),
    )
    if stream is not None:
        page.route(f"**{SSE}", stream)
    chat = Chat(page, base_url)
    try:
        page.goto(f"{base_url}/__vanna.html")
        page.wait_for_function(f"window.answered > 0 || {str(stream is not None).lower()}")
        yield chat
    finally:
        context.close()
    assert len(problems) == errors, problems


def test_a_conversation(browser: Browser, component: bytes, live_server: str) -> None:
    with chatting(browser, component, live_server) as chat:
        expect(chat.find(".rich-text")).to_contain_text("您好")
        assert chat.find(".rich-button").count() == 4
        with chat.answering():
            chat.find(".rich-button").first.click()
        expect(chat.find(".rich-dataframe tbody tr")).to_have_count(41)
        expect(chat.find(".rich-text .text-content").nth(1)).to_contain_text("共 41 条记录")
        expect(chat.find(".rich-chart .main-svg").first).to_be_visible()
        expect(chat.find(".rich-chart .gtitle")).to_have_text("营业收入合计（按服务区名称）")
        expect(chat.find("vanna-progress-tracker .progress-summary")).to_have_text("4/4 completed")
        expect(chat.find("textarea")).to_be_enabled()
        chat.find("th").nth(1).click()  # sorts by it
        expect(chat.find(".rich-dataframe tbody td").nth(1)).not_to_have_text("")

        chat.ask("DROP TABLE shop")
        expect(chat.find(".rich-text").last).to_contain_text("❌")
        expect(chat.find("vanna-status-bar .status-indicator.error")).to_be_visible()

        with chat.answering():
            chat.find(".rich-button").filter(has_text="👍").click()
        expect(chat.find(".rich-text").last).to_contain_text("感谢反馈")
        assert [body["path"] for body in chat.asked] == ["chat_sse"] * 4
        assert len({body["conversation_id"] for body in chat.asked}) == 1
    forget_examples(port_of(live_server))


def forget_examples(port: int) -> None:
    """Forgets what was learnt, because it would answer other tests' questions."""
    for example in get_json(port, "/api/v0/knowledge/examples?limit=100")[1]["data"]["examples"]:
        if example["author"] == "anonymous":
            assert (
                delete_json(port, f"/api/v0/knowledge/examples/{example['example_id']}")[0] == 200
            )


# ------------------------------------------------------------------------------
# broken streams


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


HOSTILE = f"""
CREATE TABLE "{IMAGE}" ("{IMAGE}" text, "<svg onload=fire()>" numeric,
    "'""\\ onclick=fire()" numeric);
INSERT INTO "{IMAGE}" VALUES ('{IMAGE}', 9007199254740993, 1), ('<script>fire()</script>', 2, 2),
    ('&lt;b&gt;', 3, 3);
COMMENT ON TABLE "{IMAGE}" IS '{IMAGE}';
COMMENT ON COLUMN "{IMAGE}"."{IMAGE}" IS '<svg onload=fire()>：{IMAGE}';
"""
SUM = """sum("'""\\ onclick=fire()")"""
QUERY = (
    f'SELECT "{IMAGE}", "<svg onload=fire()>" AS "{IMAGE}=", {SUM} AS "x" FROM "{IMAGE}" '
    "GROUP BY 1, 2"
)


@pytest.fixture(scope="module")
def hostile(
    model: OpenAiServer,
    make_database: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Citu]:
    """A service over tables with hostile names, comments and values; its model is no better."""
    names = (Path(__file__).parent.parent / "fixtures/hostile_names.sql").read_text()
    folder = tmp_path_factory.mktemp("hostile")
    settings = {
        "DATABASE_URL": make_database(names + HOSTILE),
        "AUDIT_LOG": "off",
        "ROUTING_MODE": "database_direct",
    }
    with serving(folder / "log", model=model, **settings) as citu:
        yield citu


def test_a_broken_stream_goes_on_by_the_other_endpoint(
    browser: Browser, component: bytes, hostile: Citu, model: OpenAiServer
) -> None:
    gate, first = Gate(), len(model.requests)
    model.replies(Reply('SELECT "x" FROM a."b.c"', gate=gate))
    with chatting(browser, component, f"http://127.0.0.1:{hostile.port}") as chat:
        chat.page.evaluate("window.cutAfter = 1")
        with chat.answering():
            chat.find("textarea").fill("list b.c, please")
            with chat.page.expect_request("**/chat_poll"):
                chat.find("textarea").press("Enter")
            assert gate.reached.wait(30)
            gate.open()
        expect(chat.find(".text-code")).to_have_count(1)
        expect(chat.find(".rich-button-group").last).to_contain_text("👍")
        starter, cut, again = chat.asked
        assert (cut["path"], again["path"]) == ("chat_sse", "chat_poll")
        assert cut["request_id"] == again["request_id"] != starter["request_id"]
    _, kept = get_json(hostile.port, f"/api/v0/conversations/{cut['conversation_id']}")
    assert [turn["question"] for turn in kept["data"]["turns"]] == ["list b.c, please"]
    assert (
        sum("b.c" in json.dumps(request.messages[-1]) for request in model.requests[first:]) == 1
    ), "the model wrote SQL once"


# ------------------------------------------------------------------------------
# no script


def poke(chat: Chat) -> None:
    """Uses everything there is to use, as somebody does who looks at an answer."""
    for found in chat.find("th.sortable, .status-card-metadata-summary").all():
        found.evaluate("element => element.click()")
    for found in chat.find(".search-input").all():
        found.evaluate(
            "element => { element.value = 'i'; element.dispatchEvent(new Event('input')); }"
        )
    for found in chat.find(".rich-chart").all():
        box = found.evaluate(
            "element => { element.scrollIntoView({behavior: 'instant'}); const r = "
            "element.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }"
        )
        for part in range(1, 8):  # what is pointed at is labelled
            chat.page.mouse.move(box[0] + box[2] * part / 8, box[1] + min(box[3], 400) * 0.6)


def test_hostile_names_values_and_words_are_only_shown(
    browser: Browser, component: bytes, hostile: Citu, model: OpenAiServer
) -> None:
    with chatting(browser, component, f"http://127.0.0.1:{hostile.port}") as chat:
        model.replies(Reply(QUERY), Reply(pieces=[TEXT[:30], 0.1, TEXT[30:]]))
        chat.ask(IMAGE)
        expect(chat.find(".rich-text .text-content").last).to_have_text(TEXT)
        expect(chat.find(".rich-dataframe tbody tr")).to_have_count(3)
        expect(chat.find(".rich-dataframe tbody")).to_contain_text("9007199254740993")
        expect(chat.find(".rich-dataframe tbody")).to_contain_text(IMAGE)
        poke(chat)
        model.replies(*[Reply(f'SELECT * FROM "{IMAGE}<i>"')] * 2)
        chat.ask("again")
        expect(chat.find(".rich-text").last).to_contain_text(IMAGE)
        assert chat.fired == []
        assert [chat.find(tag).count() for tag in ("img", "script", "a")] == [0, 0, 0]


def played(*events: dict[str, Any]) -> Callable[[Route], None]:
    """Answers every question with these events as Citu translates them."""
    translation = Translation(ChunkEnvelope("c", "r", "run_1"), "en", IMAGE, "run_1", MOMENT)
    lines = [to_json(chunk) for event in events for chunk in translation.chunks_of(event)]
    body = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
    return lambda route: route.fulfill(headers=EVENT_STREAM, body=body)


def test_no_part_of_an_answer_is_html(browser: Browser, component: bytes, live_server: str) -> None:
    rows = result(
        [TEXT, TEXT, "__proto__", "constructor", '"]'],
        [[TEXT, 1, TEXT, TEXT, TEXT], [IMAGE, 2, "", None, 2**60]],
    )
    rows |= {
        "labels": [TEXT, TEXT, "__proto__", "constructor", '"]'],
        "units": [TEXT, None, None, None, None],
    }
    rows["columns"][1] = "y"
    chart = {"type": "bar", "x": TEXT, "y": "y", "series": "__proto__", "title": TEXT, "unit": TEXT}
    ids = {"conversation_id": "c", "run_id": "run_1", "timestamp": MOMENT}
    events = [
        {**progress(TEXT, "running"), "display_name": TEXT, "details": TEXT, "sub_status": TEXT},
        token(TEXT),
        tool(
            "call_1",
            "running",
            display_name=TEXT,
            arguments={TEXT: TEXT, "deep": {TEXT: [TEXT]}},
            summary=TEXT,
        ),
        tool(
            "call_1",
            "done",
            display_name=TEXT,
            arguments={TEXT: TEXT, "deep": {TEXT: [TEXT]}},
            summary=TEXT,
        ),
        {
            "type": "result",
            "call_id": "call_1",
            "sql": TEXT,
            "query_result": rows,
            "chart": chart,
            **ids,
        },
        completed(
            response=TEXT,
            sql=TEXT,
            query_result=rows,
            warnings=[TEXT, IMAGE],
            follow_ups=[TEXT],
            choices=[TEXT],
        )
        | {"chart": {**chart, "type": "pie", "series": None}},
        {"type": "question", "interrupt_id": "i-1", "prompt": TEXT, "choices": [TEXT], **ids},
        {"type": "error", "error": TEXT, "error_type": TEXT, "retryable": True, **ids},
    ]
    with chatting(browser, component, live_server, stream=played(*events)) as chat:
        expect(chat.find(".rich-chart .main-svg").first).to_be_visible()
        expect(chat.find(".rich-chart .gtitle").first).to_contain_text("＜img")
        poke(chat)
        with chat.answering():
            chat.find(".rich-button").first.click()
        expect(chat.find("vanna-message")).to_contain_text(IMAGE)
        assert chat.fired == []
        assert [chat.find(tag).count() for tag in ("img", "script", "a")] == [0, 0, 0]
        expect(chat.find(".rich-dataframe").first).to_contain_text(str(2**60))


def test_the_page_notices_html(browser: Browser, component: bytes, live_server: str) -> None:
    """What the tests above rely on: a part with HTML in one of the unsafe fields does fire here."""
    rich = {
        "id": "1",
        "type": "dataframe",
        "lifecycle": "create",
        "data": {"title": IMAGE, "data": [], "columns": []},
    }
    body = f"data: {json.dumps({'rich': rich})}\n\ndata: [DONE]\n\n"
    with chatting(
        browser,
        component,
        live_server,
        errors=1,
        stream=lambda route: route.fulfill(headers=EVENT_STREAM, body=body),
    ) as chat:
        chat.page.wait_for_function("window.fired.length > 0")
