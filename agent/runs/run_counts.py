"""Counts ends of runs for an observer: each run that ends counts once, whoever ends it.

It is counted when its last event is kept, because only then it is decided which worker ends it. A
run whose last event can't be kept counts when it is shown. What a worker has kept and not counted
when it is killed, another one counts.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from agent.extensions.points import UNOBSERVED, ObservabilityProvider
from agent.flows.ask import sql_repair
from agent.question import Question
from agent.runs.events import Event
from agent.runs.uncounted_ends import Measurement, NotedEnd, UncountedEnds
from common.errors import Cancelled, CituError
from store import EventFrame, RunHead, RunRecord, Runs

_UNKNOWN = "unknown"  # the agent of a run whose worker is gone, and with it who answered
_NOTHING = "none"  # the error type of answers
_REPAIRS = {sql_repair.SUCCESS: "success", sql_repair.FAILED: "failed"}
_RESUMED = Measurement("waiting_runs", -1)


class RunCounts:
    """Reports questions that ended, and runs that wait for their users.

    Args:
        agent_of: gives the name of the flow that answers a question.
        runs: the store's table of runs.
        settled_s: seconds after which a dead worker's writes have reached the store, or never will.
        uncounted: remembers ends while they are kept; None: nobody counts what a killed worker
            didn't.
    """

    def __init__(
        self,
        observer: ObservabilityProvider,
        agent_of: Callable[[Question], str],
        runs: Runs,
        settled_s: float,
        uncounted: UncountedEnds | None = None,
    ) -> None:
        self._observer = observer
        self._agent_of = agent_of
        self._counts = observer is not UNOBSERVED
        self._runs = runs
        self._settled_s = settled_s
        self._uncounted = uncounted
        # Ends that dead workers left, each with the loop's time at which it was found.
        self._left: list[tuple[float, NotedEnd]] = []

    # --------------------------------------------------------------------------
    # before the end is kept

    def note(self, head: RunHead, question: Question, frame: EventFrame, last: Event) -> None:
        """Note the last event of a run in this process, which is about to be kept."""
        if self._uncounted is not None:
            self._uncounted.note(NotedEnd.of(head, frame, self._of_event(question, last)))

    def forget(self, run_id: str) -> None:
        """Forget an end that turned out to be another worker's to count."""
        if self._uncounted is not None:
            self._uncounted.settle(run_id)

    # --------------------------------------------------------------------------
    # when it is kept

    def count(self, run_id: str, question: Question, last: Event) -> None:
        """Count the last event of a run in this process."""
        if not self._counts:
            return

        self._report(self._of_event(question, last))
        self.forget(run_id)

    def count_resumed(self) -> None:
        """Count a run that no longer waits, since its user has answered."""
        self._report([_RESUMED])

    @contextmanager
    def without_run(
        self, record: RunRecord, frame: EventFrame, error: type[CituError]
    ) -> Iterator[Callable[[], None]]:
        """Give what counts a run that no process works on, to be called once its end is kept."""
        counts = list(_of_lost(record, error))
        if self._uncounted is not None:
            self._uncounted.note(NotedEnd.of(record.head, frame, counts))

        try:
            yield lambda: self._report(counts)
        finally:
            self.forget(record.head.run_id)

    async def count_left(self) -> None:
        """Count what workers that were killed have kept and not counted.

        Raises:
            StoreUnavailable: it is tried again the next time.
        """
        if self._uncounted is None:
            return

        now = asyncio.get_running_loop().time()
        self._left += [(now, end) for end in self._uncounted.take_left()]
        while self._left and now - self._left[0][0] >= self._settled_s:
            await self._count_one_left(self._uncounted, self._left[0][1])
            del self._left[0]

    async def _count_one_left(self, uncounted: UncountedEnds, end: NotedEnd) -> None:
        frames = await self._runs.frames(end.user_id, end.run_id, end.seq - 1, 1)
        if end.is_in(frames):
            self._report(end.counts)

        uncounted.settle_left(end.run_id)

    # --------------------------------------------------------------------------
    # what an end counts

    def _of_event(self, question: Question, last: Event) -> Sequence[Measurement]:
        if last.type == "question":
            return [Measurement("waiting_runs", 1)]

        agent = last.data.get("agent") or self._agent_of(question)
        if last.type == "error":
            ended = _of_error(agent, last.data["error_type"])
            path = last.data.get("state_summary", {}).get("execution_path", ())
        else:
            ended = _of_end(agent, "completed", _NOTHING)
            path = last.data.get("execution_path", ())

        return [ended, *_of_repairs(path)]

    def _report(self, counts: Iterable[Measurement]) -> None:
        for count in counts:
            self._observer.metric(count.name, count.value, count.attributes)


def _of_lost(record: RunRecord, error: type[CituError]) -> Iterator[Measurement]:
    if record.state == "waiting":
        yield _RESUMED

    agent = record.waiting.flow if record.waiting is not None else _UNKNOWN
    yield _of_error(agent, error.error_type)


def _of_error(agent: str, error_type: str) -> Measurement:
    outcome = "cancelled" if error_type == Cancelled.error_type else "error"
    return _of_end(agent, outcome, error_type)


def _of_end(agent: str, outcome: str, error_type: str) -> Measurement:
    about = {"agent": agent, "outcome": outcome, "error_type": error_type}
    return Measurement("questions", 1, about)


def _of_repairs(path: Iterable[str]) -> Iterator[Measurement]:
    for step in path:
        if step in _REPAIRS:
            yield Measurement("repairs", 1, {"outcome": _REPAIRS[step]})
