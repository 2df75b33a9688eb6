"""Chooses the date that says when something happened, if the question names none."""

import re

from common.text import Text
from knowledge.naming import called
from rules.planning.plan import Plan
from rules.query.conditions import Span
from rules.query.query import ColumnRef, Dimension
from rules.query.refusals import Refusal, ambiguous_column, no_date_column
from rules.schema.schema import TableKey, is_year, tells_days
from rules.words import WORDS


def resolved(plan: Plan, dimension: Dimension, base: TableKey) -> Dimension:
    """The dimension; one that only names a unit of time gets a date column.

    Raises:
        Refusal: the rows of `base` carry no date.
    """
    if dimension.table != ("", ""):
        return dimension
    date = span_date(plan, base) or _said_date(plan, base)
    if date is None:
        raise no_date_of(plan, base)
    column, bucket = plan.reading.schema.column(date.table, date.column), dimension.bucket
    if bucket != "year" and is_year(column) or bucket in ("day", "week") and not tells_days(column):
        raise no_date_column(called(plan.reading.schema.table(base)))
    return Dimension(date.table, date.column, None if is_year(column) else bucket)


def _said_date(plan: Plan, base: TableKey) -> ColumnRef | None:
    """The only date of these rows that the question names: "areas opened per year"; None for none or several."""
    links = [noun.column for noun in plan.reading.nouns if noun is not None and not noun.is_table and noun.column]
    found = {link.column for link in links if link.table == base and plan.reading.is_date(link)}
    return ColumnRef(base, str(found.pop())) if len(found) == 1 else None


def trend_dimension(plan: Plan, base: TableKey) -> Dimension:
    """The dimension of a trend: days in a short period, else months."""
    grains = ("day", "week", "month")
    short = any(span.periods[0].grain in grains or _is_short(span) for span in plan.filters.spans)
    return resolved(plan, Dimension(("", ""), None, "day" if short else "month"), base)


def _is_short(span: Span) -> bool:
    start = span.periods[0].start
    return start is not None and start.day is None and start.trunc == "day" and start.months == 0 and start.days >= -62


def date_column(plan: Plan, table: TableKey, what: str = "") -> str:
    """The column of `table` that says when its rows happened.

    Raises:
        Refusal: there is none.
    """
    found = event_date(plan, table)
    if found is None or found.table != table:
        name = called(plan.reading.schema.table(table))
        raise no_date_column(Text(f"{name.zh} ({what})", f"{name.en} ({what})") if what else name)
    return found.column


def span_date(plan: Plan, base: TableKey) -> ColumnRef | None:
    """The date that a period is about: of events that the question names below the base, else of the base's own."""
    below = plan.reading.graph.below(base)
    for key in (*(key for _, key in plan.tables), *(related.table for related in plan.filters.related)):
        if key != base and key in below and (found := event_date(plan, key)) is not None:
            return found  # "customers who placed orders in 2024" asks when the orders were placed
    return event_date(plan, base)


def event_date(plan: Plan, table: TableKey) -> ColumnRef | None:
    """When a row happened: its date, else its year, else the date of the only event that it is a part of."""
    facts = plan.reading.facts(table)
    own = _default_date(plan, table)
    if own is not None:
        return ColumnRef(table, own)
    if facts.year is not None:
        return ColumnRef(table, facts.year)
    steps = sorted(plan.reading.graph.above(table).items(), key=lambda item: item[1])
    parents = [key for key, distance in steps if 0 < distance < 2 and not plan.reading.facts(key).is_entity]
    dated = [ColumnRef(key, date) for key in parents if (date := _default_date(plan, key)) is not None]
    return dated[0] if len(dated) == 1 else None


def _default_date(plan: Plan, table: TableKey) -> str | None:
    """The date that is meant if none is named: the first of events; of things only the date of their registration.

    Things have several dates, none of which is more likely than the others.
    """
    facts = plan.reading.facts(table)
    if (said := plan.reading.settled.among((table, name) for name in facts.dates)) is not None:
        return said[1]
    if (meant := plan.metric_date(table) or facts.date) is not None:
        return meant
    if not facts.is_entity:
        return facts.dates[0] if facts.dates else None
    registered = [name for name in facts.dates if REGISTERED.search(name)]
    return registered[0] if registered else None


def no_date_of(plan: Plan, table: TableKey) -> Refusal:
    """The refusal of a period for rows of a table that have no date, or several that may be meant."""
    facts = plan.reading.facts(table)
    word = called(facts.table)
    choices = [(table, name) for name in facts.dates]
    return ambiguous_column(word, choices, plan.reading.lexicon) if choices else no_date_column(word)


REGISTERED = re.compile(f"^(?:{WORDS.any_of('columns.said.registered')})", re.IGNORECASE)
