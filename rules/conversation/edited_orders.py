"""Apply a follow-up's order and number of rows into the query before it."""

from dataclasses import replace
from decimal import Decimal

from common.text import Text
from knowledge.language.spoken_names import called
from rules.composing.asked import Asked
from rules.composing.measuring import group_order
from rules.composing.retargeting import retargeted
from rules.conversation.change import Change, must_have
from rules.query.query import (
    Dimension,
    Figure,
    Measure,
    Order,
    Query,
    ref,
    shown_tables,
)
from rules.query.refusals import missing_measure
from rules.reading.implied import concept_column
from rules.reading.parts import Ranking
from rules.schema.links import Link

_COLUMN = Text("可以按它排序的列", "column to order by")
_COMPARED = (">", ">=", "<", "<=")


def renumbered(query: Query, change: Change) -> Query:
    """Put another number into the query's only comparison: "make it 500" after "above 300"."""
    limit = next(iter(change.parts.limits), None)
    if limit is None or query.limit is not None:
        return query
    if "replace" not in change.cues:
        return query

    on_rows = [condition for condition in query.conditions if condition.operator in _COMPARED]
    on_groups = [one for one in query.having if one.operator in _COMPARED]
    if len(on_rows) + len(on_groups) != 1:
        return query

    change.asked = change.asked.with_parts(limits=())
    conditions, having = list(query.conditions), list(query.having)
    operands = (Decimal(limit),)
    for old in on_rows:
        conditions[conditions.index(old)] = replace(old, operands=operands)

    for compared in on_groups:
        having[having.index(compared)] = replace(compared, operands=operands)

    return replace(query, conditions=tuple(conditions), having=tuple(having))


def with_order(query: Query, change: Change) -> Query:
    """Return the query with the follow-up's order and limit."""
    ranking, limit = change.ranking, next(iter(change.parts.limits), None)
    turns = bool(change.direction) or "reverse" in change.cues
    has_rows = query.dimensions or not query.measures
    changes_order = turns or ranking is not None or limit
    must_have(
        has_rows or not changes_order, Text("可以排序的多行结果", "rows that could be put in order")
    )
    if ranking is not None:
        query = _ranked(query, change, ranking)
    if turns:
        query = _turned(query, change)

    if limit is not None:
        return replace(query, limit=limit)

    return query


def _turned(query: Query, change: Change) -> Query:
    """Return the query in the direction that the follow-up says, or in the opposite one."""
    must_have(query.order, Text("可以颠倒的顺序", "order to turn round"))
    first = query.order[0]
    descending = change.direction == "desc" if change.direction else first.descending
    if "reverse" in change.cues:
        descending = not descending

    return replace(query, order=(replace(first, descending=descending), *query.order[1:]))


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
        note = Text(
            f"按新的顺序取前 {query.limit} 条。",
            f"These are the first {query.limit} in the new order.",
        )
        change.notes.append(note)

    return query


def _by_what_is_there(query: Query, change: Change, ranking: Ranking) -> Query:
    """Return the query with a ranking that names no figure: `前三名`, "the lowest 5".

    It ranks by the earlier order, or else by the figure.
    """
    is_top = change.asked.question.words[ranking.at].mark.means("top")
    key = _key_that_is_there(query, change, is_top=is_top)
    descending = ranking.descending
    is_earlier_order = query.order[:1] == (key,)
    if is_top and is_earlier_order:  # the first of them, in whichever direction they are
        descending = key.descending == ranking.descending

    return _by(query, change.asked, replace(key, descending=descending))


def _key_that_is_there(query: Query, change: Change, *, is_top: bool) -> Order:
    """Return the earlier order, else that by the only figure.

    Raises:
        Refusal: there is no figure, or more than one.
    """
    if query.measures:
        by_measure = [one for one in query.order if one.measure is not None]
        if by_measure:
            return by_measure[0]

        return Order(query.measures[0])

    if query.order:
        first = query.order[0]
        only_breaks_ties = first in change.asked.tie_break(query.base)
        if is_top or not only_breaks_ties:  # rows in any order have a first one
            return first

    shown = change.figures_among(query.columns)
    if len(shown) != 1:
        raise change.no_measure(query)

    return Order(column=shown[0])


def _by_figure(query: Query, change: Change, ranking: Ranking, figure: Figure) -> Query:
    asked, question, link = change.asked, change.asked.question, figure.link
    is_listed = not query.measures and figure.function is None
    if link is not None:
        if is_listed and link.table in question.graph.above(query.base):
            is_text = question.kind(link) == "text"
            descending = _says_descending(asked) if is_text else ranking.descending
            return _by_link(query, asked, link, descending=descending)

        if not question.is_measure(link) and not question.is_date(link):
            return _by_name(query, asked, link)

    return _by_measure(query, change, ranking, asked.measure(figure))


def _by_measure(query: Query, change: Change, ranking: Ranking, measure: Measure) -> Query:
    column = (measure.table, measure.column)
    same = [one for one in query.measures if (one.table, one.column) == column]
    if not same:
        query = _with_measure(query, change, measure)

    key = Order(same[0] if same else measure, descending=ranking.descending)
    return _by(query, change.asked, key)


def _with_measure(query: Query, change: Change, measure: Measure) -> Query:
    """Return the query with a figure to rank by: beside its figures, in their place, or of its
    rows.
    """
    if not query.measures:
        is_entity = change.asked.question.facts(query.base).is_entity
        must_have(is_entity, Text("可以排序的对象", "things to rank"))
        dimensions = tuple(dict.fromkeys((*query.top_per, Dimension(query.base))))
        return replace(
            query,
            base=measure.table,
            columns=(),
            distinct=False,
            dimensions=dimensions,
            measures=(measure,),
            order=(),
        )

    if measure.table != query.measures[0].table and not query.having:
        moved = retargeted(change.asked, query, measure.table, change.notes)
        return replace(moved, measures=(measure,))

    return replace(query, measures=(*query.measures, measure))


def _says_descending(asked: Asked) -> bool:
    order_words = [word for word in asked.question.words if word.mark.means("rank")]
    return "desc" in {word.mark.arg for word in order_words}


def _by_name(query: Query, asked: Asked, link: Link) -> Query:
    """Return the query ordered by the names of its groups: `sort by name`."""
    must_have(query.dimensions, _COLUMN)
    shown = asked.shown_columns(query.dimensions[0])
    names = {(one.table, one.column) for one in shown}
    must_have((link.table, link.column) in names, _COLUMN)
    return replace(query, order=(Order(descending=_says_descending(asked)),))


def _by_hint(query: Query, change: Change, ranking: Ranking) -> Query:
    """Return the query ordered by the column that an adjective implies.

    The price of the cheapest, the date of the latest.
    """
    asked, question = change.asked, change.asked.question
    adjectives = question.lexicon.adjectives.get(ranking.hint)
    tables = shown_tables(query)
    implied = adjectives or [concept_column(question, table, ranking.hint) for table in tables]
    links = [one for one in implied if one is not None and one.table in tables]
    is_known_adjective = adjectives is not None
    if is_known_adjective and (query.measures or not links):
        return _by_what_is_there(query, change, ranking)
    if not links:
        if query.limit is not None:
            return _by_what_is_there(query, change, ranking)

        raise missing_measure(called(question.schema.table(query.base)))

    link = links[0]
    is_age = ranking.hint == "age" and question.is_date(link)  # the oldest is born first
    return _by_link(query, asked, link, descending=ranking.descending != is_age)


def _by_link(query: Query, asked: Asked, link: Link, *, descending: bool) -> Query:
    """Return the query ordered by a column, which it shows as well."""
    column = ref(link)
    must_have(not query.measures, _COLUMN)
    shown = query.columns if column in query.columns else (*query.columns, column)
    showing = replace(query, columns=shown, distinct=False)
    return _by(showing, asked, Order(column=column, descending=descending))


def _by(query: Query, asked: Asked, first: Order) -> Query:
    """Return the query ordered by `first`, and behind it by a key that breaks ties."""
    order = [first]
    ties = group_order(query)[-1:] if query.measures else asked.tie_break(query.base)
    for tie in ties:
        if (tie.measure, tie.column) != (first.measure, first.column):
            order.append(replace(tie, descending=False))

    return replace(query, order=tuple(order))
