"""Which date says when something happened, where the question does not name one."""

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
    """The dimension with its date column, when it only names a unit of time.

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
    """The one date of the rows that the question speaks of: "areas opened per year"."""
    links = [noun.column for noun in plan.reading.nouns if noun is not None and not noun.is_table and noun.column]
    found = {link.column for link in links if link.table == base and plan.reading.is_date(link)}
    return ColumnRef(base, str(found.pop())) if len(found) == 1 else None


def trend_dimension(plan: Plan, base: TableKey) -> Dimension:
    """Time as a dimension: days for short periods, else months."""
    grains = ("day", "week", "month")
    short = any(span.periods[0].grain in grains or _is_short(span) for span in plan.filters.spans)
    return resolved(plan, Dimension(("", ""), None, "day" if short else "month"), base)


def _is_short(span: Span) -> bool:
    start = span.periods[0].start
    return start is not None and start.day is None and start.trunc == "day" and start.months == 0 and start.days >= -62


def date_column(plan: Plan, table: TableKey, what: str = "") -> str:
    """The column of `table` that dates its rows.

    Raises:
        Refusal: there is none.
    """
    found = event_date(plan, table)
    if found is None or found.table != table:
        name = called(plan.reading.schema.table(table))
        raise no_date_column(Text(f"{name.zh} ({what})", f"{name.en} ({what})") if what else name)
    return found.column


def span_date(plan: Plan, base: TableKey) -> ColumnRef | None:
    """The date that dates the base's rows: its own, or that of the event it is a part of."""
    below = plan.reading.graph.below(base)
    for key in (*(key for _, key in plan.tables), *(related.table for related in plan.filters.related)):
        if key != base and key in below and (found := event_date(plan, key)) is not None:
            return found  # "customers who placed orders in 2024": when the orders were
    return event_date(plan, base)


def event_date(plan: Plan, table: TableKey) -> ColumnRef | None:
    """The date of a row's event: its own, its year, or the date of the one event it is a part of."""
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
    """The date meant when none is named: things have many dates, so only their registration is taken for granted."""
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
    """Why a period can't be applied to the rows of a table: no date, or several that may be meant."""
    facts = plan.reading.facts(table)
    word = called(facts.table)
    choices = [(table, name) for name in facts.dates]
    return ambiguous_column(word, choices, plan.reading.lexicon) if choices else no_date_column(word)


REGISTERED = re.compile(f"^(?:{WORDS.any_of('columns.said.registered')})", re.IGNORECASE)
