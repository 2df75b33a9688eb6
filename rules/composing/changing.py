"""Composes queries for changes of figures: from one period to another, between two values, or from
bucket to bucket.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from rules.composing.asked import Asked
from rules.linking.moments import Period, Unit
from rules.query.query import Comparison, Condition, Dimension, Query
from rules.query.refusals import unused_words
from rules.reading.parts import NO_TABLE, Span

# The buckets of a question that names none, by the flag that asks for the change.
_DEFAULT: dict[str, Unit] = {"growth:year": "year", "growth:bucket": "month"}

_Sides = tuple[tuple[Condition, ...], tuple[Condition, ...]]
"""The conditions of two sets of rows whose figures are compared."""


def changing(asked: Asked, query: Query) -> Query:
    """Return the query with the change of its figures.

    Raises:
        Refusal: the question doesn't say between what.
    """
    sides = _periods(asked, query) or _values(asked)
    if sides is not None:
        return _between(query, sides)

    lost = unused_words(asked.question.texts("growth"))
    if asked.says("growth:difference"):
        raise lost

    buckets = [dimension.bucket for dimension in query.dimensions]
    if not any(buckets):
        unit = _default_unit(asked)
        if buckets or unit is None:
            raise lost

        by_unit = Dimension(NO_TABLE, None, unit)
        bucket = asked.resolved(by_unit, query.base)
        query = replace(query, dimensions=(bucket,))

    is_by_year = asked.says("growth:year") and query.dimensions[0].bucket != "year"
    return replace(query, growth="year" if is_by_year else "bucket", order=())


def _default_unit(asked: Asked) -> Unit | None:
    """Return the unit of time of a change that names no periods; None if it implies none."""
    for flag, unit in _DEFAULT.items():
        if asked.says(flag):
            return unit

    return None


def _between(query: Query, sides: _Sides) -> Query:
    """Return the query that compares two sets of rows, without groups by the compared columns."""
    compared = set()
    for conditions in sides:
        compared |= {(condition.column.table, condition.column.column) for condition in conditions}

    groups = []
    for dimension in query.dimensions:
        is_compared = (dimension.table, dimension.column) in compared
        if dimension.bucket is None and not is_compared:
            groups.append(dimension)

    return replace(
        query,
        comparison=Comparison(*sides),
        dimensions=tuple(groups),
        order=query.order if groups else (),
    )


def compares_periods(asked: Asked) -> bool:
    """Tell whether two periods are compared that are no units of time, which could be groups."""
    if not asked.says("compare"):
        return False

    grains = [period.grain for span in asked.parts.spans for period in span.periods]
    if len(grains) != 2:
        return False

    first, second = grains
    return first != second or first is None


def _periods(asked: Asked, query: Query) -> _Sides | None:
    """Return the two periods that are compared, the earlier one first."""
    periods = [(period, span) for span in asked.parts.spans for period in span.periods]
    if len(periods) == 1 and asked.says("compare"):
        period, span = periods[0]
        following = _following(period)
        if following is not None:
            # `比上个月增长了多少`
            periods.append((following, span))

    if len(periods) != 2:
        return None

    dated = asked.span_date(query.base)
    periods.sort(key=lambda one: _first_day(one[0]))
    _refuse_shared_days(asked, periods)
    first, second = (tuple(asked.during(dated, Span((one,), span.at))) for one, span in periods)
    return first, second


def _refuse_shared_days(asked: Asked, periods: Sequence[tuple[Period, Span]]) -> None:
    """Refuse to compare periods that share days: `上个月比前一个月`: the last thirty days.

    Args:
        periods: two, the earlier one first.
    """
    (earlier, _), (later, span) = periods
    today = date.today()
    if earlier.end is None or later.start is None or earlier.end.on(today) > later.start.on(today):
        raise unused_words([asked.question.words[span.at].mark.text])


def _following(period: Period) -> Period | None:
    """Return the period after one that is a unit of time; None for any other."""
    if period.grain is None or period.start is None or period.end is None:
        return None

    return Period(period.end, period.end.shifted(period.grain, 1), period.grain)


def _first_day(period: Period) -> date:
    """Return the day on which the period begins; the first of all days where it is open."""
    if period.start is not None:
        return period.start.on(date.today())

    return date.min


def _values(asked: Asked) -> _Sides | None:
    """Return the two values of one column that are compared."""
    lists = [one for one in asked.parts.conditions if one.operator == "in"]
    pairs = [one for one in lists if len(one.operands) == 2]
    if len(pairs) != 1:
        return None

    condition = pairs[0]
    first, second = condition.operands
    return (
        (replace(condition, operator="=", operands=(first,)),),
        (replace(condition, operator="=", operands=(second,)),),
    )
