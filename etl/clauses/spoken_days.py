"""Days of a request as an intent writes them: ISO text, or the first day of a unit from today's."""

from typing import Any

from etl.clauses.clause_tokens import Token
from rules.linking.moments import Moment, Period

_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}


def day_value(moment: Moment) -> str | dict[str, Any] | None:
    """Return the value of a day in a condition; None where it can't be written."""
    if moment.day is not None:
        return moment.day.isoformat()
    if moment.trunc in ("day", "week"):
        return _counted_in_days(moment)
    months = _MONTHS_OF[moment.trunc]
    if moment.days or moment.months % months:
        return None
    return {"unit": moment.trunc, "offset": moment.months // months}


def _counted_in_days(moment: Moment) -> dict[str, Any] | None:
    length = 7 if moment.trunc == "week" else 1
    if moment.months or moment.days % length:
        return None
    return {"unit": moment.trunc, "offset": moment.days // length}


def period_conditions(column: str, period: Period, bound: str) -> list[dict[str, Any]] | None:
    """Return the conditions that keep the period's days; None where they can't be written.

    Args:
        bound: `since`, `after`, `before`, `until` or `now` where the period is one end of an open
            one, else empty.
    """
    ends: list[tuple[str, Moment | None]] = [(">=", period.start), ("<", period.end)]
    if bound in ("since", "now"):
        ends = [(">=", period.start)]
    elif bound == "after":
        ends = [(">=", period.end)]
    elif bound == "before":
        ends = [("<", period.start)]
    elif bound == "until":
        ends = [("<", period.end)]
    conditions = []
    for operator, moment in ends:
        if moment is None:
            continue
        value = day_value(moment)
        if value is None:
            return None
        conditions.append({"column": column, "operator": operator, "value": value})
    return conditions


def period_of(token: Token) -> Period | None:
    """Return the period that the word names, if its year is known."""
    date = token.mark.date
    if date is None or not date.is_known:
        return None
    return date.period
