"""Days and periods, fixed or relative to today.

Relative periods stay relative (`Moment.trunc`): the SQL says CURRENT_DATE, so that the server's
calendar decides and the statement can be run again tomorrow. Weeks begin on Monday, as PostgreSQL's
date_trunc has it.
"""

import calendar
import datetime
from dataclasses import dataclass, replace
from typing import Literal

Unit = Literal["day", "week", "month", "quarter", "year"]

_MONTHS = {"day": 0, "week": 0, "month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7, "month": 0, "quarter": 0, "year": 0}


@dataclass(frozen=True)
class Moment:
    """The beginning of a day: `day`, or the beginning of the current `trunc` shifted by whole
    months and days.
    """

    day: datetime.date | None = None
    trunc: Unit = "day"
    months: int = 0
    days: int = 0

    @property
    def begins_month(self) -> bool:
        """Tell whether it is the first of a month."""
        if self.day is not None:
            return self.day.day == 1

        return self.days == 0 and self.trunc not in ("day", "week")

    def shifted(self, unit: Unit, count: int) -> "Moment":
        """Return this moment moved by `count` units; from the 31st to the last day of a shorter
        month, as in PostgreSQL.

        Raises:
            OverflowError, ValueError: beyond the calendar.
        """
        months, days = _MONTHS[unit] * count, _DAYS[unit] * count
        if self.day is None:
            return replace(self, months=self.months + months, days=self.days + days)

        total = self.day.year * 12 + self.day.month - 1 + months
        year, month = total // 12, total % 12 + 1
        moved = self.day.replace(
            year=year, month=month, day=min(self.day.day, calendar.monthrange(year, month)[1])
        )
        return replace(self, day=moved + datetime.timedelta(days=days))

    def on(self, today: datetime.date) -> datetime.date:
        """Return the day that this is when today is `today`.

        Raises:
            OverflowError, ValueError: beyond the calendar.
        """
        if self.day is not None:
            return self.day

        begun = {
            "day": today,
            "week": today - datetime.timedelta(days=today.weekday()),
            "month": today.replace(day=1),
            "quarter": today.replace(month=(today.month - 1) // 3 * 3 + 1, day=1),
            "year": today.replace(month=1, day=1),
        }[self.trunc]
        return Moment(begun).shifted("month", self.months).shifted("day", self.days).day or begun


@dataclass(frozen=True)
class Period:
    """The time from `start` (inclusive) to `end` (exclusive); None is open. `grain` is its unit
    when it is exactly one.
    """

    start: Moment | None
    end: Moment | None
    grain: Unit | None = None

    @property
    def is_relative(self) -> bool:
        """Tell whether it moves with today's date."""
        return any(moment is not None and moment.day is None for moment in (self.start, self.end))


def unit_period(unit: Unit, offset: int = 0, count: int = 1) -> Period:
    """Return `count` calendar units beginning `offset` units from the current one."""
    start = Moment(trunc=unit).shifted(unit, offset)
    return Period(start, start.shifted(unit, count), unit if count == 1 else None)
