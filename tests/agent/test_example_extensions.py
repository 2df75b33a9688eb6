"""The examples of extensions, registered by their settings as operators register them."""

import json
import socket
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from agent.bootstrap import bootstrap
from agent.extensions.answer_cards import kind_of
from agent.extensions.audit_delivery import AuditDelivery
from agent.extensions.loading import ExtensionError
from agent.extensions.points import Card, FailedCall, Recovery
from agent.question import Question
from agent.tools.registry import Use
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult
from agent.tools.tool_groups import InvalidToolGroups
from app_config import Settings
from common.actor import Actor
from common.audit import Occasion
from common.errors import DatabaseUnavailable, Forbidden
from common.runtime import run
from common.text import Text
from llm import ToolCall
from tests.support.asking import Asking, stable
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer, openai_server
from tests.support.tool_scripts import calling, following, results

__all__ = ["openai_server"]

MODULE = "tests_own_points"
RANKING = "查询各服务区的营业收入排行"
DONE = Text("完成", "Done")


class Nothing(Arguments):
    """No arguments."""

    word: str = ""


class Flaky:
    """A tool that fails until it has been called often enough, and a strategy that is told."""

    def __init__(self) -> None:
        self.failures = 1
        self.calls: list[str] = []
        self.told: list[FailedCall] = []
        self.answers: list[Recovery | None] = []
        self.error: Exception = DatabaseUnavailable(Text("不在", "It is away"))

    async def run(self, _context: ToolContext, arguments: Nothing) -> ToolResult:
        self.calls.append(arguments.word)
        if len(self.calls) <= self.failures:
            raise self.error
        return ToolResult(f"done with {arguments.word!r}", DONE)

    async def recover(self, failed: FailedCall) -> Recovery | None:
        self.told.append(failed)
        return self.answers.pop(0) if self.answers else None

    def tool(self, name: str = "flaky") -> Tool[Nothing]:
        return Tool(name, Text(name, name), "Fails.", Nothing, self.run, frozenset({EVERYONE}))


@pytest.fixture
def flaky() -> Iterator[Flaky]:
    """What settings name as `tests_own_points:…`."""
    module, made = ModuleType(MODULE), Flaky()
    module.__dict__.update(
        tool=lambda _: made.tool(),
        taken=lambda _: made.tool("run_sql"),
        unfit=lambda _: made.tool("run sql"),
        strategy=lambda _: made,
        number=lambda _: 7,
    )
    sys.modules[MODULE] = module
    yield made
    del sys.modules[MODULE]


@pytest.fixture(scope="module")
def demo(demo_url: str) -> Settings:
    return Settings(database_url=demo_url)


def called(asking: Asking, name: str, **arguments: Any) -> ToolResult:
    """Return what a call by somebody of the group `analysts` gives."""
    question = Question("?", actor=Actor("ann", ("analysts",)), is_credible=True)
    use = Use(question, Occasion("ask", question.run_id, question.actor))
    tools = asking.services.tools
    return run(tools.execute(ToolCall("c1", name, arguments), use), timeout_s=30)


# ------------------------------------------------------------------------------
# tools and their arguments


@pytest.mark.parametrize("agent", ["tool_loop", "tool_graph"])
def test_a_model_calls_the_operators_own_tool(
    demo: Settings, openai_server: OpenAiServer, agent: str
) -> None:
    told: list[str] = []
    counting = following([calling("count_rows", table="service_area"), Reply("Counted.")])

    def script(request: Any) -> Any:
        told.extend(results(request).values())
        return counting(request)

    openai_server.default = script
    with Asking(demo, openai_server, own_tools="examples.count_rows:count_rows") as asking:
        frames = asking.stream({"question": "How many?", "agent": agent, "lang": "en"})
    done = [frame["data"] for frame in frames if frame["data"]["type"] == "tool"]
    assert [(one["name"], one["status"]) for one in done] == [
        ("count_rows", "running"),
        ("count_rows", "done"),
    ]
    assert done[-1]["display_name"] == "Count rows"
    assert told[0].endswith(" rows")


def test_own_tools_keep_the_callers_rights_and_may_be_closed(demo: Settings, flaky: Flaky) -> None:
    names: Any = {"own_tools": "examples.count_rows:count_rows"}
    with Asking(demo, **names, denied_objects="public.service_area") as asking:
        assert called(asking, "count_rows", table="service_area").error_type == "not_found"
    with Asking(demo, **names, tool_groups="count_rows: leads") as asking:
        assert called(asking, "count_rows", table="company").error_type == "unknown_tool"
    for setting, said in {
        f"{MODULE}:taken": "there is a tool named run_sql already",
        f"{MODULE}:unfit": "'run sql' is no tool's name",
        f"{MODULE}:number": "OWN_TOOLS: .* gives a int, which is no Tool",
        f"{MODULE}:tool, {MODULE}:tool": "there is a tool named flaky already",
    }.items():
        with pytest.raises(ExtensionError, match=said):
            Asking(demo, own_tools=setting)
    with pytest.raises(InvalidToolGroups, match="count_rows"):
        Asking(demo, tool_groups="count_rows: leads")


def test_a_transform_changes_the_arguments_of_calls(demo: Settings) -> None:
    with Asking(demo, argument_transforms="examples.bounded_search:bounded_search") as asking:
        bounded = called(asking, "search_schema", words="营业 收入 服务区", limit=20)
    with Asking(demo) as asking:
        usual = called(asking, "search_schema", words="营业 收入 服务区", limit=20)
    assert bounded.error_type is usual.error_type is None
    assert len(bounded.text) < len(usual.text)


# ------------------------------------------------------------------------------
# recovery


def test_a_call_whose_database_was_away_is_made_again(demo: Settings, flaky: Flaky) -> None:
    patient: Any = {
        "own_tools": f"{MODULE}:tool",
        "recovery_strategies": "examples.patient_database:patient_database",
    }
    with Asking(demo, **patient) as asking:
        assert called(asking, "flaky", word="x").text == "done with 'x'"
        flaky.failures = 9
        assert called(asking, "flaky", word="y").error_type == "database_unavailable"
    assert flaky.calls == ["x", "x", "y", "y"], "once more, and not for ever"


def test_a_strategy_decides_within_bounds(demo: Settings, flaky: Flaky) -> None:
    names: Any = {"own_tools": f"{MODULE}:tool", "recovery_strategies": f"{MODULE}:strategy"}
    with Asking(demo, **names) as asking:
        flaky.answers = [Recovery(is_retried=True, arguments={"word": "other"})]
        assert called(asking, "flaky", word="one").text == "done with 'other'"
        [failure] = flaky.told
        assert (failure.tool, failure.arguments, failure.error_type, failure.attempt) == (
            "flaky",
            {"word": "one"},
            "database_unavailable",
            1,
        )
        flaky.calls, flaky.failures = [], 99
        flaky.answers = [Recovery(is_retried=True) for _ in range(9)]
        assert called(asking, "flaky", word="z").error_type == "database_unavailable"
        assert len(flaky.calls) == 3, "whatever a strategy says"
        flaky.answers = [Recovery(advice="Ask for less.\nNow.")]
        assert called(asking, "flaky", word="z").text.endswith("\nAsk for less. Now.")
        flaky.answers = [Recovery(is_retried=True, arguments={"no": "such"})]
        assert called(asking, "flaky", word="z").error_type == "database_unavailable"
        flaky.told, flaky.error = [], Forbidden(Text("不行", "No"))
        flaky.answers = [Recovery(is_retried=True)]
        assert called(asking, "flaky", word="z").error_type == "forbidden"
        assert flaky.told == [], "nobody gets around a refusal"


# ------------------------------------------------------------------------------
# audit


def test_the_audit_log_is_sent_to_the_systems_log_too(
    demo: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        monkeypatch.setenv("SYSLOG_ADDRESS", f"127.0.0.1:{server.getsockname()[1]}")
        sink = "examples.syslog_audit:syslog_audit"
        with Asking(demo, audit_log="off", audit_sinks=sink) as asking:
            asking.sync({"question": "有多少个服务区？", "user_id": "ann"})
            entry = json.loads(server.recv(65_536).partition(b"citu-audit: ")[2].rstrip(b"\0"))
    assert entry["sql"].upper().startswith("SELECT")
    assert entry["verdict"] == "executed"
    assert entry["question"] == "有多少个服务区？"


class SlowSink:
    """Takes nothing until it may, and breaks at first."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.taken: list[Any] = []

    def write(self, entry: Any) -> None:
        self.may.wait(30)
        self.taken.append(entry["n"])
        if len(self.taken) == 1:
            raise OSError("full")

    def close(self) -> None: ...


def test_a_slow_or_broken_sink_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.extensions.audit_delivery._MOST_WAITING", 3)
    delivery, sink = AuditDelivery(), SlowSink()
    delivery.put({"n": 0})
    delivery.deliver_to([sink])
    for number in range(1, 9):
        delivery.put({"n": number})
    sink.may.set()
    delivery.close()
    assert sink.taken[:3] == [1, 2, 3]
    assert len(sink.taken) in (3, 4), "no more than fit wait"
    delivery.put({"n": 10})
    delivery.close()
    assert sink.taken[-1] == 10, "it goes on"


# ------------------------------------------------------------------------------
# cards


class Shouting:
    """A renderer of texts, with more than there is room for."""

    kinds = frozenset({"text", "table"})

    def render(self, answer: Any, _question: Question) -> list[Card]:
        if answer["response"].startswith("再见"):
            raise RuntimeError("secret")
        facts = [(f"f{n}", "v" * 999) for n in range(50)]
        card = Card("<b>T</b>" * 99, "x" * 9999, "bad", facts, 7.0, "javascript:alert(1)")
        return [card] * 9


def test_a_renderer_adds_a_card_on_every_way(demo: Settings) -> None:
    with Asking(demo, result_renderers="examples.leader_card:leader_card") as asking:
        _, envelope = asking.sync({"question": RANKING})
        last = asking.stream({"question": RANKING})[-1]
        vanna = asking.client.post("/api/vanna/v2/chat_poll", json={"message": RANKING}).get_json()
        _, text = asking.sync({"question": "你好"})
    assert stable(last) == stable(envelope)
    [card] = envelope["data"]["cards"]
    assert card["title"].endswith("居首")
    assert card["tone"] == "good"
    assert 0 < card["share"] < 1
    cards = [
        chunk["rich"]["data"] for chunk in vanna["chunks"] if chunk["rich"]["type"] == "status_card"
    ]
    assert [shown["title"] for shown in cards] == [card["title"]]
    assert "cards" not in text["data"], "the kind that it names, and no other"


def test_what_renderers_give_is_bounded(
    demo: Settings, flaky: Flaky, caplog: pytest.LogCaptureFixture
) -> None:
    sys.modules[MODULE].__dict__["shout"] = lambda _: Shouting()
    with Asking(demo, result_renderers=f"{MODULE}:shout") as asking:
        _, envelope = asking.sync({"question": "你好"})
        _, chart = asking.sync({"question": RANKING})
    assert "cards" not in chart["data"], "the renderer does not name that kind"
    cards = envelope["data"]["cards"]
    assert len(cards) == 6
    assert (len(cards[0]["title"]), len(cards[0]["text"]), len(cards[0]["facts"])) == (
        200,
        2000,
        20,
    )
    assert cards[0]["share"] == 1.0
    assert "link" not in cards[0]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"response_type": "ETL"}, "draft"),
        ({"response_type": "CHAT"}, "text"),
        ({"query_result": {"rows": []}}, "table"),
        ({"query_result": {"rows": []}, "chart": {"type": "number"}}, "number"),
        ({"query_result": {"rows": []}, "chart": {"type": "pie"}}, "chart"),
    ],
)
def test_kinds_of_answers(answer: dict[str, Any], kind: str) -> None:
    assert kind_of(answer) == kind


@pytest.mark.parametrize(
    "setting",
    ["argument_transforms", "recovery_strategies", "audit_sinks", "result_renderers", "own_tools"],
)
def test_what_is_no_extension_stops_the_start(demo: Settings, flaky: Flaky, setting: str) -> None:
    with pytest.raises(ExtensionError, match=setting.upper()):
        bootstrap(Settings(database_url=demo.database_url, **{setting: f"{MODULE}:number"}))  # type: ignore[arg-type]
