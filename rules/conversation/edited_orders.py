"""Puts a follow-up's order and number of rows into the query before it."""

from dataclasses import replace
from decimal import Decimal

from common.text import Text
from knowledge.naming import called
from rules.composing.asked import Asked
from rules.composing.carrying import carried
from rules.composing.measuring import group_order
from rules.conversation.change import Change, must_have
from rules.query.query import Condition, Dimension, Figure, Having, Order, Query, ref, shown_things
from rules.query.refusals import missing_measure
from rules.reading.implied import concept_column
from rules.reading.parts import Ranking
from rules.schema.links import Link


def renumbered(query: Query, change: Change) -> Query:
    """The query with another number in its only comparison: "make it 500" after "orders above 300"."""
    limit = next(iter(change.parts.limits), None)
    all_of: list[Condition | Having] = [*query.conditions, *query.having]
    compared = [one for one in all_of if one.operator in _COMPARED]
    if limit is None or query.limit is not None or "replace" not in change.cues or len(compared) != 1:
        return query
    change.asked = change.asked.with_parts(limits=())
    new = replace(compared[0], operands=(Decimal(limit),))
    return replace(
        query,
        conditions=tuple(new if one is compared[0] else one for one in query.conditions),  # type: ignore[misc]
        having=tuple(new if one is compared[0] else one for one in query.having),  # type: ignore[misc]
    )


_COLUMN = Text("可以按它排序的列", "column to order by")
_COMPARED = (">", ">=", "<", "<=")


def with_order(query: Query, change: Change) -> Query:
    """The query with the follow-up's order and limit."""
    ranking, limit = change.ranking, next(iter(change.parts.limits), None)
    turns = ranking or change.direction or limit or "reverse" in change.cues
    has_rows = query.dimensions or not query.measures
    must_have(has_rows or not turns, Text("可以排序的多行结果", "rows that could be put in order"))
    if ranking is not None:
        query = _ranked(query, change, ranking)
    if change.direction or "reverse" in change.cues:
        must_have(query.order, Text("可以颠倒的顺序", "order to turn round"))
        first = query.order[0]
        descending = change.direction == "desc" if change.direction else first.descending
        turned = replace(first, descending=descending != ("reverse" in change.cues))
        query = replace(query, order=(turned, *query.order[1:]))
    return replace(query, limit=limit) if limit is not None else query


def _ranked(query: Query, change: Change, ranking: Ranking) -> Query:
    if ranking.figure is not None:
        query = _by_figure(query, change, ranking, ranking.figure)
    elif ranking.hint:
        query = _by_hint(query, change, ranking)
    else:
        query = _by_what_is_there(query, change, ranking)
    if not ranking.is_order:
        return replace(query, limit=ranking.limit or 1)
    if query.limit is not None:
        note = Text(f"按新的顺序取前 {query.limit} 条。", f"These are the first {query.limit} in the new order.")
        change.notes.append(note)
    return query


def _by_what_is_there(query: Query, change: Change, ranking: Ranking) -> Query:
    """The query with a ranking that names no figure, by the earlier order or the figure: `前三名`, "the lowest 5"."""
    asked, is_top = change.asked, change.asked.question.words[ranking.at].mark.means("top")
    ties = asked.tie_break(query.base)
    if query.measures:
        key = next((one for one in query.order if one.measure is not None), Order(query.measures[0]))
        keeps = is_top and bool(query.order) and query.order[0].measure is not None
    elif query.order and (query.order[0] not in ties or is_top):  # an order that only breaks ties has a first row
        key, keeps = query.order[0], is_top
    else:
        shown = change.figures_among(query.columns)
        if len(shown) != 1:
            raise change.no_measure(query)
        key, keeps = Order(column=shown[0]), is_top
    descending = ranking.descending if not keeps else key.descending == ranking.descending
    return _by(query, asked, replace(key, descending=descending))


def _by_figure(query: Query, change: Change, ranking: Ranking, figure: Figure) -> Query:
    asked, question, link = change.asked, change.asked.question, figure.link
    is_listed = not query.measures and figure.function is None
    if link is not None and is_listed and link.table in question.graph.above(query.base):
        said = any(word.mark.means("rank") and word.mark.arg == "desc" for word in question.words)
        return _by_link(query, asked, link, descending=said if question.kind(link) == "text" else ranking.descending)
    if link is not None and not question.is_measure(link) and not question.is_date(link):
        return _by_name(query, asked, link)
    measure = asked.measure(figure)
    same = [one for one in query.measures if (one.table, one.column) == (measure.table, measure.column)]
    if query.measures and not same and measure.table != query.measures[0].table and not query.having:
        query = replace(carried(asked, query, measure.table, change.notes), measures=(measure,))
    elif query.measures and not same:
        query = replace(query, measures=(*query.measures, measure))
    elif not query.measures:
        must_have(question.facts(query.base).is_entity, Text("可以排序的对象", "things to rank"))
        dimensions = tuple(dict.fromkeys((*query.top_per, Dimension(query.base))))
        query = replace(query, columns=(), distinct=False, dimensions=dimensions, measures=(measure,))
        query = replace(query, base=measure.table, order=())
    return _by(query, asked, Order((same or [measure])[0], descending=ranking.descending))


def _by_name(query: Query, asked: Asked, link: Link) -> Query:
    """The query ordered by the names of its groups: `sort by name`."""
    shown = [column for one in query.dimensions[:1] for column in asked.shown_columns(one)]
    must_have((link.table, link.column) in {(one.table, one.column) for one in shown}, _COLUMN)
    descending = any(word.mark.means("rank") and word.mark.arg == "desc" for word in asked.question.words)
    return replace(query, order=(Order(descending=descending),))


def _by_hint(query: Query, change: Change, ranking: Ranking) -> Query:
    """The query ordered by what an adjective implies: the price of the cheapest, the date of the latest."""
    asked = change.asked
    things = shown_things(query)
    adjectives = asked.question.lexicon.adjectives.get(ranking.hint)
    implied = adjectives or [concept_column(asked.question, table, ranking.hint) for table in things]
    link = next((one for one in implied if one is not None and one.table in things), None)
    may_be_other = query.limit is not None or adjectives is not None
    if (link is None and may_be_other) or (query.measures and adjectives is not None):
        return _by_what_is_there(query, change, ranking)
    if link is None:
        raise missing_measure(called(asked.question.schema.table(query.base)))
    older = ranking.hint == "age" and asked.question.is_date(link)
    return _by_link(query, asked, link, descending=ranking.descending != older)


def _by_link(query: Query, asked: Asked, link: Link, *, descending: bool) -> Query:
    column = ref(link)
    must_have(not query.measures, _COLUMN)
    shown = query.columns if column in query.columns else (*query.columns, column)
    return _by(replace(query, columns=shown, distinct=False), asked, Order(column=column, descending=descending))


def _by(query: Query, asked: Asked, first: Order) -> Query:
    """The query ordered by one key, and then by what breaks ties."""
    ties = group_order(query)[-1:] if query.measures else asked.tie_break(query.base)
    rest = [one for one in ties if (one.measure, one.column) != (first.measure, first.column)]
    return replace(query, order=(first, *(replace(one, descending=False) for one in rest)))
