"""Notices what operators want to hear of: spent budgets, failures that pile up, bad feedback."""

from collections import Counter, deque
from collections.abc import Mapping
from datetime import UTC, date, datetime, tzinfo
from typing import Any, Protocol

from agent.extensions.points import EndedRun
from agent.flows.workflow_flow import WORKFLOW
from agent.question import Question
from common.after_fork import restart_after_fork
from common.errors import BudgetExhausted

# Failures of the service or of what it needs, as opposed to those of a question.
_FAILURES = frozenset(
    {
        "internal_error",
        "llm_unavailable",
        "database_unavailable",
        "store_unavailable",
        "query_timeout",
    }
)
_LOOKED_AT = 50  # questions that ended last, of which failures are counted
_FEWEST = 20  # questions before a share says something
_ALARM_SHARE = 0.5  # of failures, from which on the operator is told
_CALM_SHARE = 0.25  # below which the next rise is told again
_MOST_REMEMBERED = 10_000  # users of whom is told in a day

_BAD_RATINGS = frozenset({"unsatisfied", "need_modification"})


class _Send(Protocol):
    def __call__(self, event: str, data: Mapping[str, Any]) -> None: ...


class OperatorEvents:
    """`LifecycleHook` that tells operators by `send`. Each worker looks at its own questions.

    Args:
        zone: where the days of budgets begin at midnight.
    """

    def __init__(self, send: _Send, zone: tzinfo = UTC) -> None:
        self._send = send
        self._zone = zone
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Forget the questions of the parent process."""
        self._latest: deque[str | None] = deque(maxlen=_LOOKED_AT)
        self._is_alarmed = False
        self._today: date | None = None
        self._spent_out: set[str] = set()  # users of whom was told today

    async def before_question(self, question: Question) -> None:
        """Do nothing: only ends are looked at."""

    async def after_question(self, question: Question, ended: EndedRun) -> None:
        self._look_at_rate(ended.error_type)
        if ended.error_type == BudgetExhausted.error_type:
            self._tell_once_a_day(question)
        elif ended.error_type is not None and ended.flow == WORKFLOW:
            data = {
                "report": question.question,
                "error_type": ended.error_type,
                "run_id": question.run_id,
                "database": question.database,
            }
            self._send("report_failed", data)

    async def before_tool(
        self, question: Question, name: str, arguments: Mapping[str, Any]
    ) -> None:
        """Do nothing: only questions are looked at."""

    async def after_tool(self, question: Question, name: str, error_type: str | None) -> None:
        """Do nothing: only questions are looked at."""

    def rated(self, run_id: str, rating: str, user_id: str) -> None:
        """Tell of a rating that is not a good one."""
        if rating in _BAD_RATINGS:
            self._send("bad_feedback", {"run_id": run_id, "rating": rating, "user_id": user_id})

    def _look_at_rate(self, error_type: str | None) -> None:
        failure = error_type if error_type in _FAILURES else None
        self._latest.append(failure)
        failures = Counter(one for one in self._latest if one is not None)
        share = failures.total() / len(self._latest)
        if share < _CALM_SHARE:
            self._is_alarmed = False
        if self._is_alarmed or len(self._latest) < _FEWEST or share < _ALARM_SHARE:
            return

        self._is_alarmed = True
        data = {
            "failed": failures.total(),
            "questions": len(self._latest),
            "error_types": dict(failures.most_common()),
        }
        self._send("error_rate", data)

    def _tell_once_a_day(self, question: Question) -> None:
        """Tell that the budget of the question's user is spent, unless it was told today."""
        today = datetime.fromisoformat(question.asked_at).astimezone(self._zone).date()
        is_new_day = self._today is None or today > self._today
        if is_new_day:
            self._today = today
            self._spent_out.clear()

        is_known = question.owner in self._spent_out
        if is_known or len(self._spent_out) >= _MOST_REMEMBERED:
            return

        self._spent_out.add(question.owner)
        self._send("budget_exhausted", {"user_id": question.owner})
