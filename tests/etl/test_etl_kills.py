"""A worker dies while it drafts a transformation, or learns from it; another goes on.

Nothing is lost and nothing done twice.

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
from agent.kept_drafts import KeptDrafts
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
from tests.support.etl_requests import INTENT, SHOP, TESTED
from tests.support.mortal_workers import (
    Fate,
    MortalLearned,
    MortalRuns,
    MortalSaver,
    answered,
    end_what_waits,
    next_stop,
)
from tests.support.store_servers import StoreServer

LEASE_S = 0.5
FIRST, LIVES = 5, 4  # spread over the writes until the draft is rated


@dataclass(frozen=True)
class DraftTold:
    """What became of one run: the answer's body, and what its user has learnt afterwards."""

    answer: dict[str, Any] | None
    examples: tuple[Example, ...] = ()
    rating: str | None = None
    learnt_at: int = 0


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
                KeptDrafts(experience, question.actor),
                learning,
                write,
            )

        flow = EtlFlow(context, store.checkpoints, time_zone="UTC", deadline_s=60)
        return RunService(Runner({"etl": flow}, "etl"), store, Journal(store), lease_s=LEASE_S)

    async def life(self, fate: Fate, survivor: RunService) -> DraftTold:
        """What becomes of a request that a mortal worker begins and its user is satisfied with."""
        store = self.store
        learned = MortalLearned(store.learned, fate)
        mortal = self.worker(
            replace(
                store,
                runs=cast(Runs, MortalRuns(store.runs, fate)),
                checkpoints=MortalSaver(store.checkpoints, fate),
                learned=cast(Learned, learned),
            )
        )
        details = {"intent": INTENT, "options": {"mutants": False}}
        actor = Actor(f"died after {fate.at}")
        question = Question(
            INTENT["summary"], agent="etl", details=details, actor=actor, is_credible=True
        )
        mortal.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
        while True:
            view = await next_stop(survivor, question.owner, question.run_id, fate)
            if view is None or view.last is None:
                return DraftTold(None)
            if view.last.is_terminal:
                break
            for service, doom in ((mortal, fate), (survivor, None)):
                # The dead one's answer was taken, and the run may have gone on to another question.
                with suppress(Conflict, NotFound):
                    if await answered(
                        service, actor, view.last.data, {"rating": "satisfied"}, doom
                    ):
                        break
        await mortal.aclose()
        assert await store.artefacts.find(question.owner, question.run_id) is not None
        own = (await store.learned.visible(DEFAULT, question.owner, "etl")).own
        assert own.lessons == (), own.lessons[0].root_cause
        rated = await store.learned.feedback(question.owner, question.run_id)
        assert rated is not None
        return DraftTold(dict(view.last.data), own.examples, rated.rating, learned.wrote_at)


async def ends(workshop: Workshop) -> list[DraftTold]:
    survivor = workshop.worker(workshop.store)
    survivor.watch_over()
    whole = await workshop.life(Fate(None), survivor)
    last = whole.learnt_at
    before = [FIRST + number * (last - FIRST) // LIVES for number in range(LIVES)]
    moments = [*before, last - 1, last, last + 1]
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
            return await ends(Workshop(database, scratch_url, store))
        finally:
            await store.aclose()
            await end_what_waits()

    known = asyncio.run(main())
    assert len(known) > LIVES
    for told in known:
        assert told.answer is not None
        assert (told.answer["status"], told.rating) == ("proven", "satisfied")
        path = [*TESTED, "feedback_handler", "learning_handler", "finalize"]
        assert told.answer["execution_path"] == path
        (example,) = told.examples
        assert told.answer["learned"]["example"]["example_id"] == example.example_id
        assert told.answer["learned"]["lesson"] is None
