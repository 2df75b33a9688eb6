"""A worker dies between any two of its writes, while a run asks its user and goes on.

Death is played in this process (tests/support/mortal_workers.py). Real workers are killed in
tests/agent/test_runs.py.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from agent.bootstrap import FlowDependencies
from agent.flows.ask.context import AskContext, Behaviour
from agent.flows.flow import Durability
from agent.progress import Write
from agent.question import Question
from agent.runs.live_run import LiveRun
from agent.runs.run_service import RunService
from agent.runs.runner import Runner
from app_config import Settings
from common.actor import ANONYMOUS, NOBODY
from common.errors import Conflict, NotFound, StateLost
from common.ports import Database
from common.values import Catalog
from rules.skills import OfflineSkills
from store import Runs, Store
from store.journal import Journal
from tests.support.databases import Opener
from tests.support.effort import slow_beyond
from tests.support.live import GAUGES
from tests.support.mortal_workers import (
    Fate,
    MortalRuns,
    MortalSaver,
    answered,
    end_what_waits,
    next_stop,
)
from tests.support.store_servers import StoreServer
from tests.support.survey.survey_flow import SURVEY, SurveyFlow

LEASE_S = 0.5
LONG_LEASE_S = (
    60.0  # nobody else goes on with a run of a worker that lives, however busy the machine is
)
ANSWERS = {"Which column?": "name", "How many of name?": 2}
USER = ANONYMOUS


@dataclass(frozen=True)
class Told:
    """What became of one run: its last event's data, the number of its frames, and of the answers
    that were taken.
    """

    fate: Fate
    end: dict[str, Any] | None
    sequence: tuple[int, ...] = ()
    taken: int = 0
    turns: int = 0
    failures: int = 0


class DurableSurveyFlow(SurveyFlow):
    """The same, taken over from its beginning on."""

    durability = Durability(1)


@pytest.mark.parametrize("kind", slow_beyond(1, [DurableSurveyFlow, SurveyFlow]))
def test_no_answer_is_lost_or_given_twice_wherever_a_worker_dies(
    place: StoreServer, opened: Opener, make_database: Callable[[str], str], kind: type[SurveyFlow]
) -> None:
    database, rules = opened(make_database(GAUGES)), OfflineSkills()

    def desk_of(store: Store, lease_s: float) -> RunService:
        def new_context(_question: Question, _write: Write) -> AskContext:
            return AskContext(database, rules, rules, Behaviour())

        flow = kind(FlowDependencies(Settings(), new_context, None, store, cast(Any, None)))
        return RunService(
            Runner({flow.name: flow}, flow.name), store, Journal(store), lease_s=lease_s
        )

    async def play() -> list[Told]:
        store, patient = place.open(lease_s=LEASE_S), place.open(lease_s=LONG_LEASE_S)
        survivor = desk_of(store, LEASE_S)
        survivor.watch_over()

        async def life(fate: Fate, store: Store, lease_s: float) -> Told:
            runs, saver = MortalRuns(store.runs, fate), MortalSaver(store.checkpoints, fate)
            mortal = desk_of(replace(store, runs=cast(Runs, runs), checkpoints=saver), lease_s)
            told = await _one_run(mortal, survivor, store, fate)
            await mortal.aclose()
            return told

        whole = await life(Fate(None), patient, LONG_LEASE_S)
        fates = [Fate(at) for at in range(whole.fate.writes + 1)]
        try:
            return [whole, *await asyncio.gather(*(life(fate, store, LEASE_S) for fate in fates))]
        finally:
            await survivor.aclose()
            await store.aclose()
            await patient.aclose()
            await end_what_waits()

    whole, *lives = asyncio.run(play())
    assert whole.end is not None
    assert whole.end["response"] == "gauge 1, gauge 2"
    assert len(lives) > 15
    for told in lives:
        said = f"died after write {told.fate.at}: {told}"
        if told.end is None:
            assert told.taken == 0, said  # nobody has heard of the run yet
            continue
        assert told.sequence == tuple(range(1, len(told.sequence) + 1)), said
        if kind is DurableSurveyFlow or told.end["type"] == "completed":
            assert (told.end["response"], told.turns) == ("gauge 1, gauge 2", 1), said
        else:
            assert (told.end["error_type"], told.end["retryable"], told.taken) == (
                "internal_error",
                True,
                0,
            ), said
            assert (told.turns, told.failures) == (0, 1), said


async def _one_run(mortal: RunService, survivor: RunService, store: Store, fate: Fate) -> Told:
    """Begins at the mortal worker and answers there as long as it lives, then at the survivor."""
    question = Question(SURVEY, agent="survey")
    mortal.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
    taken = 0
    while True:
        view = await next_stop(survivor, USER, question.run_id, fate)
        if view is None or view.last is None:
            return Told(fate, None)
        if view.last.is_terminal:
            break
        asked = view.last.data
        for service in (mortal, survivor):
            # The dead one's answer was taken, and the run may have gone on to another question.
            with suppress(Conflict, NotFound):
                given = ANSWERS[asked["prompt"]]
                if await answered(
                    service, NOBODY, asked, given, fate if service is mortal else None
                ):
                    taken += 1
                    break
    frames = await store.runs.frames(USER, question.run_id, 0, 1000)
    turns = await store.conversations.recent(USER, question.conversation_id, 10)
    page = await store.conversations.turns(USER, question.conversation_id, 10)
    failures = len(page.turns) - len(turns) if page else 0
    return Told(
        fate, view.last.data, tuple(frame.seq for frame in frames), taken, len(turns), failures
    )


class HeldDatabase:
    """Tells when the flow's first node has reached the database, and holds it there."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.reached, self.released = asyncio.Event(), asyncio.Event()

    async def catalog(self) -> Catalog:
        self.reached.set()
        await self.released.wait()
        return await self._database.catalog()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


class UnrenewedRuns(MortalRuns):
    """Belongs to a worker that lives, and is so slow that it seems to be dead."""

    async def renew(self, _run_ids: Collection[str], _worker_id: str) -> Collection[str]:
        return ()


class RememberingSaver(MortalSaver):
    """Knows which threads its worker has deleted."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.checkpoints, Fate(None))
        self.deleted: list[str] = []

    async def adelete_thread(self, thread_id: str) -> None:
        self.deleted.append(thread_id)
        await super().adelete_thread(thread_id)


@dataclass(frozen=True)
class Pair:
    """A worker that seems to be dead, and one that goes on with its run."""

    store: Store
    slow: RunService
    slow_saver: RememberingSaver
    slow_database: HeldDatabase
    survivor: RunService
    database: HeldDatabase

    async def answer_all(self, slow_run: LiveRun) -> dict[str, Any]:
        """Answer whatever the survivor asks; return the last event's data."""
        while True:
            view = await next_stop(self.survivor, USER, slow_run.head.run_id, Fate(None))
            assert view is not None
            assert view.last is not None
            asked = view.last.data
            if view.last.is_terminal:
                await self.settle(slow_run)
                return dict(asked)
            await answered(self.survivor, NOBODY, asked, ANSWERS[asked["prompt"]], None)

    async def checkpoints_of(self, run: LiveRun) -> list[CheckpointTuple]:
        config: RunnableConfig = {"configurable": {"thread_id": run.head.run_id}}
        return [each async for each in self.store.checkpoints.alist(config)]

    async def settle(self, slow_run: LiveRun) -> None:
        """Let the slow worker finish, and wait until the survivor has cleared up."""
        self.slow_database.released.set()
        await self.slow.last(slow_run)
        async with asyncio.timeout(90):
            while True:
                if await self._is_cleared(slow_run.head.run_id):
                    return
                await asyncio.sleep(0.01)

    async def _is_cleared(self, run_id: str) -> bool:
        config = cast(RunnableConfig, {"configurable": {"thread_id": run_id}})
        with suppress(StateLost):
            return await self.store.checkpoints.aget_tuple(config) is None
        return False


@asynccontextmanager
async def _pair(place: StoreServer, database: Database) -> AsyncIterator[Pair]:
    store, rules = place.open(lease_s=LEASE_S), OfflineSkills()

    def desk_of(own: Store, held: HeldDatabase) -> RunService:
        def new_context(_question: Question, _write: Write) -> AskContext:
            return AskContext(cast(Database, held), rules, rules, Behaviour())

        given = FlowDependencies(Settings(), new_context, None, own, cast(Any, None))
        flow: SurveyFlow = DurableSurveyFlow(given)
        runner = Runner({flow.name: flow}, flow.name)
        return RunService(runner, own, Journal(own), lease_s=LEASE_S)

    slow_saver = RememberingSaver(store)
    runs = cast(Runs, UnrenewedRuns(store.runs, Fate(None)))
    slow_database, held = HeldDatabase(database), HeldDatabase(database)
    slow = desk_of(replace(store, runs=runs, checkpoints=slow_saver), slow_database)
    pair = Pair(store, slow, slow_saver, slow_database, desk_of(store, held), held)
    try:
        yield pair
    finally:
        await slow.aclose()
        await pair.survivor.aclose()
        await store.aclose()
        await end_what_waits()


async def _break_checkpoint(store: Store, run_id: str) -> None:
    """Leave the run's latest checkpoint, without the values it refers to."""
    found = await store.checkpoints.aget_tuple({"configurable": {"thread_id": run_id}})
    assert found is not None
    before = {"configurable": {"thread_id": run_id, "checkpoint_ns": ""}}
    await store.checkpoints.adelete_thread(run_id)
    await store.checkpoints.aput(cast(Any, before), found.checkpoint, found.metadata, {})


def test_a_worker_that_only_seemed_dead_leaves_the_checkpoints_to_its_successor(
    place: StoreServer, opened: Opener, make_database: Callable[[str], str]
) -> None:
    database = opened(make_database(GAUGES))

    async def play() -> tuple[dict[str, Any], list[str]]:
        async with _pair(place, database) as pair:
            question = Question(SURVEY, agent="survey")
            slow_run = pair.slow.begin(
                question, is_watched=True, outlives_readers=True, on_end=lambda: None
            )
            await pair.slow_database.reached.wait()
            pair.survivor.watch_over()
            await pair.database.reached.wait()
            kept = await pair.checkpoints_of(slow_run)
            pair.slow_database.released.set()
            await pair.slow.last(slow_run)
            assert await pair.checkpoints_of(slow_run) == kept
            pair.database.released.set()
            end = await pair.answer_all(slow_run)
            return end, pair.slow_saver.deleted

    end, deleted = asyncio.run(play())
    assert deleted == []
    assert end.get("response") == "gauge 1, gauge 2", end


@pytest.mark.parametrize("has_asked", [False, True])
def test_a_run_never_goes_on_from_a_part_of_its_state(
    place: StoreServer, opened: Opener, make_database: Callable[[str], str], has_asked: bool
) -> None:
    database = opened(make_database(GAUGES))

    async def play() -> dict[str, Any]:
        async with _pair(place, database) as pair:
            question = Question(SURVEY, agent="survey")
            pair.database.released.set()
            if has_asked:
                pair.slow_database.released.set()
            slow_run = pair.slow.begin(
                question, is_watched=True, outlives_readers=True, on_end=lambda: None
            )
            await pair.slow_database.reached.wait()
            if has_asked:
                await next_stop(pair.survivor, USER, question.run_id, Fate(None))
            await _break_checkpoint(pair.store, question.run_id)
            pair.survivor.watch_over()
            return await pair.answer_all(slow_run)

    end = asyncio.run(play())
    if has_asked:
        assert (end["error_type"], end["retryable"]) == ("internal_error", True)
        assert StateLost().text.to("en") in end.values(), end
    else:
        assert end.get("response") == "gauge 1, gauge 2", end
