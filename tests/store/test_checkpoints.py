"""LangGraph's checkpoints in every store's adapter, on a real server, through real graphs."""

import asyncio
import functools
import itertools
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from operator import add
from typing import Annotated, Any, TypedDict

import psycopg2
import pytest
import redis
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from common import runtime
from common.errors import LeaseLost, StateLost, StateTooLarge, StoreUnavailable
from common.values import Classification, QueryResult, Sql, Turn, Usage
from store import EventFrame, Retention, RunEnd, RunHead, RunWrite, Store, Waiting, redis_keys
from store.checkpoints import MAX_BYTES, StateSerializer, held_by
from store.open_store import BACKENDS
from tests.support.databases import execute, rows_of
from tests.support.store_servers import PATIENT_S, STORE_SERVERS, StoreServer, play

_IMPATIENT_S = 1.5


@pytest.fixture
def thread() -> RunnableConfig:
    """A thread that does not exist yet."""
    return {"configurable": {"thread_id": f"run_{uuid.uuid4().hex}"}}


def child(work: Callable[[], Awaitable[None]]) -> int:
    """The id of a new process that does this and ends."""
    process = os.fork()
    if process == 0:  # pragma: no cover
        try:
            asyncio.run(work())  # type: ignore[arg-type]
        finally:
            os._exit(1)
    return process


def id_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


class Said(TypedDict):
    said: Annotated[list[str], add]


class Part(Said):
    n: int


class State(TypedDict, total=False):
    turn: Turn
    count: int
    said: Annotated[list[str], add]
    text: str
    share: float


TURN = Turn(
    "run", "多少?", "DATABASE", "hybrid", "三", "2026-01-02T03:04:05.678+00:00", "SELECT", 1, ("n",
     "d"),
    ((Decimal("2.50"), datetime(2026, 1, 2, tzinfo=UTC), date(2026, 1, 2), time(3), timedelta(1),
     (1, 2), 2**70),),
)  # fmt: skip
AWKWARD = {"text": "a\0b '\" \\u0000 文", "share": float("inf")}


def asking_graph(store: Store) -> Any:
    """Begins, asks twice, ends."""

    def begin(state: State) -> State:
        return {"turn": TURN, "count": 1, "said": ["begun"], **AWKWARD}  # type: ignore[typeddict-item]

    def ask(state: State) -> State:
        first = interrupt({"prompt": "which?", "choices": ("a", "b")})
        second = interrupt({"prompt": f"sure of {first}?"})
        return {"said": [str(first), str(second)], "count": state["count"] + 1}

    def finish(state: State) -> State:
        assert state["turn"] == TURN
        return {"said": ["done"], "turn": replace(state["turn"], answer="四")}

    graph = StateGraph(State)
    graph.add_node(begin)
    graph.add_node(ask)
    graph.add_node(finish)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "ask")
    graph.add_edge("ask", "finish")
    graph.add_edge("finish", END)
    return graph.compile(checkpointer=store.checkpoints)


# ------------------------------------------------------------------------------
# graphs


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_graph_stops_and_goes_on_in_another_store(
    place: StoreServer, thread: RunnableConfig, durability: Any
) -> None:
    async def scenario(one: Store, two: Store, three: Store) -> None:
        asked = await asking_graph(one).ainvoke({}, thread, durability=durability)
        assert [each.value for each in asked["__interrupt__"]] == [
            {"prompt": "which?", "choices": ("a", "b")}
        ]
        again = await asking_graph(two).ainvoke(Command(resume="b"), thread, durability=durability)
        assert [each.value for each in again["__interrupt__"]] == [{"prompt": "sure of b?"}]
        state = await asking_graph(three).ainvoke(
            Command(resume=("yes", 1)), thread, durability=durability
        )
        assert state["said"] == ["begun", "b", "('yes', 1)", "done"]
        assert (state["count"], state["turn"]) == (2, replace(TURN, answer="四"))
        assert {name: state[name] for name in AWKWARD} == AWKWARD
        kept = await asking_graph(one).aget_state(thread)
        assert (kept.values["turn"], kept.next) == (replace(TURN, answer="四"), ())

    play(scenario, place.open(), place.open(), place.open())


def test_a_graph_goes_on_in_another_process(place: StoreServer, thread: RunnableConfig) -> None:
    async def begin() -> None:
        await asking_graph(place.open()).ainvoke({}, thread, durability="sync")
        os.kill(os.getpid(), signal.SIGKILL)

    assert os.waitstatus_to_exitcode(os.waitpid(child(begin), 0)[1]) == -signal.SIGKILL

    async def scenario(store: Store) -> None:
        await asking_graph(store).ainvoke(Command(resume="b"), thread)
        state = await asking_graph(store).ainvoke(Command(resume="yes"), thread)
        assert state["said"] == ["begun", "b", "yes", "done"]

    play(scenario, place.open())


def test_subgraphs_and_many_tasks_ask_for_themselves(
    place: StoreServer, thread: RunnableConfig
) -> None:
    def inner(state: Part) -> Said:
        return {"said": [f"{state['n']}: {interrupt(state['n'])}"]}

    def graph(store: Store) -> Any:
        below = StateGraph(Part, output_schema=Said)
        below.add_node("inner", inner)
        below.add_edge(START, "inner")
        above = StateGraph(State)
        part: Any = below.compile()
        above.add_node("below", part)
        above.add_conditional_edges(
            START, lambda _: [Send("below", {"n": n, "said": []}) for n in range(3)]
        )
        return above.compile(checkpointer=store.checkpoints)

    async def scenario(one: Store, two: Store) -> None:
        asked = (await graph(one).ainvoke({"said": []}, thread, durability="sync"))["__interrupt__"]
        assert {each.value for each in asked} == {0, 1, 2}
        first, *rest = asked
        left = (
            await graph(two).ainvoke(Command(resume={first.id: "yes"}), thread, durability="sync")
        )["__interrupt__"]
        assert {each.id for each in left} == {each.id for each in rest}
        state = await graph(one).ainvoke(Command(resume={each.id: "no" for each in rest}), thread)
        answers = {first.value: "yes"} | {each.value: "no" for each in rest}
        assert state["said"] == [f"{n}: {answers[n]}" for n in range(3)]
        spaces = {
            each.config["configurable"]["checkpoint_ns"]
            async for each in one.checkpoints.alist(thread)
        }
        assert "" in spaces
        assert len(spaces) == 4

    play(scenario, place.open(), place.open())


def test_a_thread_forgets_all_at_once_and_others_stay(
    place: StoreServer, thread: RunnableConfig
) -> None:
    async def scenario(store: Store) -> None:
        other: RunnableConfig = {"configurable": {"thread_id": uuid.uuid4().hex}}
        for config in (thread, other):
            await asking_graph(store).ainvoke({}, config)
        await store.checkpoints.adelete_thread(id_of(thread))
        await store.checkpoints.adelete_thread(id_of(thread))
        assert await store.checkpoints.aget_tuple(thread) is None
        assert [each async for each in store.checkpoints.alist(thread)] == []
        assert await store.checkpoints.aget_tuple(other) is not None
        asked = await asking_graph(store).ainvoke({}, thread)
        assert asked["said"] == ["begun"]

    play(scenario, place.open())


# ------------------------------------------------------------------------------
# savers


async def put(
    store: Store,
    config: RunnableConfig,
    values: dict[str, Any],
    version: str = "1",
    namespace: str = "",
    step: int = 0,
) -> RunnableConfig:
    config = {"configurable": {"checkpoint_ns": namespace, **config["configurable"]}}
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, version),
    }
    metadata = {"source": "loop", "step": step, "parents": {}}
    versions: Any = dict.fromkeys(values, version)
    return await store.checkpoints.aput(config, checkpoint, metadata, versions)  # type: ignore[arg-type]


async def found(store: Store, config: RunnableConfig) -> CheckpointTuple:
    found = await store.checkpoints.aget_tuple(config)
    assert found is not None
    return found


def test_a_checkpoint_comes_back_as_it_was_put(place: StoreServer, thread: RunnableConfig) -> None:
    values: dict[str, Any] = {
        "a": TURN,
        "b": None,
        "c": "x\0",
        "d": b"\0\xff",
        "e": [],
        "f": {"k": ({1},)},
        "g": float("-inf"),
    }

    async def scenario(one: Store, two: Store) -> None:
        assert await one.checkpoints.aget_tuple(thread) is None
        first = await put(one, thread, values)
        assert set(first["configurable"]) == {"thread_id", "checkpoint_ns", "checkpoint_id"}
        kept = await found(two, thread)
        assert kept.checkpoint["channel_values"] == values
        assert (kept.config, kept.parent_config, kept.pending_writes) == (first, None, [])
        assert kept.metadata["step"] == 0
        second = await put(one, first, {"a": 2}, "2", step=1)
        latest = await found(two, thread)
        assert (latest.config, latest.parent_config) == (second, first)
        assert latest.checkpoint["channel_values"] == {"a": 2}
        assert (await found(two, first)).checkpoint["channel_values"] == values
        assert (
            await two.checkpoints.aget_tuple(
                {"configurable": {**first["configurable"], "checkpoint_id": "0"}}
            )
            is None
        )

    play(scenario, place.open(), place.open())


def test_values_that_did_not_change_are_kept_once(
    place: StoreServer, thread: RunnableConfig
) -> None:
    async def scenario(store: Store) -> None:
        first = await put(store, thread, {"a": [1], "b": [1]})
        checkpoint: Any = {**empty_checkpoint(), "channel_values": {"a": [1], "b": [2]}}
        checkpoint["channel_versions"] = {"a": "1", "b": "2"}
        await store.checkpoints.aput(
            first, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {"b": "2"}
        )
        assert (await found(store, thread)).checkpoint["channel_values"] == {"a": [1], "b": [2]}
        assert (await found(store, first)).checkpoint["channel_values"] == {"a": [1], "b": [1]}

    play(scenario, place.open())


def test_what_tasks_wrote_comes_back_in_order(place: StoreServer, thread: RunnableConfig) -> None:
    async def scenario(store: Store) -> None:
        saver = store.checkpoints
        config = await put(store, thread, {"a": 1})
        await saver.aput_writes(config, [("x", (1,)), ("y", TURN), ("x", None)], "task 2", "~p, 2")
        await saver.aput_writes(config, [("x", "kept")], "task 1", "~p, 1")
        await saver.aput_writes(config, [("x", "late")], "task 1", "~p, 1")
        await saver.aput_writes(config, [("__interrupt__", [1])], "task 3", "~p, 3")
        await saver.aput_writes(config, [("__interrupt__", [2])], "task 3", "~p, 3")
        await saver.aput_writes(config, [], "task 4")
        writes = [
            ("task 1", "x", "kept"),
            ("task 2", "x", (1,)),
            ("task 2", "y", TURN),
            ("task 2", "x", None),
        ]
        assert (await found(store, thread)).pending_writes == [
            *writes,
            ("task 3", "__interrupt__", [2]),
        ]
        await put(store, config, {"a": 2}, "2")
        assert (await found(store, thread)).pending_writes == []

    play(scenario, place.open())


def test_checkpoints_are_listed_from_the_latest_back(
    place: StoreServer, thread: RunnableConfig
) -> None:
    async def scenario(store: Store) -> None:
        configs = [thread]
        for n in range(5):
            configs.append(await put(store, configs[-1], {"a": n}, str(n), step=n))
        below = await put(store, thread, {"b": 1}, namespace="below:1|x", step=9)

        async def listed(config: RunnableConfig, **how: Any) -> list[int]:
            return [each.metadata["step"] async for each in store.checkpoints.alist(config, **how)]

        root: RunnableConfig = {"configurable": {**thread["configurable"], "checkpoint_ns": ""}}
        assert sorted(await listed(thread)) == [0, 1, 2, 3, 4, 9]
        assert await listed(root) == [4, 3, 2, 1, 0]
        assert await listed(root, limit=2) == [4, 3]
        assert await listed(root, limit=0) == []
        assert await listed(root, before=configs[3]) == [1, 0]
        assert await listed(root, filter={"step": 2}) == [2]
        assert await listed(root, filter={"step": 2, "source": "input"}) == []
        assert await listed(configs[2]) == [1]
        assert await listed(below) == [9]
        assert (await found(store, thread)).config == configs[-1]
        assert (await found(store, below)).checkpoint["channel_values"] == {"b": 1}

    play(scenario, place.open())


def test_two_that_go_on_from_one_checkpoint_do_not_mix(
    place: StoreServer, thread: RunnableConfig
) -> None:
    """A worker that counts as dead may still go on."""

    async def scenario(one: Store, two: Store) -> None:
        first = await put(one, thread, {"a": [0]})
        versions = [store.checkpoints.get_next_version("1", None) for store in (one, two)]
        assert len(set(versions)) == 2
        assert all(version > "0" * 31 + "1" for version in versions)
        ours = await put(one, first, {"a": ["ours"]}, versions[0])
        theirs = await put(two, first, {"a": ["theirs"]}, versions[1])
        assert (await found(one, ours)).checkpoint["channel_values"] == {"a": ["ours"]}
        assert (await found(one, theirs)).checkpoint["channel_values"] == {"a": ["theirs"]}

    play(scenario, place.open(), place.open())


def test_a_worker_that_lost_its_run_changes_nothing_of_it(
    place: StoreServer, thread: RunnableConfig
) -> None:
    run_id = id_of(thread)
    head = RunHead(run_id, "user", "c", "?", "en", "first", "2026-01-02T03:04:05.678+00:00")
    frames = (EventFrame(1, b"{}"),)

    async def writes_on(
        store: Store, has_begun: asyncio.Event, is_taken_over: asyncio.Event
    ) -> None:
        """Write until one write too many has begun after the takeover."""
        with held_by("first"):
            for n in itertools.count(2):
                is_last = is_taken_over.is_set()
                await put(store, thread, {"a": n}, str(n))
                has_begun.set()
                if is_last:
                    return

    async def scenario(store: Store, other: Store) -> None:
        async def ids() -> list[str]:
            return [each.checkpoint["id"] async for each in other.checkpoints.alist(thread)]

        with held_by("first"):
            config = await put(store, thread, {"a": 1})  # the store does not know the run yet
        await store.runs.write([RunWrite(head, frames)])
        has_begun, is_taken_over = asyncio.Event(), asyncio.Event()
        slow = asyncio.create_task(writes_on(store, has_begun, is_taken_over))
        await has_begun.wait()
        assert await other.runs.take_over(run_id, "second")
        is_taken_over.set()
        kept = await ids()
        with pytest.raises(LeaseLost):
            await slow
        with held_by("first"):
            with pytest.raises(LeaseLost):
                await store.checkpoints.aput_writes(config, [("a", 9)], "task")
            with pytest.raises(LeaseLost):
                await store.checkpoints.adelete_thread(run_id)
        assert await ids() == kept
        assert (await found(other, config)).pending_writes == []
        with held_by("second"):
            await put(other, thread, {"a": 0}, "0")
            ended = replace(head, worker_id="second")
            await other.runs.write([RunWrite(ended, (EventFrame(2, b"{}"),), RunEnd("completed"))])
            with pytest.raises(LeaseLost):
                await other.checkpoints.aput_writes(config, [("a", 9)], "task")
            await other.checkpoints.adelete_thread(run_id)
        assert await ids() == []

    play(scenario, place.open(lease_s=0), place.open())


def test_a_put_that_fails_leaves_the_checkpoint_before(
    place: StoreServer, thread: RunnableConfig
) -> None:
    async def scenario(store: Store) -> None:
        first = await put(store, thread, {"a": [1]})
        for wrong in (object(), lambda: 1):
            with pytest.raises(TypeError):
                await put(store, first, {"b": ["kept?"], "c": [wrong]}, "2")
            with pytest.raises(TypeError):
                await store.checkpoints.aput_writes(first, [("b", "kept?"), ("c", wrong)], "task")
        latest = await found(store, thread)
        assert (latest.config, latest.pending_writes) == (first, [])

    play(scenario, place.open())


def test_a_put_is_all_or_nothing(
    make_app_database: Callable[[], str], thread: RunnableConfig
) -> None:
    """In PostgreSQL a put is several statements; here the last of them fails."""
    url = make_app_database()

    async def scenario(store: Store) -> None:
        first = await put(store, thread, {"a": [1]})
        for table, column in (("checkpoints", "metadata"), ("checkpoint_writes", "channel")):
            check = (
                f"ALTER TABLE citu.{table} ADD CONSTRAINT no "
                f"CHECK ({column}::text NOT LIKE '%refused%') NOT VALID"
            )
            await asyncio.to_thread(execute, url, check)
        checkpoint: Any = {
            **empty_checkpoint(),
            "channel_values": {"a": [2]},
            "channel_versions": {"a": "2"},
        }
        with pytest.raises(StoreUnavailable):
            await store.checkpoints.aput(first, checkpoint, {"source": "refused"}, {"a": "2"})  # type: ignore[typeddict-item]
        with pytest.raises(StoreUnavailable):
            await store.checkpoints.aput_writes(first, [("x", 1), ("refused", 2)], "task")
        blobs = await asyncio.to_thread(rows_of, url, "SELECT count(*) FROM citu.checkpoint_blobs")
        writes = await asyncio.to_thread(
            rows_of, url, "SELECT count(*) FROM citu.checkpoint_writes"
        )
        assert (blobs, writes) == ([(1,)], [(0,)])
        assert (await found(store, thread)).config == first

    play(scenario, BACKENDS["postgresql"](lambda: url, Retention(), PATIENT_S))


def test_state_that_is_too_large_is_refused(place: StoreServer, thread: RunnableConfig) -> None:
    half = "x" * (MAX_BYTES // 2)

    async def scenario(store: Store) -> None:
        first = await put(store, thread, {"a": half})
        for values in ({"a": half, "b": half}, {"a": "文" * (MAX_BYTES // 3 + 1)}):
            with pytest.raises(StateTooLarge, match="8 MB"):
                await put(store, first, values, "2")
        with pytest.raises(StateTooLarge):
            await store.checkpoints.aput_writes(first, [("a", half), ("b", half)], "task")
        latest = await found(store, thread)
        assert (latest.config, latest.pending_writes) == (first, [])
        await put(store, first, {"a": half}, "2")

    play(scenario, place.open())


# ------------------------------------------------------------------------------
# state


@dataclass(frozen=True)
class Foreign:
    n: int


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [
        TURN,
        QueryResult(("a",), ("numeric",), ([Decimal("1.10"), None],), is_limited=True),
        {
            "classified": (Classification("CHAT", 0.5, "m", "r"),),
            "sql": Sql("SELECT 1"),
            "usage": Usage(1, 2, 3),
        },
        [(1, (2, [3])), {(1, 2): {(3,)}}, frozenset({"a"}), -(2**90), 2**63, b"", None, True],
        Command(resume=(TURN,), goto=[Send("node", (TURN, (1,)))]),
    ],
)
def test_state_comes_back_as_it_was(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    serializer = StateSerializer()
    assert serializer.loads_typed(serializer.dumps_typed(value)) == value
    assert caplog.text == ""


@pytest.mark.parametrize("value", [Foreign(1), Colour.RED, [{"deep": (Foreign(1),)}]])
def test_types_nobody_named_are_refused_when_they_are_written(value: Any) -> None:
    with pytest.raises(TypeError):
        StateSerializer().dumps_typed(value)
    named = StateSerializer().with_msgpack_allowlist([Foreign, (Colour.__module__, "Colour")])
    assert named.loads_typed(named.dumps_typed(value)) == value


def test_a_flow_names_its_own_types(place: StoreServer, thread: RunnableConfig) -> None:
    async def scenario(store: Store) -> None:
        named = replace(
            store, checkpoints=store.checkpoints.with_allowlist({(Foreign.__module__, "Foreign")})
        )
        await put(named, thread, {"a": Foreign(1)})
        assert (await found(named, thread)).checkpoint["channel_values"] == {"a": Foreign(1)}
        with pytest.raises(TypeError):
            await put(store, thread, {"a": Foreign(1)})

    play(scenario, place.open())


# ------------------------------------------------------------------------------
# faults


def test_a_restarted_server_is_found_again(place: StoreServer, thread: RunnableConfig) -> None:
    async def scenario(store: Store, impatient: Store) -> None:
        first = await put(store, thread, {"a": 1})  # must be on disk without a later write
        await asyncio.gather(
            *(found(each, thread) for each in (store, impatient) for _ in range(4))
        )
        await asyncio.to_thread(place.stop, signal.SIGKILL)
        try:
            async with asyncio.timeout(PATIENT_S / 2):
                with pytest.raises(StoreUnavailable) as caught:
                    await impatient.checkpoints.aget_tuple(thread)
        finally:
            await asyncio.to_thread(place.start)
        assert caught.value.retryable
        for each in (store, impatient):
            kept = await asyncio.gather(*(found(each, thread) for _ in range(4)))
            assert [every.config for every in kept] == [first] * 4
        for each in (store, impatient):
            await put(each, first, {"a": 2}, "2")

    play(scenario, place.open(), place.open(timeout_s=_IMPATIENT_S))


def test_a_silent_server_is_not_waited_for(place: StoreServer, thread: RunnableConfig) -> None:
    async def scenario(known: Store, new: Store) -> None:
        await put(known, thread, {"a": 1})
        with place.silent():
            calls = [
                store.checkpoints.aget_tuple(thread) for store in (known, new) for _ in range(6)
            ]
            async with asyncio.timeout(PATIENT_S / 2):
                failures = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(failure) for failure in failures} == {StoreUnavailable}
        for store in (known, new):
            async with asyncio.timeout(PATIENT_S):
                while await _fails(store, thread):  # noqa: ASYNC110 - it is the server's clock that gets there
                    await asyncio.sleep(0.05)

    play(scenario, place.open(timeout_s=_IMPATIENT_S), place.open(timeout_s=_IMPATIENT_S))


async def _fails(store: Store, thread: RunnableConfig) -> bool:
    try:
        return await store.checkpoints.aget_tuple(thread) is None
    except StoreUnavailable:
        return True


def test_a_failure_names_no_server(
    place: StoreServer, thread: RunnableConfig, caplog: pytest.LogCaptureFixture
) -> None:
    scheme = {"redis": "redis", "postgresql": "postgresql"}[place.name]

    async def scenario(store: Store) -> None:
        with pytest.raises(StoreUnavailable) as caught:
            await store.checkpoints.aget_tuple(thread)
        said = f"{caught.value} {caught.value.text} {caplog.text}"
        for secret in ("hunter2", "someone", "127.0.0.1"):
            assert secret not in said

    play(
        scenario,
        place.open(url=f"{scheme}://someone:hunter2@127.0.0.1:1/7", timeout_s=_IMPATIENT_S),
    )


@pytest.mark.slow
def test_a_worker_killed_at_any_moment_leaves_a_whole_checkpoint(
    place: StoreServer, thread: RunnableConfig
) -> None:
    async def go_on(first: int, said: int) -> None:
        store, config = place.open(), thread
        for n in itertools.count(first):
            config = await put(store, config, {"a": [n], "b": [n] * 1000}, str(n), step=n)
            os.write(said, b"%d\n" % n)

    async def look(store: Store, last: int) -> None:
        latest = await found(store, thread)
        n = latest.metadata["step"]
        assert n >= last
        assert latest.checkpoint["channel_values"] == {"a": [n], "b": [n] * 1000}

    for turn, count in enumerate((1, 7, 40)):
        reading, writing = os.pipe()
        worker = child(functools.partial(go_on, turn * 100_000, writing))
        os.close(writing)
        with open(reading) as lines:  # noqa: PTH123 - it has no path
            last = [int(lines.readline()) for _ in range(count)][-1]
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
        play(functools.partial(look, last=last), place.open())


def test_cancelled_at_any_moment_a_saver_stays_usable_and_whole(
    place: StoreServer, thread: RunnableConfig
) -> None:
    async def scenario(store: Store) -> None:
        config = await put(store, thread, {"a": [0], "b": [0]}, "0")
        for n in range(1, 60):
            calls = [put(store, config, {"a": [n], "b": [n]}, f"{n}.{i}", step=n) for i in range(3)]
            tasks = [asyncio.ensure_future(call) for call in (*calls, found(store, thread))]
            for _ in range(n % 25):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        async for each in store.checkpoints.alist(thread):
            n = each.metadata["step"]
            assert each.checkpoint["channel_values"] == {"a": [n], "b": [n]}
        last = await put(store, config, {"a": ["last"]}, "last")
        assert (await found(store, thread)).config == last

    play(scenario, place.open())


def test_checkpoints_survive_a_fork(place: StoreServer, thread: RunnableConfig) -> None:
    store = place.open()
    first = runtime.run(put(store, thread, {"a": 1}), PATIENT_S)
    child = os.fork()
    if child == 0:  # pragma: no cover
        status = 1
        try:
            runtime.run(put(store, first, {"a": 2}, "2"), PATIENT_S)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert runtime.run(found(store, thread), PATIENT_S).checkpoint["channel_values"] == {"a": 2}
    runtime.run(_closed(store), PATIENT_S)


async def _closed(store: Store) -> None:
    await store.aclose()


@pytest.mark.slow
def test_nothing_is_opened_or_imported_before_the_first_use() -> None:
    script = (
        "import sys\n"
        "from store import Retention\n"
        "from store.open_store import BACKENDS\n"
        "def source(): raise AssertionError\n"
        "for backend in BACKENDS.values():\n"
        "    backend(source, Retention(), 1.0).checkpoints.with_allowlist({('a', 'b')})\n"
        "assert not {'psycopg', 'psycopg_pool', "
        "'langgraph.checkpoint.postgres'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# ------------------------------------------------------------------------------
# one of them


def test_tables_are_made_by_whoever_comes_first(make_app_database: Callable[[], str]) -> None:
    url = make_app_database()
    stores = [BACKENDS["postgresql"](lambda: url, Retention(), PATIENT_S) for _ in range(6)]
    threads: list[RunnableConfig] = [{"configurable": {"thread_id": f"t{n}"}} for n in range(6)]

    async def scenario(*stores: Store) -> None:
        with closing(psycopg2.connect(url)) as other, other.cursor() as cursor:
            cursor.execute(
                "SELECT 1"
            )  # a transaction that goes on, for which building indexes concurrently would wait
            await asyncio.gather(
                *(put(*each, {"a": 1}) for each in zip(stores, threads, strict=True))
            )
        invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid"
        assert await asyncio.to_thread(rows_of, url, invalid) == [(0,)]
        schemas = "SELECT DISTINCT schemaname FROM pg_tables WHERE tablename LIKE 'checkpoint%'"
        assert await asyncio.to_thread(rows_of, url, schemas) == [("citu",)]
        await asyncio.to_thread(execute, url, "DROP SCHEMA citu CASCADE")
        await put(stores[0], threads[0], {"a": 2})
        assert await stores[1].checkpoints.aget_tuple(threads[1]) is None
        assert await stores[1].checkpoints.aget_tuple(threads[0]) is not None

    play(scenario, *stores)


def test_checkpoints_of_runs_that_are_gone_are_swept(make_app_database: Callable[[], str]) -> None:
    url = make_app_database()

    async def scenario(keeping: Store, sweeping: Store, hasty: Store) -> None:
        heads = [
            RunHead(name, "user", "c", "?", "en", "worker", "2026-01-02T03:04:05.678+00:00")
            for name in ("running", "waiting", "ended", "unknown")
        ]
        for head in heads:
            await put(keeping, {"configurable": {"thread_id": head.run_id}}, {"a": [1]})
        running, waiting, ended, _ = heads
        late: RunnableConfig = {
            "configurable": {"thread_id": "late", "checkpoint_ns": "", "checkpoint_id": "gone"}
        }
        await keeping.checkpoints.aput_writes(late, [("a", 1)], "task")
        frames = (EventFrame(1, b"{}"),)
        asked = RunWrite(waiting, frames, waiting=Waiting("q", "flow", {}))
        await keeping.runs.write(
            [RunWrite(running, frames), asked, RunWrite(ended, frames, RunEnd("completed"))]
        )
        await keeping.runs.abandoned()  # sweeps nothing: for this store's TTL all threads are young
        threads = "SELECT thread_id FROM citu.checkpoints ORDER BY 1"
        assert len(await asyncio.to_thread(rows_of, url, threads)) == 4
        await sweeping.runs.abandoned()
        assert await asyncio.to_thread(rows_of, url, threads) == [("running",), ("waiting",)]
        for table in ("checkpoint_blobs", "checkpoint_writes"):
            left = (
                f"SELECT count(*) FROM citu.{table} WHERE thread_id NOT IN ('running', 'waiting')"
            )
            assert await asyncio.to_thread(rows_of, url, left) == [(0,)]
        await hasty.aclose()

    keeping = BACKENDS["postgresql"](lambda: url, Retention(), PATIENT_S)
    sweeping = BACKENDS["postgresql"](lambda: url, Retention(run_ttl_s=0), PATIENT_S)
    play(scenario, keeping, sweeping, BACKENDS["postgresql"](lambda: url, Retention(), PATIENT_S))


def test_a_checkpoint_that_lost_values_is_refused(
    place: StoreServer, thread: RunnableConfig
) -> None:
    async def scenario(store: Store) -> None:
        first = await put(store, thread, {"a": [1]}, "1")
        await store.checkpoints.adelete_thread(thread["configurable"]["thread_id"])
        checkpoint: Any = {**empty_checkpoint(), "channel_values": {"a": [1], "b": [2]}}
        checkpoint["channel_versions"] = {"a": "1", "b": "2"}
        await store.checkpoints.aput(
            first, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {"b": "2"}
        )
        with pytest.raises(StateLost):
            await store.checkpoints.aget_tuple(thread)

    play(scenario, place.open())


def test_a_thread_in_redis_expires(thread: RunnableConfig) -> None:
    with STORE_SERVERS["redis"]() as place:

        async def scenario(store: Store) -> None:
            config = await put(store, thread, {"a": 1})
            name = redis_keys.checkpoints(redis_keys.digest(id_of(thread)))
            with redis.Redis.from_url(place.url) as client:
                for again in (
                    lambda: store.checkpoints.aput_writes(config, [("a", 1)], "task"),
                    None,
                ):
                    assert 100_000 < client.pttl(name) <= 110_000
                    client.persist(name)
                    if again:
                        await again()

        play(scenario, place.open(waiting_ttl_s=100, run_ttl_s=10))
