"""Composes how figures change: from one period to another, between two values, or from bucket to bucket."""

from dataclasses import replace

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
        groups = tuple(one for one in query.dimensions if one.bucket is None and not _is_compared(one, sides))
        order = query.order if groups else ()
        return replace(query, comparison=Comparison(*sides), dimensions=groups, order=order)
    if asked.says("growth:difference"):
        raise unused_words(asked.question.texts("growth"))
    step = "year" if asked.says("growth:year") else "bucket"
    if not any(one.bucket for one in query.dimensions):
        unit = next((unit for flag, unit in _DEFAULT.items() if asked.says(flag)), None)
        if unit is None or query.dimensions:
            raise unused_words(asked.question.texts("growth"))
        query = replace(query, dimensions=(asked.resolved(Dimension(NO_TABLE, None, unit), query.base),))
    step = "bucket" if step == "year" and query.dimensions[0].bucket == "year" else step
    return replace(query, growth=step, order=())  # type: ignore[arg-type]


def compares_periods(asked: Asked, query: Query) -> bool:
    """Whether two periods are compared that are no units of time, which could be groups."""
    periods = [period for span in asked.parts.spans for period in span.periods]
    grains = {period.grain for period in periods}
    return (
        asked.says("compare") and len(periods) == 2 and (len(grains) == 2 or grains == {None}) and bool(query.measures)
    )


def _periods(asked: Asked, query: Query) -> tuple[tuple[Condition, ...], tuple[Condition, ...]] | None:
    """The two periods that are compared, the earlier one first."""
    spans = asked.parts.spans
    periods = [(span, period) for span in spans for period in span.periods]
    if len(periods) == 1 and asked.says("compare") and (following := _following(periods[0][1])) is not None:
        periods.append((periods[0][0], following))  # `比上个月增长了多少`
    if len(periods) != 2:
        return None
    if _starts_later(periods[0][1], periods[1][1]):
        periods.reverse()
    date = asked.span_date(query.base)
    if date is None:
        raise asked.no_date_of(query.base)
    first, second = (tuple(asked.during(date, Span((period,), span.at))) for span, period in periods)
    return first, second


def _following(period: Period) -> Period | None:
    """The period after one that is a unit of time; None for any other."""
    if period.grain is None or period.start is None or period.end is None:
        return None
    return Period(period.end, period.end.shifted(period.grain, 1), period.grain)


def _starts_later(first: Period, second: Period) -> bool:
    starts = [period.start for period in (first, second)]
    if starts[0] is None or starts[1] is None:
        return False
    if starts[0].day is not None and starts[1].day is not None:
        return starts[0].day > starts[1].day
    return (starts[0].months, starts[0].days) > (starts[1].months, starts[1].days)


def _values(asked: Asked) -> tuple[tuple[Condition, ...], tuple[Condition, ...]] | None:
    """The two values of one column that are compared."""
    found = [one for one in asked.parts.conditions if one.operator == "in" and len(one.operands) == 2]
    if len(found) != 1:
        return None
    first, second = ((replace(found[0], operator="=", operands=(operand,)),) for operand in found[0].operands)
    return first, second


def _is_compared(dimension: Dimension, sides: tuple[tuple[Condition, ...], ...]) -> bool:
    columns = {(one.column.table, one.column.column) for side in sides for one in side}
    return (dimension.table, dimension.column) in columns
