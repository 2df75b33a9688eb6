"""Makes one `Query` and its statement of a question, or a refusal that says what is missing."""

from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeVar

from common.inquiry import Inquiry
from common.meanings import TableKey
from common.text import Lang, Text, language_of
from knowledge.atoms import stem, words_of
from knowledge.naming import called, comment_names, english_words
from rules.composing.asked import Asked
from rules.composing.assumptions import assumptions, notes_on_values
from rules.composing.compose import composed, grouped_table, refuse_lost, with_all_groups
from rules.linking.linking import nouns_of
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.query.pending import NOTHING_SETTLED, Settled
from rules.query.query import ColumnRef, Dimension, Having, Query
from rules.query.refusals import Refusal, ambiguous_way, beyond_grain, not_combinable, not_connected
from rules.query.years import dated
from rules.reading.cover import readings
from rules.reading.inclusions import Inclusion, without_inclusion
from rules.reading.parts import Reading
from rules.reading.patterns import BY_SYMBOL
from rules.reading.words import ColumnIdentity, Question
from rules.schema.joins import AmbiguousPath
from rules.schema.lexicon import Lexicon, lexicon_for
from rules.sql.render import render
from rules.sql.statement import Unrenderable
from rules.words.talk import without_courtesy

T = TypeVar("T", ColumnRef, Dimension)


@dataclass(frozen=True)
class Understanding:
    """A question as understood: the query, its statement, and what the user should know about the reading."""

    query: Query
    sql: str
    warnings: tuple[str, ...] = ()
    assumptions: tuple[Text, ...] = ()


def understand(inquiry: Inquiry, settled: Settled = NOTHING_SETTLED) -> Understanding:
    """The query and the statement of a question; `settled` is what the user has said when asked back.

    Raises:
        Refusal: rules can't answer it.
    """
    lexicon = lexicon_for(inquiry)
    marks = marks_of(inquiry.question, lexicon)
    try:
        return _with_groups(inquiry, lexicon, marks, settled)
    except Refusal as refusal:
        named = (link.table for mark in marks for link in mark.links[:1] if link.kind == "table")
        if all(lexicon.schema.table(key).kind == "table" for key in named):
            raise
        try:  # a view's name may be several words of the question written together
            return _with_groups(inquiry, lexicon, marks_of(inquiry.question, lexicon, with_views=False), settled)
        except Refusal:
            raise refusal from None


def _with_groups(inquiry: Inquiry, lexicon: Lexicon, marks: tuple[Mark, ...], settled: Settled) -> Understanding:
    """The question, with groups that have no rows if it has words for that."""
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
    try:  # the words restrict the rows themselves: "customers without orders too"
        return _read(inquiry, lexicon, marks, settled)
    except Refusal as refusal:
        raise refused or refusal from None


class _NoGroups(Exception):
    """The query has no such groups."""


def _read(
    inquiry: Inquiry, lexicon: Lexicon, marks: tuple[Mark, ...], settled: Settled, inclusion: Inclusion | None = None
) -> Understanding:
    is_chinese = language_of(without_courtesy(inquiry.question)) == "zh"
    marks = dated(marks, settled.year, is_chinese)

    def best_of(marks: tuple[Mark, ...]) -> Understanding:
        nouns = nouns_of(marks, lexicon, inquiry.table)
        question = Question(marks, nouns, lexicon, is_chinese=is_chinese, settled=settled)
        return _best(question, inquiry.lang, inclusion)

    try:
        return best_of(marks)
    except _Unconnected as failure:
        unconnected = failure
    with suppress(_Unconnected):
        understood = best_of(tuple(_without(mark, unconnected.measured) for mark in marks))
        if understood.query.measures:  # else the question asks for figures, and the query has only rows
            return understood
    raise unconnected.refusal


def _without(mark: Mark, avoided: frozenset[ColumnIdentity]) -> Mark:
    """The mark without its links to these columns, unless it links to no other column."""
    links = tuple(link for link in mark.links if link.kind != "column" or (link.table, link.column) not in avoided)
    return replace(mark, links=links) if any(link.kind == "column" for link in links) else mark


class _Unconnected(Exception):
    """The tables can't be joined so; another reading may avoid the columns `measured`."""

    def __init__(self, refusal: Refusal, measured: frozenset[ColumnIdentity]) -> None:
        super().__init__()
        self.refusal, self.measured = refusal, measured


def _best(question: Question, lang: Lang, inclusion: Inclusion | None) -> Understanding:
    """What the best reading that can be composed gives.

    Raises:
        Refusal: the best reading can't, and no other is nearly as good.
    """
    refusal: Refusal | None = None
    for reading in readings(question, BY_SYMBOL):
        try:
            return _understood(question, reading, lang, inclusion)
        except Refusal as one:
            refusal = refusal or one
            if reading.parts.doubts or (one.missing is not None and one.missing.kind == "choice"):
                break
    assert refusal is not None
    raise refusal


def _understood(question: Question, reading: Reading, lang: Lang, inclusion: Inclusion | None) -> Understanding:
    asked = Asked(question, reading.parts)
    notes = notes_on_values(asked)  # a part of a name says more than words that are lost
    refuse_lost(asked, reading)
    try:
        query = replace(composed(asked), through=frozenset((*question.named_tables(), *question.spoken_events())))
        query, sql = rendered(asked, query, inclusion)
    except AmbiguousPath as ambiguity:
        raise ambiguous_way(ambiguity.target, ambiguity.choices, question.lexicon) from ambiguity
    except (Unrenderable, LookupError) as failure:
        measured = frozenset((one.link.table, one.link.column) for one in asked.figures if one.link)
        names = [called(question.schema.table(key)) for key in dict.fromkeys(question.named_tables())]
        refusal = not_connected(names[0], names[1]) if len(names) >= 2 else not_combinable()
        raise _Unconnected(refusal, measured) from failure
    return Understanding(query, sql, tuple(note.to(lang) for note in notes), (*notes, *assumptions(asked, query)))


def _refuse_beyond_grain(asked: Asked, query: Query) -> None:
    """Refuses a metric by something that it means nothing by.

    Raises:
        Refusal: a group of the query is none of the metric's grain.
    """
    question = asked.question
    for measure in query.measures:
        metric = question.schema.metric(measure.table, measure.column) if measure.function == "metric" else None
        if metric is None or not metric.grain:
            continue
        dated = asked.event_date(metric.table)
        known = {*metric.grain, metric.date_column or (dated.column if dated is not None else None)}
        ways = [question.graph.up(metric.table, one.table, one.via) or () for one in query.dimensions]
        columns = [way[0].columns if way else (one.column,) for way, one in zip(ways, query.dimensions, strict=True)]
        if not all(known.issuperset(names) for names in columns):
            table = question.schema.table(metric.table)
            grain = [called(column) for column in table.columns if column.name in known]
            raise beyond_grain(called(question.schema.column(metric.table, metric.name)), grain)


def rendered(asked: Asked, query: Query, inclusion: Inclusion | None = None) -> tuple[Query, str]:
    """The query and its statement, with groups that have no rows if words say so or if they meet the comparisons."""
    question = asked.question
    _refuse_beyond_grain(asked, query)
    if inclusion is not None:
        groups = {link.table for links in inclusion.named for link in links if link.kind == "table"}
        if not query.measures or (inclusion.is_aside and grouped_table(query) not in groups):
            raise _NoGroups
        return _in_role(question, with_all_groups(asked, query, inclusion))
    if query.all_of is None and _holds_for_none(query):
        with suppress(Unrenderable, LookupError):
            return _in_role(question, replace(query, all_of=grouped_table(query)))
    return _in_role(question, query)


def _in_role(question: Question, query: Query) -> tuple[Query, str]:
    """Of several references to a table, the one is taken of whose name the question has a word."""
    try:
        return query, render(query, question.schema, question.graph)
    except AmbiguousPath as ambiguity:
        chosen = question.settled.among(ambiguity.choices)
        via = chosen[1] if chosen is not None else _said_reference(question, ambiguity)
        if via is None:
            raise
        query = with_role(query, ambiguity.target, via)
        return query, render(query, question.schema, question.graph)


def _said_reference(question: Question, ambiguity: AmbiguousPath) -> str | None:
    """The only reference of which a word stands in the question: "trips *started* at Harbor"; else None."""
    said = {stem(one) for word in question.words for one in words_of(word.mark.text)}
    target = {stem(one) for one in words_of(ambiguity.target[1])}
    scored = []
    for key, column in ambiguity.choices:
        names = [column, *comment_names(question.schema.column(key, column).comment)] if column else []
        words = {stem(one) for name in names for one in english_words(name)} - target - {"id"}
        scored.append((len(words & said), column))
    best, *others = sorted(scored, reverse=True)
    return best[1] if best[0] > max((score for score, _ in others), default=0) else None


def with_role(query: Query, table: TableKey, via: str) -> Query:
    """The query in which every use of `table` goes through the referencing column `via`."""

    def in_role(one: T) -> T:
        return replace(one, via=via) if one.table == table and one.via is None else one

    return replace(
        query,
        columns=tuple(map(in_role, query.columns)),
        dimensions=tuple(map(in_role, query.dimensions)),
        top_per=tuple(map(in_role, query.top_per)),
        conditions=tuple(replace(one, column=in_role(one.column)) for one in query.conditions),
        order=tuple(replace(one, column=in_role(one.column)) if one.column else one for one in query.order),
    )


def _holds_for_none(query: Query) -> bool:
    """Whether a comparison of counts also holds for groups without rows, as "fewer than 3 orders" does."""
    return bool(query.having) and all(_holds_for_zero(one, query.base) for one in query.having)


def _holds_for_zero(having: Having, counted: TableKey) -> bool:
    first = next(iter(having.operands), None)
    if having.measure.function != "count" or having.measure.table != counted or not isinstance(first, Decimal):
        return False
    holds = {"<": first > 0, "<=": first >= 0, "=": first == 0, "between": first <= 0}
    return holds.get(having.operator, False)
