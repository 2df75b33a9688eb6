"""Days of a request as an intent writes them: ISO text, or the first day of a unit from today's."""

from etl.clauses.clause_tokens import Token
from etl.clauses.request_draft import Json, condition
from rules.linking.moments import Moment, Period

_DAYS_OF = {"day": 1, "week": 7}
_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}
# How days compare with a start or end of a period that bounds an open one.
_OPEN_ENDS = {
    "since": (">=", "start"),
    "now": (">=", "start"),
    "after": (">=", "end"),
    "before": ("<", "start"),
    "until": ("<", "end"),
}


def day_value(moment: Moment) -> str | Json | None:
    """Return the value of a day in a condition; None where it can't be written."""
    if moment.day is not None:
        return moment.day.isoformat()

    unit = moment.trunc
    if unit in _DAYS_OF:
        count, rest = divmod(moment.days, _DAYS_OF[unit])
        is_whole = not rest and not moment.months
    else:
        count, rest = divmod(moment.months, _MONTHS_OF[unit])
        is_whole = not rest and not moment.days

    if not is_whole:
        return None

    return {"unit": unit, "offset": count}


def period_conditions(column: str, period: Period, bound: str) -> list[Json] | None:
    """Return the conditions that keep the period's days; None where they can't be written.

    Args:
        bound: `since`, `after`, `before`, `until` or `now` where the period is one end of an open
            one, else empty.
    """
    ends: list[tuple[str, Moment | None]] = [(">=", period.start), ("<", period.end)]
    if bound in _OPEN_ENDS:
        operator, end = _OPEN_ENDS[bound]
        ends = [(operator, period.start if end == "start" else period.end)]

    conditions = []
    for operator, moment in ends:
        if moment is None:
            continue

        value = day_value(moment)
        if value is None:
            return None

        conditions.append(condition(column, operator, value))

    return conditions


def period_of(token: Token) -> Period | None:
    """Return the period that the word names, if its year is known."""
    date = token.mark.date
    if date is None or not date.is_known:
        return None

    return date.period
