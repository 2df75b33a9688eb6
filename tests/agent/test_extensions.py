"""Extension points: how extensions are registered, what each of Citu's own does, and what happens
when one fails.
"""

import asyncio
import json
import logging
import queue
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from agent.bootstrap import bootstrap
from agent.extensions.loading import ExtensionError
from agent.extensions.notes_file import NotesFile
from agent.extensions.points import EndedRun, ModelRequest
from agent.extensions.response_cache import ResponseCache
from agent.extensions.span_timing import timed
from agent.extensions.turn_budget import TurnBudget
from agent.flows.flow import UserQuestion, ask_user
from agent.flows.step_spans import steps_spanned_by, with_step_spans
from agent.question import Question
from app_config import Settings
from common.actor import NOBODY
from common.errors import Forbidden
from common.text import Text
from common.values import Turn, Usage
from databases.demo import SEMANTIC_FILE
from llm import Completion, Message, ToolCall
from tests.support.asking import SYNC, Asking, stable
from tests.support.http_stream import post_json
from tests.support.live import serving_afresh
from tests.support.openai_server import Called, OpenAiServer, Reply, openai_server

__all__ = ["openai_server"]

MODULE = "tests_own_extensions"


class Watching:
    """A hook that writes down what it is told, and forbids what it is asked to."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def before_question(self, question: Question) -> None:
        """Forbids one question, and breaks at another."""
        self.told.append(("before", question.question))
        if question.question == "forbidden":
            raise Forbidden(Text("不行", "No"))
        if question.question == "broken":
            raise RuntimeError("secret")

    async def after_question(self, question: Question, ended: EndedRun) -> None:
        """Breaks after having been told."""
        self.told.append(("after", question.question, ended.error_type))
        raise RuntimeError("after")

    async def before_tool(
        self, question: Question, name: str, arguments: Mapping[str, Any]
    ) -> None:
        """No tools here."""

    async def after_tool(self, question: Question, name: str, error_type: str | None) -> None:
        """No tools here."""


class Claiming:
    """A workflow handler that claims questions beginning with `!`, and breaks; at `?` it breaks at
    once.
    """

    def claims(self, question: Question) -> bool:
        """Those."""
        if question.question.startswith("?"):
            raise Forbidden(Text("不行", "No"))
        return question.question.startswith("!")

    async def answer(self, question: Question) -> Mapping[str, Any]:
        """Breaks, or gives no answer."""
        if question.question == "!nothing":
            return {}
        raise RuntimeError("secret")


@pytest.fixture(scope="module")
def demo(demo_url: str) -> Settings:
    """The demo with its semantic file."""
    return Settings(database_url=demo_url, semantic_file=str(SEMANTIC_FILE))


@pytest.fixture
def own() -> Iterator[ModuleType]:
    """A module with extensions."""
    module = ModuleType(MODULE)
    watching = Watching()
    module.__dict__.update(
        watching=watching, watch=lambda _: watching, claim=lambda _: Claiming(), number=lambda _: 7
    )
    module.__dict__["broken"] = lambda _: 1 / 0
    sys.modules[MODULE] = module
    yield module
    del sys.modules[MODULE]


# ------------------------------------------------------------------------------
# registering


@pytest.mark.parametrize(
    ("setting", "address", "said"),
    [
        (
            "LIFECYCLE_HOOKS",
            "nowhere.at.all:hook",
            "LIFECYCLE_HOOKS: nowhere.at.all can't be imported",
        ),
        (
            "LLM_MIDDLEWARES",
            "agent.extensions.trace:nothing",
            "LLM_MIDDLEWARES: agent.extensions.trace has no nothing",
        ),
        (
            "WORKFLOW_HANDLERS",
            "agent.extensions.commands",
            "WORKFLOW_HANDLERS: agent.extensions.commands is not written",
        ),
        (
            "WORKFLOW_HANDLERS",
            f"{MODULE}:number",
            "WORKFLOW_HANDLERS: .* gives a int, which is no WorkflowHandler",
        ),
        (
            "CONVERSATION_FILTERS",
            f"{MODULE}:broken",
            "CONVERSATION_FILTERS: .* can't be made: division by zero",
        ),
        (
            "TOOL_CONTEXT_ENRICHERS",
            f"{MODULE}:__name__",
            "TOOL_CONTEXT_ENRICHERS: .* can't be called",
        ),
        (
            "OBSERVABILITY_PROVIDER",
            "agent.extensions.span_log:span_log, agent.extensions.span_log:span_log",
            "OBSERVABILITY_PROVIDER names more than one",
        ),
    ],
)
@pytest.mark.usefixtures("own")
def test_what_can_not_be_used_stops_the_start(
    demo: Settings, setting: str, address: str, said: str
) -> None:
    with pytest.raises(ExtensionError, match=said):
        bootstrap(replace(demo, **{setting.lower(): address}))  # type: ignore[arg-type]


def test_notes_that_can_not_be_read_stop_the_start(demo: Settings, tmp_path: Path) -> None:
    with pytest.raises(ExtensionError, match="LLM_CONTEXT_ENHANCERS: .*notes.md"):
        bootstrap(replace(demo, notes_file=str(tmp_path / "notes.md")))


def test_without_extensions_everything_is_answered(demo: Settings) -> None:
    kinds = ("workflow_handlers", "lifecycle_hooks", "llm_middlewares", "conversation_filters")
    more = ("tool_context_enrichers", "llm_context_enhancers", "observability_provider")
    none: dict[str, Any] = dict.fromkeys((*kinds, *more), "")
    with Asking(demo, None, **none) as asking:
        assert asking.sync({"question": "有多少个服务区？"})[0] == 200
        status, envelope = asking.sync({"question": "/help", "lang": "en"})
    assert (status, envelope["data"]["agent"]) == (200, "ask")


# ------------------------------------------------------------------------------
# hooks


def test_a_hook_may_stop_a_question_and_is_told_of_its_end(demo: Settings, own: ModuleType) -> None:
    with Asking(demo, lifecycle_hooks=f"{MODULE}:watch") as asking:
        answered = asking.sync({"question": "有多少个服务区？"})
        forbidden, broken = (
            asking.sync({"question": question, "lang": "en"})
            for question in ("forbidden", "broken")
        )
        last = asking.stream({"question": "forbidden", "lang": "en"})[-1]
    assert answered[0] == 200
    assert (forbidden[0], forbidden[1]["data"]["error"]) == (403, "No")
    assert last["data"]["error_type"] == "forbidden"
    assert broken[0] == 500
    assert "secret" not in json.dumps(broken[1])
    ends = [told for told in own.watching.told if told[0] == "after"]
    assert ends == [
        ("after", "有多少个服务区？", None),
        ("after", "forbidden", "forbidden"),
        ("after", "broken", "internal_error"),
        ("after", "forbidden", "forbidden"),
    ]


def test_one_user_asks_so_often_a_day_whichever_key_asks(demo: Settings) -> None:
    with Asking(demo, questions_per_day=2) as asking:
        ann = [asking.sync({"question": "你好", "user_id": "ann"})[0] for _ in range(3)]
        ben = asking.sync({"question": "你好", "user_id": "ben"})[0]
        last = asking.sync({"question": "你好", "user_id": "ann"})[1]["data"]
    assert (ann, ben) == ([200, 200, 429], 200)
    assert last["error_type"] == "rate_limited"
    assert last["retry_after_s"] > 0


# ------------------------------------------------------------------------------
# workflows


@pytest.mark.usefixtures("own")
def test_a_workflow_that_breaks_does_not_fall_through_to_the_model(
    demo: Settings, openai_server: OpenAiServer
) -> None:
    with Asking(demo, openai_server, workflow_handlers=f"{MODULE}:claim") as asking:
        asked = (
            {"question": question, "lang": "en"}
            for question in ("!delete everything", "!nothing", "?")
        )
        ended = [
            (status, envelope["data"]["error_type"]) for status, envelope in map(asking.sync, asked)
        ]
        last = asking.stream({"question": "?", "lang": "en"})[-1]["data"]
    assert ended == [(500, "internal_error"), (500, "internal_error"), (403, "forbidden")]
    assert (last["type"], last["error"]) == ("error", "No")
    assert not [
        request for request in openai_server.requests if request.path.endswith("/chat/completions")
    ]


@pytest.mark.parametrize("agent", ["ask", "tool_loop", "tool_graph"])
@pytest.mark.parametrize(
    ("question", "said"), [("/help", "/report"), ("/schema shop", "shop"), ("/nope x", "/help")]
)
def test_commands_need_no_model_in_any_agent(
    demo: Settings, openai_server: OpenAiServer, agent: str, question: str, said: str
) -> None:
    with Asking(demo, openai_server) as asking:
        status, envelope = asking.sync({"question": question, "lang": "en", "agent": agent})
        last = asking.stream({"question": question, "lang": "en", "agent": agent})[-1]
    assert status == 200
    assert said in envelope["data"]["response"]
    assert stable(last) == stable(envelope)
    assert not [
        request for request in openai_server.requests if request.path.endswith("/chat/completions")
    ]


def test_listed_reports_are_offered(demo: Settings) -> None:
    with Asking(demo) as asking:
        _, listed = asking.sync({"question": "/report", "lang": "en"})
        offered = listed["data"]["follow_ups"]
        _, answer = asking.sync({"question": offered[0]})
    assert offered == ["service area overview"]
    assert answer["data"]["query_result"]["row_count"] > 10


@pytest.mark.parametrize(
    "question",
    ["服务区经营概览", "Service area overview?", "/report service_area_overview", "/报表 经营概览"],
)
def test_a_report_is_asked_by_its_names(demo: Settings, question: str) -> None:
    with Asking(demo) as asking:
        _, envelope = asking.sync({"question": question})
        conversation = envelope["data"]["conversation_id"]
        turns = asking.client.get(f"/api/v0/conversations/{conversation}").get_json()["data"][
            "turns"
        ]
    data = envelope["data"]
    assert data["query_result"]["row_count"] > 10
    assert data["query_result"]["columns"] == ["service_area_name", "revenue", "orders"]
    assert [turn["sql"] for turn in turns] == [data["sql"]]


def test_reset_forgets_the_conversation_and_nothing_else(demo: Settings) -> None:
    with Asking(demo) as asking:
        _, first = asking.sync({"question": "有多少个服务区？", "user_id": "ann"})
        _, other = asking.sync({"question": "有多少个服务区？", "user_id": "ann"})
        places = [one["data"]["conversation_id"] for one in (first, other)]
        asking.sync({"question": "/reset", "conversation_id": places[0], "user_id": "ann"})
        asking.sync({"question": "/reset", "conversation_id": places[1], "user_id": "ben"})
        counts = [
            len(
                asking.client.get(f"/api/v0/conversations/{place}?user_id=ann").get_json()["data"][
                    "turns"
                ]
            )
            for place in places
        ]
    assert counts == [0, 1]


# ------------------------------------------------------------------------------
# middlewares


def test_a_wrong_address_of_the_second_model_is_named(
    demo: Settings, openai_server: OpenAiServer
) -> None:
    with pytest.raises(ValueError, match="SECOND_MODEL_BASE_URL is not a URL"):
        Asking(demo, openai_server, second_model="spare", second_model_base_url="localhost:8000")


def test_a_second_model_answers_when_the_first_fails(
    demo: Settings, openai_server: OpenAiServer
) -> None:
    asked: list[str] = []

    def script(request: Any) -> Reply:
        asked.append(request.params["model"])
        return (
            Reply(status=500)
            if request.params["model"] == "scripted"
            else Reply("Hello from the second.")
        )

    openai_server.default = script
    with Asking(demo, openai_server, second_model="spare", llm_max_retries=0) as asking:
        _, envelope = asking.sync({"question": "Tell me a joke", "routing_mode": "chat_direct"})
        frames = asking.stream({"question": "Tell me a joke", "routing_mode": "chat_direct"})
    assert asked[:2] == ["scripted", "spare"]
    assert envelope["data"]["response"] == "Hello from the second."
    assert stable(frames[-1]) == stable(envelope)


def test_the_same_messages_are_answered_from_before(
    demo: Settings, openai_server: OpenAiServer
) -> None:
    openai_server.default = lambda _: Reply("Hello.")
    body = {"question": "Tell me a joke", "routing_mode": "chat_direct"}
    with Asking(demo, openai_server, llm_cache_size=10) as asking:
        first, again = (asking.sync(body)[1]["data"] for _ in range(2))
        other = asking.sync({**body, "question": "Tell me another"})[1]["data"]
        tokens = [
            frame["data"]["text"]
            for frame in asking.stream(body)
            if frame["data"]["type"] == "token"
        ]
    assert [one["usage"]["llm_calls"] for one in (first, again, other)] == [1, 0, 1]
    assert again["response"] == "".join(tokens) == "Hello."


def test_the_cache_keeps_whole_texts_for_a_while() -> None:
    now = 0.0
    cache = ResponseCache(2, 10.0, clock=lambda: now)
    replies = {
        "text": Completion("Hello", Usage(1, 5, 1)),
        "cut": Completion("Hel", Usage(1), finish_reason="length"),
        "call": Completion("", Usage(1), tool_calls=(ToolCall("c", "count", {}),)),
    }

    async def cost(text: str) -> int:
        async def ask(request: ModelRequest) -> Completion:
            return replies[request.messages[0]["content"] or ""]

        message: Message = {"role": "user", "content": text}
        return (await cache(ModelRequest([message]), ask)).usage.llm_calls

    assert [asyncio.run(cost(text)) for text in ("text", "text", "cut", "cut", "call", "call")] == [
        1,
        0,
        1,
        1,
        1,
        1,
    ]
    now = 10.0
    assert asyncio.run(cost("text")) == 1


# ------------------------------------------------------------------------------
# what is remembered


def _turn(answer: str) -> Turn:
    return Turn("run_1", "q", "CHAT", "hybrid", answer, "2026-01-01T00:00:00.000Z")


@pytest.mark.parametrize(
    ("turns", "tokens", "kept"), [(2, 0, "bc"), (10, 0, "abc"), (10, 1, "c"), (10, 2, "bc")]
)
def test_a_question_looks_back_on_the_latest_turns(turns: int, tokens: int, kept: str) -> None:
    said = tuple(map(_turn, "abc"))  # a token each
    found = TurnBudget(turns, tokens)(Question("?"), said)
    assert "".join(turn.answer for turn in found) == kept


def test_models_are_told_the_notes_that_fit_the_question(
    demo: Settings, openai_server: OpenAiServer, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text(
        "# Parking\n\nA parking space counts as free.\n\n# Coffee\n\nCoffee is brewed daily.\n",
        "utf-8",
    )
    openai_server.default = lambda _: Reply("```sql\nSELECT 1 AS n\n```")
    with Asking(demo, openai_server, notes_file=str(notes), enable_result_summary=False) as asking:
        asking.sync(
            {"question": "How is parking space counted?", "routing_mode": "database_direct"}
        )
    asked = [
        request.messages
        for request in openai_server.requests
        if request.path.endswith("/chat/completions")
    ]
    assert "A parking space counts as free." in asked[0][-1]["content"]
    assert "parking space counts" not in asked[0][0]["content"]
    assert "Coffee is brewed daily" not in json.dumps(asked)


def test_changed_notes_are_read_again_and_broken_ones_are_not(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Coffee\n\nIs black.\n", "utf-8")
    notes = NotesFile(path)
    path.write_text("# Coffee\n\nIs brown and hot.\n", "utf-8")
    assert [one.text for one in asyncio.run(notes("coffee", NOBODY))] == ["Is brown and hot."]
    path.write_bytes(b"\xff\xfe broken")
    assert [one.text for one in asyncio.run(notes("coffee", NOBODY))] == ["Is brown and hot."]


def test_the_audit_log_names_the_request_of_each_call_and_its_statements(
    demo: Settings, openai_server: OpenAiServer, tmp_path: Path
) -> None:
    openai_server.replies(
        Reply(calls=[Called("run_sql", {"sql": "SELECT 1 AS n"}, "c1")]), Reply("It is 1.")
    )
    body, headers = {"question": "one?", "agent": "tool_loop"}, {"X-Request-ID": "trace-7"}
    with Asking(demo, openai_server, audit_log=str(tmp_path / "audit.jsonl")) as asking:
        assert asking.client.post(SYNC, json=body, headers=headers).status_code == 200
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    called = [line for line in lines if line.get("call_id") == "c1"]
    assert [line["source"] for line in called] == ["ask", "tool"]
    assert [line["metadata"] for line in called] == [{"trace_id": "trace-7"}] * 2


# ------------------------------------------------------------------------------
# measuring


def test_spans_are_logged(
    demo: Settings, openai_server: OpenAiServer, caplog: pytest.LogCaptureFixture
) -> None:
    openai_server.replies(Reply("```sql\nSELECT 1 AS n\n```"))
    caplog.set_level(logging.INFO, logger="agent.extensions.span_log")
    with Asking(
        demo, openai_server, observability_provider="agent.extensions.span_log:span_log"
    ) as asking:
        asking.sync({"question": "how many?", "routing_mode": "database_direct"})
    spans = [vars(record)["span"] for record in caplog.records if record.getMessage() == "span"]
    assert spans.count("model_call") == 1
    assert {"question", "model_call", "statement"} <= set(spans)
    assert spans[-1] == "question"
    assert spans.count("step") == len({"classify", "generate", "execute", "format"})


def test_a_question_to_the_user_is_no_failure_of_its_step() -> None:
    class Answers(TypedDict):
        answer: str

    async def ask(state: Answers) -> Answers:  # noqa: ARG001 - a node's
        return {"answer": ask_user(UserQuestion("text", "Which one?"))}

    graph = StateGraph(Answers)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    spanned = with_step_spans(graph.compile(checkpointer=InMemorySaver()))
    outcomes: list[tuple[str, str]] = []

    def span(node: str) -> AbstractContextManager[None]:
        return timed(lambda _seconds, outcome: outcomes.append((node, outcome)))

    async def asked_and_answered() -> tuple[Any, Any]:
        config: RunnableConfig = {"configurable": {"thread_id": "t"}}
        with steps_spanned_by(span):
            asked = await spanned.ainvoke({"answer": ""}, config)
            return asked, await spanned.ainvoke(Command(resume="this"), config)

    asked, answered = asyncio.run(asked_and_answered())
    assert asked["__interrupt__"][0].value["prompt"] == "Which one?"
    assert answered == {"answer": "this"}
    assert outcomes == [("ask", "done")] * 2


class Told(AsyncCallbackHandler):
    """Notes what begins and ends, each with what it was given."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, str]] = []
        self.ended = 0

    async def on_chain_start(self, *given: Any, **more: Any) -> None:
        """Note it."""
        self.begun.append((more["name"], str(given)))

    async def on_chain_end(self, *given: Any, **more: Any) -> None:
        """Count it."""
        self.ended += 1


@pytest.mark.parametrize("agent", ["ask", "tool_loop", "tool_graph"])
def test_callbacks_of_graphs_are_told_of_every_node(
    demo: Settings, openai_server: OpenAiServer, own: ModuleType, agent: str
) -> None:
    told = own.__dict__["told"] = Told()
    own.__dict__["tell"] = lambda _: told
    openai_server.default = lambda _: Reply("Nothing to add.")
    with Asking(demo, openai_server, graph_callbacks=f"{MODULE}:tell") as asking:
        status, envelope = asking.sync(
            {"question": "hello", "routing_mode": "chat_direct", "agent": agent}
        )
        asked = {name for name, given in told.begun if "hello" in given}
        names = {name for name, _ in told.begun}
    steps = set(envelope["data"]["timings_ms"]) - {"total"}
    assert (status, steps <= names, bool(asked)) == (200, True, True)
    assert told.ended == len(told.begun)


@pytest.mark.slow
def test_the_variables_of_langsmith_send_its_traces(
    demo_url: str, openai_server: OpenAiServer, tmp_path: Path
) -> None:
    received: queue.Queue[bytes] = queue.Queue()

    class LangSmith(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)  # what it can do isn't told, so that the least is assumed

        def do_POST(self) -> None:
            received.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_PATCH = do_POST  # noqa: N815 - the library's name

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    openai_server.default = lambda _: Reply("Hello.")
    with ThreadingHTTPServer(("127.0.0.1", 0), LangSmith) as langsmith:
        thread = threading.Thread(target=langsmith.serve_forever, args=(0.01,))
        thread.start()
        variables = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_API_KEY": "test",
            "LANGSMITH_ENDPOINT": f"http://127.0.0.1:{langsmith.server_port}",
            "DATABASE_URL": demo_url,
            "DATA_DIR": str(tmp_path),
            "OPENAI_API_KEY": "test",
            "OPENAI_BASE_URL": openai_server.url,
            "OPENAI_MODEL": "scripted",
        }
        try:
            # Not a fork: the library reads its variables once.
            with serving_afresh(tmp_path / "log", **variables) as citu:
                body = {"question": "hello", "routing_mode": "chat_direct"}
                assert post_json(citu.port, SYNC, body)[0] == 200
                said = b""
                while b"agent_chat" not in said or b"format_response" not in said:
                    said += received.get(timeout=60)
        finally:
            langsmith.shutdown()
            thread.join()
    assert b"hello" in said
