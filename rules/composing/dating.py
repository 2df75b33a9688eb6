"""Chooses the date that says when something happened, if the question names none."""

import re
from dataclasses import replace
from decimal import Decimal

from common.meanings import TableKey
from knowledge.naming import called
from rules.composing.asked import Asked
from rules.linking.moments import Moment, Period
from rules.query.query import ColumnRef, Condition, Dimension, Operator
from rules.query.refusals import Refusal, ambiguous_column, no_date_column
from rules.reading.parts import NO_TABLE, Span
from rules.schema.facts import is_birth_date, is_year, tells_days
from rules.schema.links import METRIC
from rules.words import WORDS

_REGISTERED = re.compile(f"^(?:{WORDS.any_of('columns.said.registered')})", re.IGNORECASE)
_SHORT_DAYS = -62


def resolved(asked: Asked, dimension: Dimension, base: TableKey) -> Dimension:
    """The dimension; one that only names a unit of time gets a date column.

    Raises:
        Refusal: the rows of `base` carry no date.
    """
    if dimension.table != NO_TABLE:
        return dimension
    date = span_date(asked, base) or _said_date(asked, base)
    if date is None:
        raise no_date_of(asked, base)
    column, bucket = asked.question.schema.column(date.table, date.column), dimension.bucket
    if dimension.part is not None:
        return replace(dimension, table=date.table, column=date.column)
    if (bucket != "year" and is_year(column)) or (bucket in ("day", "week") and not tells_days(column)):
        raise no_date_column(called(asked.question.schema.table(base)))
    return Dimension(date.table, date.column, None if is_year(column) else bucket)


def _said_date(asked: Asked, base: TableKey) -> ColumnRef | None:
    """The only date of these rows that the question names: "areas opened per year"."""
    links = [word.senses["dcol"].link for word in asked.question.words if "dcol" in word.senses]
    found = {link.column for link in links if link is not None and link.table == base}
    return ColumnRef(base, str(found.pop())) if len(found) == 1 else None


def trend_dimension(asked: Asked, base: TableKey) -> Dimension:
    """The dimension of a trend: days in a short period, else months."""
    short = any(span.periods[0].grain in ("day", "week", "month") or _is_short(span) for span in asked.parts.spans)
    return resolved(asked, Dimension(NO_TABLE, None, "day" if short else "month"), base)


def _is_short(span: Span) -> bool:
    start = span.periods[0].start
    return (
        start is not None and start.day is None and start.trunc == "day" and start.months == 0
        and start.days >= _SHORT_DAYS
    )  # fmt: skip


def date_column(asked: Asked, table: TableKey) -> str:
    """The column of `table` that says when its rows happened.

    Raises:
        Refusal: there is none.
    """
    found = event_date(asked, table)
    if found is None or found.table != table:
        raise no_date_column(called(asked.question.schema.table(table)))
    return found.column


def span_date(asked: Asked, base: TableKey) -> ColumnRef | None:
    """The date that a period is about: of events that the question names below the base, else of the base's own."""
    below = asked.question.graph.below(base)
    named = [one.link.table for one in asked.parts.tables] + [one.table for one in asked.parts.related]
    for key in named:
        if key != base and key in below and (found := event_date(asked, key)) is not None:
            return found  # "customers who placed orders in 2024" asks when the orders were placed
    return event_date(asked, base)


def event_date(asked: Asked, table: TableKey) -> ColumnRef | None:
    """When a row happened: its date, else its year, else the date of the only event that it is a part of."""
    question = asked.question
    own = _default_date(asked, table)
    if own is not None:
        return ColumnRef(table, own)
    year = question.facts(table).year
    if year is not None:
        return ColumnRef(table, year)
    steps = sorted(question.graph.above(table).items(), key=lambda item: item[1])
    parents = [key for key, distance in steps if 0 < distance < 2 and not question.facts(key).is_entity]
    dated = [ColumnRef(key, date) for key in parents if (date := _default_date(asked, key)) is not None]
    return dated[0] if len(dated) == 1 else None


def _default_date(asked: Asked, table: TableKey) -> str | None:
    """The date that is meant if none is named: the first of events; of things only the date of their registration.

    Things have several dates, none of which is more likely than the others.
    """
    facts = asked.question.facts(table)
    if (said := asked.question.settled.among((table, name) for name in facts.dates)) is not None:
        return said[1]
    if (meant := _metric_date(asked, table) or facts.date) is not None:
        return meant
    if not facts.is_entity:
        return facts.dates[0] if facts.dates else None
    registered = [name for name in facts.dates if _REGISTERED.search(name)]
    events = [name for name in facts.dates if not is_birth_date(asked.question.schema.column(table, name))]
    return registered[0] if registered else events[0] if len(events) == 1 else None


def _metric_date(asked: Asked, table: TableKey) -> str | None:
    parts, schema = asked.parts, asked.question.schema
    figures = (*parts.figures, *parts.bare, *(one.figure for one in parts.rankings if one.figure))
    links = [one.link for one in figures if one.link is not None and one.link.derived == METRIC]
    dates = [schema.metric(link.table, link.column).date_column for link in links if link.table == table]
    return next((date for date in dates if date), None)


def no_date_of(asked: Asked, table: TableKey) -> Refusal:
    """The refusal of a period for rows of a table that have no date, or several that may be meant."""
    facts = asked.question.facts(table)
    word = called(facts.table)
    choices = [(table, name) for name in facts.dates]
    return ambiguous_column(word, choices, asked.question.lexicon) if choices else no_date_column(word)


def during(asked: Asked, date: ColumnRef, span: Span) -> list[Condition]:
    """The periods as conditions on a date column, or on a column of years.

    Raises:
        Refusal: a period begins or ends within a month or year, and the column tells nothing finer apart.
    """
    column = asked.question.schema.column(date.table, date.column)
    name = called(asked.question.schema.table(date.table))
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
