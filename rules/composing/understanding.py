"""Understands a question: as one `Query` with its statement, or as a refusal that says why not."""

from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeVar

from common.cpu_clock import check
from common.inquiry import Inquiry
from common.meanings import Metric, TableKey
from common.text import Lang, Text, language_of
from knowledge.language.spoken_names import called
from rules.composing.asked import Asked
from rules.composing.assumptions import assumptions, notes_on_values
from rules.composing.compose import composed, grouped_table, refuse_lost, with_all_groups
from rules.composing.rival_readings import is_rival, means_rival, refuse_doubtful, refuse_rivals
from rules.composing.roles import said_reference, tied
from rules.linking.linking import nouns_of
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.query.pending import NOTHING_SETTLED, Settled
from rules.query.query import ColumnRef, Dimension, Having, Query
from rules.query.refusals import (
    Refusal,
    ambiguous_way,
    beyond_grain,
    not_combinable,
    not_connected,
    refuse_too_long,
)
from rules.query.years import with_missing_years
from rules.reading import costs
from rules.reading.cover import readings
from rules.reading.inclusions import Inclusion, without_inclusion
from rules.reading.parts import Reading
from rules.reading.patterns import BY_SYMBOL
from rules.reading.words import ColumnIdentity, QuestionWords
from rules.schema.lexicon import Lexicon, lexicon_for
from rules.schema.reference_graph import AmbiguousPath
from rules.sql.render import render
from rules.sql.statement import Unrenderable
from rules.words.talk import without_courtesy

T = TypeVar("T", ColumnRef, Dimension)


@dataclass(frozen=True)
class Understanding:
    """A question as understood.

    Attributes:
        warnings: what the user has to know, in the language of the answer.
        assumptions: what was assumed where the question leaves a choice, the warnings among them.
    """

    query: Query
    sql: str
    warnings: tuple[str, ...] = ()
    assumptions: tuple[Text, ...] = ()


def understand(inquiry: Inquiry, settled: Settled = NOTHING_SETTLED) -> Understanding:
    """Return the query and the statement of a question.

    Args:
        settled: the user's answers to questions back.

    Raises:
        Refusal: rules can't answer it.
    """
    lexicon = lexicon_for(inquiry)
    marks = marks_of(inquiry.question, lexicon)
    refuse_too_long(inquiry.question, marks)
    try:
        return _with_groups(inquiry, lexicon, marks, settled)
    except Refusal as refusal:
        if not _names_view(marks, lexicon):
            raise

        # A view's name may be several words of the question written together.
        without_views = marks_of(inquiry.question, lexicon, with_views=False)
        try:
            return _with_groups(inquiry, lexicon, without_views, settled)
        except Refusal:
            raise refusal from None


def _names_view(marks: tuple[Mark, ...], lexicon: Lexicon) -> bool:
    """Tell whether a word names a view, or anything else that is no table, as its best sense."""
    for mark in marks:
        link = next(iter(mark.links), None)
        if link is None or link.kind != "table":
            continue
        if lexicon.schema.table(link.table).kind != "table":
            return True

    return False


def _with_groups(
    inquiry: Inquiry, lexicon: Lexicon, marks: tuple[Mark, ...], settled: Settled
) -> Understanding:
    """Understand the question, with groups that have no rows if it has words for that."""
    rest, inclusion = without_inclusion(marks)
    if inclusion is None:
        return _read(inquiry, lexicon, marks, settled)

    refused: Refusal | None = None
    try:
        return _read(inquiry, lexicon, rest, settled, inclusion)
    except _NoGroups:
        pass
    except Refusal as refusal:
        if inclusion.text in refusal.words:
            raise

        refused = refusal

    # Then the words may restrict the rows themselves: "customers without orders too".
    try:
        return _read(inquiry, lexicon, marks, settled)
    except Refusal as refusal:
        raise refused or refusal from None


class _NoGroups(Exception):
    """Raised where the query has no groups that words for groups without rows could be about."""


def _read(
    inquiry: Inquiry,
    lexicon: Lexicon,
    marks: tuple[Mark, ...],
    settled: Settled,
    inclusion: Inclusion | None = None,
) -> Understanding:
    """Understand marks; where tables can't be joined, try without the columns of the figures."""
    is_chinese = language_of(without_courtesy(inquiry.question)) == "zh"
    marks = with_missing_years(marks, settled.year, is_chinese)

    def best_of(marks: tuple[Mark, ...]) -> Understanding:
        nouns = nouns_of(marks, lexicon, inquiry.table)
        question = QuestionWords(marks, nouns, lexicon, is_chinese=is_chinese, settled=settled)
        return _best(question, inquiry.lang, inclusion)

    try:
        return best_of(marks)
    except _Unconnected as failure:
        unconnected = failure

    with suppress(_Unconnected):
        understood = best_of(tuple(_without(mark, unconnected.measured) for mark in marks))
        if understood.query.measures:
            return understood

        # The question asks for figures, and this query has only rows.
    raise unconnected.refusal


def _without(mark: Mark, avoided: frozenset[ColumnIdentity]) -> Mark:
    """Return the mark without its links to these columns, unless it links to no other column."""
    links = []
    for link in mark.links:
        is_column = link.kind == "column"
        if not is_column or (link.table, link.column) not in avoided:
            links.append(link)

    has_columns = any(link.kind == "column" for link in links)
    return replace(mark, links=tuple(links)) if has_columns else mark


class _Unconnected(Exception):
    """Raised where tables can't be joined; another reading may avoid the columns `measured`."""

    def __init__(self, refusal: Refusal, measured: frozenset[ColumnIdentity]) -> None:
        super().__init__()
        self.refusal, self.measured = refusal, measured


def _best(question: QuestionWords, lang: Lang, inclusion: Inclusion | None) -> Understanding:
    """Understand the best reading that can be composed.

    Raises:
        Refusal: why the best reading can't be composed; no other that is nearly as good can be
            either.
    """
    refusal: Refusal | None = None
    found = readings(question, BY_SYMBOL)
    for place, reading in enumerate(found):
        check()
        try:
            understood = _understood(question, reading, lang, inclusion)
            rivals = [one for one in found[place + 1 :] if is_rival(reading, one)]
            for rival in rivals:
                _refuse_rival(question, rival, understood, lang, inclusion)

            return _of_things_meant(question, found[place:], understood, lang, inclusion)
        except Refusal as one:
            if refusal is None or (one.choices and not refusal.choices):
                refusal = one
            if reading.parts.doubts or (one.missing is not None and one.missing.kind == "choice"):
                break

    assert refusal is not None
    raise refusal


def _refuse_rival(
    question: QuestionWords,
    rival: Reading,
    understood: Understanding,
    lang: Lang,
    inclusion: Inclusion | None,
) -> None:
    """Ask which column is meant where another reading of the same words gives another statement."""
    other = understood
    with suppress(Refusal, _Unconnected):
        other = _understood(question, rival, lang, inclusion)

    if other.sql != understood.sql:
        refuse_rivals(question, understood.query, other.query)


def _of_things_meant(
    question: QuestionWords,
    found: list[Reading],
    understood: Understanding,
    lang: Lang,
    inclusion: Inclusion | None,
) -> Understanding:
    """Return the best reading, or another that is about the things which the user has chosen.

    Args:
        found: the best reading, which is `understood`, and the worse ones.

    Raises:
        Refusal: asks which things are meant, where a reading that is hardly worse is about others.
    """
    best, *others = found
    for other in others:
        if other.cost > best.cost + costs.DOUBT_OF_THINGS:
            continue

        rival = None
        with suppress(Refusal, _Unconnected):
            rival = _understood(question, other, lang, inclusion)

        if rival is not None and means_rival(question, understood.query, rival.query):
            return rival

    return understood


def _understood(
    question: QuestionWords, reading: Reading, lang: Lang, inclusion: Inclusion | None
) -> Understanding:
    asked = Asked(question, reading.parts)
    # a part of a name says more than words that are lost
    notes = notes_on_values(asked)
    refuse_lost(asked, reading)
    events = (*question.named_tables(), *question.spoken_events())
    try:
        query = replace(composed(asked), through=frozenset(events))
        refuse_doubtful(asked, query)
        query, sql = rendered(asked, tied(asked, query), inclusion)
    except AmbiguousPath as ambiguity:
        raise ambiguous_way(ambiguity.target, ambiguity.choices, question.lexicon) from ambiguity
    except (Unrenderable, LookupError) as failure:
        figures = [figure.link for figure in asked.figures if figure.link is not None]
        measured = frozenset((link.table, link.column) for link in figures)
        raise _Unconnected(_unconnected_refusal(question), measured) from failure

    warnings = tuple(note.to(lang) for note in notes)
    return Understanding(query, sql, warnings, (*notes, *assumptions(asked, query)))


def _unconnected_refusal(question: QuestionWords) -> Refusal:
    tables = list(dict.fromkeys(question.named_tables()))
    names = [called(question.schema.table(key)) for key in tables]
    if len(names) > 1:
        return not_connected(names[0], names[1])

    return not_combinable()


def _refuse_beyond_grain(asked: Asked, query: Query) -> None:
    """Refuse a metric by a group for which it is not defined."""
    schema = asked.question.schema
    for measure in query.measures:
        if measure.function != "metric":
            continue

        metric = schema.metric(measure.table, measure.column)
        if not metric.grain:
            continue

        grain_columns = _grain(asked, metric)
        groups = [_grouping_columns(asked, metric, dimension) for dimension in query.dimensions]
        if not all(grain_columns.issuperset(columns) for columns in groups):
            table = schema.table(metric.table)
            grain = [called(column) for column in table.columns if column.name in grain_columns]
            raise beyond_grain(called(schema.column(metric.table, metric.name)), grain)


def _grain(asked: Asked, metric: Metric) -> set[str | None]:
    """Return the columns of the metric's table by which it may be grouped, its date among them."""
    date = metric.date_column
    if not date:
        event = asked.event_date(metric.table)
        date = event.column if event is not None else None

    return {*metric.grain, date}


def _grouping_columns(asked: Asked, metric: Metric, dimension: Dimension) -> tuple[str | None, ...]:
    """Return the columns of the metric's table by which a dimension groups its rows."""
    way = asked.question.graph.up(metric.table, dimension.table, dimension.via)
    return way[0].columns if way else (dimension.column,)


def rendered(asked: Asked, query: Query, inclusion: Inclusion | None = None) -> tuple[Query, str]:
    """Return the query and its statement.

    Groups that have no rows are added if words say so or if they meet the comparisons.
    """
    question = asked.question
    _refuse_beyond_grain(asked, query)
    if inclusion is not None:
        if not query.measures or not _is_about_groups(inclusion, query):
            raise _NoGroups

        return _in_role(question, with_all_groups(asked, query, inclusion))

    if query.all_of is None and _holds_for_none(query):
        with suppress(Unrenderable, LookupError):
            return _in_role(question, replace(query, all_of=grouped_table(query)))

    return _in_role(question, query)


def _is_about_groups(inclusion: Inclusion, query: Query) -> bool:
    """Tell whether the words mean the groups; said in passing, they have to name their table."""
    if not inclusion.is_aside:
        return True

    tables = set()
    for links in inclusion.named:
        tables |= {link.table for link in links if link.kind == "table"}

    return grouped_table(query) in tables


def _in_role(question: QuestionWords, query: Query) -> tuple[Query, str]:
    """Return the query and its statement, through the reference that the question means.

    Of several references to a table it is the one that the user chose, or that the question names.
    """
    try:
        return query, render(query, question.schema, question.graph)
    except AmbiguousPath as ambiguity:
        chosen = question.settled.among(ambiguity.choices)
        if chosen is None:
            via = said_reference(question, ambiguity)
            chosen = None if via is None else (ambiguity.target, via)
        if chosen is None:
            raise

        table, column = chosen
        if column is None:
            query = replace(query, through=query.through | {table})
        else:
            query = with_role(query, ambiguity.target, column)

        return query, render(query, question.schema, question.graph)


def with_role(query: Query, table: TableKey, via: str) -> Query:
    """Return the query in which every use of `table` goes through the referencing column `via`."""

    def in_role(one: T) -> T:
        if one.table == table and one.via is None:
            return replace(one, via=via)

        return one

    conditions = [
        replace(condition, column=in_role(condition.column)) for condition in query.conditions
    ]
    order = []
    for one in query.order:
        order.append(replace(one, column=in_role(one.column)) if one.column is not None else one)

    return replace(
        query,
        columns=tuple(map(in_role, query.columns)),
        dimensions=tuple(map(in_role, query.dimensions)),
        top_per=tuple(map(in_role, query.top_per)),
        conditions=tuple(conditions),
        order=tuple(order),
    )


def _holds_for_none(query: Query) -> bool:
    """Tell whether the comparisons of counts also hold for groups without rows.

    "fewer than 3 orders" does.
    """
    return bool(query.having) and all(_holds_for_zero(one, query.base) for one in query.having)


def _holds_for_zero(having: Having, counted: TableKey) -> bool:
    if having.measure.function != "count" or having.measure.table != counted:
        return False

    first = having.operands[0] if having.operands else None
    if not isinstance(first, Decimal):
        return False

    holds = {"<": first > 0, "<=": first >= 0, "=": first == 0, "between": first <= 0}
    return holds.get(having.operator, False)
