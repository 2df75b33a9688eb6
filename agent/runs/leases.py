"""Leases: how a worker says that it works on its runs, and what becomes of a dead worker's runs.

A worker renews the leases of its runs. A run whose lease ran out is abandoned: the first worker
that notices ends it with an error, so that nobody waits for an answer that will never come. A run
that went on after the user's answer is taken over instead, because its graph is in the store and
the user's answer would be lost otherwise; so is any run of a flow that is durable.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from agent.runs.events import error_event
from agent.runs.live_run import LiveRun
from agent.runs.pauses import Beginning, GivenAnswer, Resumption
from common.errors import StoreUnavailable, WorkerLost
from store import EventFrame, RunRecord, Runs
from store.journal import Journal

_log = logging.getLogger(__name__)

# At most, between two renewals; a cancellation from another worker may take as long to arrive
_BEAT_S = 1.0
_BEATS_PER_LEASE = 4  # at least
_LEASES_PER_CUT_OFF = 2 * (1 + 1 / _BEATS_PER_LEASE)
_MOST_TAKEOVERS = 20  # from one answer to the next: a run may be what its workers die of


def lease_for(cut_off_s: float) -> float:
    """Return the lease, in seconds, with which a dead worker's run ends within `cut_off_s`.

    Store accesses are not counted. It takes a lease and the time between two renewals until the
    run is seen to be abandoned, and as much again until it is declared lost.
    """
    return cut_off_s / _LEASES_PER_CUT_OFF


def cut_off_of(lease_s: float) -> float:
    """Return the seconds within which a dead worker's run with such a lease ends."""
    return lease_s * _LEASES_PER_CUT_OFF


EndingLostRun = Callable[[RunRecord, EventFrame], AbstractContextManager[Callable[[], None]]]


class Leases:
    """Renews the leases of this process's runs, and takes care of abandoned runs.

    Args:
        live: this process's runs by their ids.
        worker_id: this process in the store.
        lease_s: seconds without renewal after which the store counts a run as abandoned.
        can_go_on: whether there is a flow of that name, whose graph fits that version.
        go_on: goes on with an abandoned run that this process has taken over.
        ending: gives a context in which an abandoned run is ended by its last frame, and what is
            called in it when this process has ended it.
        on_beat: is called at each look for abandoned runs.
    """

    def __init__(
        self,
        runs: Runs,
        journal: Journal,
        live: Mapping[str, LiveRun],
        worker_id: str,
        lease_s: float,
        *,
        can_go_on: Callable[[str, str | None], bool],
        go_on: Callable[[RunRecord, Resumption | Beginning], Awaitable[object]],
        ending: EndingLostRun = lambda _, __: nullcontext(lambda: None),
        on_beat: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._runs = runs
        self._journal = journal
        self._live = live
        self._worker_id = worker_id
        self._lease_s = lease_s
        self._beat_s = min(_BEAT_S, lease_s / _BEATS_PER_LEASE)
        self._can_go_on = can_go_on
        self._go_on = go_on
        self._ending = ending
        self._on_beat = on_beat
        self._beating: asyncio.Task[None] | None = None
        # By the loop's clock, when each abandoned run was first seen.
        self._suspects: dict[str, float] = {}

    def start(self) -> None:
        """Start renewing leases and looking for abandoned runs; call it on the event loop."""
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat())

    def stop(self) -> None:
        """Stop both; `start` starts them again."""
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None

    async def _beat(self) -> None:
        while True:
            try:
                await self._renew()
                await self._look_for_abandoned()
            except StoreUnavailable as exc:
                self._journal.fail(exc)
            except Exception:  # noqa: BLE001 - without this task runs that live would pass for dead
                _log.exception("leases could not be renewed")

            await asyncio.sleep(self._beat_s)

    async def _renew(self) -> None:
        if not self._live or self._journal.is_failing:
            return

        to_cancel = await self._runs.renew(tuple(self._live), self._worker_id)
        for run_id in to_cancel:
            if run_id in self._live:
                self._live[run_id].cancel()

        for run in tuple(self._live.values()):
            run.catch_up()

    async def _look_for_abandoned(self) -> None:
        if self._journal.is_failing:
            return

        abandoned = await self._runs.abandoned()
        records = {record.head.run_id: record for record in abandoned}
        self._suspects = {
            run_id: since for run_id, since in self._suspects.items() if run_id in records
        }
        for record in records.values():
            await self.take_care_of(record)

        if self._on_beat is not None:
            await self._on_beat()

    async def take_care_of(self, record: RunRecord) -> bool:
        """Take over a lost run that can go on, and end any other lost run.

        Return false when the run is not lost.
        """
        if not self._is_lost(record):
            return False

        resumed = self._resumption(record)
        if resumed is None:
            await self._mark_lost(record)
        elif await self._runs.take_over(record.head.run_id, self._worker_id):
            _log.warning(
                "a run's worker is gone; going on with it", extra={"run_id": record.head.run_id}
            )
            await self._go_on(record, resumed)

        return True

    def _is_lost(self, record: RunRecord) -> bool:
        """Tell whether the run's worker could have renewed the lease and did not.

        While the store was down no worker could renew, so an abandoned run gets one more lease
        from when it is first seen.
        """
        if not record.is_abandoned or record.head.run_id in self._live:
            return False

        now = asyncio.get_running_loop().time()
        first_seen = self._suspects.setdefault(record.head.run_id, now)
        return now - first_seen >= self._lease_s

    def _resumption(self, record: RunRecord) -> Resumption | Beginning | None:
        """Return from where the run goes on; None when it can't, or not in this version."""
        if record.takeovers >= _MOST_TAKEOVERS:
            return None

        try:
            if record.waiting is not None:
                return self._resumption_of(record)

            return self._begun(record)
        # Whatever another version wrote, the run must end, and others be looked at.
        except Exception:  # noqa: BLE001
            _log.exception(
                "what a run goes on from can't be read", extra={"run_id": record.head.run_id}
            )
            return None

    def _resumption_of(self, record: RunRecord) -> Resumption | None:
        asked = record.waiting
        assert asked is not None, "the run works on an answer"
        if not self._can_go_on(asked.flow, asked.request.get("graph_version")):
            return None

        return Resumption.of(asked.request, GivenAnswer.from_json(record.answer))

    def _begun(self, record: RunRecord) -> Beginning | None:
        if record.head.request is None:
            return None

        beginning = Beginning.from_json(record.head.request)
        flow = beginning.question.agent
        if flow is None or not self._can_go_on(flow, beginning.graph_version):
            return None

        return beginning

    async def _mark_lost(self, record: RunRecord) -> None:
        event = error_event(WorkerLost(), record.head)
        frame = EventFrame(record.last_seq + 1, event.rendered)
        with self._ending(record, frame) as note_ended:
            if await self._runs.end_abandoned(record.head, frame, event.turn):
                _log.warning("a run's worker is gone", extra={"run_id": record.head.run_id})
                note_ended()
