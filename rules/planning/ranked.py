"""Plans queries for the most and the least: rows, groups, and the extreme value itself."""

import re
from dataclasses import replace

from knowledge.naming import called
from rules.planning.event_dates import resolved
from rules.planning.heads import asked_people, person_of
from rules.planning.measuring import figures_query, measure_of
from rules.planning.plan import Plan, all_columns, is_asked, shown_names, tie_break
from rules.query.conditions import ref
from rules.query.query import ColumnRef, Dimension, Function, Order, Query
from rules.query.refusals import missing_measure, unused_words
from rules.query.wishes import Figure, Ranking
from rules.readers.groups import column_dimension
from rules.readers.reading import Reading
from rules.schema.links import Link, column_link
from rules.schema.schema import Facts, TableKey
from rules.words import WORDS
from rules.words.vocabulary import concept_names


def ranked_query(plan: Plan) -> Query:
    """The query for the most or least of something.

    Raises:
        Refusal: the question doesn't say by which figure, or asks for more than one ranking shows.
    """
    ranking = plan.asks.rankings[0]
    _refuse_owner(plan, ranking)
    _refuse_joined_share(plan)
    if len(plan.asks.rankings) > 1:
        return _ranked_twice(plan)
    if plan.reading.settled.figure is not None:
        ranking.figure = replace(plan.reading.settled.figure, position=ranking.position)
    elif ranking.figure is None and not ranking.hint:
        ranking.figure = _implied_figure(plan)
    _drop_single_rows(plan, ranking)
    person = _asked_person(plan, ranking)
    if ranking.is_value and ranking.figure is not None and person is None:
        return _extreme_value(plan, ranking)
    entity = Dimension(person) if person is not None else _ranked_entity(plan, ranking)
    figure = ranking.figure or _hinted_figure(plan, ranking, entity)
    return _ranked_by(plan, ranking, figure, entity)


def _refuse_owner(plan: Plan, ranking: Ranking) -> None:
    """Refuses to rank the owners if the question asks for the owner of what is ranked: `收入最高的店铺属于哪个服务区`.

    Raises:
        Refusal: it does.
    """
    reading = plan.reading
    if not reading.is_chinese and (owned := _restricted_thing(plan, ranking)) is not None:
        raise unused_words([reading.marks[owned].text])
    is_thing_said = False
    for index in range(ranking.position, len(reading)):
        mark, noun = reading.marks[index], reading.nouns[index]
        owns = mark.means("noise", "which", "verb") and _OWNS.match(mark.text.lower())
        if owns and (is_thing_said or mark.text.startswith(_ASKED_OWNERS)):
            raise unused_words([mark.text])
        is_thing_said = is_thing_said or (noun is not None and noun.is_table)


def _drop_single_rows(plan: Plan, ranking: Ranking) -> None:
    """Takes away a group by single rows beside an average: "the highest average rent per shop" averages over shops."""
    figure = ranking.figure
    if plan.head is None or figure is None or figure.function != "avg" or figure.link is None:
        return
    own = Dimension(figure.link.table)
    if plan.head != own.table and own in plan.asks.dimensions:
        plan.asks.dimensions.remove(own)


def _refuse_joined_share(plan: Plan) -> None:
    """Refuses a share after "and", because it is shown beside the figure that ranks: `收入最高的店铺及占比`.

    Raises:
        Refusal: there is such a share.
    """
    marks = plan.reading.marks
    for index, mark in enumerate(marks):
        before = plan.reading.beside(index, -1, ("noise", "of"), through_used=False) if mark.means("share") else None
        if before is not None and marks[before].means("and"):
            raise unused_words([mark.text])


def _restricted_thing(plan: Plan, ranking: Ranking) -> int | None:
    """Where a table stands that is ranked but not asked for: the shop of "which area is the shop with the … in"."""
    reading = plan.reading
    asked = next((index for index in range(ranking.position) if reading.asks_for(index)), None)
    if asked is None:
        return None
    things = [index for index, _ in plan.tables if asked < index < ranking.position]
    named = (index for index in range(asked + 1, len(reading)) if (noun := reading.nouns[index]) and not noun.is_value)
    first = next(named, None)
    for index in things:
        after = reading.beside(index, 1, ("noise",))
        if index != first and after is not None and after < ranking.position and reading.marks[after].means("with"):
            return index
    return None


_OWNS = re.compile(WORDS.any_of("questions.owners"))
_ASKED_OWNERS = WORDS.chinese.phrases("questions.asked_owners")


def _ranked_twice(plan: Plan) -> Query:
    """The query for the highest and the lowest value of one figure."""
    rankings = plan.asks.rankings
    first, last = rankings[0].position, rankings[-1].position
    things = any(index > last if plan.reading.is_chinese else index < first for index, _ in plan.tables)
    values = all(ranking.is_value or ranking.figure is None for ranking in rankings)
    link = next((ranking.figure.link for ranking in rankings if ranking.figure is not None), None)
    if things or not values or link is None:
        raise unused_words([plan.reading.marks[ranking.position].text for ranking in rankings])
    for ranking in rankings:
        plan.asks.figures.append(Figure("max" if ranking.descending else "min", link, position=ranking.position))
    plan.asks.rankings.clear()
    return figures_query(plan)


def _implied_figure(plan: Plan) -> Figure | None:
    """The figure that another part of the question names; uses it up."""
    named = plan.asks.figures or plan.bare
    return named.pop(0) if named else None


def _extreme_value(plan: Plan, ranking: Ranking) -> Query:
    figure = ranking.figure
    assert figure is not None
    function: Function = "max" if ranking.descending else "min"
    if figure.function is not None:
        raise unused_words([plan.reading.marks[ranking.position].text])
    plan.asks.figures.insert(0, Figure(function, figure.link, figure.table, figure.position))
    plan.asks.rankings.clear()
    return figures_query(plan)


def _ranked_entity(plan: Plan, ranking: Ranking) -> Dimension | None:
    """What is ranked: kinds if they are asked for, else the asked table or column, else the last group."""
    kind = plan.asks.kind
    if kind is not None and kind in plan.asks.dimensions and len(plan.tables) <= 1:
        plan.asks.dimensions.remove(kind)  # named twice (`每类店铺收入最高的店铺`), things are ranked within kinds
        return kind
    if plan.asks.dimensions and plan.head is not None and ranking.figure and _is_total_of(ranking.figure, plan.head):
        return plan.asks.dimensions.pop()  # `各省份店铺平均月租金从高到低` ranks provinces
    if ranking.is_order and plan.asks.compare and plan.filters.compared:
        compared = plan.filters.compared[0]
        return column_dimension(plan.reading, column_link(compared.table, compared.column))
    if (owned := _owned_column(plan)) is not None:
        plan.projection.remove(owned)
        return column_dimension(plan.reading, owned)
    if plan.head is not None and plan.head != (ranking.figure.table if ranking.figure else None):
        return Dimension(plan.head)
    for index, link in plan.named_at.items():
        named_first = plan.reading.beside(ranking.position, 1, ("noise", "of", "unit"), through_used=False) == index
        if not plan.asks.dimensions or is_asked(plan, index) or named_first:
            plan.projection.remove(link)
            return column_dimension(plan.reading, link)
    if plan.asks.dimensions:
        return plan.asks.dimensions.pop()
    if plan.head is not None:
        return Dimension(plan.head)
    return _thing_behind_figure(plan) if ranking.hint == "date" else None


def _owned_column(plan: Plan) -> Link | None:
    """The column of "rank shop brands by revenue", where its table only says whose brands they are."""
    qualified = {index + 1 for index, _ in plan.asks.qualifiers} if not plan.tables else ()
    return next((link for index, link in plan.named_at.items() if index in qualified), None)


def _asked_person(plan: Plan, ranking: Ranking) -> TableKey | None:
    """The people that are ranked, where the user was asked back for the figure; None if a table is ranked.

    "Who placed the largest order" ranks orders.
    """
    reading, figure = plan.reading, ranking.figure
    if not reading.settled.says_anything or not asked_people(reading) or figure is None:
        return None
    place = reading.beside(ranking.position, 1, ("noise", "of", "unit"), through_used=False)
    noun = reading.nouns[place] if place is not None else None
    if noun is not None and noun.is_table:
        return None
    table = figure.table if figure.link is None else figure.link.table
    return person_of(plan, table) if table is not None else None


def _thing_behind_figure(plan: Plan) -> Dimension | None:
    """The table whose name was read as a figure; "latest sales" means its rows, because no figure is latest."""
    for figure in plan.bare:
        noun = plan.reading.nouns[figure.position]
        if noun is not None and noun.table is not None:
            plan.bare.remove(figure)
            return Dimension(noun.table.table)
    return None


def _is_total_of(figure: Figure, table: TableKey) -> bool:
    """Whether the figure aggregates rows of the table, so that single rows can't be ranked by it."""
    return figure.function is not None and figure.link is not None and figure.link.table == table


def _hinted_figure(plan: Plan, ranking: Ranking, entity: Dimension | None) -> Figure:
    """The figure of the column that an adjective implies: the price of the cheapest, the date of the latest."""
    reading, facts = plan.reading, _ranked_facts(plan, entity)
    link = concept_column(reading, facts.table.key, ranking.hint) if facts is not None and ranking.hint else None
    if link is None and facts is not None and ranking.hint == "age" and not facts.is_person:
        link = concept_column(reading, facts.table.key, "date")  # the oldest order is the one with the earliest date
    if link is None:
        name = called(facts.table) if facts is not None else reading.marks[ranking.position].text
        raise missing_measure(name, facts)
    if ranking.hint == "date" or (ranking.hint == "age" and reading.is_date(link)):
        ranking.descending = ranking.descending if ranking.hint == "date" else not ranking.descending
    return Figure(None, link)


def _ranked_facts(plan: Plan, entity: Dimension | None) -> Facts | None:
    """The facts of the table whose rows are ranked; None where periods are ranked, or nothing is named."""
    return plan.reading.facts(entity.table) if entity is not None and entity.table != ("", "") else None


def _ranked_by(plan: Plan, ranking: Ranking, figure: Figure, entity: Dimension | None) -> Query:
    limit = plan.asks.limit if ranking.is_order else 1 if ranking.limit is None else ranking.limit
    plan.asks.limit = None
    link = figure.link
    if entity is None and link is not None:
        entity = Dimension(link.table)
    if entity is None:
        raise missing_measure(plan.reading.marks[ranking.position].text)
    if link is not None and figure.function is None and _is_attribute(plan, link, entity):
        return _ranked_rows(plan, ranking, link, entity, limit)
    return _ranked_groups(plan, ranking, figure, entity, limit)


def _is_attribute(plan: Plan, link: Link, entity: Dimension) -> bool:
    """Whether the figure is a column of the ranked table or of one above it."""
    if entity.column is not None or entity.bucket is not None:
        return False
    return link.table in plan.reading.graph.above(entity.table)


def _ranked_rows(plan: Plan, ranking: Ranking, link: Link, entity: Dimension, limit: int | None) -> Query:
    facts = plan.reading.facts(entity.table)
    top_per = tuple(resolved(plan, dimension, entity.table) for dimension in plan.asks.dimensions)
    columns = [ColumnRef(dim.table, name) for dim in top_per for name in shown_names(plan, dim)]
    columns += [ColumnRef(entity.table, name) for name in facts.display or all_columns(plan, entity.table)]
    columns += [ref(shown) for shown in (*plan.projection, *(bare.link for bare in plan.bare), link) if shown]
    order = (Order(column=ref(link), descending=ranking.descending), *tie_break(plan, entity.table))
    shown_columns = tuple(dict.fromkeys(columns))
    return Query(entity.table, shown_columns, order=order, limit=limit, top_per=top_per if limit else ())


def _ranked_groups(plan: Plan, ranking: Ranking, figure: Figure, entity: Dimension, limit: int | None) -> Query:
    reading, link = plan.reading, figure.link
    default: Function | None = None
    if link is not None:
        if not reading.is_measure(link) and not reading.is_date(link):
            raise missing_measure(reading.marks[ranking.position].text, _ranked_facts(plan, entity))
        if not reading.is_measure(link) or reading.facts(link.table).is_averaged(reading.column_of(link)):
            default = "max" if ranking.descending else "min"
    measure = measure_of(plan, figure, default)
    entity = resolved(plan, entity, measure.table)
    others = [measure_of(plan, other) for other in [*plan.asks.figures, *plan.bare]]
    # `单日收入最高的店铺` ranks pairs of a shop and a day.
    together = [resolved(plan, one, measure.table) for one in plan.asks.dimensions if one in plan.asks.ranked_dates]
    top_per = tuple(resolved(plan, one, measure.table) for one in plan.asks.dimensions)
    top_per = tuple(one for one in top_per if one not in together)
    dimensions = (*top_per, entity) if ranking.is_order else (*top_per, entity, *together)
    return Query(
        measure.table,
        dimensions=tuple(dict.fromkeys(dimensions)),
        measures=tuple(dict.fromkeys((measure, *others))),
        order=(Order(measure=measure, descending=ranking.descending), Order(descending=False)),
        limit=limit,
        top_per=() if ranking.is_order else top_per,
    )


def concept_column(reading: Reading, table: TableKey, hint: str) -> Link | None:
    """The table's column for a concept that an adjective implies, such as a price; None without one."""
    facts = reading.facts(table)
    if hint == "date":
        return column_link(table, facts.dates[0]) if facts.dates else None
    for name in concept_names(hint):
        for link in reading.lexicon.find(name):
            if (
                link.kind == "column"
                and link.table == table
                and link.quality >= 0.5
                and (reading.is_measure(link) or reading.is_date(link))
            ):
                return link
    return None
