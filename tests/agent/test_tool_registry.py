"""The registry of tools and a question's session: permission, arguments, transforms, audit, limits,
repeated calls.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.progress import StepResult, ToolStep
from agent.question import Question
from agent.tools.registry import ToolRegistry, Use
from agent.tools.session import LimitReached, ToolSession
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult
from agent.tools.tool_limits import ToolLimits
from agent.tools.transcript import NOT_RUN, Exchange, Transcript, complete_exchange
from common.actor import Actor
from common.audit import CallOutcome, Occasion, StatementOutcome
from common.errors import Forbidden
from common.ports import Database
from common.text import Text
from common.values import Usage
from llm import Completion, InvalidArguments, ToolCall

DONE = Text("完成", "Done")


class Count(Arguments):
    """How far to count."""

    to: int


@dataclass
class Notes:
    """An audit log in memory."""

    calls: list[tuple[str | None, Any, str, str | None]] = field(default_factory=list)

    def record(self, occasion: Occasion, sql: str, outcome: StatementOutcome) -> None:
        """No statements are run here."""

    def record_call(self, occasion: Occasion, arguments: Any, outcome: CallOutcome) -> None:
        """Keeps the call."""
        self.calls.append((occasion.tool, arguments, outcome.verdict, outcome.error_type))


async def counted(context: ToolContext, arguments: Count) -> ToolResult:
    """Counts."""
    return ToolResult(f"{context.call_id}: {arguments.to}", DONE)


def no_database(_occasion: Occasion) -> Database:
    """The tools here open none."""
    return None  # type: ignore[return-value]


def tool(
    name: str, *groups: str, run: Callable[[ToolContext, Count], Awaitable[ToolResult]] = counted
) -> Tool[Count]:
    """A tool for these groups."""
    return Tool(name, Text(name, name), "Counts.", Count, run, frozenset(groups))


def call(
    name: str, arguments: Mapping[str, Any] | InvalidArguments, call_id: str = "c1"
) -> ToolCall:
    """A call as a model makes it."""
    return ToolCall(call_id, name, arguments)


def use(*groups: str) -> Use:
    """What a call is made for by an actor of these groups."""
    question = Question("how many?", actor=Actor("ann", groups))
    return Use(question, Occasion("ask", question.run_id, question.actor))


def executed(registry: ToolRegistry, one: ToolCall, *groups: str) -> ToolResult:
    """The result of one call."""
    return asyncio.run(registry.execute(one, use(*groups)))


@pytest.mark.parametrize(
    ("owners", "groups", "is_run"),
    [
        ((), ("staff",), False),
        ((), (), False),
        ((EVERYONE,), (), True),
        (("staff",), ("staff", "other"), True),
        (("staff",), ("other",), False),
        (("staff",), (EVERYONE,), False),
    ],
)
def test_a_tool_is_for_the_groups_it_names(
    owners: tuple[str, ...], groups: tuple[str, ...], is_run: bool
) -> None:
    registry = ToolRegistry([tool("count", *owners)], no_database, Notes())
    result = executed(registry, call("count", {"to": 3}), *groups)
    assert (result.error_type is None) == is_run
    assert [one.name for one in registry.allowed(Actor("ann", groups))] == (
        ["count"] if is_run else []
    )


def test_a_forbidden_tool_and_a_missing_one_can_not_be_told_apart() -> None:
    registry = ToolRegistry([tool("count", "staff"), tool("other", EVERYONE)], no_database, Notes())
    forbidden, missing = (
        executed(registry, call(name, {"to": 1}), "guest") for name in ("count", "missing")
    )
    assert forbidden == missing
    assert "count" not in forbidden.text


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "many"},
        {},
        {"to": 1, "more": 2},
        InvalidArguments("{", "The arguments are not valid JSON."),
    ],
)
def test_the_model_is_told_what_is_wrong_with_arguments(arguments: Any) -> None:
    notes = Notes()
    result = executed(
        ToolRegistry([tool("count", EVERYONE)], no_database, notes), call("count", arguments)
    )
    assert result.error_type == "invalid_arguments"
    assert notes.calls == [
        ("count", getattr(arguments, "text", arguments), "refused", "invalid_arguments")
    ]


def test_transforms_change_arguments_in_order_or_refuse() -> None:
    async def doubled(_tool: Tool[Any], arguments: Arguments, _context: ToolContext) -> Arguments:
        assert isinstance(arguments, Count)
        return arguments.model_copy(update={"to": arguments.to * 2})

    async def at_most_ten(
        _tool: Tool[Any], arguments: Arguments, _context: ToolContext
    ) -> Arguments:
        assert isinstance(arguments, Count)
        if arguments.to > 10:
            raise Forbidden(Text("太多", "Too many"))
        return arguments

    notes = Notes()
    registry = ToolRegistry([tool("count", EVERYONE)], no_database, notes, (doubled, at_most_ten))
    assert executed(registry, call("count", {"to": 3})).text == "c1: 6"
    assert executed(registry, call("count", {"to": 6})).error_type == "forbidden"
    assert notes.calls == [
        ("count", {"to": 3}, "executed", None),
        ("count", {"to": 6}, "refused", "forbidden"),
    ]


def test_what_breaks_in_a_tool_is_hidden_and_noted() -> None:
    async def broken(_context: ToolContext, _arguments: Count) -> ToolResult:
        raise RuntimeError("secret")

    notes = Notes()
    result = executed(
        ToolRegistry([tool("count", EVERYONE, run=broken)], no_database, notes),
        call("count", {"to": 1}),
    )
    assert result.error_type == "internal_error"
    assert "secret" not in result.text + result.summary.en
    assert notes.calls[0][2:] == ("failed", "internal_error")


def test_a_cancelled_call_is_noted() -> None:
    notes = Notes()

    async def cancelled() -> None:
        begun = asyncio.Event()

        async def waiting(_context: ToolContext, _arguments: Count) -> ToolResult:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        registry = ToolRegistry([tool("count", EVERYONE, run=waiting)], no_database, notes)
        task = asyncio.create_task(registry.execute(call("count", {"to": 1}), use()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert notes.calls[0][2:] == ("cancelled", "cancelled")


class Hook:
    """A hook that is told of tools, and takes its time."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def before_question(self, question: Question) -> None:
        """No questions here."""

    async def after_question(self, question: Question, ended: Any) -> None:
        """No questions here."""

    async def before_tool(
        self, question: Question, name: str, arguments: Mapping[str, Any]
    ) -> None:
        """Is told."""
        self.told.append(dict(arguments))

    async def after_tool(self, question: Question, name: str, error_type: str | None) -> None:
        """Is told, and never gives back control."""
        self.told.append(error_type)
        await asyncio.Event().wait()


def test_hooks_are_told_of_each_end_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tools.registry.HOOK_S", 0.01)

    async def run(_context: ToolContext, arguments: Count) -> ToolResult:
        if arguments.to == 1:
            raise Forbidden(DONE)
        return ToolResult(str(1 / (arguments.to - 2)), DONE)

    hook = Hook()
    registry = ToolRegistry([tool("count", EVERYONE, run=run)], no_database, Notes(), hooks=[hook])
    ended = [executed(registry, call("count", {"to": to})).error_type for to in (1, 2, 3)]
    assert ended == ["forbidden", "internal_error", None]
    assert hook.told == [{"to": 1}, "forbidden", {"to": 2}, "internal_error", {"to": 3}, None]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        ToolRegistry([tool("count"), tool("count")], no_database, Notes())


# ------------------------------------------------------------------------------
# session


class Model:
    """A model with replies in a row; the protocol's own behaviour is tested over a socket
    elsewhere.
    """

    name = "scripted"

    def __init__(self, *replies: Completion) -> None:
        self._replies = list(replies)

    async def complete(self, *_args: Any, **_kwargs: Any) -> Completion:
        """The next reply."""
        return self._replies.pop(0)

    async def warm(self) -> None:
        """Nothing to do."""

    async def ping(self) -> None:
        """Answers."""

    async def aclose(self) -> None:
        """Nothing to close."""


def session(
    limits: ToolLimits, *replies: Completion, clock: Callable[[], float] = lambda: 0.0
) -> ToolSession:
    """A session of somebody without groups."""
    asked = use()
    return ToolSession(asked.question, asked.occasion, Model(*replies), limits, clock=clock)


def test_the_same_call_is_not_run_twice() -> None:
    notes = Notes()
    registry = ToolRegistry([tool("count", EVERYONE)], no_database, notes)
    written: list[str | ToolStep | StepResult] = []

    async def twice() -> list[ToolResult]:
        one = session(ToolLimits())
        calls = [
            call("count", {"to": 1}, "a"),
            call("count", {"to": 1}, "b"),
            call("count", {"to": 2}, "c"),
        ]
        return [await one.call(each, registry, written.append, {"count"}) for each in calls]

    first, second, third = asyncio.run(twice())
    assert (first.text, third.text) == ("a: 1", "c: 2")
    assert "same as a" in second.text
    assert [call[2:] for call in notes.calls] == [
        ("executed", None),
        ("refused", "repeated"),
        ("executed", None),
    ]
    assert [step.status for step in written if isinstance(step, ToolStep)] == [
        "running",
        "done",
    ] * 2


def test_what_a_model_makes_up_is_shown_shortened() -> None:
    registry = ToolRegistry([tool("count", EVERYONE)], no_database, Notes())
    written: list[Any] = []
    made_up = {"x" * 5_000 + str(place): "y" * 5_000 for place in range(500)}
    made = session(ToolLimits()).call(
        call("n" * 5_000, made_up), registry, written.append, {"count"}
    )
    assert asyncio.run(made).error_type == "unknown_tool"
    assert len(json.dumps([[step.name, dict(step.arguments)] for step in written])) < 50_000


def test_a_call_outside_the_offer_is_not_run() -> None:
    notes = Notes()
    registry = ToolRegistry([tool("count", EVERYONE), tool("other", EVERYONE)], no_database, notes)
    result = asyncio.run(
        session(ToolLimits()).call(call("count", {"to": 1}), registry, lambda _: None, {"other"})
    )
    assert result.error_type == "not_offered"
    assert notes.calls[0][2] == "refused"


def test_a_call_that_came_too_early_is_run_when_it_comes_again() -> None:
    registry = ToolRegistry([tool("count", EVERYONE)], no_database, Notes())

    async def early_and_again() -> list[str | None]:
        one, again = session(ToolLimits()), call("count", {"to": 1})
        offers: list[set[str]] = [set(), set(), {"count"}]
        return [
            (await one.call(again, registry, lambda _: None, offer)).error_type for offer in offers
        ]

    assert asyncio.run(early_and_again()) == ["not_offered", "not_offered", None]


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        (ToolLimits(model_calls=1), 0.0),
        (ToolLimits(tokens=10), 0.0),
        (ToolLimits(seconds=5.0), 5.0),
    ],
)
def test_a_session_stops_at_each_limit(limits: ToolLimits, seconds: float) -> None:
    reply = Completion("Hello", Usage(1, 8, 2))

    async def ask_twice() -> None:
        now = 0.0
        one = session(limits, reply, reply, clock=lambda: now)
        await one.ask(Transcript(()))
        now = seconds
        await one.ask(Transcript(()))

    with pytest.raises(LimitReached):
        asyncio.run(ask_twice())


def test_tool_calls_are_counted_also_when_they_are_refused() -> None:
    notes = Notes()
    registry = ToolRegistry([tool("count", EVERYONE)], no_database, notes)

    async def three() -> list[str | None]:
        one = session(ToolLimits(tool_calls=2))
        calls = [call("missing", {}), call("count", {"to": "x"}), call("count", {"to": 1})]
        return [
            (await one.call(each, registry, lambda _: None, {"count"})).error_type for each in calls
        ]

    assert asyncio.run(three()) == ["unknown_tool", "invalid_arguments", "limit_reached"]
    assert [error_type for *_, error_type in notes.calls] == [
        "unknown_tool",
        "invalid_arguments",
        "limit_reached",
    ]


# ------------------------------------------------------------------------------
# transcript

CALLS = st.lists(st.integers(0, 99).map(str), min_size=1, max_size=5, unique=True)


@given(CALLS, st.data())
def test_a_transcript_holds_whole_exchanges_only(ids: list[str], data: st.DataObject) -> None:
    reply = Completion(
        "", tool_calls=tuple(ToolCall(call_id, "count", {"to": 1}) for call_id in ids)
    )
    known = data.draw(st.sets(st.sampled_from(ids)))
    exchange = complete_exchange(reply, dict.fromkeys(known, "1"))
    sent = json.loads(json.dumps(Transcript((), (exchange,)).messages))
    assert [one["tool_call_id"] for one in sent[1:]] == ids
    assert [one["content"] for one in sent[1:]] == [
        "1" if call_id in known else NOT_RUN for call_id in ids
    ]
    with pytest.raises(ValueError, match="one result for each call"):
        replace(exchange, results=exchange.results[1:])
    with pytest.raises(ValueError, match="one result for each call"):
        Exchange(Completion("Hello"), exchange.results)
