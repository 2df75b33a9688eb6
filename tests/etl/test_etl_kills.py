"""A worker dies while it drafts a transformation; another goes on, and nothing is done twice.

Death is played as in tests/support/mortal_workers.py.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from agent.flows.etl.context import EtlContext
from agent.flows.etl.etl_flow import EtlFlow
from agent.progress import Write
from agent.question import Question
from agent.runs.run_service import RunService
from agent.runs.runner import Runner
from common.actor import ANONYMOUS
from common.ports import Database
from etl.scratch.scratch_access import ScratchDatabase
from etl.scratch.scratch_options import ScratchOptions
from store import Runs, Store
from store.journal import Journal
from tests.support.databases import Opener
from tests.support.etl_requests import INTENT, SHOP, TESTED
from tests.support.mortal_workers import Fate, MortalRuns, MortalSaver, end_what_waits
from tests.support.store_servers import StoreServer, until

LEASE_S = 0.5
FIRST, LIVES = 5, 5  # spread over the writes of one run


@dataclass(frozen=True)
class Workshop:
    """Makes workers, and lets them live as long as they are fated to."""

    database: Database
    scratch_url: str
    store: Store

    def worker(self, store: Store) -> RunService:
        scratch = ScratchDatabase(lambda: self.scratch_url, ScratchOptions(), dict)

        def context(question: Question, write: Write) -> EtlContext:
            return EtlContext(question, self.database, scratch, store.artefacts, "UTC", 10, write)

        flow = EtlFlow(context, store.checkpoints, time_zone="UTC", deadline_s=60)
        return RunService(Runner({"etl": flow}, "etl"), store, Journal(store), lease_s=LEASE_S)

    async def life(self, fate: Fate) -> dict[str, Any] | None:
        """The answer to a request that a mortal worker begins; None: nobody has heard of it."""
        store = self.store
        runs, saver = MortalRuns(store.runs, fate), MortalSaver(store.checkpoints, fate)
        mortal = self.worker(replace(store, runs=cast(Runs, runs), checkpoints=saver))
        details = {"intent": INTENT, "options": {"feedback": False, "mutants": False}}
        question = Question(INTENT["summary"], agent="etl", details=details)
        mortal.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)

        async def is_over() -> bool:
            found = await store.runs.find(ANONYMOUS, question.run_id)
            if found is None:
                return fate.dead.is_set()
            return found.state not in ("running", "waiting")

        await until(is_over, 60)
        await mortal.aclose()
        if await store.runs.find(ANONYMOUS, question.run_id) is None:
            return None
        assert await store.artefacts.find(ANONYMOUS, question.run_id) is not None
        view = await self.worker(store).look(ANONYMOUS, question.run_id)
        assert view.last is not None
        return dict(view.last.data)


async def ends(workshop: Workshop) -> list[dict[str, Any]]:
    survivor = workshop.worker(workshop.store)
    survivor.watch_over()
    whole = Fate(None)
    ended = [await workshop.life(whole)]
    for number in range(LIVES):
        # With the first few writes the store gets to know the run.
        at = FIRST + number * (whole.writes - FIRST - 2) // (LIVES - 1)
        ended.append(await workshop.life(Fate(at)))
    await survivor.aclose()
    return [answer for answer in ended if answer is not None]


def test_a_draft_is_finished_by_others_wherever_its_worker_dies(
    place: StoreServer, opened: Opener, make_database: Callable[[str], str], scratch_url: str
) -> None:
    database = opened(make_database(SHOP))

    async def main() -> list[dict[str, Any]]:
        store = place.open(lease_s=LEASE_S)
        try:
            return await ends(Workshop(database, scratch_url, store))
        finally:
            await store.aclose()
            await end_what_waits()

    known = asyncio.run(main())
    assert len(known) > LIVES // 2
    assert {answer["status"] for answer in known} == {"proven"}
    for answer in known:
        assert answer["execution_path"] == [*TESTED, "finalize"]
