"""Counts ends of runs for an observer: each run that ends counts once, whoever ends it.

It is counted when its last event is kept, because only then it is decided which worker ends it. A
run whose last event can't be kept counts when it is shown.
"""

from collections.abc import Callable, Iterable

from agent.extensions.points import UNOBSERVED, ObservabilityProvider
from agent.flows.ask import sql_repair
from agent.question import Question
from agent.runs.events import Event
from common.errors import Cancelled, CituError
from store import RunRecord

_UNKNOWN = "unknown"  # the agent of a run whose worker is gone, and with it who answered
_NOTHING = "none"  # the error type of answers
_REPAIRS = {sql_repair.SUCCESS: "success", sql_repair.FAILED: "failed"}


class RunCounts:
    """Reports questions that ended, and runs that wait for their users.

    Args:
        agent_of: gives the name of the flow that answers a question.
    """

    def __init__(
        self, observer: ObservabilityProvider, agent_of: Callable[[Question], str]
    ) -> None:
        self._observer = observer
        self._agent_of = agent_of
        self._counts = observer is not UNOBSERVED

    def count(self, question: Question, last: Event) -> None:
        """Count the last event of a run in this process."""
        if not self._counts:
            return
        if last.type == "question":
            self._observer.metric("waiting_runs", 1, {})
            return

        agent = last.data.get("agent") or self._agent_of(question)
        if last.type == "error":
            self._count_error(agent, last.data["error_type"])
            path = last.data.get("state_summary", {}).get("execution_path", ())
        else:
            self._count_end(agent, "completed", _NOTHING)
            path = last.data.get("execution_path", ())

        self._count_repairs(path)

    def count_resumed(self) -> None:
        """Count a run that no longer waits, since its user has answered."""
        self._observer.metric("waiting_runs", -1, {})

    def count_without_run(self, record: RunRecord, error: type[CituError]) -> None:
        """Count a run that ends in the store, while no process works on it."""
        if record.state == "waiting":
            self._observer.metric("waiting_runs", -1, {})

        agent = record.waiting.flow if record.waiting is not None else _UNKNOWN
        self._count_error(agent, error.error_type)

    def _count_error(self, agent: str, error_type: str) -> None:
        outcome = "cancelled" if error_type == Cancelled.error_type else "error"
        self._count_end(agent, outcome, error_type)

    def _count_end(self, agent: str, outcome: str, error_type: str) -> None:
        about = {"agent": agent, "outcome": outcome, "error_type": error_type}
        self._observer.metric("questions", 1, about)

    def _count_repairs(self, path: Iterable[str]) -> None:
        for step in path:
            if step in _REPAIRS:
                self._observer.metric("repairs", 1, {"outcome": _REPAIRS[step]})
