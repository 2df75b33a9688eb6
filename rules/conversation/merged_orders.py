"""Merges a follow-up's order and limit into the earlier query."""

from dataclasses import replace

from common.text import Text
from knowledge.naming import called
from rules.conversation.follow_ups import Change
from rules.conversation.merged_figures import measured_columns_of
from rules.planning.carrying import carried
from rules.planning.measuring import group_order, measure_of
from rules.planning.plan import Plan, tie_break
from rules.planning.ranked import concept_column
from rules.query.conditions import ref
from rules.query.query import Dimension, Order, Query
from rules.query.refusals import missing_measure, nothing_to_change
from rules.query.wishes import Figure, Ranking
from rules.schema.links import Link


def with_order(query: Query, change: Change) -> Query:
    """The query with the follow-up's order and limit.

    Raises:
        Refusal: there is nothing to order, or nothing to order it by.
    """
    plan = change.plan
    ranking = plan.asks.rankings[0] if plan.asks.rankings else None
    limit = plan.asks.limit
    if (ranking or change.direction or limit or "reverse" in change.cues) and query.measures and not query.dimensions:
        raise nothing_to_change(Text("可以排序的多行结果", "rows that could be put in order"))
    if ranking is not None:
        query = _ranked(query, change, ranking)
    if change.direction:
        query = _directed(query, descending=change.direction == "desc")
    if "reverse" in change.cues:
        query = _directed(query, descending=not _first(query).descending)
    return replace(query, limit=limit) if limit is not None else query


def _ranked(query: Query, change: Change, ranking: Ranking) -> Query:
    plan = change.plan
    if ranking.figure is not None:
        query = _by_figure(query, plan, ranking, ranking.figure)
    elif ranking.hint:
        query = _by_link(query, plan, ranking, _hinted(query, plan, ranking))
    else:
        query = _by_what_is_there(query, plan, ranking)
    if ranking.is_order:
        if query.limit is not None:
            note = Text(f"按新的顺序取前 {query.limit} 条。", f"These are the first {query.limit} in the new order.")
            plan.warnings.append(note)
        return query
    return replace(query, limit=ranking.limit or 1)


def _by_what_is_there(query: Query, plan: Plan, ranking: Ranking) -> Query:
    """The query with a ranking that names no figure, by the earlier order or the figure: `前三名`, "the lowest 5"."""
    mark = plan.reading.marks[ranking.position]
    if query.measures:
        key = next((one for one in query.order if one.measure is not None), None) or Order(query.measures[0])
        keeps = mark.means("top") and bool(query.order) and query.order[0].measure is not None
    else:
        key, keeps = _listed_key(query, plan, is_top=mark.means("top")), mark.means("top")
    descending = ranking.descending if not keeps else key.descending == ranking.descending
    return _by(query, plan, replace(key, descending=descending))


def _listed_key(query: Query, plan: Plan, *, is_top: bool) -> Order:
    """What a listing is ordered by; an order that only breaks ties counts for "the first" (`is_top`) alone."""
    ties = tie_break(plan, query.base)
    if query.order and (query.order[0] not in ties or is_top):
        return query.order[0]
    shown = measured_columns_of(plan, query.columns)
    if len(shown) != 1:
        facts = plan.reading.facts(query.base)
        raise missing_measure(called(facts.table), facts)
    return Order(column=shown[0])


def _by_figure(query: Query, plan: Plan, ranking: Ranking, figure: Figure) -> Query:
    link = figure.link
    own = not query.measures and link is not None and figure.function is None
    if own and link is not None and link.table in plan.reading.graph.above(query.base):
        return _by_link(query, plan, ranking, link)
    if link is not None and not plan.reading.is_measure(link) and not plan.reading.is_date(link):
        return _by_name(query, plan, link)
    measure = measure_of(plan, figure)
    counted = [one for one in query.measures if one.column is None]
    if plan.reading.marks[figure.position].means("count") and counted:
        measure = counted[0]
    same = [one for one in query.measures if (one.table, one.column) == (measure.table, measure.column)]
    if query.measures and not same and measure.table != query.measures[0].table and not query.having:
        query = carried(plan, replace(query, base=query.measures[0].table), measure.table)
        query = replace(query, measures=(measure,))
    elif query.measures and not same:
        query = replace(query, measures=(*query.measures, measure))
    elif not query.measures:
        if not plan.reading.facts(query.base).is_entity:
            raise nothing_to_change(Text("可以排序的对象", "things to rank"))
        dimensions = tuple(dict.fromkeys((*query.top_per, Dimension(query.base))))
        query = replace(query, columns=(), distinct=False, dimensions=dimensions, measures=(measure,))
        query = replace(query, base=measure.table, order=())
    return _by(query, plan, Order((same or [measure])[0], descending=ranking.descending))


def _by_name(query: Query, plan: Plan, link: Link) -> Query:
    """The query ordered by the names of its groups: `sort by name`."""
    first = query.dimensions[0] if query.dimensions else None
    names = plan.reading.facts(first.table).display if first and first.column is None else (first and first.column,)
    if first is None or first.table != link.table or link.column not in names:
        raise nothing_to_change(Text("可以按它排序的列", "column to order by"))
    descending = any(mark.means("rank") and mark.arg == "desc" for mark in plan.reading.marks)
    return replace(query, order=(Order(descending=descending),))


def _hinted(query: Query, plan: Plan, ranking: Ranking) -> Link:
    things = [one.table for one in query.dimensions if one.column is None] if query.measures else [query.base]
    for table in things:
        link = concept_column(plan.reading, table, ranking.hint)
        if link is not None:
            if ranking.hint == "age" and plan.reading.is_date(link):
                ranking.descending = not ranking.descending
            return link
    raise missing_measure(called(plan.reading.schema.table(query.base)))


def _by_link(query: Query, plan: Plan, ranking: Ranking, link: Link) -> Query:
    column = ref(link)
    if query.measures:
        raise nothing_to_change(Text("可以按它排序的列", "column to order by"))
    shown = query.columns if column in query.columns else (*query.columns, column)
    query = replace(query, columns=shown, distinct=False)
    said = any(mark.means("rank") and mark.arg == "desc" for mark in plan.reading.marks)
    descending = said if plan.reading.kind(link) == "text" else ranking.descending
    return _by(query, plan, Order(column=column, descending=descending))


def _by(query: Query, plan: Plan, first: Order) -> Query:
    """The query ordered by one key, and then by what breaks ties."""
    ties = group_order(query)[-1:] if query.measures else tie_break(plan, query.base)
    rest = [one for one in ties if (one.measure, one.column) != (first.measure, first.column)]
    return replace(query, order=(first, *(replace(one, descending=False) for one in rest)))


def _first(query: Query) -> Order:
    if not query.order:
        raise nothing_to_change(Text("可以颠倒的顺序", "order to turn round"))
    return query.order[0]


def _directed(query: Query, *, descending: bool) -> Query:
    first = _first(query)
    return replace(query, order=(replace(first, descending=descending), *query.order[1:]))
