"""A worker dies while it drafts a transformation, asks, or learns; another goes on.

It dies in each node, in half of them with each store. Nothing is lost and nothing done twice.

Death is played as in tests/support/mortal_workers.py.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from agent.flows.etl.context import EtlContext
from agent.flows.etl.draft_learning import DraftLearning
from agent.flows.etl.etl_flow import EtlFlow
from agent.learnt_drafts import LearntDrafts
from agent.progress import Write
from agent.question import Question
from agent.runs.run_service import RunService
from agent.runs.runner import Runner
from common.actor import Actor
from common.errors import Conflict, NotFound
from common.learning import Example
from common.ports import Database
from databases.datasources import DEFAULT
from etl.scratch.scratch_access import ScratchDatabase
from etl.scratch.scratch_options import ScratchOptions
from knowledge.experience.experience_service import ExperienceService
from store import Learned, Runs, Store
from store.journal import Journal
from tests.support.databases import Opener
from tests.support.etl_requests import SHOP, TESTED
from tests.support.mortal_workers import (
    Fate,
    MortalLearned,
    MortalRuns,
    MortalSaver,
    answered,
    end_what_waits,
    next_stop,
)
from tests.support.store_servers import STORE_SERVERS, StoreServer

LEASE_S = 0.5
# Which of its two dates is meant is asked.
SENTENCE = "把订单表和用户表 JOIN，按月汇总销售额，写入销售汇总表"
ANSWERS = {"clarify": {"date_column": "orders.ordered_on"}, "feedback": {"rating": "satisfied"}}
PATH = [
    *TESTED[: TESTED.index("architect_agent")],
    "clarify",
    *TESTED[TESTED.index("analyst_agent") :],
    "feedback_handler",
    "learning_handler",
    "finalize",
]


@dataclass(frozen=True)
class DraftTold:
    """What became of one run: the answer's body, and what its user has learnt afterwards.

    Attributes:
        learnt_at, passed_at: with which write the worker had learnt, and passed each node.
    """

    answer: dict[str, Any] | None
    examples: tuple[Example, ...] = ()
    rating: str | None = None
    learnt_at: int = 0
    passed_at: tuple[int, ...] = ()


@dataclass(frozen=True)
class Workshop:
    """Makes workers, and lets them live as long as they are fated to."""

    database: Database
    scratch_url: str
    store: Store

    def worker(self, store: Store) -> RunService:
        scratch = ScratchDatabase(lambda: self.scratch_url, ScratchOptions(), dict)
        experience = ExperienceService(
            store.learned, DEFAULT, lambda _: self.database, topic="etl", reuses=False
        )
        learning = DraftLearning(store.learned, DEFAULT, lambda: self.database, learns=True)

        def context(question: Question, write: Write) -> EtlContext:
            return EtlContext(
                question,
                self.database,
                scratch,
                store.artefacts,
                "UTC",
                10,
                LearntDrafts(experience, question.actor),
                learning,
                write,
            )

        flow = EtlFlow(context, store.checkpoints, time_zone="UTC", deadline_s=60)
        return RunService(Runner({"etl": flow}, "etl"), store, Journal(store), lease_s=LEASE_S)

    async def life(self, fate: Fate, survivor: RunService) -> DraftTold:
        """What becomes of a request that a mortal worker begins and its user is satisfied with."""
        store = self.store
        learned = MortalLearned(store.learned, fate)
        checkpoints = MortalSaver(store.checkpoints, fate)
        mortal = self.worker(
            replace(
                store,
                runs=cast(Runs, MortalRuns(store.runs, fate)),
                checkpoints=checkpoints,
                learned=cast(Learned, learned),
            )
        )
        details = {"options": {"mutants": False}}
        actor = Actor(f"died after {fate.at}")
        question = Question(SENTENCE, agent="etl", details=details, actor=actor, is_credible=True)
        mortal.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
        while True:
            view = await next_stop(survivor, question.owner, question.run_id, fate)
            if view is None or view.last is None:
                return DraftTold(None)
            if view.last.is_terminal:
                break
            asked = view.last.data
            for service, doom in ((mortal, fate), (survivor, None)):
                # The dead one's answer was taken, and the run may have gone on to another question.
                with suppress(Conflict, NotFound):
                    if await answered(service, actor, asked, ANSWERS[asked["kind"]], doom):
                        break
        await mortal.aclose()
        assert await store.artefacts.find(question.owner, question.run_id) is not None
        own = (await store.learned.visible(DEFAULT, question.owner, "etl")).own
        assert own.lessons == (), own.lessons[0].root_cause
        rated = await store.learned.feedback(question.owner, question.run_id)
        assert rated is not None
        return DraftTold(
            dict(view.last.data),
            own.examples,
            rated.rating,
            learned.wrote_at,
            tuple(checkpoints.passed_at.values()),
        )


async def ends(workshop: Workshop, half: int) -> list[DraftTold]:
    """The ends of lives whose workers die in every other node, and about when they learn."""
    survivor = workshop.worker(workshop.store)
    survivor.watch_over()
    whole = await workshop.life(Fate(None), survivor)
    last = whole.learnt_at
    moments = sorted({*whole.passed_at[half::2], last - 1, last, last + 1})
    lives = [workshop.life(Fate(at), survivor) for at in moments]
    ended = [whole, *await asyncio.gather(*lives)]
    await survivor.aclose()
    return [told for told in ended if told.answer is not None]


@pytest.mark.slow
def test_a_draft_is_finished_and_learnt_from_once_wherever_its_worker_dies(
    place: StoreServer, opened: Opener, make_database: Callable[[str], str], scratch_url: str
) -> None:
    database = opened(make_database(SHOP))

    async def main() -> list[DraftTold]:
        store = place.open(lease_s=LEASE_S)
        try:
            half = list(STORE_SERVERS).index(place.name)
            return await ends(Workshop(database, scratch_url, store), half)
        finally:
            await store.aclose()
            await end_what_waits()

    known = asyncio.run(main())
    assert len(known) > len(PATH) / 2
    for told in known:
        assert told.answer is not None
        assert (told.answer["status"], told.rating) == ("proven", "satisfied")
        assert told.answer["execution_path"] == PATH
        (example,) = told.examples
        assert told.answer["learned"]["example"]["example_id"] == example.example_id
        assert told.answer["learned"]["lesson"] is None
