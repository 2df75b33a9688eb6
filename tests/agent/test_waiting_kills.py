"""A worker dies between any two of its writes, while a run asks its user and goes on.

Death is played in this process (tests/support/mortal_workers.py). Real workers are killed in
tests/agent/test_runs.py.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from agent.bootstrap import FlowDependencies
from agent.flows.ask.context import AskContext, Behaviour
from agent.flows.flow import Durability
from agent.progress import Write
from agent.question import Question
from agent.runs.run_service import RunService
from agent.runs.runner import Runner
from app_config import Settings
from common.actor import ANONYMOUS, NOBODY
from common.errors import Conflict
from rules.skills import OfflineSkills
from store import Runs, Store
from store.journal import Journal
from tests.support.databases import Opener
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


@pytest.mark.parametrize("kind", [SurveyFlow, DurableSurveyFlow])
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
            with suppress(Conflict):  # the dead one's answer was taken
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
