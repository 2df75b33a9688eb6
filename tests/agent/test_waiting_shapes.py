"""Graphs that ask their user in every place where a graph can: side by side, inside a subgraph,
twice in one node.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypedDict, cast

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.flows.flow import (
    Durability,
    FlowAnswer,
    FlowFailure,
    StepDescription,
    StepLabel,
    UserQuestion,
    ask_user,
    graph_version,
)
from agent.progress import Write
from agent.question import Question
from agent.runs.events import Event
from agent.runs.pauses import Beginning
from agent.runs.run_service import RunService, RunView
from agent.runs.runner import Runner
from common.actor import ANONYMOUS, NOBODY
from common.errors import Conflict, StoreUnavailable
from common.text import Text
from common.values import Turn
from store import EventFrame, RunHead, Runs, RunWrite, Store, Unkept, Waiting
from store.journal import Journal
from store.outages import UNREACHABLE
from tests.support.store_servers import StoreServer, play, until


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
    return {
        "right": ask_user(UserQuestion("text", "Right?", schema={"type": "string", "minLength": 1}))
    }


async def ask_inside(state: Inner) -> Inner:
    return {"inner": ask_user(UserQuestion("confirm", "Inside?", schema={"type": "boolean"}))}


async def last(state: State) -> State:
    """Asks twice, in the last node of all."""
    first = ask_user(UserQuestion("text", "First?"))
    second = ask_user(UserQuestion("text", f"Second, after {first}?"))
    if second == "raise":
        raise ValueError
    return {
        "said": " ".join(map(str, (state["left"], state["right"], state["inner"], first, second)))
    }


_TEXT = Text("", "")
_LABEL = StepLabel(
    _TEXT, "", "", "", StepDescription(_TEXT, _TEXT), lambda _: StepDescription(_TEXT, _TEXT)
)


class AskingFlow:
    """Implements `agent.flows.flow.Flow`."""

    name = "asking"
    labels: Mapping[str, StepLabel]
    last_node = "last"
    most_steps = 10
    deadline_s = 30.0

    def __init__(
        self, store: Store, inside: str = "inside", durability: Durability | None = None
    ) -> None:
        self.durability = durability
        self.labels = dict.fromkeys(("left", "right", inside, "last"), _LABEL)
        asking: StateGraph[Any, Any, Any, Any] = StateGraph(Inner)
        asking.add_node(ask_inside)
        asking.add_edge(START, "ask_inside")
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        graph.add_node(left)
        graph.add_node(right)
        graph.add_node(inside, asking.compile())
        graph.add_node(last)
        for node in ("left", "right"):
            graph.add_edge(START, node)
        graph.add_edge(["left", "right"], inside)
        graph.add_edge(inside, "last")
        graph.add_edge("last", END)
        self.graph: CompiledStateGraph[Any, Any, Any, Any] = graph.compile(
            checkpointer=store.checkpoints
        )

    def start(self, question: Question) -> State:
        return {}

    def context(self, question: Question, write: Write) -> None:
        return None

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def ending(self, state: Mapping[str, Any]) -> FlowAnswer | FlowFailure:
        return FlowAnswer({"response_type": "CHAT", "response": state["said"], "warnings": []})

    def turn(self, question: Question, state: Mapping[str, Any], answer: FlowAnswer) -> Turn | None:
        return None


ANSWERS = {"左边？\u202e": "左", "Right?": "r", "Inside?": True, "First?": "1"}


def desk_of(store: Store, *flows: AskingFlow, lease_s: float = 10) -> RunService:
    return RunService(
        Runner({flow.name: flow for flow in flows}, "asking"),
        store,
        Journal(store),
        lease_s=lease_s,
    )


async def next_stop(service: RunService, run_id: str, after: int = 0) -> RunView:
    async with asyncio.timeout(30):
        async for _ in service.follow(ANONYMOUS, run_id, after):
            pass
    return await service.look(ANONYMOUS, run_id)


async def played(store: Store, second: str) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """The prompts in their order, each with its node, and the last event's data; every answer goes
    to another service.
    """
    services = [desk_of(store, AskingFlow(store)) for _ in range(2)]
    question = Question("q")
    services[0].begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
    view, asked = await next_stop(services[0], question.run_id), []
    answered: list[str] = []
    try:
        while view.last is not None and view.last.type == "question":
            data = view.last.data
            asked.append((data["prompt"], data["node"]))
            services.reverse()
            given = ANSWERS.get(data["prompt"], second)
            for earlier in answered:
                with pytest.raises(Conflict):  # also when the same node has asked again
                    await services[0].resume(
                        NOBODY, question.run_id, earlier, given, on_end=lambda: None
                    )
            answered.append(data["interrupt_id"])
            await services[0].resume(
                NOBODY, question.run_id, data["interrupt_id"], given, on_end=lambda: None
            )
            view = await next_stop(services[0], question.run_id, view.record.last_seq)
    finally:
        for service in services:
            await service.aclose()
    assert view.last is not None
    return asked, view.last.data


def test_every_question_of_a_graph_is_asked_once_and_alone(place: StoreServer) -> None:
    async def scenario() -> None:
        store = place.open()
        try:
            asked, data = await played(store, "2")
        finally:
            await store.aclose()
        assert sorted(asked[:2]) == [("Right?", "right"), ("左边？\u202e", "left")]
        assert asked[2:] == [
            ("Inside?", "inside"),
            ("First?", "last"),
            ("Second, after 1?", "last"),
        ]
        assert data["response"] == "左 r True 1 2"
        # Waiting does not count, and what was done before the last answer does.
        assert set(data["timings_ms"]) == {"left", "right", "inside", "last", "total"}

    asyncio.run(scenario())


def test_a_graph_that_raises_after_an_answer_ends_the_run(place: StoreServer) -> None:
    async def scenario() -> None:
        store = place.open()
        try:
            _, data = await played(store, "raise")
        finally:
            await store.aclose()
        assert (data["type"], data["error_type"], data["node"]) == (
            "error",
            "internal_error",
            "last",
        )

    asyncio.run(scenario())


UPGRADES: Mapping[str, Callable[[Store], list[AskingFlow]]] = {
    "the flow is gone": lambda _: [],
    "a node is renamed": lambda store: [AskingFlow(store, "within")],
    "the state is another": lambda store: [AskingFlow(store, durability=Durability(2))],
}


@pytest.mark.parametrize("upgrade", UPGRADES)
def test_a_flow_that_an_upgrade_changed_refuses_the_answer_and_keeps_the_run(
    place: StoreServer, upgrade: str
) -> None:
    async def scenario() -> None:
        store = place.open()
        service = desk_of(store, AskingFlow(store))
        upgraded = desk_of(store, *UPGRADES[upgrade](store))
        question = Question("q")
        service.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
        view = await next_stop(service, question.run_id)
        assert view.last is not None
        with pytest.raises(Conflict) as refused:
            interrupt_id = view.last.data["interrupt_id"]
            await upgraded.resume(NOBODY, question.run_id, interrupt_id, "l", on_end=lambda: None)
        assert not refused.value.retryable
        assert (await upgraded.look(ANONYMOUS, question.run_id)).record.state == "waiting"
        assert (await upgraded.cancel(ANONYMOUS, question.run_id)).record.state == "cancelled"
        for each in (service, upgraded):
            await each.aclose()
        await store.aclose()

    asyncio.run(scenario())


def test_a_graph_goes_on_from_versions_that_it_fits(place: StoreServer) -> None:
    async def scenario(store: Store) -> None:
        before = AskingFlow(store)
        fitting = Durability(2, frozenset({graph_version(before)}))
        service, upgraded = desk_of(store, before), desk_of(store, AskingFlow(store, "in", fitting))
        question = Question("q")
        service.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
        view = await next_stop(service, question.run_id)
        assert view.last is not None
        asked, given = view.last.data["interrupt_id"], ANSWERS[view.last.data["prompt"]]
        await upgraded.resume(NOBODY, question.run_id, asked, given, on_end=lambda: None)
        view = await next_stop(upgraded, question.run_id, view.record.last_seq)
        assert view.record.state == "waiting"
        for each in (service, upgraded):
            await each.aclose()

    play(scenario, place.open())


@pytest.mark.parametrize(
    ("takes_over", "state"),
    [
        (AskingFlow, "waiting"),
        (lambda store, **kept: AskingFlow(store, "within", **kept), "error"),
    ],
)
def test_a_lost_run_goes_on_only_in_the_graph_that_began_it(
    place: StoreServer, takes_over: Callable[..., AskingFlow], state: str
) -> None:
    """Its worker died right after its first write."""

    async def scenario(store: Store) -> None:
        durability = Durability(1)
        version = graph_version(AskingFlow(store, durability=durability))
        question = Question("q", agent="asking")
        request = Beginning(question, version).to_json()
        head = replace(head_of(question.run_id), request=request)
        first = Event("progress", "", dict).rendered
        await store.runs.write([RunWrite(head, (EventFrame(1, first),))])
        service = desk_of(store, takes_over(store, durability=durability), lease_s=0.1)
        service.watch_over()

        async def has_stopped() -> bool:
            found = await store.runs.find(ANONYMOUS, question.run_id)
            return found is not None and found.state == state

        await until(has_stopped)
        await service.aclose()

    play(scenario, place.open(lease_s=0.1))


def head_of(run_id: str) -> RunHead:
    return RunHead(
        run_id, ANONYMOUS, "c", "q", "en", "a dead worker", "2026-01-01T00:00:00.000+00:00"
    )


UNREADABLE: tuple[Mapping[str, Any], ...] = (
    {},
    {"question": ["q"], "graph_interrupt": 1, "answers": "none", "mark": None},
    {"question": {"said": "q"}, "graph_interrupt": "g", "answers": 0, "mark": ""},
)


def test_an_abandoned_run_that_can_not_be_read_is_ended_and_keeps_no_other_from_being_ended(
    place: StoreServer,
) -> None:
    """As another version of Citu may have left them; each is resumed by a worker that dies."""

    async def scenario(store: Store) -> None:
        ids = [uuid.uuid4().hex for _ in range(len(UNREADABLE) + 1)]
        for run_id, asked in zip(ids, UNREADABLE, strict=False):
            about = head_of(run_id)
            await store.runs.write(
                [RunWrite(about, (EventFrame(1, b"{}"),), waiting=Waiting("i", "asking", asked))]
            )
            given = {"value": 1, "actor": asdict(NOBODY)}
            await store.runs.resume(ANONYMOUS, about.run_id, "i", given, about.worker_id)
        await store.runs.write([RunWrite(head_of(ids[-1]), (EventFrame(1, b"{}"),))])

        service = desk_of(store, AskingFlow(store), lease_s=0.1)
        service.watch_over()

        async def states() -> set[str]:
            # Ask the store, because a service that is asked for an abandoned run ends it.
            found = [await store.runs.find(ANONYMOUS, run_id) for run_id in ids]
            return {record.state for record in found if record is not None}

        async def are_all_ended() -> bool:
            return await states() == {"error"}

        await until(are_all_ended)
        await service.aclose()

    play(scenario, place.open(lease_s=0.1))


class NotWriting:
    """Runs of a store that keeps nothing for a while, and can be read."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.is_down = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    async def write(self, writes: Sequence[RunWrite]) -> Mapping[str, Unkept]:
        await self.ping()
        return await self._runs.write(writes)

    async def ping(self) -> None:
        if self.is_down:
            raise StoreUnavailable(UNREACHABLE)


def test_a_question_that_is_shown_and_not_kept_is_answered_once_the_store_is_back(
    place: StoreServer,
) -> None:
    async def scenario(sound: Store) -> None:
        runs = NotWriting(sound.runs)
        store = replace(sound, runs=cast(Runs, runs), ping=runs.ping)
        service, question = desk_of(store, AskingFlow(store)), Question("q")
        run = service.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
        asked = (await run.last()).data

        async def resumed() -> RunView:
            given = ANSWERS[asked["prompt"]]
            return await service.resume(
                NOBODY, question.run_id, asked["interrupt_id"], given, on_end=lambda: None
            )

        with pytest.raises(StoreUnavailable):
            await resumed()
        runs.is_down = False
        await until(lambda: sound.runs.find(ANONYMOUS, question.run_id))
        view = await resumed()
        view = await next_stop(service, question.run_id, view.record.last_seq)
        assert view.last is not None
        assert (view.last.type, view.last.data["prompt"] != asked["prompt"]) == ("question", True)
        await service.aclose()

    play(scenario, place.open())


class Interposed:
    """Runs of a store with something that happens before a call goes through."""

    def __init__(
        self, runs: Runs, call: str, before: Callable[[tuple[Any, ...]], Awaitable[None]]
    ) -> None:
        self._runs, self._call, self._before = runs, call, before

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._runs, name)
        if name != self._call:
            return call

        async def interposed(*arguments: Any, **named: Any) -> Any:
            await self._before(arguments)
            return await call(*arguments, **named)

        return interposed


def test_a_cancel_while_the_question_is_being_kept_ends_the_run(place: StoreServer) -> None:
    async def scenario(sound: Store) -> None:
        question, cancelled = Question("q"), asyncio.Queue[asyncio.Task[RunView]]()

        async def cancel(arguments: tuple[Any, ...]) -> None:
            if any(write.waiting for write in arguments[0]):
                task = asyncio.create_task(service.cancel(ANONYMOUS, question.run_id))
                await asyncio.wait([task], timeout=0.05)  # it can't end before the question is kept
                cancelled.put_nowait(task)

        service = desk_of(
            replace(sound, runs=cast(Runs, Interposed(sound.runs, "write", cancel))),
            AskingFlow(sound),
        )
        run = service.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
        await run.last()
        async with asyncio.timeout(30):
            assert (await (await cancelled.get())).record.state == "cancelled"
        assert (await service.look(ANONYMOUS, question.run_id)).record.state == "cancelled"
        await service.aclose()

    play(scenario, place.open())


def test_a_cancel_while_an_answer_is_taken_ends_the_run(place: StoreServer) -> None:
    async def scenario(sound: Store) -> None:
        service, question = desk_of(sound, AskingFlow(sound)), Question("q")
        service.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
        asked = (await next_stop(service, question.run_id)).last
        assert asked is not None
        answered: list[RunView] = []

        async def answer(_: tuple[Any, ...]) -> None:
            if not answered:
                given = ANSWERS[asked.data["prompt"]]
                resumed = service.resume(
                    NOBODY, question.run_id, asked.data["interrupt_id"], given, on_end=lambda: None
                )
                answered.append(await resumed)

        slow = replace(sound, runs=cast(Runs, Interposed(sound.runs, "end_waiting", answer)))
        elsewhere = desk_of(slow, AskingFlow(slow))
        assert (await elsewhere.cancel(ANONYMOUS, question.run_id)).record.state == "cancelled"
        assert answered
        for one in (service, elsewhere):
            await one.aclose()

    play(scenario, place.open())
