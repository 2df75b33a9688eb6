"""Events as bytes, the sync answer made from the stream's; and one terminal event, whatever happens
after it.
"""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.flows.ask import question_flow
from agent.flows.ask.context import AskContext
from agent.flows.ask.question_flow import QuestionFlow
from agent.flows.ask.state import AskInput
from agent.question import Question
from agent.runs.events import Event, stored_event, with_warning
from agent.runs.runner import Runner
from common.envelope import to_bytes
from common.values import Classification

TEXT = st.text(st.characters(codec=None))  # also halves of characters
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CONTENT = st.dictionaries(TEXT, JSON, max_size=4)


@given(CONTENT, TEXT)
def test_an_event_is_rendered_as_its_envelope(content: dict[str, Any], message: str) -> None:
    answer = {**content, "response_type": "CHAT"}
    for event in (
        Event("progress", message, lambda: content),
        Event("error", message, lambda: {**content, "type": "error"}, 403),
        Event("completed", message, lambda: answer),
        Event("token", message, dict),
    ):
        assert event.rendered == to_bytes(event.envelope())
        assert event.sync_rendered() == to_bytes(event.sync_envelope())


def test_a_stored_event_and_one_with_a_warning_are_rendered_anew() -> None:
    event = Event(
        "completed",
        "Done",
        lambda: {"response_type": "DATABASE", "n": Decimal("1.50"), "warnings": []},
    )
    assert stored_event(event.rendered).rendered == event.rendered
    assert with_warning(event, "mind").sync_envelope()["data"] == {
        "type": "DATABASE",
        "response_type": "DATABASE",
        "n": Decimal("1.50"),
        "warnings": ["mind"],
    }
    assert b'"mind"' in with_warning(event, "mind").rendered


class ClumsyGraph:
    """Answers, then fails while it cleans up."""

    checkpointer = None

    async def astream(
        self, ask: AskInput, *_: object, **__: object
    ) -> AsyncIterator[dict[str, Any]]:
        state: dict[str, Any] = dict(ask)
        found = Classification("CHAT", 1.0, "direct", "so")
        answer = {"response_type": "CHAT", "response": "hello"}
        for name, update in (
            ("classify_question", {"classification": found}),
            ("format_response", {"answer": answer}),
        ):
            yield {"type": "tasks", "data": {"name": name, "input": ask}}
            result = {"execution_path": [name], **update}
            yield {
                "type": "tasks",
                "data": {"name": name, "error": None, "result": result, "interrupts": []},
            }
            state = {**state, **result}
            yield {"type": "values", "data": state, "interrupts": ()}
        raise RuntimeError("clearing up")


def test_what_fails_after_the_answer_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_flow, "compiled_graph", ClumsyGraph)
    flow = QuestionFlow(lambda *_: cast(AskContext, None), routing_mode="hybrid", deadline_s=30)

    async def told() -> list[str]:
        events: list[Event] = []
        await Runner({"ask": flow}, "ask").answer(Question("hello"), events.append)
        return [event.type for event in events]

    assert asyncio.run(told()) == [*["progress"] * 4, "completed"]
