"""Makes one `Query` and its statement of a question, or a refusal that says what is missing.

`understand` is the entry. It reads the question, decides which table answers it, puts every wish and condition into the
query, and refuses if a word with a meaning has no place there.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

from common.inquiry import Inquiry
from common.text import Text, language_of
from knowledge.atoms import key_of
from knowledge.naming import called
from knowledge.thesaurus import EVENTS_OF_VERBS
from rules.conversation.assumptions import assumptions
from rules.linking.marks import Mark, marks_of
from rules.planning.heads import sort_heads, split_attributes, wants_figures
from rules.planning.listing import listed_query
from rules.planning.measuring import (
    figures_query,
    grouped_table,
    holds_for_none,
    refuse_foreign_grain,
    with_all_groups,
)
from rules.planning.periods import compares_periods, periods_query, take_compared_periods
from rules.planning.placement import (
    measured_columns,
    refuse_leftovers,
    refuse_unplaced,
    said_reference,
    with_names_asked_for,
)
from rules.planning.plan import Plan
from rules.planning.ranked import ranked_query
from rules.planning.restricting import with_conditions
from rules.query.pending import NOTHING_SETTLED, Settled
from rules.query.query import ColumnRef, Dimension, Query
from rules.query.refusals import (
    Refusal,
    ambiguous_way,
    not_combinable,
    not_connected,
    unknown_words,
    unsupported,
)
from rules.query.years import dated
from rules.readers.asks import read_asks
from rules.readers.filters import read_filters
from rules.reading.inclusions import Inclusion, without_inclusion
from rules.readers.reading import ColumnIdentity, Reading
from rules.schema.joins import AmbiguousPath
from rules.schema.lexicon import Lexicon
from rules.schema.looked_up import lexicon_for
from rules.schema.schema import TableKey
from rules.sql.render import render
from rules.sql.statement import Unrenderable
from rules.words import WORDS
from rules.words.talk import without_courtesy

_DONE = WORDS.chinese.text("questions.done")


@dataclass(frozen=True)
class Understanding:
    """A question as understood: the query, its statement, and what the user should know about the reading.

    Attributes:
        warnings: shown beside the answer.
        assumptions: shown in the answer: what was chosen where the question left a choice.
    """

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
        return _understood(inquiry, lexicon, marks, settled)
    except Refusal as refusal:
        if not any(_names_view(mark, lexicon) for mark in marks):
            raise
        try:  # a view's name may be several words of the question written together
            return _understood(inquiry, lexicon, marks_of(inquiry.question, lexicon, with_views=False), settled)
        except Refusal:
            raise refusal from None


def _names_view(mark: Mark, lexicon: Lexicon) -> bool:
    best = mark.links[0] if mark.links else None
    return best is not None and best.kind == "table" and lexicon.schema.table(best.table).kind != "table"


def _understood(inquiry: Inquiry, lexicon: Lexicon, marks: tuple[Mark, ...], settled: Settled) -> Understanding:
    rest, inclusion = without_inclusion(marks)
    if inclusion is None:
        return _read(inquiry, lexicon, marks, settled)
    try:
        return _read(inquiry, lexicon, rest, settled, inclusion)
    except _NoGroups as other:  # the words restrict the rows themselves: "customers without orders too"
        try:
            return _read(inquiry, lexicon, marks, settled)
        except Refusal as refusal:
            raise other.refusal or refusal from None


def _read(
    inquiry: Inquiry,
    lexicon: Lexicon,
    marks: tuple[Mark, ...],
    settled: Settled,
    inclusion: Inclusion | None = None,
) -> Understanding:
    avoided: frozenset[ColumnIdentity] = frozenset()
    is_chinese = language_of(without_courtesy(inquiry.question)) == "zh"
    marks = dated(marks, settled.year, is_chinese)
    for is_last in (False, True):
        reading = Reading(marks, lexicon, inquiry.table, is_chinese, avoided, settled=settled)
        try:
            plan = planned(reading)
            query, sql = _rendered_with_groups(plan, _query(plan), inclusion)
        except Refusal as refusal:
            if inclusion is None or inclusion.text in refusal.words:
                raise
            raise _NoGroups(refusal) from refusal
        except AmbiguousPath as ambiguity:
            raise ambiguous_way(ambiguity.target, ambiguity.choices, lexicon) from ambiguity
        except (Unrenderable, LookupError) as failure:
            avoided = measured_columns(plan)
            if is_last or not avoided:
                raise _unconnected(reading, lexicon) from failure
        else:
            if is_last and not query.measures:
                raise _unconnected(reading, lexicon)  # the question asks for figures, and the query has only rows
            warnings = tuple(warning.to(inquiry.lang) for warning in plan.warnings)
            return Understanding(query, sql, warnings, assumptions(plan, query))
    raise AssertionError("the last turn returns or raises")


class _NoGroups(Exception):
    """The query has no such groups, or the question is not understood without the words for them."""

    def __init__(self, refusal: Refusal | None = None) -> None:
        super().__init__()
        self.refusal = refusal


def _rendered_with_groups(plan: Plan, query: Query, inclusion: Inclusion | None) -> tuple[Query, str]:
    """The query and its statement, with groups that have no rows if the question has words for that."""
    if inclusion is None:
        return rendered(plan, query)
    groups = {link.table for links in inclusion.named for link in links if link.kind == "table"}
    if not query.measures or (inclusion.is_aside and grouped_table(query) not in groups):
        raise _NoGroups
    return rendered(plan, with_all_groups(plan, query, inclusion))


def rendered(plan: Plan, query: Query) -> tuple[Query, str]:
    """The query and its statement.

    Groups without rows are added if they meet the comparisons. Of several references to a table, the one is taken of
    whose name the question has a word.
    """
    if query.all_of is None and holds_for_none(query):
        with suppress(Unrenderable, LookupError):
            return _rendered(plan, replace(query, all_of=grouped_table(query)))
    return _rendered(plan, query)


def _rendered(plan: Plan, query: Query) -> tuple[Query, str]:
    schema, graph = plan.reading.lexicon.schema, plan.reading.lexicon.graph
    try:
        return query, render(query, schema, graph)
    except AmbiguousPath as ambiguity:
        chosen = plan.reading.settled.among(ambiguity.choices)
        via = chosen[1] if chosen is not None else said_reference(plan, ambiguity)
        if via is None:
            raise
        query = with_role(query, ambiguity.target, via)
        return query, render(query, schema, graph)


def with_role(query: Query, table: TableKey, via: str) -> Query:
    """The query in which every use of `table` goes through the referencing column `via`."""

    def column(ref_: ColumnRef) -> ColumnRef:
        return replace(ref_, via=via) if ref_.table == table and ref_.via is None else ref_

    def dimension(dim: Dimension) -> Dimension:
        return replace(dim, via=via) if dim.table == table and dim.via is None else dim

    return replace(
        query,
        columns=tuple(map(column, query.columns)),
        dimensions=tuple(map(dimension, query.dimensions)),
        top_per=tuple(map(dimension, query.top_per)),
        conditions=tuple(replace(one, column=column(one.column)) for one in query.conditions),
        order=tuple(replace(one, column=column(one.column)) if one.column else one for one in query.order),
    )


def _unconnected(reading: Reading, lexicon: Lexicon) -> Refusal:
    keys = dict.fromkeys(reading.named_tables())
    names = [called(lexicon.schema.table(key)) for key in keys]
    return not_connected(names[0], names[1]) if len(names) >= 2 else not_combinable()


def planned(reading: Reading) -> Plan:
    """The wishes and conditions of a reading.

    Raises:
        Refusal: a word names nothing in the database, or asks for what rules can't do.
    """
    for index in reading.having("unsupported"):
        raise unsupported(reading.marks[index].arg, reading.marks[index].text)
    filters = read_filters(reading)
    if unknown := reading.unknown():
        raise unknown_words([reading.widened(mark) for mark in unknown], reading.lexicon)
    restricted = frozenset(condition.column.table for condition in filters.conditions)
    asks = read_asks(reading, restricted)
    asks.compare = asks.compare or filters.compares
    return Plan(reading, filters, asks, warnings=list(filters.notes))


def _query(plan: Plan) -> Query:
    """The query of a plan.

    Raises:
        Refusal: something is missing, ambiguous, or has no place in the query.
    """
    counts_periods = take_compared_periods(plan)
    sort_heads(plan)
    split_attributes(plan)
    if plan.asks.rankings:
        query = ranked_query(plan)
    elif compares_periods(plan):
        query = replace(periods_query(plan), counts_rows=counts_periods)
    else:
        query = figures_query(plan) if wants_figures(plan) else listed_query(plan)
    query = replace(with_conditions(plan, query), through=_spoken_events(plan.reading))
    refuse_foreign_grain(plan, query)
    refuse_leftovers(plan, query)
    refuse_unplaced(plan, query)
    return with_names_asked_for(plan, query)


def _spoken_events(reading: Reading) -> frozenset[TableKey]:
    """The tables of the events that verbs name: "bought" those of orders, "reviewed" those of reviews."""
    found = set(reading.named_tables())
    for mark in reading.marks:
        verb = key_of(mark.text, stems=True).rstrip(_DONE)
        for name in EVENTS_OF_VERBS.get(verb, ()) if mark.means("verb") else ():
            links = reading.lexicon.find(name)
            found |= {link.table for link in links if link.kind == "table" and link.quality >= 0.6}
    return frozenset(found)
