"""Merges what a follow-up wants to be measured or shown into the earlier query."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from common.text import Text
from knowledge.naming import called
from rules.conversation.follow_ups import Change
from rules.planning.carrying import carried, conditions_for
from rules.planning.event_dates import date_column
from rules.planning.listing import shown_column
from rules.planning.measuring import group_order, measure_of
from rules.planning.plan import Plan, all_columns, tie_break
from rules.query.conditions import ref
from rules.query.query import ColumnRef, Dimension, Function, Measure, Query
from rules.query.refusals import Refusal, missing_measure, not_combinable, nothing_to_change, unused_words
from rules.query.wishes import Figure
from rules.readers.groups import column_dimension
from rules.schema.links import column_link
from rules.schema.schema import TableKey


def with_figures(query: Query, change: Change) -> Query:
    """The query with the follow-up's figures, columns or things.

    Raises:
        Refusal: the earlier rows or groups have no such figure.
    """
    if change.plan.asks.per_entity is not None:
        return _averaged_per_thing(query, change)
    if change.figures:
        return _measured(query, change)
    _extreme_of_total(query, change)
    if change.per_unit:
        query = _averaged_over(query, change)
    if change.function is not None:
        query = _with_function(query, change, change.function)
    if change.plan.projection:
        query = _with_columns(query, change)
    return _with_thing(query, change)


def ranks_within(change: Change) -> bool:
    """Whether the limit applies within each group: `每个公司的前三名`."""
    reading = change.plan.reading
    return any(mark.means("each") or mark.text.lower() in ("in each", "per") for mark in reading.marks)


def counting(query: Query) -> Query:
    """The query for the number of rows that a listing shows."""
    measure = Measure("count", query.base)
    if query.distinct and len(query.columns) == 1:
        measure = Measure("count_distinct", query.columns[0].table, query.columns[0].column)
    return _measuring(query, [measure], query.dimensions)


def _measuring(query: Query, measures: Sequence[Measure], dimensions: tuple[Dimension, ...] = ()) -> Query:
    """The query with these figures instead of what it shows, without a limit and an order."""
    return replace(
        query,
        base=measures[0].table,
        columns=(),
        dimensions=dimensions,
        measures=tuple(dict.fromkeys(measures)),
        order=(),
        limit=None,
        distinct=False,
        top_per=(),
    )


def measured_columns_of(plan: Plan, columns: Iterable[ColumnRef]) -> list[ColumnRef]:
    """Those of the columns whose totals or averages mean something."""
    return [one for one in columns if plan.reading.is_measure(column_link(one.table, one.column))]


# ------------------------------------------------------------------------------------------------------------- figures


def _measured(query: Query, change: Change) -> Query:
    plan = change.plan
    measures = [_as_before(query, change, figure) for figure in change.figures]
    change.plan.tables = [one for one in plan.tables if one[1] not in {measure.table for measure in measures}]
    if not query.measures:
        return _listed_figures(query, change, measures)
    if query.counts_rows:
        raise nothing_to_change(Text("可以替换的指标", "figure to replace"))
    if "add" in change.cues:
        measures = [*query.measures, *measures]
    elif any(measure.is_share and not measure.share_of for measure in query.measures):
        measures += [replace(measure, is_share=True) for measure in measures]
    new = measures[0].table
    if new != query.measures[0].table:
        query = carried(plan, replace(query, base=query.measures[0].table), new)
    return _reordered(replace(query, base=new, measures=tuple(dict.fromkeys(measures))), query)


def _as_before(query: Query, change: Change, figure: Figure) -> Measure:
    """The measure of a figure; if it names no function, it gets that of the earlier figure where that makes sense."""
    plan = change.plan
    measure = measure_of(plan, figure)
    old = query.measures[0] if query.measures else None
    if old is None or figure.function is not None or figure.per_unit is not None or figure.link is None:
        return measure
    if old.per is not None and old.per.bucket is not None and measure.function == "sum":
        per = Dimension(measure.table, date_column(plan, measure.table, old.per.bucket), old.per.bucket)
        return replace(measure, per=per)
    own = measure_of(plan, Figure(None, column_link(old.table, old.column))) if old.column else old
    said = old.function if old.column and old.function != own.function else None
    return replace(measure, function=said) if said in ("avg", "min", "max", "sum") else measure


def _listed_figures(query: Query, change: Change, measures: list[Measure]) -> Query:
    """The query for figures of listed things: their own columns are shown, those of tables below are added up."""
    plan = change.plan
    above = plan.reading.graph.above(query.base)
    plain = all(figure.function is None and figure.link is not None for figure in change.figures)
    if plain and all(measure.table in above for measure in measures):
        return _showing(query, change, [ref(figure.link) for figure in change.figures if figure.link is not None])
    if query.limit is not None:
        raise nothing_to_change(
            Text("可以汇总的完整结果，只列出了前几条", "complete result to add up, only its first rows")
        )
    table = measures[0].table
    is_total = not plain and all(measure.table in above for measure in measures)
    each = plan.reading.facts(query.base).is_entity and query.base in plan.reading.graph.above(table)
    if not is_total and not each:
        raise unused_words([plan.reading.marks[figure.position].text for figure in change.figures])
    query = _measuring(query, measures, () if is_total else (Dimension(query.base),))
    return replace(query, order=group_order(query))


def _reordered(query: Query, before: Query) -> Query:
    """The query, ordered by its first figure if it was ordered by one that is gone.

    Raises:
        Refusal: a comparison is with a figure that is gone.
    """
    order = tuple(
        replace(one, measure=query.measures[0]) if one.measure and one.measure not in query.measures else one
        for one in (query.order if query.dimensions else ())
    )
    having = tuple(one for one in query.having if one.measure in query.measures)
    if len(having) < len(before.having):
        raise nothing_to_change(Text("适用于新指标的比较条件", "comparison that fits the new figure"))
    return replace(query, order=order, having=having)


# ----------------------------------------------------------------------------------------------------------- functions


def _with_function(query: Query, change: Change, function: Function) -> Query:
    if function == "count":
        return _counted(query, change)
    if not query.measures:
        return _aggregated_column(query, change, function)
    if function == "sum" and all(one.function in ("sum", "count") for one in query.measures):
        return _measuring(query, [measure for measure in query.measures if not measure.is_share])
    if function == "avg" and query.dimensions and _is_count(query.measures[0]):
        return _measuring(query, [replace(query.measures[0], per=query.dimensions[-1])], query.dimensions[:-1])
    if any(_is_count(measure) for measure in query.measures):
        raise _missing_measure(change.plan, query)

    def turned(measure: Measure) -> Measure:
        return replace(measure, function=function, per=None)

    order = tuple(replace(one, measure=turned(one.measure)) if one.measure else one for one in query.order)
    return replace(query, measures=tuple(dict.fromkeys(map(turned, query.measures))), order=order)


def _is_count(measure: Measure) -> bool:
    return measure.column is None or measure.function == "count_distinct"


def _counted(query: Query, change: Change) -> Query:
    """The query for "how many": counts rows of a listing, or groups that were selected."""
    if not query.measures:
        return counting(query)
    is_count = any(measure.function in ("count", "count_distinct") for measure in query.measures)
    picked = bool(query.dimensions) and (bool(query.having) or "these" in change.cues)
    if query.counts_rows or (is_count and not picked and (change.restricts or not query.dimensions)):
        return query
    if not query.dimensions or (is_count and not picked):
        raise nothing_to_change(Text("可以计数的对象", "things to count"))
    return replace(query, counts_rows=True, order=(), limit=None, top_per=())


def _aggregated_column(query: Query, change: Change, function: Function) -> Query:
    """The query for an aggregate after a listing, of the only figure that it shows or is ordered by: `平均呢`."""
    plan = change.plan
    ordered = measured_columns_of(plan, (one.column for one in query.order if one.column is not None))
    shown = measured_columns_of(plan, query.columns)
    if not ordered and len(shown) != 1:
        raise _missing_measure(plan, query)
    column = (ordered or shown)[0]
    return _measuring(query, [Measure(function, column.table, column.column)])


def _missing_measure(plan: Plan, query: Query) -> Refusal:
    facts = plan.reading.facts(query.base)
    return missing_measure(called(facts.table), facts)


def _extreme_of_total(query: Query, change: Change) -> None:
    """Reads `最高呢` after a total as the greatest single value, because there are no groups to rank."""
    rankings = change.plan.asks.rankings
    single = len(query.measures) == 1 and not query.dimensions and query.measures[0].column is not None
    if not single or len(rankings) != 1 or change.plan.asks.dimensions:
        return
    ranking = rankings[0]
    if ranking.figure is None and ranking.limit is None and not ranking.hint:
        change.function = "max" if ranking.descending else "min"
        rankings.clear()


def _averaged_per_thing(query: Query, change: Change) -> Query:
    """The query for the average of a figure over things: `平均每个服务区呢`."""
    plan = change.plan
    things = [Dimension(key) for _, key in plan.tables] or [
        one for one in query.dimensions if one.column is None and not plan.asks.dimensions
    ]
    if len(query.measures) != 1 or query.measures[0].per is not None or len(things) != 1 or query.having:
        raise nothing_to_change(Text("可以按它求平均的单个指标", "single figure to average so"))
    average = replace(query.measures[0], per=things[0])
    return _measuring(query, [average], tuple(one for one in query.dimensions if one != things[0]))


def _averaged_over(query: Query, change: Change) -> Query:
    """The query for the average of totals over periods: `日均呢`."""
    if len(query.measures) != 1 or query.measures[0].per is not None:
        raise nothing_to_change(Text("可以求平均的单个指标", "single figure to average"))
    measure, unit = query.measures[0], change.per_unit
    per = Dimension(measure.table, date_column(change.plan, measure.table, unit), unit)  # type: ignore[arg-type]
    function: Function = "count" if measure.column is None else "sum"
    average = replace(measure, function=function, per=per)
    order = tuple(replace(one, measure=average) if one.measure else one for one in query.order)
    return replace(query, measures=(average,), order=order if query.dimensions else ())


# -------------------------------------------------------------------------------------------------- columns and things


def _with_columns(query: Query, change: Change) -> Query:
    """The query with the columns that are named: beside the names of what is listed, or as groups of figures."""
    plan = change.plan
    if query.measures:
        several = len({measure.table for measure in query.measures}) > 1
        if several and "add" in change.cues:
            raise not_combinable()  # figures of several tables are joined on their groups, which may be empty
        plan.asks.dimensions += [column_dimension(plan.reading, link) for link in plan.projection]
        change.cues |= {"replace"}
        return query
    columns = [column for index, link in plan.named_at.items() for column in shown_column(plan, index, link)]
    return _showing(query, change, columns)


def _showing(query: Query, change: Change, columns: list[ColumnRef]) -> Query:
    plan = change.plan
    names = plan.reading.facts(query.base).display
    if "only" in change.cues and any(_is_reference(plan, index) for index in plan.named_at):
        raise unused_words([plan.reading.marks[index].text for index in plan.named_at])  # some of the rows
    own = () if "only" in change.cues else (ColumnRef(query.base, name) for name in names)
    shown = tuple(dict.fromkeys([*(query.columns if "add" in change.cues else own), *columns]))
    above = plan.reading.graph.above(query.base)
    if any(column.table not in above for column in shown):
        raise unused_words([plan.reading.marks[index].text for index in plan.named_at])
    order = query.order or tie_break(plan, query.base)
    return replace(query, columns=shown, distinct=False, order=order)


def _is_reference(plan: Plan, index: int) -> bool:
    link = plan.named_at[index]
    return link.column in plan.reading.facts(link.table).reference_columns


def _with_thing(query: Query, change: Change) -> Query:
    """The query for a table that is named alone: it is listed, counted or grouped by, unless the query has it."""
    plan = change.plan
    if not plan.tables:
        return query
    key = plan.tables[-1][1]
    shown = [one.table for one in query.dimensions if one.column is None] if query.measures else [query.base]
    if plan.asks.dimensions and plan.asks.rankings and ranks_within(change):
        return query
    if change.restricts or plan.asks.dimensions or change.function or key in shown:
        _refuse_strangers(plan, query)
        return query
    if not query.measures:
        return _listing(query, plan, key)
    measured = query.measures[0]
    counts = all(measure.column is None for measure in query.measures) and not query.counts_rows
    if key in plan.reading.graph.above(measured.table) and key != measured.table:
        kept = [one for one in query.dimensions if one.bucket]
        plan.asks.dimensions = [*kept, Dimension(key)] if len(kept) < len(query.dimensions) else [Dimension(key)]
        change.cues |= {"replace"}
        return query
    if not counts and key != measured.table:
        raise unused_words([plan.reading.marks[index].text for index, _ in plan.tables])
    return _reordered(replace(carried(plan, query, key), measures=(Measure("count", key),)), query)


def _refuse_strangers(plan: Plan, query: Query) -> None:
    known = {query.base, *(one.table for one in query.dimensions), *(one.table for one in query.measures)}
    known |= {one.column.table for one in (*query.conditions, *plan.filters.conditions)}
    known |= {one.table for one in (*query.related, *plan.filters.related)}
    reachable = {key for table in known for key in plan.reading.graph.above(table)}
    reachable = known if plan.asks.dimensions else reachable
    strangers = [plan.reading.marks[index].text for index, key in plan.tables if key not in reachable]
    if strangers:
        raise unused_words(strangers)


def _listing(query: Query, plan: Plan, key: TableKey) -> Query:
    """The query for rows of another table, under the same conditions."""
    facts, before = plan.reading.facts(key), plan.reading.facts(query.base)
    if query.order != tie_break(plan, query.base) and query.order:
        raise nothing_to_change(Text("可以沿用的排序", f"order that fits {called(facts.table).en}"))
    named = {column.column for column in query.columns} <= {*before.display}
    names = facts.display if named and facts.display else all_columns(plan, key)
    return Query(
        key,
        tuple(ColumnRef(key, name) for name in names),
        conditions=conditions_for(plan, query, key),
        order=tie_break(plan, key),
        limit=query.limit,
        with_deleted=query.with_deleted,
    )
