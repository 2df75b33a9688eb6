"""Who is charged for a question, and what they have left today."""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from agent.budgets.budgets_file import MICROS, Allowance, BudgetPlan
from agent.budgets.late_charges import PAUSES_S, LateCharges
from agent.question import Question
from common.errors import BudgetExhausted, StoreUnavailable
from common.text import Text
from common.values import Usage
from store.spending import Expense, Spending

_log = logging.getLogger(__name__)

_YOURS = Text("您今天的模型额度", "Your budget for models today")
_GROUPS = Text("您所在的组今天的模型额度", "The budget for models of your group today")
_EVERYBODYS = Text("整个服务今天的模型额度", "The whole service's budget for models today")


@dataclass(frozen=True)
class _Account:
    """Users who are charged together: a user, a group, or everybody.

    Attributes:
        key: its name in the store.
        name: what its owner calls its budget.
    """

    key: str
    name: Text
    allowance: Allowance

    def tokens_left(self, spent: Expense) -> int | None:
        """Return the tokens that are left; None when they have no bound."""
        if self.allowance.tokens is None:
            return None

        return max(0, self.allowance.tokens - spent.tokens)

    def micros_left(self, spent: Expense) -> int | None:
        """Return the millionths of the currency that are left; None when they have no bound."""
        if self.allowance.money is None:
            return None

        return max(0, int(self.allowance.money * MICROS) - spent.micros)

    def is_exhausted(self, spent: Expense) -> bool:
        return 0 in (self.tokens_left(spent), self.micros_left(spent))


class OpenBudget:
    """The budget of one question: charged by its model calls, told in its answer."""

    def __init__(
        self,
        plan: BudgetPlan,
        spending: Spending,
        accounts: Sequence[_Account],
        today: date,
        sums: Sequence[Expense] | None,
        charging: "set[asyncio.Task[None]]",
        late: LateCharges,
    ) -> None:
        """Take the plan, and who is charged.

        Args:
            sums: what the accounts have spent; None: the store can't be reached.
            charging: holds charges that are under way.
            late: takes charges that the store can't.
        """
        self._plan = plan
        self._spending = spending
        self._accounts = accounts
        self._today = today
        self._sums = sums
        self._charging = charging
        self._late = late

    async def charge(self, model: str, usage: Usage) -> None:
        """Add one call's tokens and their price to what the accounts have spent, also when the
        question is cancelled meanwhile.

        A store that can't be reached keeps no question from its answer: it is charged later.
        """
        await asyncio.shield(self.begin_charge(model, usage))

    def begin_charge(self, model: str, usage: Usage) -> "asyncio.Task[None]":
        """Charge in a task of its own, for questions that can't wait."""
        task = asyncio.get_running_loop().create_task(self._add(model, usage))
        self._charging.add(task)
        task.add_done_callback(self._charging.discard)
        return task

    async def _add(self, model: str, usage: Usage) -> None:
        tokens = usage.prompt_tokens + usage.completion_tokens
        if not tokens:
            return

        micros = self._plan.micros(model, usage)
        keys = [account.key for account in self._accounts]
        spent = Expense(tokens, micros)
        if self._sums is None:  # no call has to find out again that the store is away
            self._late.put(self._today, keys, spent)
            return

        try:
            sums = await self._spending.add(self._today, keys, spent)
        except StoreUnavailable:
            self._late.put(self._today, keys, spent)
            return

        # Calls at once may be told their sums in another order than they were added.
        self._sums = [_larger(*pair) for pair in zip(self._sums, sums, strict=True)]

    def left(self) -> dict[str, Any] | None:
        """Return what is left for the user, by the account that has least, as `usage.budget`; None
        while the store can't be reached.
        """
        if self._sums is None:
            return None

        pairs = list(zip(self._accounts, self._sums, strict=True))
        tokens = [account.tokens_left(spent) for account, spent in pairs]
        micros = [account.micros_left(spent) for account, spent in pairs]
        money_left = _least(micros)
        if money_left is not None:
            money_left = float(Decimal(money_left) / MICROS)

        return {
            "tokens_left": _least(tokens),
            "money_left": money_left,
            "currency": self._plan.currency,
            "renews_at": _renewal(self._plan, self._today).isoformat(),
        }

    def exhausted(self) -> _Account | None:
        """Return the first account that has spent its allowance, if one has."""
        if self._sums is None:
            return None

        for account, spent in zip(self._accounts, self._sums, strict=True):
            if account.is_exhausted(spent):
                return account

        return None


_open: ContextVar[OpenBudget | None] = ContextVar("open_budget", default=None)


def open_budget() -> OpenBudget | None:
    """Return the budget of the question that is being answered; None where there is none."""
    return _open.get()


class DailyBudget:
    """The budgets of the service.

    Args:
        now: gives the time with its zone.
        late_pauses_s: see `LateCharges`.
    """

    def __init__(
        self,
        plan: BudgetPlan,
        spending: Spending,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        late_pauses_s: Sequence[float] = PAUSES_S,
    ) -> None:
        self._plan = plan
        self._spending = spending
        self._now = now
        self._charging: set[asyncio.Task[None]] = set()
        self._late = LateCharges(spending, late_pauses_s)

    async def aclose(self) -> None:
        """Wait for charges that are under way."""
        if self._charging:
            await asyncio.wait(self._charging)

        await self._late.aclose()

    async def begin(self, question: Question) -> None:
        """Charge the model calls of this task, and of tasks it starts, to the question's user.

        While the store can't be reached, nothing is refused, and charged when it is back.

        Raises:
            BudgetExhausted: the user's budget, or that of a group of theirs, is spent.
        """
        _open.set(None)
        accounts = self._accounts_of(question)
        if not accounts:
            return

        now = self._now()
        today = now.astimezone(self._plan.zone).date()
        sums = None
        try:
            sums = await self._spending.sums(today, [account.key for account in accounts])
        except StoreUnavailable as error:
            _log.warning("budgets are not looked at: %s", error)

        budget = OpenBudget(
            self._plan, self._spending, accounts, today, sums, self._charging, self._late
        )
        spent_out = budget.exhausted()
        if spent_out is not None:
            raise _exhausted_error(spent_out, _renewal(self._plan, today), now)

        _open.set(budget)

    def _accounts_of(self, question: Question) -> list[_Account]:
        plan = self._plan
        accounts = []
        own = plan.users.get(question.owner, plan.each_user)
        if own is not None:
            accounts.append(_Account(f"user:{question.owner}", _YOURS, own))

        for group in dict.fromkeys(question.actor.groups):
            if group in plan.groups:
                accounts.append(_Account(f"group:{group}", _GROUPS, plan.groups[group]))

        if plan.everybody is not None:
            accounts.append(_Account("everybody", _EVERYBODYS, plan.everybody))

        return accounts


def _larger(one: Expense, other: Expense) -> Expense:
    return Expense(max(one.tokens, other.tokens), max(one.micros, other.micros))


def _least(numbers: Sequence[int | None]) -> Any:
    bounds = [number for number in numbers if number is not None]
    return min(bounds, default=None)


def _renewal(plan: BudgetPlan, today: date) -> datetime:
    """Return the beginning of the next day."""
    return datetime.combine(today + timedelta(days=1), time(), plan.zone)


def _exhausted_error(account: _Account, renews_at: datetime, now: datetime) -> BudgetExhausted:
    seconds = max(1, math.ceil((renews_at - now).total_seconds()))
    moment = renews_at.strftime("%Y-%m-%d %H:%M %Z")
    text = Text(
        f"{account.name.zh}已用完，{moment} 恢复；需要更多请联系管理员。",
        f"{account.name.en} is spent; it begins anew at {moment}. "
        "Ask your operator if you need more.",
    )
    return BudgetExhausted(text, renews_at=renews_at.isoformat(), retry_after_s=seconds)
