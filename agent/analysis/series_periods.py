"""Periods of time: read from what a result shows, counted, and put in order as a series."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import get_args

from common.text import Text
from common.values import PeriodUnit
from knowledge.results.result_columns import as_period

ALIGNED: tuple[PeriodUnit, ...] = ("year", "quarter", "month", "week", "day", "hour")
"""The units, the longest first."""

UNIT_NAMES: dict[PeriodUnit, Text] = {
    "hour": Text("小时", "hour"),
    "day": Text("日", "day"),
    "week": Text("周", "week"),
    "month": Text("月", "month"),
    "quarter": Text("季度", "quarter"),
    "year": Text("年", "year"),
}
SEASONS: dict[PeriodUnit, int] = {
    "hour": 24,
    "day": 7,
    "week": 52,
    "month": 12,
    "quarter": 4,
    "year": 1,
}
"""How many periods a season has: a day of hours, a week of days, else a year."""

_DELTAS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAY_SPAN = timedelta(days=2)  # times within it, that begin no common period, are counted by hours
_WRITTEN: tuple[tuple[PeriodUnit, re.Pattern[str]], ...] = (
    ("year", re.compile(r"(?P<year>\d{4})")),
    ("quarter", re.compile(r"(?P<year>\d{4})-?Q(?P<quarter>[1-4])")),
    ("month", re.compile(r"(?P<year>\d{4})-?(?P<month>\d{2})")),
    ("day", re.compile(r"(?P<year>\d{4})-?(?P<month>\d{2})-?(?P<day>\d{2})")),
)


@dataclass(frozen=True)
class Point:
    """The figure of one period.

    Attributes:
        start: when the period begins.
        written: the period as the database writes it.
    """

    start: datetime
    value: Decimal
    written: str


@dataclass(frozen=True)
class Series:
    """Figures of periods in their order.

    Attributes:
        points: the points of periods that are over.
        unfinished: the points of the last periods, which are not over yet.
        gaps: how many periods between the first and the last of `points` have no figure.
    """

    unit: PeriodUnit
    points: tuple[Point, ...]
    unfinished: tuple[Point, ...] = ()
    gaps: int = 0


def series_of(unit: PeriodUnit, points: Sequence[Point], now: datetime) -> Series:
    """Return the series of these points, whatever their order; `now` is the database's clock."""
    ordered = sorted(points, key=lambda point: point.start)
    over = tuple(point for point in ordered if later(point.start, unit) <= now)
    unfinished = tuple(ordered[len(over) :])
    if not over:
        return Series(unit, over, unfinished)

    periods = distance(over[0].start, over[-1].start, unit) + 1
    return Series(unit, over, unfinished, gaps=periods - len(over))


def later(start: datetime, unit: PeriodUnit, count: int = 1) -> datetime:
    """Return when the period begins that is `count` after the one beginning at `start`.

    A negative `count` gives one before it.

    Raises:
        OverflowError: that is beyond the years 1 to 9999.
    """
    if unit in _DELTAS:
        return start + count * _DELTAS[unit]

    years, month = divmod(start.month - 1 + count * _MONTHS[unit], 12)
    try:
        return start.replace(year=start.year + years, month=month + 1)
    except ValueError as exc:
        raise OverflowError from exc


def year_before(start: datetime, unit: PeriodUnit) -> datetime | None:
    """Return when the same period of the year before begins; of weeks the one 52 before.

    None when there is none.
    """
    if unit in ("year", "hour"):
        return None
    if unit == "week":
        return start - timedelta(weeks=52)

    try:
        return start.replace(year=start.year - 1)
    except ValueError:  # 29 February, or year 1
        return None


def distance(first: datetime, last: datetime, unit: PeriodUnit) -> int:
    """Return how many periods `last` begins after `first`."""
    if unit in _DELTAS:
        return (last - first) // _DELTAS[unit]

    return ((last.year - first.year) * 12 + last.month - first.month) // _MONTHS[unit]


def written_unit(texts: Sequence[str]) -> PeriodUnit | None:
    """Return the unit of periods written as text, such as 2026-10; None if they share none."""
    if not texts:
        return None

    for unit, pattern in _WRITTEN:
        if all(pattern.fullmatch(text) for text in texts):
            return unit

    return None


def period_start(text: str, unit: PeriodUnit) -> datetime | None:
    """Return when a timestamp or a written period begins; None when it can't be told."""
    try:
        start = _start(text, unit)
    except ValueError:  # before Christ, after 9999, month 13
        return None

    # Then a period before it and one after it can be told as well.
    is_within_calendar = MINYEAR < start.year < MAXYEAR
    return start if is_within_calendar else None


def _start(text: str, unit: PeriodUnit) -> datetime:
    pattern = dict(_WRITTEN).get(unit)
    match = pattern.fullmatch(text) if pattern else None
    if match is None:
        return datetime.fromisoformat(text)

    parts = {name: int(number) for name, number in match.groupdict().items()}
    month = parts.get("quarter", 1) * 3 - 2
    return datetime(parts["year"], parts.get("month", month), parts.get("day", 1))


def fitting_unit(
    first: datetime, last: datetime, aligned: Sequence[bool], most: int
) -> PeriodUnit | None:
    """Return the longest unit that every time is the beginning of.

    Where the series would have `most` periods of it, return the next longer unit that fits.

    Args:
        aligned: per unit of `ALIGNED` whether all times begin one.
        most: a series has fewer periods than this.
    """
    longest = _longest_aligned(aligned)
    if longest is None:
        longest = ALIGNED.index("hour" if last - first <= _DAY_SPAN else "day")

    for unit in reversed(ALIGNED[: longest + 1]):
        if distance(first, last, unit) < most:
            return unit

    return None


def _longest_aligned(aligned: Sequence[bool]) -> int | None:
    """Return the index of the longest unit that all times begin."""
    for index, begins in enumerate(aligned):
        if begins:
            return index

    return None


def period_name(start: datetime, unit: PeriodUnit) -> str:
    """Return the period as people write it: 2026-10, 2026-Q4."""
    if unit == "hour":
        return start.isoformat(" ", "minutes")

    return str(as_period(start.isoformat(), unit))


def neighbours(points: Sequence[Point], unit: PeriodUnit) -> list[tuple[Point, Point]]:
    """Return the pairs of points that directly follow each other."""
    pairs = []
    for one, following in pairwise(points):
        if later(one.start, unit) == following.start:
            pairs.append((one, following))

    return pairs


assert set(ALIGNED) == set(get_args(PeriodUnit))
