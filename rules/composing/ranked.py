"""Composes queries for the most and the least: rows, groups, and the extreme value itself."""

import math
import re
from dataclasses import dataclass, replace

from common.meanings import TableKey
from knowledge.naming import called
from rules.composing.asked import Asked
from rules.query.query import ColumnRef, Dimension, Figure, Function, Order, Query, ref
from rules.query.refusals import missing_measure, unused_words
from rules.reading.implied import column_dimension, concept_column
from rules.reading.parts import Ranking
from rules.schema.facts import is_averaged
from rules.schema.links import Link, column_link
from rules.words import WORDS

_NEXT = 2  # words after "top" begins: "top 3 products"
_WHAT = WORDS.both("questions.what")
_GRADED = 2  # words: "most active users"
_FEW = 2  # of one, the share is shown beside its name
_OWNS = re.compile(WORDS.any_of("questions.owners"))


@dataclass(frozen=True)
class Extremes:
    """What is asked for are the extreme values themselves: these figures of the question."""

    asked: Asked
    figures: tuple[Figure, ...]


def ranked_query(asked: Asked) -> Query | Extremes:
    """The query for the most or least of something.

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
        assert ranking.figure is not None
        function: Function = "max" if ranking.descending else "min"
        return Extremes(asked, (replace(ranking.figure, function=function),))
    asked, entity = _entity(asked, ranking)
    _refuse_date_of_last(asked, ranking, entity)
    _refuse_graded_value(asked, ranking)
    figure = ranking.figure or _hinted(asked, ranking, entity)
    if entity is None:
        if figure.link is None:
            raise missing_measure(asked.question.words[ranking.at].mark.text)
        entity = Dimension(figure.link.table)
    limit = ranking.limit or next(iter(asked.parts.limits), None if ranking.is_order else ranking.few)
    if figure.link is not None and figure.function is None and _is_attribute(asked, figure.link, entity):
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
    hints = [one.hint for one in rankings if one.hint]
    limits = [one.limit for one in rankings if one.limit is not None]
    said = [one for one in rankings if not one.is_open]
    if len({one.descending for one in said}) > 1 or len(limits) > 1:
        return None
    if len({(one.link, one.table) for one in figures}) > 1:
        return None
    least = any(not one.descending for one in said)
    return Ranking(
        not least, rankings[0].at, figures[0] if figures else None, hints[0] if hints and not figures else "",
        limits[0] if limits else None, is_order=all(one.is_order for one in rankings),
        few=max(one.few for one in rankings),
    )  # fmt: skip


def _both_ends(asked: Asked) -> Extremes:
    """The highest and the lowest value of one figure."""
    rankings = asked.parts.rankings
    link = next((one.figure.link for one in rankings if one.figure is not None), None)
    ends = [one.at for one in rankings]
    is_chinese = asked.question.is_chinese
    things = any(one.at > max(ends) if is_chinese else one.at < min(ends) for one in asked.tables)
    if things or link is None or any(one.limit for one in rankings):
        raise unused_words([asked.question.words[one.at].mark.text for one in rankings])
    return Extremes(asked, tuple(Figure("max" if one.descending else "min", link, position=one.at) for one in rankings))


def _with_figure(asked: Asked, ranking: Ranking) -> tuple[Asked, Ranking]:
    """The ranking with its figure: that of its adjective, of the user's answer, else one named elsewhere."""
    parts, settled = asked.parts, asked.question.settled.figure
    if settled is not None:
        return asked, replace(ranking, figure=replace(settled, position=ranking.at), hint="")
    adjective = _by_adjective(asked, ranking)
    if ranking.figure is None and adjective is not None:
        return asked, replace(ranking, figure=Figure(None, adjective, position=ranking.at), hint="")
    if ranking.hint in asked.question.lexicon.adjectives:
        ranking = replace(ranking, hint="")  # none of its figures is near what is asked
    if ranking.figure is None and not ranking.hint:
        named = [*parts.figures, *parts.bare]
        counted = asked.events[0] if len(asked.events) == 1 else asked.head if parts.groups else None
        if not named and ranking.counts and asked.head is not None and counted is not None:
            return asked, replace(ranking, figure=Figure("count", table=counted, position=ranking.at))
        if named:
            figures = tuple(one for one in parts.figures if one is not named[0])
            bare = tuple(one for one in parts.bare if one is not named[0])
            asked = asked.with_parts(figures=figures, bare=bare)
            return asked, replace(ranking, figure=named[0], hint="")
    return asked, ranking


def _owned(asked: Asked, ranking: Ranking) -> tuple[Asked, TableKey | None]:
    """What is ranked, and the table of its owner, where that one is asked for: `收入最高的店铺属于哪个服务区`.

    Raises:
        Refusal: an owner is asked for, but not what kind of owner.
    """
    place = _ranked_thing(asked, ranking)
    if place is None:
        return asked, None
    thing = next(one for one in asked.tables if one.at == place)
    above = asked.question.graph.above(thing.link.table)
    owners = [one for one in asked.tables if one is not thing and one.link.table in above]
    if len(owners) != 1 or len(asked.tables) != 2:
        raise unused_words([asked.question.words[place].mark.text])
    return asked.with_parts(tables=(thing,)), owners[0].link.table


def _ranked_thing(asked: Asked, ranking: Ranking) -> int | None:
    """Where the thing stands that is ranked, if its owner is asked for; None elsewhere."""
    words, places = asked.question.words, [one.at for one in asked.tables]
    if not asked.question.is_chinese:
        return _restricted_thing(asked, ranking)
    for word in words[ranking.at :]:
        before = [at for at in places if at < word.at]
        owns = word.mark.means("noise", "which", "verb") and _OWNS.match(word.text)
        after = any(at > word.at for at in places) and words[word.at + 1].mark.date is None
        if owns and after and before and before[-1] > ranking.at:
            return before[-1]
    return None


def _restricted_thing(asked: Asked, ranking: Ranking) -> int | None:
    """Where a table stands that is ranked but not asked for: the shop of "which area is the shop with the … in"."""
    words = asked.question.words
    first = next((at for at in range(ranking.at) if words[at].mark.means("which")), None)
    if first is None:
        return None
    named = [word.at for word in words[first + 1 :] if word.noun is not None and not word.noun.is_value]
    for one in asked.tables:
        after = one.at + 1
        tied = after < ranking.at and words[after].mark.means("with")
        if first < one.at < ranking.at and one.at != named[0] and tied:
            return one.at
    return None


def _without_single_rows(asked: Asked, ranking: Ranking) -> Asked:
    """Takes away a group by single rows beside an average: "the highest average rent per shop" averages over shops."""
    figure = ranking.figure
    if asked.head is None or figure is None or figure.function != "avg" or figure.link is None:
        return asked
    own = next((one for one in asked.parts.groups if one.dimension == Dimension(figure.link.table)), None)
    return _without(asked, own) if own is not None and asked.head != figure.link.table else asked


def _by_adjective(asked: Asked, ranking: Ranking) -> Link | None:
    """The figure that the semantic file gives an adjective ("the busiest day"), the nearest to what is named."""
    question = asked.question
    links = question.lexicon.adjectives.get(ranking.hint, ())
    senses = [word.noun for word in question.words if word.noun is not None]
    named = [link.table for noun in senses if (link := noun.table or noun.column or noun.value)]

    def far(link: Link) -> float:
        own = question.facts(link.table).is_entity
        return sum(
            math.inf if own and key != link.table else question.graph.above(link.table).get(key, math.inf)
            for key in named
        )

    best = min(links, key=far, default=None)
    return best if best is not None and far(best) < math.inf else None


def _wants_value(asked: Asked, ranking: Ranking) -> bool:
    """Whether the question asks for the extreme itself: "what is the highest rent", `最高的月租金是多少`."""
    figure, question, parts = ranking.figure, asked.question, asked.parts
    if figure is None or figure.link is None or figure.function is not None or ranking.limit is not None:
        return False
    if ranking.is_order or asked.tables or asked.says("person") or any(one.is_ranked for one in parts.groups):
        return False
    if any(one.dimension.is_of_time for one in parts.groups) or question.has("date_which"):
        return False
    asks = [word for word in question.words if word.mark.means("which") and word.mark.arg not in ("when",)]
    if any(not word.text.startswith(_WHAT) for word in asks):
        return False
    if parts.columns:
        return False
    if not question.is_chinese:
        return True
    after = [word for word in question.words[max(ranking.at, figure.position) + 1 :] if not word.mark.means("noise")]
    before_figure = figure.position > ranking.at
    return (
        before_figure
        or not after
        or after[0].mark.means("count", "which", "list", "rank", "and", "by_end", "cmp", "of")
    )


def _entity(asked: Asked, ranking: Ranking) -> tuple[Asked, Dimension | None]:
    """What is ranked, and the rest: ranked dates, kinds, the asked table or column, else the last group."""
    parts, question = asked.parts, asked.question
    groups = list(parts.groups)
    for one in groups:
        together = one.is_ranked and asked.tables and asked.head != _counted(ranking)
        if (one.is_ranked and not together) or (one.is_kind and len(asked.tables) < 1):
            if one.is_ranked and any(other is not one and other.dimension == one.dimension for other in groups):
                groups = [other for other in groups if other is one or other.dimension != one.dimension]
            return _without(asked, one), one.dimension
    figure, counted = ranking.figure, _counted(ranking)
    head = asked.head
    total_of = figure.link.table if figure is not None and figure.link is not None and figure.function else None
    if groups and head is not None and total_of == head:
        return _without(asked, groups[-1]), groups[-1].dimension  # `各省份店铺平均月租金从高到低` ranks provinces
    if ranking.is_order and asked.says("compare") and asked.compared_columns:
        column = asked.compared_columns[0]
        return asked, column_dimension(question, column_link(column.table, column.column))
    if head is not None and asked.tables and head != counted:
        return asked, Dimension(head)
    for named in parts.columns:
        is_thing = named.at > ranking.at if question.is_chinese else named.at - ranking.at <= _NEXT
        if not groups or named.role == "asked" or is_thing:
            rest = tuple(one for one in parts.columns if one is not named)
            return asked.with_parts(columns=rest), column_dimension(question, named.link)
    if groups:
        return _without(asked, groups[-1]), groups[-1].dimension
    return asked, Dimension(head) if head is not None else None


def _counted(ranking: Ranking) -> TableKey | None:
    figure = ranking.figure
    return figure.table if figure is not None and figure.link is None else None


def _without(asked: Asked, group: object) -> Asked:
    groups = tuple(one for one in asked.parts.groups if one is not group)
    dimension = getattr(group, "dimension", None)
    if getattr(group, "is_ranked", False):
        groups = tuple(one for one in groups if one.dimension != dimension)
    return asked.with_parts(groups=groups)


def _hinted(asked: Asked, ranking: Ranking, entity: Dimension | None) -> Figure:
    """The figure of the column that an adjective implies: the price of the cheapest, the date of the latest."""
    question = asked.question
    table = entity.table if entity is not None and entity.table != ("", "") else None
    link = concept_column(asked.question, table, ranking.hint) if table is not None and ranking.hint else None
    if link is None and table is not None and ranking.hint == "age" and not question.facts(table).is_person:
        link = concept_column(asked.question, table, "date")  # the oldest order is the one with the earliest date
    if link is None:
        facts = question.facts(table) if table is not None else None
        raise missing_measure(called(facts.table) if facts else question.words[ranking.at].mark.text, facts)
    return Figure(None, link, position=ranking.at)


def _direction(asked: Asked, ranking: Ranking, link: Link | None) -> bool:
    """Whether the order is descending: the oldest person has the earliest date of birth."""
    flips = ranking.hint == "age" and link is not None and link.derived is None and asked.question.is_date(link)
    return not ranking.descending if flips else ranking.descending


def _is_attribute(asked: Asked, link: Link, entity: Dimension) -> bool:
    """Whether the figure is a column of the ranked table or of one above it."""
    if entity.column is not None or entity.is_of_time:
        return False
    return link.table in asked.question.graph.above(entity.table)


def _rows(asked: Asked, ranking: Ranking, link: Link, entity: Dimension, limit: int | None) -> Query:
    parts, table = asked.parts, entity.table
    top_per = tuple(asked.resolved(one.dimension, table) for one in parts.groups)
    top_per = tuple(one for one in top_per if one != Dimension(table))
    columns = [ColumnRef(dim.table, name, dim.via) for dim in top_per for name in asked.shown_names(dim)]
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
