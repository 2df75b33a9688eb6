"""The port for what models have cost, by day and account."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

KEPT_DAYS = 3
"""How long the sums of a day are kept, so that they outlast it in every time zone."""


@dataclass(frozen=True)
class Expense:
    """A sum that models have cost.

    Attributes:
        tokens: how many tokens prompts and replies have together.
        micros: millionths of the currency that the operator counts in.
    """

    tokens: int = 0
    micros: int = 0


class Spending(Protocol):
    """Adds up what each account spends in a day, for all workers of all hosts together.

    Accounts are any texts. All methods raise `StoreUnavailable`. What is added while the connection
    breaks may count twice.
    """

    async def add(self, day: date, accounts: Sequence[str], spent: Expense) -> Sequence[Expense]:
        """Add `spent` to each account; return the new sums, in the order of `accounts`."""

    async def sums(self, day: date, accounts: Sequence[str]) -> Sequence[Expense]:
        """Return what each account has spent, in their order."""
