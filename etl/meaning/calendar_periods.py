"""Periods of days and moments: their beginnings, one after the other."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from common.values import PeriodUnit

_MONTHS: dict[PeriodUnit, int] = {"month": 1, "quarter": 3, "year": 12}


def local_time(moment: datetime, time_zone: str) -> datetime:
    """Return the wall clock's time in the zone; a moment without a zone is one already."""
    if moment.tzinfo is None:
        return moment

    return moment.astimezone(ZoneInfo(time_zone)).replace(tzinfo=None)


def period_of(day: date, unit: PeriodUnit, time_zone: str) -> date:
    """Return the first day of the period of `unit` around a day or moment; for `hour` the hour.

    Weeks begin on Monday.
    """
    if unit == "hour":
        return _hour(day, time_zone)
    if isinstance(day, datetime):
        day = local_time(day, time_zone).date()
    if unit == "day":
        return day
    if unit == "week":
        return day - timedelta(days=day.weekday())

    months = _MONTHS[unit]
    return day.replace(month=(day.month - 1) // months * months + 1, day=1)


def _hour(day: date, time_zone: str) -> datetime:
    if not isinstance(day, datetime):
        return datetime(day.year, day.month, day.day)

    return local_time(day, time_zone).replace(minute=0, second=0, microsecond=0)


def shifted(period: date, unit: PeriodUnit, count: int) -> date:
    """Return the beginning of the period that is `count` periods later."""
    if unit == "hour":
        return period + timedelta(hours=count)
    if unit == "day":
        return period + timedelta(days=count)
    if unit == "week":
        return period + timedelta(weeks=count)

    month = period.month - 1 + count * _MONTHS[unit]
    return period.replace(year=period.year + month // 12, month=month % 12 + 1)


def periods_between(first: date, last: date, unit: PeriodUnit) -> Iterator[date]:
    """Yield the beginnings of all periods from `first` to `last`, which are beginnings too."""
    while first <= last:
        yield first
        first = shifted(first, unit, 1)
