"""Graphs that ask their user in every place where a graph can: side by side, inside a subgraph, twice in one node."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.flow import Answer, Described, Face, Failure, Question, UserQuestion, ask_user
from agent.runs.desk import RunDesk, RunView
from agent.runs.runner import Runner
from common.actor import ANONYMOUS, NOBODY
from common.errors import Conflict
from common.store import Store
from common.store.journal import Journal
from common.store.opening import BACKENDS
from common.text import Text
from common.values import Turn
from tests.store_places import PLACES, Place


class State(TypedDict, total=False):
    left: str
    right: str
    inner: str
    said: str


class Inner(TypedDict, total=False):
    inner: str


async def left(state: State) -> State:
    return {"left": ask_user(UserQuestion("text", "左边？\u202e"))}


async def right(state: State) -> State:
    return {"right": ask_user(UserQuestion("text", "Right?", schema={"type": "string", "minLength": 1}))}


async def ask_inside(state: Inner) -> Inner:
    return {"inner": ask_user(UserQuestion("confirm", "Inside?", schema={"type": "boolean"}))}


async def last(state: State) -> State:
    """Asks twice, in the last node of all."""
    first = ask_user(UserQuestion("text", "First?"))
    second = ask_user(UserQuestion("text", f"Second, after {first}?"))
    if second == "raise":
        raise ValueError
    return {"said": " ".join(map(str, (state["left"], state["right"], state["inner"], first, second)))}


_TEXT = Text("", "")
_FACE = Face(_TEXT, "", "", "", Described(_TEXT, _TEXT), lambda _: Described(_TEXT, _TEXT))


class AskingFlow:
    """Implements `agent.flow.Flow`."""

    name = "asking"
    faces: Mapping[str, Face] = dict.fromkeys(("left", "right", "inside", "last"), _FACE)
    last_node = "last"
    deadline_s = 30.0

    def __init__(self, store: Store) -> None:
        inside: StateGraph[Any, Any, Any, Any] = StateGraph(Inner)
        inside.add_node(ask_inside)
        inside.add_edge(START, "ask_inside")
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        graph.add_node(left)
        graph.add_node(right)
        graph.add_node("inside", inside.compile())
        graph.add_node(last)
        for node in ("left", "right"):
            graph.add_edge(START, node)
        graph.add_edge(["left", "right"], "inside")
        graph.add_edge("inside", "last")
        graph.add_edge("last", END)
        self.graph: CompiledStateGraph[Any, Any, Any, Any] = graph.compile(checkpointer=store.checkpoints)

    def start(self, question: Question) -> State:
        return {}

    def context(self, question: Question) -> None:
        return None

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def ending(self, state: Mapping[str, Any]) -> Answer | Failure:
        return Answer({"response_type": "CHAT", "response": state["said"], "warnings": []})

    def turn(self, question: Question, state: Mapping[str, Any], answer: Answer) -> Turn | None:
        return None


@pytest.fixture(scope="module", params=list(BACKENDS))
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with PLACES[request.param]() as place:
        yield place


ANSWERS = {"左边？\u202e": "左", "Right?": "r", "Inside?": True, "First?": "1"}


def desk_of(store: Store, *flows: AskingFlow) -> RunDesk:
    return RunDesk(Runner({flow.name: flow for flow in flows}, "asking"), store, Journal(store), lease_s=10)


async def next_stop(desk: RunDesk, run_id: str, after: int = 0) -> RunView:
    async with asyncio.timeout(30):
        async for _ in desk.follow(ANONYMOUS, run_id, after):
            pass
    return await desk.look(ANONYMOUS, run_id)


async def played(store: Store, second: str) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """The prompts in their order, each with its node, and the last event's data; every answer goes to another desk."""
    desks = [desk_of(store, AskingFlow(store)) for _ in range(2)]
    question = Question("q")
    desks[0].begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
    view, asked = await next_stop(desks[0], question.run_id), []
    answered: list[str] = []
    try:
        while view.last is not None and view.last.type == "question":
            data = view.last.data
            asked.append((data["prompt"], data["node"]))
            desks.reverse()
            given = ANSWERS.get(data["prompt"], second)
            for earlier in answered:
                with pytest.raises(Conflict):  # also when the same node has asked again
                    await desks[0].resume(NOBODY, question.run_id, earlier, given, on_end=lambda: None)
            answered.append(data["interrupt_id"])
            await desks[0].resume(NOBODY, question.run_id, data["interrupt_id"], given, on_end=lambda: None)
            view = await next_stop(desks[0], question.run_id, view.record.last_seq)
    finally:
        for desk in desks:
            await desk.aclose()
    assert view.last is not None
    return asked, view.last.data


def test_every_question_of_a_graph_is_asked_once_and_alone(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        try:
            asked, data = await played(store, "2")
        finally:
            await store.aclose()
        assert sorted(asked[:2]) == [("Right?", "right"), ("左边？\u202e", "left")]
        assert asked[2:] == [("Inside?", "inside"), ("First?", "last"), ("Second, after 1?", "last")]
        assert data["response"] == "左 r True 1 2"
        # Waiting does not count, and what was done before the last answer does.
        assert set(data["timings_ms"]) == {"left", "right", "inside", "last", "total"}

    asyncio.run(scenario())


def test_a_graph_that_raises_after_an_answer_ends_the_run(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        try:
            _, data = await played(store, "raise")
        finally:
            await store.aclose()
        assert (data["type"], data["error_type"], data["node"]) == ("error", "internal_error", "last")

    asyncio.run(scenario())


def test_a_flow_that_is_gone_refuses_the_answer_and_keeps_the_run(place: Place) -> None:
    async def scenario() -> None:
        store = place.open()
        desk, upgraded = desk_of(store, AskingFlow(store)), desk_of(store)
        question = Question("q")
        desk.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
        view = await next_stop(desk, question.run_id)
        assert view.last is not None
        with pytest.raises(Conflict) as refused:
            interrupt_id = view.last.data["interrupt_id"]
            await upgraded.resume(NOBODY, question.run_id, interrupt_id, "l", on_end=lambda: None)
        assert not refused.value.retryable
        assert (await upgraded.look(ANONYMOUS, question.run_id)).record.state == "waiting"
        assert (await upgraded.cancel(ANONYMOUS, question.run_id)).record.state == "cancelled"
        for each in (desk, upgraded):
            await each.aclose()
        await store.aclose()

    asyncio.run(scenario())
