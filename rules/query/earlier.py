"""The period that a period is compared with: the one right before it, or the same one a year before."""

from dataclasses import replace
from typing import Literal

from rules.linking.dates import Period, Unit


def earlier(period: Period, growth: Literal["bucket", "year"]) -> Period | None:
    """The period before, as long as this one, or the same one a year before; None for an open one.

    What has lasted until now ("this month so far") is compared with as much of the unit before. A week's year before is
    52 weeks. 29 February has none.
    """
    if period.start is None or period.end is None:
        return None
    step: tuple[Unit, int] | None = ("year", 1) if growth == "year" else _length(period)
    if growth == "year" and period.grain == "week":
        step = ("week", 52)
    if step is None:
        return None
    unit, count = step
    try:
        start, end = period.start.shifted(unit, -count), period.end.shifted(unit, -count)
    except (ValueError, OverflowError):
        return None
    return replace(period, start=start, end=end)


def _length(period: Period) -> tuple[Unit, int] | None:
    """The period in units; of one whose end is counted from another day than its beginning, one unit of that."""
    first, end = period.start, period.end
    assert first is not None and end is not None
    if period.grain is not None:
        return (period.grain, 1)
    if first.day is not None and end.day is not None:
        if first.day.day == end.day.day == 1:
            return ("month", (end.day.year - first.day.year) * 12 + end.day.month - first.day.month)
        return ("day", (end.day - first.day).days)
    if first.day is not None or end.day is not None:
        return None
    if first.trunc != end.trunc:
        return (first.trunc, 1)
    if first.days == end.days:
        return ("month", end.months - first.months)
    return ("day", end.days - first.days) if first.months == end.months else None
