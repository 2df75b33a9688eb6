"""Periods as conditions on the column that they are about."""

from decimal import Decimal

from knowledge.naming import called
from rules.linking.moments import Moment, Period
from rules.query.query import ColumnRef, Condition, Operator
from rules.query.refusals import no_date_column
from rules.reading.parts import Span
from rules.reading.words import Question
from rules.schema.facts import is_year, tells_days


def during(question: Question, date: ColumnRef, span: Span) -> list[Condition]:
    """The periods as conditions on a date column, or on a column of years.

    Raises:
        Refusal: a period begins or ends within a month or year, and the column tells nothing finer apart.
    """
    column = question.schema.column(date.table, date.column)
    name = called(question.schema.table(date.table))
    if not is_year(column):
        bounds = [moment for period in span.periods for moment in (period.start, period.end) if moment is not None]
        if not tells_days(column) and not all(moment.begins_month for moment in bounds):
            raise no_date_column(name)
        return [Condition(date, "not during" if span.negated else "during", span.periods)]
    found = [one for period in span.periods for one in year_conditions(date, period)]
    if not found or (len(span.periods) > 1 and any(condition.operator != "=" for condition in found)):
        raise no_date_column(name)
    if len(found) > 1 and len(span.periods) > 1:
        return [Condition(date, "in", tuple(condition.operands[0] for condition in found))]
    return found


def year_conditions(column: ColumnRef, period: Period) -> list[Condition]:
    """A period of whole years as conditions on a column of years; none if its bounds are no whole years."""
    bounds = [moment for moment in (period.start, period.end) if moment is not None]
    if any(moment.day is None or (moment.day.month, moment.day.day) != (1, 1) for moment in bounds):
        return []
    ends: list[tuple[Operator, Moment | None]] = [(">=", period.start), ("<", period.end)]
    if period.grain == "year":
        ends = [("=", period.start)]
    return [
        Condition(column, operator, (Decimal(moment.day.year),))
        for operator, moment in ends
        if moment is not None and moment.day is not None
    ]
