"""A question with the parts of one reading, as composing sees it.

It tells which table answers, when the rows of a table happened, and which measure a figure is.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from common.meanings import TableKey
from knowledge.language.codes import labels_of
from knowledge.language.spoken_names import called
from rules.linking.moments import Moment, Period
from rules.query.query import (
    OPPOSITE,
    ColumnRef,
    Condition,
    Dimension,
    Figure,
    Function,
    Measure,
    Operator,
    Order,
    ref,
)
from rules.query.refusals import (
    Refusal,
    ambiguous_column,
    no_date_column,
    several_people,
    unused_words,
)
from rules.reading.parts import NO_TABLE, Named, Parts, Span
from rules.reading.words import QuestionWords
from rules.schema.links import METRIC, Link
from rules.schema.reference_graph import is_default
from rules.schema.table_facts import (
    done_words,
    is_averaged,
    is_birth_date,
    is_due,
    is_later,
    is_year,
    tells_days,
)
from rules.words import WORDS
from sqltree.operator_expressions import expression

_REGISTERED = re.compile(f"^(?:{WORDS.any_of('columns.said.registered')})", re.IGNORECASE)
_SHORT_DAYS = -62  # a period that begins later than this has a trend by days
_ENOUGH_KEYS = 2  # columns that put rows in the same order every time
_KEY_WORDS = WORDS.found("columns.said.keys")


@dataclass(frozen=True)
class Asked:
    """A question with the parts of one reading.

    Attributes:
        about: the table that a question before it was about.
    """

    question: QuestionWords
    parts: Parts
    about: TableKey | None = None

    def says(self, *flags: str) -> bool:
        """Tell whether the question has one of these flags."""
        return not set(flags).isdisjoint(self.parts.flags)

    def with_parts(self, **parts: Any) -> "Asked":
        """Return the same question with other parts of these names."""
        return replace(self, parts=replace(self.parts, **parts))

    @cached_property
    def tables(self) -> tuple[Named, ...]:
        """Return the tables that are named by themselves, in order.

        Tables that only say whose column or kind is meant are none.
        """
        return tuple(table for table in self.parts.tables if table.role != "owner")

    @property
    def table_keys(self) -> list[TableKey]:
        """Return the keys of `tables`."""
        return [table.link.table for table in self.tables]

    @cached_property
    def head(self) -> TableKey | None:
        """Return the table whose rows answer.

        It is the one that is asked for, else the last one in Chinese and the first in English.
        """
        if self.about is not None:
            return self.about

        asked = [table for table in self.tables if table.role == "asked"]
        named = list(asked or self.tables or self.parts.tables)
        named.sort(key=lambda one: one.at)
        if asked:
            return named[0].link.table
        if named:
            place = -1 if self.question.is_chinese else 0
            return named[place].link.table

        is_grouped = bool(self.parts.groups)
        if is_grouped and not self.parts.rankings:
            return None

        tables = self.events or self.spoken
        return self.person(tables)

    def person(self, tables: Iterable[TableKey]) -> TableKey | None:
        """Return the people that "who placed the most orders" asks for.

        They are the nearest people to whom rows of the tables belong. None where the question does
        not ask for people, or there are none.

        Raises:
            Refusal: it may be several kinds of people.
        """
        if not self.says("person"):
            return None

        for table in tables:
            people = self._people_above(table)
            settled = self.question.settled.among((key, None) for _, key in people)
            if settled is not None:
                return settled[0]
            if not people:
                continue

            is_nearest = len(people) == 1 or people[0][0] < people[1][0]
            if is_nearest:
                return people[0][1]
            if self.spoken:  # else it is asked first by which figure
                raise self._several_people([key for _, key in people])

        return None

    def _people_above(self, table: TableKey) -> list[tuple[float, TableKey]]:
        """Return the tables of people to whom rows belong, with their distance, nearest first."""
        steps = self.question.graph.above(table).items()
        return sorted((far, key) for key, far in steps if self.question.facts(key).is_person)

    def _several_people(self, tables: list[TableKey]) -> Refusal:
        words = [word.text for word in self.question.words if "which:person" in word.senses]
        return several_people(words[0].split()[0], tables, self.question.lexicon)

    @cached_property
    def events(self) -> tuple[TableKey, ...]:
        """Return the tables of the events that verbs name: "bought" names the table of orders."""
        found = self.question.spoken_events()
        return tuple(key for key in found if not self.question.facts(key).is_entity)

    @property
    def compared_columns(self) -> list[ColumnRef]:
        """Return the columns of which the question names several values."""
        return [
            condition.column for condition in self.parts.conditions if condition.operator == "in"
        ]

    @cached_property
    def spoken(self) -> tuple[TableKey, ...]:
        """Return the tables of the figures and conditions."""
        figures = list(self.figures)
        settled = self.question.settled.figure
        if settled is not None and self.parts.rankings:
            figures.append(settled)

        found = [table_of(figure) for figure in figures]
        found += self.parts.condition_tables
        return tuple(key for key in found if key is not None)

    def takes_all_values(self, condition: Condition) -> bool:
        """Tell whether the condition holds for each value that its column may have."""
        ref: ColumnRef = condition.column
        column = self.question.schema.table(ref.table).column(ref.column)
        if column is None or condition.operator != "in":
            return False

        labels = {code for code, _ in labels_of(column.comment)}
        all_values = set(column.values) if column.is_complete else labels
        return bool(all_values) and all_values <= {str(operand) for operand in condition.operands}

    def is_attribute_listing(self) -> bool:
        """Tell whether the measures are columns of the thing that is grouped by: `各店的租金`.

        They are listed then, not added up.
        """
        if len(self.parts.groups) != 1 or self.says("avg", "sum"):
            return False

        thing = self.parts.groups[0].dimension
        if thing.column is not None or thing.bucket is not None:
            return False

        for figure in self.parts.bare:
            if figure.link is None or figure.link.table != thing.table:
                return False

        return self.question.facts(thing.table).is_entity

    # --------------------------------------------------------------------------
    # columns

    def shown_columns(self, dimension: Dimension) -> list[ColumnRef]:
        """Return the columns that show a group."""
        if dimension.column:
            return [ColumnRef(dimension.table, dimension.column, dimension.via)]

        names = self.question.facts(dimension.table).shown
        return [ColumnRef(dimension.table, name, dimension.via) for name in names]

    def all_columns(self, table: TableKey) -> list[str]:
        """Return the names of a table's columns that are of use to a reader."""
        facts = self.question.facts(table)
        everything = facts.table.columns
        useful = [column for column in everything if not facts.is_housekeeping(column)]
        return [column.name for column in useful or everything]

    def useful_columns(self, table: TableKey) -> list[ColumnRef]:
        """Return a table's columns that are of use to a reader."""
        return [ColumnRef(table, name) for name in self.all_columns(table)]

    def names_of(self, table: TableKey) -> list[ColumnRef]:
        """Return the columns that name a table's rows."""
        return [ColumnRef(table, name) for name in self.question.facts(table).display]

    def tie_break(self, table: TableKey) -> tuple[Order, ...]:
        """Return an order that puts rows of a table in the same order every time."""
        facts = self.question.facts(table)
        names = (facts.key or facts.display)[:_ENOUGH_KEYS]
        return tuple(Order(column=ColumnRef(table, name), descending=False) for name in names)

    def shown_column(self, link: Link, text: str) -> list[ColumnRef]:
        """Return the columns that show a column which the question names by `text`.

        A reference is shown by names, unless its number is asked for.
        """
        facts = self.question.facts(link.table)
        if link.column in facts.display and not link.spelling:
            return self.names_of(link.table)
        if _KEY_WORDS.search(text):
            return [ref(link)]

        for edge in facts.edges:
            names = self.names_of(edge.parent)
            if edge.columns != (link.column,) or not names:
                continue

            needs_role = edge.parent == link.table or not is_default(edge)
            via = link.column if needs_role else None
            return [replace(name, via=via) for name in names]

        return [ref(link)]

    # --------------------------------------------------------------------------
    # dates

    def resolved(self, dimension: Dimension, base: TableKey) -> Dimension:
        """Return the dimension, with a date column of `base` if it only names a unit of time.

        Raises:
            Refusal: the rows of `base` carry no such date.
        """
        if dimension.table != NO_TABLE:
            return dimension

        date = self._date_of_periods(base) or self.span_date(base, self._said_date(base))
        column = self.question.schema.column(date.table, date.column)
        bucket = dimension.bucket
        holds_years = is_year(column)
        is_finer_than_years = holds_years and bucket != "year"
        is_finer_than_months = bucket in ("day", "week") and not tells_days(column)
        if is_finer_than_years or is_finer_than_months:
            raise no_date_column(called(self.question.schema.table(base)))

        return replace(
            dimension,
            table=date.table,
            column=date.column,
            bucket=None if holds_years else bucket,
        )

    def _date_of_periods(self, base: TableKey) -> ColumnRef | None:
        """Return the only date of these rows that is said of the periods: "shipped in 2025"."""
        found = set()
        for span in self.parts.spans:
            if span.link is not None and span.link.table == base:
                found.add(ref(span.link))

        return found.pop() if len(found) == 1 else None

    def _said_date(self, base: TableKey) -> ColumnRef | None:
        """Return the only date of these rows that the question names: "areas opened per year"."""
        found = set()
        for word in self.question.words:
            link = word.link_as("dcol")
            if link is not None and link.table == base:
                found.add(str(link.column))

        if len(found) == 1:
            return ColumnRef(base, found.pop())

        return None

    def trend(self, base: TableKey) -> Dimension:
        """Return the dimension of a trend: days in a short period, else months."""
        periods = [span.periods[0] for span in self.parts.spans]
        is_short = any(_is_short(period) for period in periods)
        return self.resolved(Dimension(NO_TABLE, None, "day" if is_short else "month"), base)

    def date_column(self, table: TableKey) -> str:
        """Return the column of `table` that says when its rows happened.

        Raises:
            Refusal: there is none.
        """
        found = self.event_date(table)
        if found is None or found.table != table:
            raise no_date_column(called(self.question.schema.table(table)))

        return found.column

    def span_date(self, base: TableKey, default: ColumnRef | None = None) -> ColumnRef:
        """Return the date that a period is about.

        That is the date of events that the question names below the base, else the base's own.

        Raises:
            Refusal: the rows of `base` have no date, or several that may be meant.
        """
        below = self.question.graph.below(base)
        named = [table.link.table for table in self.parts.tables]
        named += [one.table for one in self.parts.related]
        # "customers who placed orders in 2024" asks when the orders were placed
        for key in named:
            if key == base or key not in below:
                continue

            date = self._done_date(key) or self.event_date(key)
            if date is not None:
                return date

        own = self._done_date(base) or self.event_date(base) or default
        if own is None:
            raise self.no_date_of(base)

        return own

    def _done_date(self, base: TableKey) -> ColumnRef | None:
        """Return the date that a participle names: "paid invoices in 2024" were paid then."""
        conditions = list(self.parts.conditions)
        for related in self.parts.related:
            conditions += () if related.negated else related.conditions

        dates_done = {one.column for one in conditions if one.operator == "not null"}
        for figure in self.figures:
            # "players who left in 2024", counted by that date
            if figure.function in ("count", "count_distinct") and figure.link is not None:
                dates_done.add(ref(figure.link))

        dates = self.question.facts(base).dates
        dates_done = {one for one in dates_done if one.table == base and one.column in dates}
        return dates_done.pop() if len(dates_done) == 1 else None

    def event_date(self, table: TableKey) -> ColumnRef | None:
        """Return when a row happened: its date, else its year.

        Of rows without a date it is the date of the only event of which they are a part.
        """
        facts = self.question.facts(table)
        own = self._default_date(table) or facts.year
        if own is not None:
            return ColumnRef(table, own)
        if facts.dates:
            return None

        found = []
        for key, steps in self.question.graph.above(table).items():
            is_next = 0 < steps < _TWO_STEPS
            date = self._default_date(key) if is_next and self._is_event(key) else None
            if date is not None:
                found.append(ColumnRef(key, date))

        return found[0] if len(found) == 1 else None

    def _is_event(self, table: TableKey) -> bool:
        return self.question.facts(table).is_event

    def _default_date(self, table: TableKey) -> str | None:
        """Return the date that is meant if none is named.

        Of events it is the first. Things have several dates, none of which is likelier than the
        others: only the date of their registration, or their only one, is meant.
        """
        facts = self.question.facts(table)
        settled = self.question.settled.among((table, name) for name in facts.dates)
        if settled is not None:
            return settled[1]

        default = self._metric_date(table) or facts.date or self._date_of_figure(table)
        if default is not None:
            return default
        if not facts.is_entity:
            return self._first_date(table)

        for name in facts.dates:
            if _REGISTERED.search(name):
                return name

        return self._only_date(table)

    def _first_date(self, table: TableKey) -> str | None:
        """Return the first date of events, unless it is only planned and another tells when.

        Rows that have not happened yet lack the other one: matches scheduled and played.
        """
        dates = self.question.facts(table).dates
        columns = [self.question.schema.column(table, name) for name in dates]
        happened = [one for one in columns if not is_due(one) and not is_later(one)]
        is_planned = bool(columns) and is_due(columns[0]) and bool(happened)
        return None if is_planned or not dates else dates[0]

    def _date_of_figure(self, table: TableKey) -> str | None:
        """Return the only date of what a figure tells the amount of: 完工日期 of 完工数量."""
        facts = self.question.facts(table)
        done = set()
        for figure in self.figures:
            link = figure.link
            if link is not None and link.table == table and link.derived is None:
                done |= done_words(self.question.words[figure.position].text)

        found = []
        for name in facts.dates:
            names = called(self.question.schema.column(table, name))
            if not done.isdisjoint(done_words(name) | done_words(names.zh)):
                found.append(name)

        return found[0] if len(found) == 1 else None

    def _only_date(self, table: TableKey) -> str | None:
        """Return the only date but birthdays, else the only one that begins something."""
        events, begun = [], []
        for name in self.question.facts(table).dates:
            column = self.question.schema.column(table, name)
            if is_birth_date(column):
                continue

            events.append(name)
            if not is_later(column):
                begun.append(name)

        if len(events) == 1:
            return events[0]

        return begun[0] if len(begun) == 1 else None

    def _metric_date(self, table: TableKey) -> str | None:
        """Return the date that the semantic file gives the metrics of the question."""
        for figure in self.figures:
            link = figure.link
            if link is None or link.derived != METRIC or link.table != table:
                continue

            date = self.question.schema.metric(link.table, link.column).date_column
            if date:
                return date

        return None

    def during(self, date: ColumnRef, span: Span) -> list[Condition]:
        """Return the periods as conditions on a date column, or on a column of years.

        Raises:
            Refusal: a period begins or ends within a month or year, and the column tells nothing
                finer apart.
        """
        column = self.question.schema.column(date.table, date.column)
        refusal = no_date_column(called(self.question.schema.table(date.table)))
        if is_year(column):
            return _during_years(date, span, refusal)
        if not tells_days(column):
            for period in span.periods:
                if not _is_of_months(period):
                    raise refusal

        operator: Operator = "not during" if span.negated else "during"
        return [Condition(date, operator, span.periods)]

    def no_date_of(self, table: TableKey) -> Refusal:
        """Refuse a period for rows of a table without a date, or with several that may be meant."""
        facts = self.question.facts(table)
        if not facts.dates:
            return no_date_column(called(facts.table))

        choices = [(table, name) for name in facts.dates]
        return ambiguous_column(called(facts.table), choices, self.question.lexicon)

    # --------------------------------------------------------------------------
    # figures

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Return all figures that are named, those of rankings among them."""
        ranked = [ranking.figure for ranking in self.parts.rankings if ranking.figure is not None]
        return (*self.parts.figures, *self.parts.bare, *ranked)

    def measure(self, figure: Figure, default: Function | None = None) -> Measure:
        """Return the measure of a figure.

        Without a function and a default, columns are added up, but rates and prices averaged.

        Raises:
            Refusal: the function means nothing for the column.
        """
        question = self.question
        link = figure.link
        if link is None:
            assert figure.table is not None
            return Measure("count", figure.table)

        if link.derived == METRIC:
            return self._metric(figure, link)
        if figure.per_unit is not None:
            return Measure("sum", link.table, link.column, per=self._per(figure, link))

        column = question.column_of(link)
        is_age = link.derived == "age"
        is_rate = is_age or (link.factor is None and is_averaged(column))
        function = figure.function or default or ("avg" if is_rate else "sum")
        if function in ("sum", "avg") and question.kind(link) in ("date", "timestamp"):
            raise unused_words([column.name])

        discount = question.facts(link.table).discount_share
        return Measure(
            function,
            link.table,
            link.column,
            link.factor,
            less=discount if link.factor is not None else None,
            is_age=is_age,
            percent=figure.percent,
        )

    def _metric(self, figure: Figure, link: Link) -> Measure:
        """Return a metric as it is defined.

        A metric that adds up has a total, and a ratio is an average already.
        """
        metric = self.question.schema.metric(link.table, link.column)
        adds_up = expression(metric.expression).call in ("sum", "count")
        if figure.function not in (None, "sum" if adds_up else "avg"):
            raise unused_words([self.question.words[figure.position].mark.text])

        return Measure("metric", metric.table, metric.name, per=self._per(figure, link))

    def _per(self, figure: Figure, link: Link) -> Dimension | None:
        if figure.per_unit is None:
            return None

        return Dimension(link.table, self.date_column(link.table), figure.per_unit)


_TWO_STEPS = 2  # references


def table_of(figure: Figure) -> TableKey | None:
    """Return the table whose rows a figure is over."""
    if figure.link is not None:
        return figure.link.table

    return figure.table


def _is_of_months(period: Period) -> bool:
    """Tell whether the period begins and ends with a month."""
    bounds = [period.start, period.end]
    return all(bound.begins_month for bound in bounds if bound is not None)


def _is_short(period: Period) -> bool:
    """Tell whether a trend in the period is one by days."""
    if period.grain in ("day", "week", "month"):
        return True

    start = period.start
    if start is None or start.day is not None:
        return False

    is_of_days = start.trunc == "day" and start.months == 0
    return is_of_days and start.days >= _SHORT_DAYS


def _during_years(date: ColumnRef, span: Span, refusal: Refusal) -> list[Condition]:
    """Return the periods of whole years as conditions on a column of years."""
    found: list[Condition] = []
    for period in span.periods:
        found += _year_conditions(date, period)

    if not found:
        raise refusal
    if len(span.periods) > 1:
        if any(condition.operator != "=" for condition in found):
            raise refusal
        if len(found) > 1:
            years = tuple(condition.operands[0] for condition in found)
            found = [Condition(date, "in", years)]

    if not span.negated:
        return found
    if len(found) > 1:
        raise refusal

    return [replace(one, operator=OPPOSITE[one.operator]) for one in found]


def _year_conditions(column: ColumnRef, period: Period) -> list[Condition]:
    """Return a period as conditions on a column of years; none if its bounds are no whole years."""
    ends: dict[Operator, Moment | None] = {">=": period.start, "<": period.end}
    if period.grain == "year":
        ends = {"=": period.start}

    found = []
    for operator, moment in ends.items():
        if moment is None:
            continue

        day = moment.day
        if day is None or (day.month, day.day) != (1, 1):
            return []

        found.append(Condition(column, operator, (Decimal(day.year),)))

    return found
