"""Charges that the store could not take, added when it can be reached again."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import date
from itertools import chain, repeat

from common.after_fork import restart_after_fork
from common.errors import StoreUnavailable
from store.spending import Expense, Spending

_log = logging.getLogger(__name__)

PAUSES_S = (1.0, 2.0, 5.0, 15.0)  # before each try; the last one again and again
_MOST_WAITING = 10_000  # groups of accounts
_LAST_TRY_S = 2.0

_Accounts = tuple[date, tuple[str, ...]]


class LateCharges:
    """Keeps charges in memory and adds them to the store in a task of its own; used on the event
    loop only.

    A charge whose first try was cut off may count twice. What waits when the service ends is tried
    once more.

    Args:
        pauses_s: seconds before each try; the last one again and again.
    """

    def __init__(self, spending: Spending, pauses_s: Sequence[float] = PAUSES_S) -> None:
        self._spending = spending
        self._pauses_s = pauses_s
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Forget what waits; a forked child begins with nothing."""
        self._waiting: dict[_Accounts, Expense] = {}
        self._adding: asyncio.Task[None] | None = None

    def put(self, day: date, accounts: Sequence[str], spent: Expense) -> None:
        """Add `spent` to each account later; return at once."""
        key = (day, tuple(accounts))
        if key not in self._waiting and len(self._waiting) >= _MOST_WAITING:
            _log.warning("%d tokens were not charged: too many wait", spent.tokens)
            return

        self._keep(key, spent)
        if self._adding is None or self._adding.done():
            self._adding = asyncio.get_running_loop().create_task(self._add_repeatedly())

    async def aclose(self) -> None:
        """Try once more, for a moment, and forget what still waits."""
        if self._adding is not None:
            self._adding.cancel()
            await asyncio.wait([self._adding])

        try:
            async with asyncio.timeout(_LAST_TRY_S):
                await self._add_all()
        except (StoreUnavailable, TimeoutError):
            lost = sum(spent.tokens for spent in self._waiting.values())
            _log.warning("%d tokens were not charged: the store is away", lost)

        self.start_anew()

    async def _add_repeatedly(self) -> None:
        for pause_s in chain(self._pauses_s, repeat(self._pauses_s[-1])):
            await asyncio.sleep(pause_s)
            try:
                await self._add_all()
            except StoreUnavailable:
                continue

            return

    async def _add_all(self) -> None:
        while self._waiting:
            (day, accounts), spent = self._waiting.popitem()
            try:
                await self._spending.add(day, accounts, spent)
            except BaseException:
                self._keep((day, accounts), spent)
                raise

    def _keep(self, key: _Accounts, spent: Expense) -> None:
        before = self._waiting.get(key, Expense())
        self._waiting[key] = Expense(before.tokens + spent.tokens, before.micros + spent.micros)
