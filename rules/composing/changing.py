"""Composes how figures change: from one period to another, between two values, or from bucket to bucket."""

from dataclasses import replace
from datetime import date

from rules.composing.asked import Asked
from rules.linking.moments import Period, Unit
from rules.query.query import Comparison, Condition, Dimension, Query
from rules.query.refusals import unused_words
from rules.reading.parts import NO_TABLE, Span

_DEFAULT: dict[str, Unit] = {"growth:year": "year", "growth:bucket": "month"}


def changing(asked: Asked, query: Query) -> Query:
    """The query with the change of its figures.

    Raises:
        Refusal: the question doesn't say between what.
    """
    sides = _periods(asked, query) or _values(asked)
    if sides is not None:
        compared = {(one.column.table, one.column.column) for side in sides for one in side}
        groups = tuple(
            one for one in query.dimensions if one.bucket is None and (one.table, one.column) not in compared
        )
        order = query.order if groups else ()
        return replace(query, comparison=Comparison(*sides), dimensions=groups, order=order)
    units = [unit for flag, unit in _DEFAULT.items() if asked.says(flag)]
    has_buckets = any(one.bucket for one in query.dimensions)
    if asked.says("growth:difference") or not (has_buckets or (units and not query.dimensions)):
        raise unused_words(asked.question.texts("growth"))
    if not has_buckets:
        query = replace(query, dimensions=(asked.resolved(Dimension(NO_TABLE, None, units[0]), query.base),))
    by_year = asked.says("growth:year") and query.dimensions[0].bucket != "year"
    return replace(query, growth="year" if by_year else "bucket", order=())


def compares_periods(asked: Asked) -> bool:
    """Whether two periods are compared that are no units of time, which could be groups."""
    grains = [period.grain for span in asked.parts.spans for period in span.periods]
    return asked.says("compare") and len(grains) == 2 and (grains[0] != grains[1] or grains[0] is None)


def _periods(asked: Asked, query: Query) -> tuple[tuple[Condition, ...], tuple[Condition, ...]] | None:
    """The two periods that are compared, the earlier one first."""
    periods = [(span, period) for span in asked.parts.spans for period in span.periods]
    if len(periods) == 1 and asked.says("compare") and (following := _following(periods[0][1])) is not None:
        periods.append((periods[0][0], following))  # `比上个月增长了多少`
    if len(periods) != 2:
        return None
    dated = asked.span_date(query.base)
    first, second = (
        tuple(asked.during(dated, Span((period,), span.at)))
        for span, period in sorted(periods, key=lambda one: _began(one[1]))
    )
    return first, second


def _following(period: Period) -> Period | None:
    """The period after one that is a unit of time; None for any other."""
    if period.grain is None or period.start is None or period.end is None:
        return None
    return Period(period.end, period.end.shifted(period.grain, 1), period.grain)


def _began(period: Period) -> date:
    """Its first day, as the calendar is today; of one that is open there the first of all."""
    return period.start.on(date.today()) if period.start is not None else date.min


def _values(asked: Asked) -> tuple[tuple[Condition, ...], tuple[Condition, ...]] | None:
    """The two values of one column that are compared."""
    found = [one for one in asked.parts.conditions if one.operator == "in" and len(one.operands) == 2]
    if len(found) != 1:
        return None
    first, second = ((replace(found[0], operator="=", operands=(operand,)),) for operand in found[0].operands)
    return first, second
