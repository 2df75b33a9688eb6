"""Composes queries for the most and the least: of rows, of groups, or the extreme value itself."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from common.meanings import TableKey
from common.text import Text
from knowledge.language.spoken_names import called
from rules.composing.asked import Asked
from rules.query.pending import Choice
from rules.query.query import ColumnRef, Condition, Dimension, Figure, Function, Order, Query, ref
from rules.query.refusals import (
    ambiguous_column,
    missing_measure,
    number_of,
    several_things,
    unused_words,
    which_figure,
)
from rules.reading.implied import amount_paid, column_dimension, concept_column
from rules.reading.parts import NO_TABLE, GroupBy, Named, Ranking
from rules.reading.words import Word
from rules.schema.links import Link, column_link
from rules.schema.table_facts import Facts, is_averaged, is_score
from rules.words import WORDS

_NEXT = 2  # places from "top" to what is ranked: "top 3 products"
_WHAT = WORDS.both("questions.what")
_MOST_IN = WORDS.english.text("questions.most_in")
_GRADED = 2  # words behind the ranking: "most active users"
_FEW = 2  # things at least that have a share together; of a single one it is shown with its name
# Kinds of the word behind an extreme value that is asked for itself.
_BEHIND_VALUE = ("count", "which", "list", "rank", "and", "by_end", "cmp", "of")
_MONEY = Text(WORDS.chinese.text("figures.worked_out"), WORDS.english.text("figures.worked_out"))
_OF_MONEY = re.compile(
    f"{WORDS.any_of('questions.pays')}|{WORDS.any_of('questions.earns')}"
    f"|{WORDS.any_of('questions.sells')}",
    re.IGNORECASE,
)
_DATED = ("date", "recent")  # hints
_QUANTITY = "quantity"  # the concept of how much was sold
_SELLS = re.compile(WORDS.any_of("questions.sells"), re.IGNORECASE)
_OWNS = re.compile(WORDS.any_of("questions.owners"))


def ranked_query(asked: Asked) -> Query | Asked:
    """Return the query for the most or least of something.

    Where the extreme values themselves are asked for, return the question with these as figures.

    Raises:
        Refusal: the question doesn't say by which figure, or asks for more than one ranking shows.
    """
    rankings = asked.parts.rankings
    if len(rankings) > 1:
        merged = _merged(_of_one_figure(asked, rankings))
        if merged is None:
            return _both_ends(asked)

        things = _dropped_things(asked, rankings)
        asked = asked.with_parts(rankings=(merged,), tables=(*asked.parts.tables, *things))

    asked, ranking = _with_figure(asked, asked.parts.rankings[0])
    asked, owner = _owned(asked, ranking)
    asked = _without_single_rows(asked, ranking)
    if _wants_value(asked, ranking):
        return _with_extremes(asked, [ranking])

    asked, entity = _entity(asked, ranking)
    _refuse_date_of_last(asked, ranking, entity)
    _refuse_graded_value(asked, ranking)
    figure = ranking.figure or _hinted(asked, ranking, entity)
    limit = _limit(asked, ranking)
    if figure.link is not None and _is_of_rows(asked, figure, entity):
        query = _rows(asked, ranking, figure.link, entity, limit)
        names = asked.names_of(owner) if owner is not None else []
        return replace(query, columns=tuple(dict.fromkeys((*query.columns, *names))))

    query = _groups(asked, ranking, figure, entity, limit)
    if limit == 1:
        query = _without_nothing(asked, query, entity)
    if asked.says("share"):
        return _share_of_first(asked, query)
    if owner is not None:
        return replace(query, dimensions=(*query.dimensions, Dimension(owner)))

    return query


def _without_nothing(asked: Asked, query: Query, entity: Dimension) -> Query:
    """Leave out rows without a value where one value is asked for: nobody is no composer."""
    if entity.column is None or entity.is_of_time:
        return query
    if not asked.question.schema.column(entity.table, entity.column).nullable:
        return query

    has_value = Condition(ColumnRef(entity.table, entity.column, entity.via), "not null")
    return replace(query, conditions=(*query.conditions, has_value))


def _limit(asked: Asked, ranking: Ranking) -> int | None:
    """Return how many are shown; None for all."""
    if ranking.limit:
        return ranking.limit
    if asked.parts.limits:
        return asked.parts.limits[0]

    return None if ranking.is_order else ranking.few


def _is_of_rows(asked: Asked, figure: Figure, entity: Dimension) -> bool:
    """Tell whether single rows are ranked by a column of theirs, or of what they belong to."""
    if figure.link is None or figure.function is not None:
        return False
    if entity.column or entity.is_of_time:
        return False

    return figure.link.table in asked.question.graph.above(entity.table)


def _refuse_date_of_last(asked: Asked, ranking: Ranking, entity: Dimension) -> None:
    """Refuse a period of the last event of each thing: "members whose last payment was a year ago".

    The period would hold for any event, and the last one would be taken for the last thing.
    """
    if ranking.hint not in ("date", "recent") or not asked.parts.spans:
        return

    word = asked.question.words[ranking.at]
    for table in asked.tables:
        if table.at == word.at + 1 and table.link.table != entity.table:
            raise unused_words([word.mark.text])


def _refuse_graded_value(asked: Asked, ranking: Ranking) -> None:
    """Refuse a value of other rows that is said of a thing like an adjective: "most active users".

    "The most shipped orders" are orders of that value, but no user has one.
    """
    words = asked.question.words[ranking.at + 1 : ranking.at + 1 + _GRADED]
    nouns = [word.noun for word in words if word.noun is not None]
    if len(nouns) < _GRADED:
        return

    value = nouns[0].value
    table = nouns[1].table
    if value is not None and table is not None and value.table != table.table:
        raise missing_measure(called(asked.question.schema.table(table.table)))


def _of_one_figure(asked: Asked, rankings: tuple[Ranking, ...]) -> tuple[Ranking, ...]:
    """Return the rankings, without tables as figures where "by" names the figure.

    "the largest sale by total amount" does not rank by a number of sales.
    """
    orders = [ranking for ranking in rankings if ranking.is_open and ranking.is_order]
    if all(order.figure is None for order in orders):
        return rankings

    found = []
    for ranking in rankings:
        is_of_rows = not ranking.is_open and _is_named_by_table(asked, ranking)
        found.append(replace(ranking, figure=None) if is_of_rows else ranking)

    return tuple(found)


def _dropped_things(asked: Asked, rankings: tuple[Ranking, ...]) -> Iterator[Named]:
    """Yield the tables that `_of_one_figure` takes for things: of "best pupils by average mark"."""
    merged_rankings = _of_one_figure(asked, rankings)
    for before, after in zip(rankings, merged_rankings, strict=True):
        if before.figure is None or after.figure is not None:
            continue

        word = asked.question.words[before.figure.position]
        table = word.senses["tab"].link
        if table is not None and not asked.tables:
            yield Named(word.at, table)


def _is_named_by_table(asked: Asked, ranking: Ranking) -> bool:
    if ranking.figure is None:
        return False

    word = asked.question.words[ranking.figure.position]
    return "tab" in word.senses


def _merged(rankings: tuple[Ranking, ...]) -> Ranking | None:
    """Merge the rankings of several words into one: "rank … by …", "top 5 … with the highest …".

    None where they say different things.
    """
    figures = [ranking.figure for ranking in rankings if ranking.figure is not None]
    limits = [ranking.limit for ranking in rankings if ranking.limit is not None]
    hints = [ranking.hint for ranking in rankings]
    ends = {ranking.descending for ranking in rankings if not ranking.is_open}
    ranked = {(figure.link, figure.table) for figure in figures}
    if max(len(ends), len(limits), len(ranked)) > 1:
        return None

    return Ranking(
        descending=False not in ends,
        at=rankings[0].at,
        figure=next(iter(figures), None),
        hint="" if figures else next(filter(None, hints), ""),
        limit=next(iter(limits), None),
        is_order=_are_orders(rankings),
        few=max(ranking.few for ranking in rankings),
    )


def _are_orders(rankings: tuple[Ranking, ...]) -> bool:
    return all(ranking.is_order for ranking in rankings)


def _both_ends(asked: Asked) -> Asked:
    """Return the question for the highest and the lowest value of one figure.

    Raises:
        Refusal: things are ranked as well, or there is no such figure.
    """
    rankings = asked.parts.rankings
    words = [asked.question.words[ranking.at] for ranking in rankings]
    lost = unused_words([word.mark.text for word in words])
    limits = filter(None, [ranking.limit for ranking in rankings])
    if _ranks_things(asked) or any(limits):
        raise lost

    figures = filter(None, [ranking.figure for ranking in rankings])
    figure = next(figures, None)
    if figure is None or figure.link is None:
        raise lost

    ends = []
    for ranking in rankings:
        extreme = Figure(None, figure.link, position=ranking.at)
        ends.append(replace(ranking, figure=extreme))

    return _with_extremes(asked, ends)


def _ranks_things(asked: Asked) -> bool:
    """Tell whether a table is named where the thing that is ranked stands."""
    places = [ranking.at for ranking in asked.parts.rankings]
    named = [table.at for table in asked.tables]
    if not named:
        return False
    if asked.question.is_chinese:
        return max(named) > max(places)

    return min(named) < min(places)


def _with_extremes(asked: Asked, rankings: list[Ranking]) -> Asked:
    """Return the question with the extreme values of the rankings' figures among its figures."""
    extremes = tuple(
        replace(ranking.figure, function="max" if ranking.descending else "min")
        for ranking in rankings
        if ranking.figure is not None
    )
    return asked.with_parts(figures=(*asked.parts.figures, *extremes))


def _with_figure(asked: Asked, ranking: Ranking) -> tuple[Asked, Ranking]:
    """Return the ranking with its figure, and the question without that figure.

    It is the figure of the user's answer, of the ranking's adjective, or one named elsewhere.
    """
    parts = asked.parts
    meant = _meant_figure(asked, ranking)
    if meant is not None:
        asked = _with_thing(asked, ranking.figure, meant)
        return asked, replace(ranking, figure=replace(meant, position=ranking.at), hint="")
    if ranking.hint in asked.question.lexicon.adjectives:
        # none of its figures is near what is asked
        ranking = replace(ranking, hint="")
    if ranking.figure is not None or ranking.hint:
        return asked, ranking

    named = next(iter((*parts.figures, *parts.bare)), None)
    if named is not None:
        asked = asked.with_parts(
            figures=tuple(figure for figure in parts.figures if figure is not named),
            bare=tuple(one for one in parts.bare if one is not named),
        )
        return asked, replace(ranking, figure=named)

    return asked, _with_implied_figure(asked, ranking)


def _with_implied_figure(asked: Asked, ranking: Ranking) -> Ranking:
    """Return the ranking with the number of events, or their amount where a verb is of money."""
    counted = _counted_table(asked) if ranking.counts else None
    if counted is None:
        return ranking

    figure = Figure("count", table=counted)
    paid = [text for text in asked.question.texts("verb") if _OF_MONEY.fullmatch(text)]
    if paid:
        ranked = asked.question.words[ranking.at].text
        figure = _number_or_amount(asked, figure, f"{paid[0]} {ranked}")

    return replace(ranking, figure=replace(figure, position=ranking.at))


def _most_in(asked: Asked, ranking: Ranking, figure: Figure) -> Figure | None:
    """Return what "the most in fines" is about, their number or amount; None: it says no "in"."""
    after = asked.question.word_at(ranking.at + 1)
    if figure.table is None or after is None or after.text.lower() != _MOST_IN:
        return None

    return _number_or_amount(asked, figure, asked.question.words[ranking.at].text)


def _number_or_amount(asked: Asked, count: Figure, word: str) -> Figure:
    """Return what "sold the most" means: the amount of money in reports, whose number says nothing,
    or the number of events that have none.

    Raises:
        Refusal: events have an amount; with it and their number as choices.
    """
    counted = count.table
    assert counted is not None
    amount = amount_paid(asked.question, counted)
    if amount is None:
        return count
    if asked.question.facts(counted).is_report:
        return Figure(None, amount)

    number = number_of(called(asked.question.facts(counted).table))
    choices = [number, *_sold(asked, amount, amount.table)]
    raise which_figure(word, choices, counted)


def _sold(asked: Asked, amount: Link | None, table: TableKey) -> list[Text]:
    """Return what the amount and the quantity of the table are called, as far as it has them."""
    names = []
    if amount is not None:
        is_column = amount.factor is None
        names.append(called(asked.question.column_of(amount)) if is_column else _MONEY)

    quantity = _quantity_of(asked, table)
    if quantity is not None:
        names.append(called(asked.question.column_of(quantity)))

    return list(dict.fromkeys(names))


def _quantity_of(asked: Asked, table: TableKey) -> Link | None:
    """Return the table's column that says how many there were; an amount of money is none."""
    link = concept_column(asked.question, table, _QUANTITY)
    if link is None or not asked.question.facts(table).is_count(asked.question.column_of(link)):
        return None

    return link


def _with_thing(asked: Asked, named: Figure | None, figure: Figure) -> Asked:
    """Take a table for the thing that is ranked, where another figure is meant than its rows."""
    if named is None or named.table is None or named.table == figure.table:
        return asked

    word = asked.question.words[named.position]
    table = word.link_as("tab")
    is_thing = table is not None and asked.question.facts(named.table).is_entity
    if table is None or not is_thing or asked.tables:
        return asked

    return asked.with_parts(tables=(*asked.parts.tables, Named(word.at, table)))


def _meant_figure(asked: Asked, ranking: Ranking) -> Figure | None:
    """Return the figure that the user has named when asked back, or that an adjective means."""
    settled = asked.question.settled.figure
    if settled is not None:
        return settled
    if ranking.figure is not None:
        return _most_in(asked, ranking, ranking.figure)

    adjective = _by_adjective(asked, ranking)
    return Figure(None, adjective) if adjective is not None else None


def _counted_table(asked: Asked) -> TableKey | None:
    """Return the table whose rows are counted where a ranking names no figure."""
    if asked.head is None:
        return None
    if len(asked.events) == 1:
        return asked.events[0]

    return asked.head if asked.parts.groups else None


def _owned(asked: Asked, ranking: Ranking) -> tuple[Asked, TableKey | None]:
    """Return the question of what is ranked, and the table of its owner if that is asked for.

    `收入最高的店铺属于哪个服务区` ranks shops and asks for the area.

    Raises:
        Refusal: an owner is asked for, but not what kind of owner.
    """
    find = _ranked_thing if asked.question.is_chinese else _restricted_thing
    thing = find(asked, ranking)
    if thing is None:
        return asked, None

    others = [table.link.table for table in asked.tables if table is not thing]
    above = asked.question.graph.above(thing.link.table)
    if len(others) != 1 or others[0] not in above:
        raise unused_words([asked.question.words[thing.at].mark.text])

    return asked.with_parts(tables=(thing,)), others[0]


def _ranked_thing(asked: Asked, ranking: Ranking) -> Named | None:
    """Return the thing that is ranked, if its owner is asked for behind it, in Chinese."""
    words = asked.question.words
    things = [table for table in asked.tables if table.at > ranking.at]
    if not things:
        return None

    last = things[-1]
    for word in words[ranking.at : last.at]:
        owns = word.mark.means("noise", "which", "verb") and _OWNS.match(word.text)
        is_dated = words[word.at + 1].mark.date is not None
        if is_dated or not owns:
            continue

        before = [thing for thing in things if thing.at < word.at]
        if before:
            return before[-1]

    return None


def _restricted_thing(asked: Asked, ranking: Ranking) -> Named | None:
    """Return a thing that is ranked but not asked for, in English.

    It is the shop of "which area is the shop with the highest rent in".
    """
    words = asked.question.words
    asking = next((word.at for word in words[: ranking.at] if word.mark.means("which")), None)
    if asking is None:
        return None

    asked_for = _first_name(words[asking + 1 :])
    for table in asked.tables:
        if table.at <= asking or table.at == asked_for:
            continue

        is_before_ranking = table.at + 1 < ranking.at
        if is_before_ranking and words[table.at + 1].mark.means("with"):
            return table

    return None


def _first_name(words: Sequence[Word]) -> int | None:
    """Return the place of the first word that names a table or column."""
    for word in words:
        if word.noun is not None and not word.noun.is_value:
            return word.at

    return None


def _without_single_rows(asked: Asked, ranking: Ranking) -> Asked:
    """Leave out a group by single rows beside an average.

    "the highest average rent per shop" averages over shops.
    """
    figure = ranking.figure
    if figure is None or figure.link is None:
        return asked

    averaged = figure.link.table
    is_of_other = asked.head is not None and asked.head != averaged
    if figure.function != "avg" or not is_of_other:
        return asked

    rows = Dimension(averaged)
    kept = [group for group in asked.parts.groups if group.dimension != rows]
    return asked.with_parts(groups=tuple(kept))


def _by_adjective(asked: Asked, ranking: Ranking) -> Link | None:
    """Return the figure that the semantic file gives an adjective: "the busiest day".

    Of several figures it is the nearest to what the question names.
    """
    question = asked.question
    named = []
    for word in question.words:
        link = (word.noun.table or word.noun.column or word.noun.value) if word.noun else None
        if link is not None:
            named.append(link.table)

    def distance(link: Link) -> float:
        of_thing = question.facts(link.table).is_entity
        near = {link.table: 0.0} if of_thing else question.graph.above(link.table)
        return sum(near.get(key, math.inf) for key in named)

    links = question.lexicon.adjectives.get(ranking.hint, ())
    best = min(links, key=distance, default=None)
    if best is not None and distance(best) < math.inf:
        return best

    return None


def _wants_value(asked: Asked, ranking: Ranking) -> bool:
    """Tell whether the extreme value itself is asked for: "what is the highest rent"."""
    figure = ranking.figure
    question = asked.question
    if figure is None or figure.link is None or figure.function is not None:
        return False
    if ranking.limit is not None or ranking.is_order:
        return False
    if _asks_for_ranked(asked):
        return False

    is_behind = figure.position > ranking.at
    if is_behind or not question.is_chinese:
        return True

    after = question.nearest(ranking.at + 1, 1, "noise")
    return after is None or after.mark.means(*_BEHIND_VALUE)


def _asks_for_ranked(asked: Asked) -> bool:
    """Tell whether the things, people or times are asked for that have the extreme value."""
    question = asked.question
    parts = asked.parts
    if asked.tables or parts.columns:
        return True
    if asked.says("person") or question.has("date_which"):
        return True

    for group in parts.groups:
        if group.is_ranked or group.dimension.is_of_time:
            return True

    return any(map(_asks_which, question.words))


def _asks_which(word: Word) -> bool:
    """Tell whether the word asks for one of several things: "which", not "when" or "what"."""
    is_asking = word.mark.means("which") and word.mark.arg != "when"
    return is_asking and not word.text.startswith(_WHAT)


def _entity(asked: Asked, ranking: Ranking) -> tuple[Asked, Dimension]:
    """Return the question without the thing that is ranked, and that thing.

    These are ranked dates or kinds, the asked table or column, or else the last group.

    Raises:
        Refusal: the question names nothing that could be ranked.
    """
    question = asked.question
    figure = ranking.figure or Figure(None)
    group = _ranked_group(asked, figure)
    if group is not None:
        return _without(asked, group), group.dimension

    compared = _compared_column(asked, ranking)
    if compared is not None:
        return asked, column_dimension(question, compared)

    head = asked.head
    if head is not None and _is_beside_figure(asked, figure):
        owned = _group_before(asked, ranking, head)
        if owned is not None:
            return _without(asked, owned), owned.dimension

        return asked, Dimension(head)

    column = _ranked_column(asked, ranking)
    if column is not None:
        rest = [one for one in asked.parts.columns if one is not column]
        thing = column_dimension(question, column.link)
        return asked.with_parts(columns=tuple(rest)), thing

    last = next(reversed(asked.parts.groups), None)
    if last is not None:
        return _without(asked, last), last.dimension

    table = head or _table_of_link(figure)
    if table is None:
        raise missing_measure(question.words[ranking.at].mark.text)

    return asked, Dimension(table)


def _group_before(asked: Asked, ranking: Ranking, head: TableKey) -> GroupBy | None:
    """Return the group that is ranked although a thing follows it: `各省份会员的订单金额排名`.

    Raises:
        Refusal: the group and the thing may be meant, and the user has not chosen yet.
    """
    question = asked.question
    last = next(reversed(asked.parts.groups), None)
    if last is None or last.dimension.column is None or not ranking.is_order:
        return None

    follows = any(table.at == last.at + 1 and table.link.table == head for table in asked.tables)
    if not follows or last.dimension.table != head:
        return None

    choices: list[Choice] = [(head, last.dimension.column), (head, None)]
    chosen = question.settled.among(choices)
    if chosen is None:
        raise several_things(choices, question.lexicon)

    return last if chosen == choices[0] else None


def _compared_column(asked: Asked, ranking: Ranking) -> Link | None:
    """Return the column of compared values, all of which are put in order."""
    if not ranking.is_order or not asked.says("compare"):
        return None

    column = next(iter(asked.compared_columns), None)
    if column is not None:
        return column_link(column.table, column.column)

    return None


def _table_of_link(figure: Figure) -> TableKey | None:
    return figure.link.table if figure.link is not None else None


def _is_beside_figure(asked: Asked, figure: Figure) -> bool:
    """Tell whether a table is named that is not the one whose rows the figure counts."""
    return bool(asked.tables) and asked.head != figure.table


def _ranked_group(asked: Asked, figure: Figure) -> GroupBy | None:
    """Return the ranked dates or kinds, or the group of a figure of the asked table."""
    groups = asked.parts.groups
    is_beside_figure = _is_beside_figure(asked, figure)
    for group in groups:
        if group.is_ranked and not is_beside_figure:
            return group
        if group.is_kind and not asked.tables:
            return group

    if not groups or asked.head is None:
        return None

    # `各省份店铺平均月租金从高到低` ranks provinces
    is_of_head = asked.head == _table_of_link(figure)
    ranks_last = is_of_head and figure.function is not None
    return groups[-1] if ranks_last else None


def _ranked_column(asked: Asked, ranking: Ranking) -> Named | None:
    """Return the column whose values are ranked; beside groups it has to be asked for."""
    has_groups = bool(asked.parts.groups)
    for column in asked.parts.columns:
        distance = column.at - ranking.at
        is_behind = distance > 0
        is_near = distance <= _NEXT
        is_ranked = is_behind if asked.question.is_chinese else is_near
        is_asked = column.role == "asked"
        if is_ranked or is_asked or not has_groups:
            return column

    return None


def _without(asked: Asked, group: GroupBy) -> Asked:
    """Return the question without the group; of ranked dates, without all groups by these."""
    kept = []
    for one in asked.parts.groups:
        is_same_date = group.is_ranked and one.dimension == group.dimension
        if one != group and not is_same_date:
            kept.append(one)

    return asked.with_parts(groups=tuple(kept))


def _hinted(asked: Asked, ranking: Ranking, entity: Dimension) -> Figure:
    """Return the figure that an adjective implies: the price of the cheapest.

    Raises:
        Refusal: the ranked thing has no such column.
    """
    question = asked.question
    if entity.table == NO_TABLE:
        raise missing_measure(question.words[ranking.at].mark.text)

    facts = question.facts(entity.table)
    link = concept_column(question, entity.table, ranking.hint) if ranking.hint else None
    if ranking.hint in _DATED and not facts.is_entity and facts.dates:
        link = _date_of_event(asked, entity.table)
    if link is None and ranking.hint == "age" and not facts.is_person:
        # the oldest order is the one with the earliest date
        age = _said_age(asked, ranking, facts)
        link = age or concept_column(question, entity.table, "date")
    if link is None and (ranking.hint == _QUANTITY or _says_sold(asked)):
        _ask_what_was_sold(asked, ranking, entity)
        raise missing_measure(called(facts.table))
    if link is None:
        raise missing_measure(called(facts.table), facts)

    return Figure(None, link, position=ranking.at)


def _date_of_event(asked: Asked, table: TableKey) -> Link:
    """Return the date by which events are the latest.

    Raises:
        Refusal: their dates may be meant in several ways.
    """
    date = asked.event_date(table)
    if date is None or date.table != table:
        raise asked.no_date_of(table)

    return column_link(table, date.column)


def _said_age(asked: Asked, ranking: Ranking, facts: Facts) -> Link | None:
    """Return the date or year by which a thing is the oldest, if it has both: made, or bought.

    Raises:
        Refusal: the user has not chosen yet; with the year and the dates as choices.
    """
    if not facts.is_entity or facts.year is None or not facts.dates:
        return None

    choices = [(facts.table.key, name) for name in (facts.year, *facts.dates)]
    chosen = asked.question.settled.among(choices)
    if chosen is None:
        word = asked.question.words[ranking.at].mark.text
        raise ambiguous_column(word, choices, asked.question.lexicon)

    return column_link(chosen[0], str(chosen[1]))


def _says_sold(asked: Asked) -> bool:
    """Tell whether a verb says by what is ranked: no price is meant by "ordered the most"."""
    return any(_SELLS.fullmatch(word.text) for word in asked.question.words)


def _ask_what_was_sold(asked: Asked, ranking: Ranking, entity: Dimension) -> None:
    """Ask by which figure of the nearest events things sold best, if such events have one.

    Raises:
        Refusal: with the figures as choices; a figure of the thing itself says nothing of that.
    """
    below = asked.question.graph.below(entity.table)
    for key in sorted(below, key=lambda one: (below[one], one)):
        if asked.question.facts(key).keeps_amounts or _quantity_of(asked, key) is None:
            continue

        word = asked.question.words[ranking.at].mark.text
        raise which_figure(word, _sold(asked, amount_paid(asked.question, key), key), key)


def _direction(asked: Asked, ranking: Ranking, link: Link | None) -> bool:
    """Tell whether the order is descending: the oldest person has the earliest date of birth."""
    if ranking.hint != "age" or link is None:
        return ranking.descending
    if link.derived is not None or not asked.question.is_date(link):
        return ranking.descending

    return not ranking.descending


def _rows(
    asked: Asked, ranking: Ranking, link: Link, entity: Dimension, limit: int | None
) -> Query:
    """Return the query for single rows in the order of a column."""
    parts = asked.parts
    table = entity.table
    top_per = []
    for group in parts.groups:
        dimension = asked.resolved(group.dimension, table)
        if dimension != Dimension(table) and not _is_asked_date(asked, group, dimension, link):
            top_per.append(dimension)

    columns: list[ColumnRef] = []
    for dimension in top_per:
        columns += asked.shown_columns(dimension)

    columns += asked.names_of(table) or asked.useful_columns(table)
    columns += [ref(column.link) for column in parts.columns]
    columns += [ref(one.link) for one in parts.bare if one.link is not None]
    columns.append(ref(link))
    by = Order(column=ref(link), descending=_direction(asked, ranking, link))
    return Query(
        table,
        tuple(dict.fromkeys(columns)),
        order=(by, *asked.tie_break(table)),
        limit=limit,
        top_per=tuple(top_per) if limit else (),
    )


def _is_asked_date(asked: Asked, group: GroupBy, dimension: Dimension, ranked: Link) -> bool:
    """Tell whether the day of the first or last row is asked for: `最近一次回款是哪天`.

    Raises:
        Refusal: its month or year is, which the row does not show.
    """
    word = asked.question.words[group.at]
    is_ranked = (dimension.table, dimension.column) == (ranked.table, ranked.column)
    if not is_ranked or not word.mark.means("date_which"):
        return False
    if dimension.bucket != "day":
        raise unused_words([word.mark.text])

    return True


def _share_of_first(asked: Asked, query: Query) -> Query:
    """Return the query for the share of the first ones: "share of the top 5 customers in revenue".

    Raises:
        Refusal: the figure doesn't add up, or the first ones are to be shown one by one.
    """
    (measure, *others) = query.measures
    lost = unused_words(asked.question.texts("share"))
    if measure.function not in ("sum", "count") or not query.order[0].descending:
        raise lost
    if others or query.top_per or asked.question.has("and"):
        raise lost
    if query.limit is None or query.limit < _FEW:
        raise lost

    return replace(query, order=(), limit=None, share_of_top=query.limit)


def _groups(
    asked: Asked, ranking: Ranking, figure: Figure, entity: Dimension, limit: int | None
) -> Query:
    """Return the query for groups in the order of their figures."""
    parts = asked.parts
    measure = asked.measure(figure, _default_function(asked, ranking, figure))
    base = measure.table
    entity = asked.resolved(entity, base)
    others = [asked.measure(other) for other in (*parts.figures, *parts.bare)]
    # `单日收入最高的店铺` ranks pairs of a shop and a day.
    together = [asked.resolved(group.dimension, base) for group in parts.groups if group.is_ranked]
    groups = [asked.resolved(group.dimension, base) for group in parts.groups]
    top_per = [
        group for group in dict.fromkeys(groups) if group != entity and group not in together
    ]
    by = Order(measure=measure, descending=_direction(asked, ranking, figure.link))
    return Query(
        base,
        dimensions=tuple(dict.fromkeys((*top_per, entity, *together))),
        measures=tuple(dict.fromkeys((measure, *others))),
        order=(by, Order(descending=False)),
        limit=limit,
        top_per=() if ranking.is_order else tuple(top_per),
    )


def _default_function(asked: Asked, ranking: Ranking, figure: Figure) -> Function | None:
    """Return the function of a column that groups are ranked by if none is said.

    Of rates and dates it is the extreme; others have the default of all figures.

    Raises:
        Refusal: the column is neither a measure nor a date.
    """
    question = asked.question
    link = figure.link
    if link is None:
        return None
    if question.is_measure(link):
        has_total = link.derived is not None or not is_averaged(question.column_of(link))
        if has_total:
            return None
        if is_score(question.column_of(link)):
            return "avg"
    elif not question.is_date(link):
        raise missing_measure(question.words[ranking.at].mark.text)

    return "max" if ranking.descending else "min"
