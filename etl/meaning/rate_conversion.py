"""Amounts of several currencies in one of them."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

from etl.meaning.bound import RateStep
from etl.meaning.calendar_periods import period_of
from etl.meaning.combinations import Combination, SourceRow
from etl.meaning.evaluation import has_null, multiply


class RateConversion:
    """Converts the amounts of combinations by the rates that a source holds.

    Args:
        rates: the rows of that source; those without a rate or a day don't count.
    """

    def __init__(self, step: RateStep, rates: Iterable[SourceRow], time_zone: str) -> None:
        self._step = step
        self._time_zone = time_zone
        self._rates: dict[str, list[tuple[date, Decimal]]] = defaultdict(list)
        for row in rates:
            if not self._is_wanted(row):
                continue

            currency = row.stored[step.rate_currency]
            day = row.stored[step.rate_day]
            rate = row.stored[step.rate]
            if not has_null((day, rate)):
                self._rates[currency].append((self._day(day), rate))

    def _is_wanted(self, row: SourceRow) -> bool:
        target = self._step.target_currency
        return target is None or row.stored[target] == self._step.to

    def convert(self, combinations: Iterable[Combination]) -> int:
        """Give each combination its converted amount; return how many amounts have no rate."""
        unmatched = 0
        for combination in combinations:
            amount = combination.value(self._step.amount)
            converted = self._convert(amount, combination)
            combination.made[self._step.name] = converted
            if amount is not None and converted is None:
                unmatched += 1

        return unmatched

    def _convert(self, amount: Any, combination: Combination) -> Any:
        currency = combination.value(self._step.currency)
        if amount is None or currency == self._step.to:
            return amount

        moment = combination.value(self._step.day)
        if has_null((currency, moment)):
            return None

        rate = self._rate(currency, self._day(moment))
        if rate is None:
            return None

        return multiply(amount, rate)

    def _rate(self, currency: str, day: date) -> Decimal | None:
        """Return the rate of the day, or of the latest before it; the highest of that day."""
        fitting = []
        for from_day, rate in self._rates.get(currency, ()):
            is_before = self._step.is_latest and from_day < day
            if is_before or from_day == day:
                fitting.append((from_day, rate))

        if not fitting:
            return None

        _, rate = max(fitting)
        return rate

    def _day(self, moment: date) -> date:
        return period_of(moment, "day", self._time_zone)
