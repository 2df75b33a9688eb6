"""A worker dies while it drafts a transformation; another goes on, and nothing is done twice.

Death is played as in tests/support/mortal_workers.py.
"""

import asyncio
import json
from collections import Counter
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
from tests.support.etl_requests import INTENT, NODES, SHOP, TESTED
from tests.support.mortal_workers import Fate, MortalRuns, MortalSaver, end_what_waits
from tests.support.store_servers import StoreServer, until

LEASE_S = 0.5
FIRST, LIVES = 5, 12  # spread over the writes of one run: each role dies in one at least


@dataclass(frozen=True)
class Told:
    """The last events of one run, and how often each role was begun."""

    ends: list[dict[str, Any]]
    begun: Counter[str]


@dataclass(frozen=True)
class Workshop:
    """Makes workers, and lets them live as long as they are fated to."""

    database: Database
    scratch_url: str
    store: Store

    def worker(self, store: Store) -> RunService:
        scratch = ScratchDatabase(lambda: self.scratch_url, ScratchOptions(), {})

        def context(question: Question, write: Write) -> EtlContext:
            return EtlContext(question, self.database, scratch, store.artefacts, "UTC", 10, write)

        flow = EtlFlow(context, store.checkpoints, time_zone="UTC", deadline_s=60)
        return RunService(Runner({"etl": flow}, "etl"), store, Journal(store), lease_s=LEASE_S)

    async def life(self, fate: Fate) -> Told | None:
        """What became of a request that a mortal worker begins; None: nobody has heard of it."""
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
        following = self.worker(store).follow(ANONYMOUS, question.run_id, 0)
        events = [json.loads(frame.data)["data"] async for frame in following]
        begun = [data["node"] for data in events if data.get("status") == "running"]
        ends = [data for data in events if data["type"] in ("completed", "error")]
        return Told(ends, Counter(begun))


async def ends(workshop: Workshop) -> list[Told]:
    survivor = workshop.worker(workshop.store)
    survivor.watch_over()
    whole = Fate(None)
    ended = [await workshop.life(whole)]
    # With the first few writes the store gets to know the run.
    span = whole.writes - FIRST - 2
    fates = [Fate(FIRST + number * span // (LIVES - 1)) for number in range(LIVES)]
    ended += await asyncio.gather(*map(workshop.life, fates))
    await survivor.aclose()
    return [told for told in ended if told is not None]


def test_a_draft_is_finished_by_others_wherever_its_worker_dies(
    place: StoreServer, opened: Opener, make_database: Callable[[str], str], scratch_url: str
) -> None:
    database = opened(make_database(SHOP))

    async def main() -> list[Told]:
        store = place.open(lease_s=LEASE_S)
        try:
            return await ends(Workshop(database, scratch_url, store))
        finally:
            await store.aclose()
            await end_what_waits()

    known = asyncio.run(main())
    assert len(known) > LIVES // 2
    for told in known:
        (answer,) = told.ends
        assert answer["status"] == "proven"
        assert answer["execution_path"] == [*TESTED, "finalize"]
        # No role but the one that died is asked again.
        again = [node for node, times in told.begun.items() if times > 1]
        assert len(again) <= 1, told.begun
    assert {*NODES, "tester_agent"} <= {node for told in known for node in told.begun}
