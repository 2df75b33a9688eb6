"""What a question asks for, as far as its parts tell: which table answers, when its rows happened, what is measured."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from common.meanings import TableKey
from databases.expressions import expression
from knowledge.naming import called
from rules.linking.moments import Moment, Period
from rules.query.query import OPPOSITE, ColumnRef, Condition, Dimension, Figure, Function, Measure, Operator, Order, ref
from rules.query.refusals import Refusal, ambiguous_column, no_date_column, several_people, unused_words
from rules.reading.parts import NO_TABLE, Named, Parts, Span
from rules.reading.words import Question
from rules.schema.facts import is_averaged, is_birth_date, is_later, is_year, tells_days
from rules.schema.joins import is_default
from rules.schema.links import METRIC, Link
from rules.words import WORDS

_REGISTERED = re.compile(f"^(?:{WORDS.any_of('columns.said.registered')})", re.IGNORECASE)
_SHORT_DAYS = -62
_KEY_WORDS = WORDS.found("columns.said.keys")


@dataclass(frozen=True)
class Asked:
    """A question with the parts of one reading; `about` is the table that a question before it was about."""

    question: Question
    parts: Parts
    about: TableKey | None = None

    def says(self, flag: str) -> bool:
        """Whether the question has this wish."""
        return flag in self.parts.flags

    def with_parts(self, **parts: Any) -> "Asked":
        """The same with other parts of these names."""
        return replace(self, parts=replace(self.parts, **parts))

    @cached_property
    def tables(self) -> tuple[Named, ...]:
        """The tables that are named by themselves, in order; not those that only say whose column or kind is meant."""
        return tuple(one for one in self.parts.tables if one.role != "owner")

    @cached_property
    def head(self) -> TableKey | None:
        """The table whose rows answer: the asked one, else the last one in Chinese and the first in English."""
        if self.about is not None:
            return self.about
        asked = [one for one in self.tables if one.role == "asked"]
        named = sorted(asked or self.tables or self.parts.tables, key=lambda one: one.at)
        if named:
            return named[-1 if self.question.is_chinese and not asked else 0].link.table
        return self.person(self.events or self.spoken) if self.parts.rankings or not self.parts.groups else None

    def person(self, tables: Iterable[TableKey]) -> TableKey | None:
        """The people that "who placed the most orders" asks for: the nearest that rows of the tables belong to.

        Raises:
            Refusal: it may be several kinds of people.
        """
        if not self.says("person"):
            return None
        for table in tables:
            above = self.question.graph.above(table)
            people = sorted((steps, key) for key, steps in above.items() if self.question.facts(key).is_person)
            said = self.question.settled.among((key, None) for _, key in people)
            if said is not None:
                return said[0]
            if people and (len(people) == 1 or people[0][0] < people[1][0]):
                return people[0][1]
            if people and self.spoken:  # else it is asked first by which figure
                word = next(word.text for word in self.question.words if "which:person" in word.senses)
                raise several_people(word.split()[0], [key for _, key in people], self.question.lexicon)
        return None

    @cached_property
    def events(self) -> tuple[TableKey, ...]:
        """The tables of the events that verbs speak of: who bought something placed an order."""
        found = self.question.spoken_events()
        return tuple(key for key in found if not self.question.facts(key).is_entity)

    @property
    def compared_columns(self) -> list[ColumnRef]:
        """The columns of which the question names several values."""
        return [one.column for one in self.parts.conditions if one.operator == "in"]

    @cached_property
    def spoken(self) -> tuple[TableKey, ...]:
        """The tables of the figures and conditions."""
        settled = self.question.settled.figure if self.parts.rankings else None
        found = [table_of(figure) for figure in (*self.figures, settled) if figure is not None]
        found += [one.column.table for one in self.parts.conditions]
        return tuple(key for key in found if key is not None)

    def is_attribute_listing(self) -> bool:
        """Whether the measures are columns of the thing that is grouped by, so that they are listed: `各店的租金`."""
        if len(self.parts.groups) != 1 or self.says("avg") or self.says("sum"):
            return False
        one = self.parts.groups[0].dimension
        own = all(figure.link is not None and figure.link.table == one.table for figure in self.parts.bare)
        return one.column is None and one.bucket is None and own and self.question.facts(one.table).is_entity

    # ------------------------------------------------------------------------------------------------------- columns

    def shown_columns(self, dimension: Dimension) -> list[ColumnRef]:
        """The columns that show a group."""
        names = (dimension.column,) if dimension.column else self.question.facts(dimension.table).shown
        return [ColumnRef(dimension.table, name, dimension.via) for name in names]

    def all_columns(self, table: TableKey) -> list[str]:
        """The names of a table's columns that are of use to a reader."""
        facts = self.question.facts(table)
        names = [column.name for column in facts.table.columns if not facts.is_housekeeping(column)]
        return names or [column.name for column in facts.table.columns]

    def names_of(self, table: TableKey) -> list[ColumnRef]:
        """The columns that name a table's rows."""
        return [ColumnRef(table, name) for name in self.question.facts(table).display]

    def tie_break(self, table: TableKey) -> tuple[Order, ...]:
        """An order that puts rows of a table in the same order every time."""
        facts = self.question.facts(table)
        return tuple(
            Order(column=ColumnRef(table, name), descending=False) for name in (facts.key or facts.display)[:2]
        )

    def shown_column(self, link: Link, text: str) -> list[ColumnRef]:
        """The columns that show a column; a reference is shown by names, unless its number is asked for."""
        facts = self.question.facts(link.table)
        if link.column in facts.display and not link.spelling:
            return [ColumnRef(link.table, name) for name in facts.display]
        for edge in facts.edges:
            display = self.question.facts(edge.parent).display
            if edge.columns == (link.column,) and display and not _KEY_WORDS.search(text):
                via = link.column if edge.parent == link.table or not is_default(edge) else None
                return [ColumnRef(edge.parent, name, via) for name in display]
        return [ref(link)]

    # ---------------------------------------------------------------------------------------------------------- dates

    def resolved(self, dimension: Dimension, base: TableKey) -> Dimension:
        """The dimension; one that only names a unit of time gets a date column.

        Raises:
            Refusal: the rows of `base` carry no date.
        """
        if dimension.table != NO_TABLE:
            return dimension
        date = self.span_date(base, self._said_date(base))
        column, bucket = self.question.schema.column(date.table, date.column), dimension.bucket
        if (bucket != "year" and is_year(column)) or (bucket in ("day", "week") and not tells_days(column)):
            raise no_date_column(called(self.question.schema.table(base)))
        return replace(dimension, table=date.table, column=date.column, bucket=None if is_year(column) else bucket)

    def _said_date(self, base: TableKey) -> ColumnRef | None:
        """The only date of these rows that the question names: "areas opened per year"."""
        links = [word.senses["dcol"].link for word in self.question.words if "dcol" in word.senses]
        found = {link.column for link in links if link is not None and link.table == base}
        return ColumnRef(base, str(found.pop())) if len(found) == 1 else None

    def trend(self, base: TableKey) -> Dimension:
        """The dimension of a trend: days in a short period, else months."""
        periods = [span.periods[0] for span in self.parts.spans]
        short = any(period.grain in ("day", "week", "month") or _is_short(period) for period in periods)
        return self.resolved(Dimension(NO_TABLE, None, "day" if short else "month"), base)

    def date_column(self, table: TableKey) -> str:
        """The column of `table` that says when its rows happened.

        Raises:
            Refusal: there is none.
        """
        found = self.event_date(table)
        if found is None or found.table != table:
            raise no_date_column(called(self.question.schema.table(table)))
        return found.column

    def span_date(self, base: TableKey, default: ColumnRef | None = None) -> ColumnRef:
        """The date that a period is about: of events that the question names below the base, else of the base's own.

        Raises:
            Refusal: the rows of `base` have no date, or several that may be meant.
        """
        below = self.question.graph.below(base)
        named = [one.link.table for one in self.parts.tables] + [one.table for one in self.parts.related]
        # "customers who placed orders in 2024" asks when the orders were placed
        events = [self.event_date(key) for key in named if key != base and key in below]
        dates = filter(None, [*events, self._done_date(base), self.event_date(base), default])
        if (found := next(dates, None)) is None:
            raise self.no_date_of(base)
        return found

    def _done_date(self, base: TableKey) -> ColumnRef | None:
        """The date that a participle names: "paid invoices in 2024" were paid then."""
        done = {one.column for one in self.parts.conditions if one.operator == "not null" and one.column.table == base}
        dated = [one for one in done if one.column in self.question.facts(base).dates]
        return dated[0] if len(dated) == 1 else None

    def event_date(self, table: TableKey) -> ColumnRef | None:
        """When a row happened: its date, else its year, else the date of the only event that it is a part of."""
        question = self.question
        own = self._default_date(table) or question.facts(table).year
        if own is not None or question.facts(table).dates:
            return ColumnRef(table, own) if own is not None else None
        steps = question.graph.above(table).items()
        parents = [key for key, distance in steps if 0 < distance < 2 and not question.facts(key).is_entity]
        dated = [ColumnRef(key, date) for key in parents if (date := self._default_date(key)) is not None]
        return dated[0] if len(dated) == 1 else None

    def _default_date(self, table: TableKey) -> str | None:
        """The date that is meant if none is named: the first of events; of things only the date of their registration.

        Things have several dates, none of which is more likely than the others.
        """
        facts = self.question.facts(table)
        if (said := self.question.settled.among((table, name) for name in facts.dates)) is not None:
            return said[1]
        if (meant := self._metric_date(table) or facts.date) is not None:
            return meant
        if not facts.is_entity:
            return next(iter(facts.dates), None)
        registered = [name for name in facts.dates if _REGISTERED.search(name)]
        columns = [self.question.schema.column(table, name) for name in facts.dates]
        events = [column for column in columns if not is_birth_date(column)]
        begun = [column for column in events if not is_later(column)]
        only = next((found[0].name for found in (events, begun) if len(found) == 1), None)
        return registered[0] if registered else only

    def _metric_date(self, table: TableKey) -> str | None:
        links = [one.link for one in self.figures if one.link is not None and one.link.derived == METRIC]
        metrics = [self.question.schema.metric(link.table, link.column) for link in links if link.table == table]
        return next((metric.date_column for metric in metrics if metric.date_column), None)

    def during(self, date: ColumnRef, span: Span) -> list[Condition]:
        """The periods as conditions on a date column, or on a column of years.

        Raises:
            Refusal: a period begins or ends within a month or year, and the column tells nothing finer apart.
        """
        column = self.question.schema.column(date.table, date.column)
        refusal = no_date_column(called(self.question.schema.table(date.table)))
        if not is_year(column):
            bounds = [moment for period in span.periods for moment in (period.start, period.end) if moment is not None]
            if not tells_days(column) and not all(moment.begins_month for moment in bounds):
                raise refusal
            return [Condition(date, "not during" if span.negated else "during", span.periods)]
        found = [one for period in span.periods for one in _year_conditions(date, period)]
        if not found or (len(span.periods) > 1 and any(condition.operator != "=" for condition in found)):
            raise refusal
        if len(found) > 1 and len(span.periods) > 1:
            found = [Condition(date, "in", tuple(condition.operands[0] for condition in found))]
        if span.negated and len(found) > 1:
            raise refusal
        return [replace(one, operator=OPPOSITE[one.operator]) for one in found] if span.negated else found

    def no_date_of(self, table: TableKey) -> Refusal:
        """The refusal of a period for rows of a table that have no date, or several that may be meant."""
        facts = self.question.facts(table)
        word, choices = called(facts.table), [(table, name) for name in facts.dates]
        return ambiguous_column(word, choices, self.question.lexicon) if choices else no_date_column(word)

    # -------------------------------------------------------------------------------------------------------- figures

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """All that are named, those of rankings among them."""
        parts = self.parts
        return (*parts.figures, *parts.bare, *(one.figure for one in parts.rankings if one.figure is not None))

    def measure(self, figure: Figure, default: Function | None = None) -> Measure:
        """The measure of a figure. Without a function, columns are added up, rates and prices averaged.

        Raises:
            Refusal: the function means nothing for the column.
        """
        question, link = self.question, figure.link
        if link is None:
            assert figure.table is not None
            return Measure("count", figure.table)
        if link.derived == METRIC:
            return self._metric(figure, link)
        if figure.per_unit is not None:
            return Measure("sum", link.table, link.column, per=self._per(figure, link))
        column, is_age = question.column_of(link), link.derived == "age"
        averaged = is_age or (link.factor is None and is_averaged(column))
        function = figure.function or default or ("avg" if averaged else "sum")
        if question.kind(link) in ("date", "timestamp") and function in ("sum", "avg"):
            raise unused_words([column.name])
        return Measure(function, link.table, link.column, link.factor, is_age=is_age, percent=figure.percent)

    def _metric(self, figure: Figure, link: Link) -> Measure:
        """A metric as it is defined: what adds up has a total, and what is a ratio is an average already."""
        metric = self.question.schema.metric(link.table, link.column)
        adds_up = expression(metric.expression).call in ("sum", "count")
        if figure.function not in (None, "sum" if adds_up else "avg"):
            raise unused_words([self.question.words[figure.position].mark.text])
        return Measure("metric", metric.table, metric.name, per=self._per(figure, link))

    def _per(self, figure: Figure, link: Link) -> Dimension | None:
        unit = figure.per_unit
        return Dimension(link.table, self.date_column(link.table), unit) if unit is not None else None


def table_of(figure: Figure) -> TableKey | None:
    """The table whose rows a figure is over."""
    return figure.link.table if figure.link is not None else figure.table


def _is_short(period: Period) -> bool:
    """Whether it begins so few days ago that a trend in it is one by days."""
    start = period.start
    of_days = start is not None and start.day is None and start.trunc == "day" and start.months == 0
    return of_days and start is not None and start.days >= _SHORT_DAYS


def _year_conditions(column: ColumnRef, period: Period) -> list[Condition]:
    """A period of whole years as conditions on a column of years; none if its bounds are no whole years."""
    ends: dict[Operator, Moment | None] = {">=": period.start, "<": period.end}
    if period.grain == "year":
        ends = {"=": period.start}
    days = [(operator, moment.day) for operator, moment in ends.items() if moment is not None]
    if any(day is None or (day.month, day.day) != (1, 1) for _, day in days):
        return []
    return [Condition(column, operator, (Decimal(day.year),)) for operator, day in days if day is not None]
