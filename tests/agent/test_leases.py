"""How long a run of a dead worker may seem to go on."""

import asyncio
from collections.abc import Collection
from typing import Any, cast

import pytest

from agent.runs.leases import Leases, lease_for
from common.values import Turn
from store import EventFrame, RunHead, RunRecord, Runs, Store
from store.journal import Journal


class Hurrying(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer when nothing else is to be done."""

    _clock = 0.0
    _ready: Any
    _scheduled: Any

    def time(self) -> float:
        return self._clock

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._clock = max(self._clock, self._scheduled[0].when())
        super()._run_once()  # type: ignore[misc]


class AbandonedLater:
    """Runs of which one is abandoned from some moment on."""

    def __init__(self, since: float) -> None:
        self._since = since
        self.ended_at: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def abandoned(self) -> Collection[RunRecord]:
        head = RunHead("run", "user", "c", "q", "en", "a dead worker", "")
        is_abandoned = asyncio.get_running_loop().time() >= self._since
        return (RunRecord(head, "running", 1, is_abandoned=True),) if is_abandoned else ()

    async def end_abandoned(self, head: RunHead, frame: EventFrame, turn: Turn | None) -> bool:
        self.ended_at.set_result(asyncio.get_running_loop().time())
        return True


@pytest.mark.parametrize("cut_off_s", [0.1, 1.0, 5.0, 10.0, 60.0])
def test_a_killed_worker_s_run_ends_within_the_documented_time(cut_off_s: float) -> None:
    """The worker dies right after a renewal, at any time between two looks of the worker that
    notices.
    """
    lease_s = lease_for(cut_off_s)

    async def seconds(died_at: float) -> float:
        runs = AbandonedLater(died_at + lease_s)
        journal = Journal(cast(Store, None))
        leases = Leases(
            cast(Runs, runs),
            journal,
            {},
            "w",
            lease_s,
            can_go_on=lambda *_: False,
            go_on=cast(Any, None),
        )
        leases.start()
        ended_at = await runs.ended_at
        leases.stop()
        return ended_at - died_at

    for tenth in range(10):
        with asyncio.Runner(loop_factory=Hurrying) as runner:
            took = runner.run(seconds(lease_s * tenth / 10))
        assert lease_s < took <= cut_off_s * (1 + 1e-9)
