"""Composes queries for the most and the least: rows, groups, and the extreme value itself."""

import math
import re
from dataclasses import replace

from common.meanings import TableKey
from knowledge.naming import called
from rules.composing.asked import Asked
from rules.query.query import ColumnRef, Dimension, Figure, Function, Order, Query, ref
from rules.query.refusals import missing_measure, unused_words
from rules.reading.implied import column_dimension, concept_column
from rules.reading.parts import NO_TABLE, Group, Named, Ranking
from rules.schema.facts import is_averaged
from rules.schema.links import Link, column_link
from rules.words import WORDS

_NEXT = 2  # words after "top" begins: "top 3 products"
_WHAT = WORDS.both("questions.what")
_GRADED = 2  # words: "most active users"
_FEW = 2  # of one, the share is shown beside its name
_OWNS = re.compile(WORDS.any_of("questions.owners"))


def ranked_query(asked: Asked) -> Query | Asked:
    """The query for the most or least of something; where the extreme values are asked for, the question with these.

    Raises:
        Refusal: the question doesn't say by which figure, or asks for more than one ranking shows.
    """
    rankings = asked.parts.rankings
    if len(rankings) > 1:
        merged = _merged(_of_one_figure(asked, rankings))
        if merged is None:
            return _both_ends(asked)
        asked = asked.with_parts(rankings=(merged,))
    asked, ranking = _with_figure(asked, asked.parts.rankings[0])
    asked, owner = _owned(asked, ranking)
    asked = _without_single_rows(asked, ranking)
    if _wants_value(asked, ranking):
        return _with_extremes(asked, [ranking])
    asked, entity = _entity(asked, ranking)
    _refuse_date_of_last(asked, ranking, entity)
    _refuse_graded_value(asked, ranking)
    figure = ranking.figure or _hinted(asked, ranking, entity)
    limit = ranking.limit or next(iter(asked.parts.limits), None if ranking.is_order else ranking.few)
    is_of_rows = figure.link is not None and figure.function is None and not (entity.column or entity.is_of_time)
    if figure.link is not None and is_of_rows and figure.link.table in asked.question.graph.above(entity.table):
        query = _rows(asked, ranking, figure.link, entity, limit)
        names = asked.names_of(owner) if owner is not None else []
        return replace(query, columns=tuple(dict.fromkeys((*query.columns, *names))))
    query = _groups(asked, ranking, figure, entity, limit)
    if asked.says("share"):
        return _share_of_first(asked, query)
    return replace(query, dimensions=(*query.dimensions, Dimension(owner))) if owner is not None else query


def _refuse_date_of_last(asked: Asked, ranking: Ranking, entity: Dimension | None) -> None:
    """Refuses a period of the last of each thing's events: "members whose last payment was a year ago".

    Raises:
        Refusal: it is one. The period would hold for any event, and the last one would be taken for the last thing.
    """
    word = asked.question.words[ranking.at]
    if entity is None or ranking.hint not in ("date", "recent") or not asked.parts.spans:
        return
    if any(one.at == word.at + 1 and one.link.table != entity.table for one in asked.tables):
        raise unused_words([word.mark.text])


def _refuse_graded_value(asked: Asked, ranking: Ranking) -> None:
    """Refuses a value of other rows that is said of a thing like an adjective: "most active users".

    Raises:
        Refusal: it is one. "The most shipped orders" are orders of that value, but no user has one.
    """
    nouns = [word.noun for word in asked.question.words[ranking.at + 1 : ranking.at + 3] if word.noun is not None]
    value, table = (nouns[0].value, nouns[1].table) if len(nouns) == _GRADED else (None, None)
    if value is not None and table is not None and value.table != table.table:
        raise missing_measure(called(asked.question.schema.table(table.table)))


def _of_one_figure(asked: Asked, rankings: tuple[Ranking, ...]) -> tuple[Ranking, ...]:
    """The rankings; where "by" names the figure, a word for a table is none: "the largest sale by total amount"."""
    if not any(one.is_open and one.is_order and one.figure is not None for one in rankings):
        return rankings
    words = asked.question.words
    return tuple(
        one if one.figure is None or one.is_open or "tab" not in words[one.figure.position].senses
        else replace(one, figure=None)
        for one in rankings
    )  # fmt: skip


def _merged(rankings: tuple[Ranking, ...]) -> Ranking | None:
    """One ranking of what several words say: "rank … by …", `排名前3`, "top 5 … with the highest …"."""
    figures = [one.figure for one in rankings if one.figure is not None]
    limits = [one.limit for one in rankings if one.limit is not None]
    ends = {one.descending for one in rankings if not one.is_open}
    if len(ends) > 1 or len(limits) > 1 or len({(one.link, one.table) for one in figures}) > 1:
        return None
    return Ranking(
        False not in ends,
        rankings[0].at,
        next(iter(figures), None),
        "" if figures else next((one.hint for one in rankings if one.hint), ""),
        next(iter(limits), None),
        is_order=all(one.is_order for one in rankings),
        few=max(one.few for one in rankings),
    )


def _both_ends(asked: Asked) -> Asked:
    """The highest and the lowest value of one figure."""
    rankings = asked.parts.rankings
    figure = next((one.figure for one in rankings if one.figure is not None), None)
    ends = [one.at for one in rankings]
    things = any(one.at > max(ends) if asked.question.is_chinese else one.at < min(ends) for one in asked.tables)
    if things or figure is None or figure.link is None or any(one.limit for one in rankings):
        raise unused_words([asked.question.words[one.at].mark.text for one in rankings])
    named = Figure(None, figure.link)
    return _with_extremes(asked, [replace(one, figure=replace(named, position=one.at)) for one in rankings])


def _with_extremes(asked: Asked, rankings: list[Ranking]) -> Asked:
    """The question with the extreme values of the rankings' figures among its figures."""
    extremes = tuple(
        replace(one.figure, function="max" if one.descending else "min") for one in rankings if one.figure is not None
    )
    return asked.with_parts(figures=(*asked.parts.figures, *extremes))


def _with_figure(asked: Asked, ranking: Ranking) -> tuple[Asked, Ranking]:
    """The ranking with its figure: that of its adjective, of the user's answer, else one named elsewhere."""
    parts, figure = asked.parts, asked.question.settled.figure
    if figure is None and ranking.figure is None and (adjective := _by_adjective(asked, ranking)) is not None:
        figure = Figure(None, adjective)
    if figure is not None:
        return asked, replace(ranking, figure=replace(figure, position=ranking.at), hint="")
    if ranking.hint in asked.question.lexicon.adjectives:
        ranking = replace(ranking, hint="")  # none of its figures is near what is asked
    if ranking.figure is not None or ranking.hint:
        return asked, ranking
    if named := (*parts.figures, *parts.bare):
        figures, bare = (tuple(one for one in some if one is not named[0]) for some in (parts.figures, parts.bare))
        return asked.with_parts(figures=figures, bare=bare), replace(ranking, figure=named[0])
    counted = asked.events[0] if len(asked.events) == 1 else asked.head if parts.groups else None
    if ranking.counts and asked.head is not None and counted is not None:
        ranking = replace(ranking, figure=Figure("count", table=counted, position=ranking.at))
    return asked, ranking


def _owned(asked: Asked, ranking: Ranking) -> tuple[Asked, TableKey | None]:
    """What is ranked, and the table of its owner, where that one is asked for: `收入最高的店铺属于哪个服务区`.

    Raises:
        Refusal: an owner is asked for, but not what kind of owner.
    """
    thing = _ranked_thing(asked, ranking) if asked.question.is_chinese else _restricted_thing(asked, ranking)
    if thing is None:
        return asked, None
    above = asked.question.graph.above(thing.link.table)
    owners = [one.link.table for one in asked.tables if one is not thing and one.link.table in above]
    if len(owners) != 1 or len(asked.tables) != 2:
        raise unused_words([asked.question.words[thing.at].mark.text])
    return asked.with_parts(tables=(thing,)), owners[0]


def _ranked_thing(asked: Asked, ranking: Ranking) -> Named | None:
    """The thing that is ranked, if its owner is asked for: the shop of `收入最高的店铺属于哪个服务区`."""
    things = [one for one in asked.tables if one.at > ranking.at]
    for word in asked.question.words[ranking.at :]:
        before = [one for one in things if one.at < word.at]
        owns = word.mark.means("noise", "which", "verb") and _OWNS.match(word.text)
        if owns and before and things[-1].at > word.at and asked.question.words[word.at + 1].mark.date is None:
            return before[-1]
    return None


def _restricted_thing(asked: Asked, ranking: Ranking) -> Named | None:
    """A thing that is ranked but not asked for: the shop of "which area is the shop with the … in"."""
    words = asked.question.words
    first = next((word.at for word in words[: ranking.at] if word.mark.means("which")), len(words))
    ties = [word.at for word in words[: ranking.at] if word.mark.means("with")]
    named = [word.at for word in words[first + 1 :] if word.noun is not None and not word.noun.is_value]
    others = (one for one in asked.tables if one.at > first and one.at not in named[:1])
    return next((one for one in others if one.at + 1 in ties), None)


def _without_single_rows(asked: Asked, ranking: Ranking) -> Asked:
    """Takes away a group by single rows beside an average: "the highest average rent per shop" averages over shops."""
    figure = ranking.figure
    if figure is None or figure.function != "avg" or figure.link is None or asked.head in (None, figure.link.table):
        return asked
    rows = Dimension(figure.link.table)
    return asked.with_parts(groups=tuple(one for one in asked.parts.groups if one.dimension != rows))


def _by_adjective(asked: Asked, ranking: Ranking) -> Link | None:
    """The figure that the semantic file gives an adjective ("the busiest day"), the nearest to what is named."""
    question = asked.question
    links = question.lexicon.adjectives.get(ranking.hint, ())
    senses = [word.noun for word in question.words if word.noun is not None]
    named = [link.table for noun in senses if (link := noun.table or noun.column or noun.value)]

    def far(link: Link) -> float:
        of_thing = question.facts(link.table).is_entity
        near = {link.table: 0.0} if of_thing else question.graph.above(link.table)
        return sum(near.get(key, math.inf) for key in named)

    best = min(links, key=far, default=None)
    return best if best is not None and far(best) < math.inf else None


def _wants_value(asked: Asked, ranking: Ranking) -> bool:
    """Whether the question asks for the extreme itself: "what is the highest rent", `最高的月租金是多少`."""
    figure, question, parts = ranking.figure, asked.question, asked.parts
    if figure is None or figure.link is None or figure.function is not None or ranking.limit is not None:
        return False
    of_things = asked.tables or parts.columns or asked.says("person") or question.has("date_which")
    of_times = any(one.is_ranked or one.dimension.is_of_time for one in parts.groups)
    asks = [word.text for word in question.words if word.mark.means("which") and word.mark.arg != "when"]
    if ranking.is_order or of_things or of_times or not all(text.startswith(_WHAT) for text in asks):
        return False
    if not question.is_chinese or figure.position > ranking.at:
        return True
    after = question.nearest(ranking.at + 1, 1, "noise")
    return after is None or after.mark.means("count", "which", "list", "rank", "and", "by_end", "cmp", "of")


def _entity(asked: Asked, ranking: Ranking) -> tuple[Asked, Dimension]:
    """What is ranked, and the rest: ranked dates, kinds, the asked table or column, else the last group.

    Raises:
        Refusal: the question names nothing that could be ranked.
    """
    parts, question, head = asked.parts, asked.question, asked.head
    figure = ranking.figure or Figure(None)
    for one in parts.groups:
        together = one.is_ranked and asked.tables and head != figure.table
        if (one.is_ranked and not together) or (one.is_kind and not asked.tables):
            return _without(asked, one), one.dimension
    last = parts.groups[-1] if parts.groups else None
    measured = figure.link.table if figure.link is not None else None
    if last is not None and head is not None and figure.function and measured == head:
        return _without(asked, last), last.dimension  # `各省份店铺平均月租金从高到低` ranks provinces
    if ranking.is_order and asked.says("compare") and asked.compared_columns:
        column = asked.compared_columns[0]
        return asked, column_dimension(question, column_link(column.table, column.column))
    if head is not None and asked.tables and head != figure.table:
        return asked, Dimension(head)
    for named in parts.columns:
        is_thing = named.at > ranking.at if question.is_chinese else named.at - ranking.at <= _NEXT
        if last is None or named.role == "asked" or is_thing:
            rest = tuple(one for one in parts.columns if one is not named)
            return asked.with_parts(columns=rest), column_dimension(question, named.link)
    if last is not None:
        return _without(asked, last), last.dimension
    if (table := head or measured) is None:
        raise missing_measure(question.words[ranking.at].mark.text)
    return asked, Dimension(table)


def _without(asked: Asked, group: Group) -> Asked:
    """The question without the group; without all of ranked dates, if it is one of these."""
    gone = [one for one in asked.parts.groups if one.dimension == group.dimension] if group.is_ranked else [group]
    return asked.with_parts(groups=tuple(one for one in asked.parts.groups if one not in gone))


def _hinted(asked: Asked, ranking: Ranking, entity: Dimension) -> Figure:
    """The figure of the column that an adjective implies: the price of the cheapest, the date of the latest."""
    question = asked.question
    if entity.table == NO_TABLE:
        raise missing_measure(question.words[ranking.at].mark.text)
    facts = question.facts(entity.table)
    link = concept_column(question, entity.table, ranking.hint) if ranking.hint else None
    if link is None and ranking.hint == "age" and not facts.is_person:
        link = concept_column(question, entity.table, "date")  # the oldest order is the one with the earliest date
    if link is None:
        raise missing_measure(called(facts.table), facts)
    return Figure(None, link, position=ranking.at)


def _direction(asked: Asked, ranking: Ranking, link: Link | None) -> bool:
    """Whether the order is descending: the oldest person has the earliest date of birth."""
    flips = ranking.hint == "age" and link is not None and link.derived is None and asked.question.is_date(link)
    return not ranking.descending if flips else ranking.descending


def _rows(asked: Asked, ranking: Ranking, link: Link, entity: Dimension, limit: int | None) -> Query:
    parts, table = asked.parts, entity.table
    top_per = tuple(asked.resolved(one.dimension, table) for one in parts.groups)
    top_per = tuple(one for one in top_per if one != Dimension(table))
    columns = [column for dim in top_per for column in asked.shown_columns(dim)]
    columns += asked.names_of(table) or [ColumnRef(table, name) for name in asked.all_columns(table)]
    shown = [*(one.link for one in parts.columns), *(one.link for one in parts.bare), link]
    columns += [ref(one) for one in shown if one]
    order = (Order(column=ref(link), descending=_direction(asked, ranking, link)), *asked.tie_break(table))
    return Query(table, tuple(dict.fromkeys(columns)), order=order, limit=limit, top_per=top_per if limit else ())


def _share_of_first(asked: Asked, query: Query) -> Query:
    """How much of all the first ones have: "share of the top 5 customers in revenue".

    Raises:
        Refusal: what they are ranked by doesn't add up, or they are shown one by one.
    """
    (measure, *others) = query.measures
    adds_up = measure.function in ("sum", "count") and query.order[0].descending and not others and not query.top_per
    joined = any(word.mark.means("and") for word in asked.question.words)
    if not adds_up or joined or (query.limit or 1) < _FEW:
        raise unused_words(asked.question.texts("share"))
    return replace(query, order=(), limit=None, share_of_top=query.limit)


def _groups(asked: Asked, ranking: Ranking, figure: Figure, entity: Dimension, limit: int | None) -> Query:
    question, link, parts = asked.question, figure.link, asked.parts
    default: Function | None = None
    if link is not None:
        if not question.is_measure(link) and not question.is_date(link):
            raise missing_measure(question.words[ranking.at].mark.text)
        if not question.is_measure(link) or (link.derived is None and is_averaged(question.column_of(link))):
            default = "max" if ranking.descending else "min"
    measure = asked.measure(figure, default)
    entity = asked.resolved(entity, measure.table)
    others = [asked.measure(other) for other in (*parts.figures, *parts.bare)]
    # `单日收入最高的店铺` ranks pairs of a shop and a day.
    together = [asked.resolved(one.dimension, measure.table) for one in parts.groups if one.is_ranked]
    top_per = tuple(asked.resolved(one.dimension, measure.table) for one in parts.groups)
    top_per = tuple(one for one in dict.fromkeys(top_per) if one != entity and one not in together)
    return Query(
        measure.table,
        dimensions=tuple(dict.fromkeys((*top_per, entity, *together))),
        measures=tuple(dict.fromkeys((measure, *others))),
        order=(Order(measure=measure, descending=_direction(asked, ranking, link)), Order(descending=False)),
        limit=limit,
        top_per=() if ranking.is_order else top_per,
    )
