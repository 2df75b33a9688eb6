"""Puts into the query before it what a follow-up wants measured, counted or shown."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from common.meanings import TableKey
from common.text import Text
from rules.composing.asked import Asked
from rules.composing.carrying import carried, conditions_for, named
from rules.composing.measuring import group_order
from rules.conversation.change import Change, must_have, refuse_part, refuse_rows_in_part
from rules.query.query import ColumnRef, Dimension, Figure, Function, Measure, Query, ref, shown_things, touched
from rules.query.refusals import not_combinable, unused_words
from rules.reading.implied import column_dimension
from rules.schema.links import column_link

Edited = tuple[Query, list[Dimension]]
"""A query, and the groups that it is to have."""


# ------------------------------------------------------------------------------------------------------------- figures


def with_figures(query: Query, change: Change) -> Edited:
    """The query with the follow-up's figures, columns or things, and the groups that these imply."""
    _say_value(query, change)
    if change.lists_rows:
        return _rows_of(query, change), []
    function = _extreme(query, change) or _total_of_shown(query, change) or change.function
    if query.counts_rows:
        _refuse_of_number(query, change, function)
    if change.asked.says("per_entity"):
        return _averaged_per_thing(query, change), []
    if change.figures:
        return _measured(query, change), []
    if change.per_unit:
        query = _averaged_over(query, change)
    if function == "count":
        query = _counted(query, change)
    elif function is not None:
        query = _with_function(query, change, function)
    if change.parts.columns and not change.lifts:
        return _with_columns(query, change)
    return _with_thing(query, change)


def _rows_of(query: Query, change: Change) -> Query:
    """The query for the rows, or the groups, that were counted or measured."""
    if query.counts_rows:
        return replace(query, counts_rows=False, order=query.order or group_order(query))
    must_have(query.measures and not (query.dimensions or query.having), Text("可以列出的明细", "rows to list"))
    asked, table = change.asked, query.measures[0].table
    columns = tuple(ColumnRef(table, name) for name in asked.all_columns(table))
    return replace(query, base=table, columns=columns, measures=(), order=asked.tie_break(table))


def _refuse_of_number(query: Query, change: Change, function: Function | None) -> None:
    """Raises a `Refusal` where another figure, or an order, of a mere number of groups is asked for."""
    measures = change.figures or change.per_unit or change.asked.says("per_entity")
    must_have(not measures and function in (None, "count"), Text("可以替换的指标", "figure to replace"))
    orders = change.ranking is not None or change.direction or change.parts.limits
    must_have(not orders, Text("可以排序的多行结果", "rows that could be put in order"))
    if change.restricts:
        refuse_rows_in_part(query)


def _total_of_shown(query: Query, change: Change) -> Function | None:
    """`sum` where the follow-up only asks for the sum of the figures of the groups before; else None."""
    asked, figures = change.asked, change.figures
    if "these" not in change.cues or not change.is_figure_alone or not query.dimensions or len(figures) != 1:
        return None
    figure = figures[0]
    said = figure.function is None and asked.question.words[figure.position].mark.means("sum")
    if not said and not (figure.function == "sum" and asked.measure(figure) in query.measures):
        return None
    change.asked = asked.with_parts(figures=(), bare=())
    return "sum"


def _say_value(query: Query, change: Change) -> None:
    """Takes "the highest salary" for a figure where nobody is asked who has it."""
    ranking, question = change.ranking, change.asked.question
    if ranking is None or ranking.figure is None or ranking.limit or ranking.is_order or question.has("which", "top"):
        return
    link = ranking.figure.link
    others = change.asked.tables or change.parts.columns or change.parts.groups or ranking.figure.function
    if link is None or others or not question.is_measure(link) or not query.measures:
        return
    figure = Figure("max" if ranking.descending else "min", link, position=ranking.figure.position)
    change.asked = change.asked.with_parts(rankings=(), figures=(*change.parts.figures, figure))


def _measured(query: Query, change: Change) -> Query:
    measures = [_as_before(query, change.asked, figure) for figure in change.figures]
    if not query.measures:
        return _listed_figures(query, change, measures)
    if "add" in change.cues:
        measures = [*query.measures, *measures]
    elif any(measure.is_share and not measure.share_of for measure in query.measures):
        measures += [replace(measure, is_share=True) for measure in measures]
    new = measures[0].table
    if new != query.measures[0].table:
        query = carried(change.asked, query, new, change.notes)
    return _reordered(replace(query, base=new, measures=tuple(dict.fromkeys(measures))), query)


def _as_before(query: Query, asked: Asked, figure: Figure) -> Measure:
    """The measure of a figure; if it names no function, it gets that of the earlier figure where that makes sense."""
    measure = asked.measure(figure)
    old = query.measures[0] if query.measures else None
    if old is None or old.function == "metric" or figure.function or figure.per_unit or figure.link is None:
        return measure
    if old.per is not None and old.per.bucket is not None and measure.function == "sum":
        return replace(measure, per=Dimension(measure.table, asked.date_column(measure.table), old.per.bucket))
    own = asked.measure(Figure(None, column_link(old.table, old.column))) if old.column else old
    said = old.function if old.column and old.function != own.function else None
    return replace(measure, function=said) if said in ("avg", "min", "max", "sum", "median") else measure


def _listed_figures(query: Query, change: Change, measures: list[Measure]) -> Query:
    """The query for figures of listed things: their own columns are shown, those of tables below are added up."""
    question = change.asked.question
    above = question.graph.above(query.base)
    plain = all(figure.function is None and figure.link is not None for figure in change.figures)
    is_own = all(measure.table in above for measure in measures)
    if plain and is_own:
        return _showing(query, change, [ref(figure.link) for figure in change.figures if figure.link is not None])
    refuse_rows_in_part(query)
    table = measures[0].table
    each = question.facts(query.base).is_entity and query.base in question.graph.above(table)
    if not is_own and not each:
        raise unused_words([question.words[figure.position].mark.text for figure in change.figures])
    query = _measuring(query, measures, () if is_own else (Dimension(query.base),))
    return replace(query, order=group_order(query))


def _measuring(query: Query, measures: Sequence[Measure], dimensions: tuple[Dimension, ...] = ()) -> Query:
    """The query with these figures instead of what it shows, without a limit and an order."""
    once = tuple(dict.fromkeys(measures))
    return replace(
        query, base=once[0].table, columns=(), dimensions=dimensions, measures=once, order=(), limit=None,
        distinct=False, top_per=(),
    )  # fmt: skip


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
    fits = len(having) == len(before.having)
    must_have(fits, Text("适用于新指标的比较条件", "comparison that fits the new figure"))
    return replace(query, order=order, having=having)


# ----------------------------------------------------------------------------------------------------------- functions


def _extreme(query: Query, change: Change) -> Function | None:
    """The function that `最高呢` means after a total: the greatest single value, as there are no groups to rank."""
    ranking = change.ranking
    single = len(query.measures) == 1 and not query.dimensions and query.measures[0].column is not None
    if not single or ranking is None or change.parts.groups or ranking.figure or ranking.limit or ranking.hint:
        return None
    change.asked = change.asked.with_parts(rankings=())
    return "max" if ranking.descending else "min"


def _with_function(query: Query, change: Change, function: Function) -> Query:
    refuse_part(query, change.cues | change.ties, function)
    if not query.measures:
        if change.asks_number:
            return counting(query)  # `一共多少`
        columns = [one.column for one in query.order if one.column is not None]
        figures = change.figures_among(columns) or change.figures_among(query.columns)
        if len(figures) != 1:
            raise change.no_measure(query)
        return _measuring(query, [Measure(function, figures[0].table, figures[0].column)])
    if function == "sum" and all(one.function in ("sum", "count") for one in query.measures):
        return _measuring(query, [measure for measure in query.measures if not measure.is_share])
    if function == "avg" and query.dimensions and _is_count(query.measures[0]):
        return _measuring(query, [replace(query.measures[0], per=query.dimensions[-1])], query.dimensions[:-1])
    if any(_is_count(measure) for measure in query.measures):
        raise change.no_measure(query)
    return _turned(query, lambda measure: replace(measure, function=function, per=None))


def _turned(query: Query, turned: Callable[[Measure], Measure]) -> Query:
    order = tuple(replace(one, measure=turned(one.measure)) if one.measure else one for one in query.order)
    return replace(query, measures=tuple(dict.fromkeys(map(turned, query.measures))), order=order)


def _is_count(measure: Measure) -> bool:
    return measure.column is None or measure.function == "count_distinct"


def _counted(query: Query, change: Change) -> Query:
    """The query for "how many": counts rows of a listing, or groups that were selected."""
    if change.restricts if query.dimensions else "these" in change.cues | change.ties:
        refuse_rows_in_part(query)
    if not query.measures:
        return counting(query)
    is_count = any(measure.function in ("count", "count_distinct") for measure in query.measures)
    picked = query.dimensions and (query.having or change.parts.thresholds or "these" in change.cues)
    if query.counts_rows or (is_count and not picked and (change.restricts or not query.dimensions)):
        return query
    must_have(query.dimensions and (picked or not is_count), Text("可以计数的对象", "things to count"))
    return counting_groups(query)


def counting_groups(query: Query) -> Query:
    """The query for the number of groups that were shown."""
    if query.limit is not None:  # which ones are the first few makes no difference, but that they are few
        return replace(query, counts_rows=True)
    return replace(query, counts_rows=True, order=(), top_per=())


def counting(query: Query) -> Query:
    """The query for the number of rows that a listing shows."""
    measure = Measure("count", query.base)
    if query.distinct and len(query.columns) == 1:
        measure = Measure("count_distinct", query.columns[0].table, query.columns[0].column)
    return _measuring(query, [measure], query.dimensions)


def _averaged_per_thing(query: Query, change: Change) -> Query:
    """The query for the average of a figure over things: `平均每个服务区呢`."""
    said = [one.dimension for one in change.parts.groups]
    said += [Dimension(one.link.table) for one in change.asked.tables]
    things = said or [one for one in query.dimensions if one.column is None]
    may_average = len(query.measures) == 1 and query.measures[0].per is None and len(things) == 1 and not query.having
    must_have(may_average, Text("可以按它求平均的单个指标", "single figure to average so"))
    change.asked = change.asked.with_parts(groups=())
    average = replace(query.measures[0], per=things[0])
    return _measuring(query, [average], tuple(one for one in query.dimensions if one != things[0]))


def _averaged_over(query: Query, change: Change) -> Query:
    """The query for the average of totals over periods: `日均呢`."""
    is_single = len(query.measures) == 1 and query.measures[0].per is None
    must_have(is_single, Text("可以求平均的单个指标", "single figure to average"))
    table = query.measures[0].table
    per = Dimension(table, change.asked.date_column(table), change.per_unit)  # type: ignore[arg-type]
    turned = _turned(query, lambda one: replace(one, function="count" if one.column is None else "sum", per=per))
    return turned if query.dimensions else replace(turned, order=())


# -------------------------------------------------------------------------------------------------- columns and things


def _with_columns(query: Query, change: Change) -> Edited:
    """The query with the columns that are named: beside the names of what is listed, or as groups of figures."""
    asked, said = change.asked, change.parts.columns
    if query.measures:
        several = len({measure.table for measure in query.measures}) > 1
        if several and "add" in change.cues:
            raise not_combinable()  # figures of several tables are joined on their groups, which may be empty
        change.cues |= {"replace"}
        return query, [column_dimension(asked.question, one.link) for one in said]
    texts = [asked.question.words[one.at].mark.text for one in said]
    columns = [ref_ for one, text in zip(said, texts, strict=True) for ref_ in asked.shown_column(one.link, text)]
    references = [one.link.column in asked.question.facts(one.link.table).reference_columns for one in said]
    if "only" in change.cues and any(references):
        raise unused_words(texts)  # some of the rows
    return _showing(query, change, columns), []


def _showing(query: Query, change: Change, columns: list[ColumnRef]) -> Query:
    asked = change.asked
    own = [] if "only" in change.cues else asked.names_of(query.base)
    shown = tuple(dict.fromkeys([*(query.columns if "add" in change.cues else own), *columns]))
    above = asked.question.graph.above(query.base)
    if any(column.table not in above for column in shown):
        raise change.unplaced(change.parts.columns)
    return replace(query, columns=shown, distinct=False, order=query.order or asked.tie_break(query.base))


def _with_thing(query: Query, change: Change) -> Edited:
    """The query for a table that is named alone: it is listed, counted or grouped by, unless the query has it."""
    asked, tables = change.asked, change.asked.tables
    if not tables or change.lifts:
        return query, []
    key, graph = tables[-1].link.table, asked.question.graph
    if change.restricts or change.parts.groups or change.function or key in shown_things(query):
        _refuse_strangers(query, change)
        return query, []
    if not query.measures:
        return _listing(query, change, key), []
    measured = query.measures[0].table
    if key in graph.above(measured) and key != measured:
        kept = [one for one in query.dimensions if one.bucket]
        change.cues |= {"replace"}
        return query, [*kept, Dimension(key)] if len(kept) < len(query.dimensions) else [Dimension(key)]
    if key != measured and (query.counts_rows or any(one.column is not None for one in query.measures)):
        raise change.unplaced(tables)
    moved = replace(carried(asked, query, key, change.notes), measures=(Measure("count", key),))
    return _reordered(moved, query), []


def _refuse_strangers(query: Query, change: Change) -> None:
    parts, graph = change.parts, change.asked.question.graph
    known = touched(query) | {one.column.table for one in parts.conditions} | {one.table for one in parts.related}
    reachable = known if parts.groups else {key for table in known for key in graph.above(table)}
    strangers = [one for one in change.asked.tables if one.link.table not in reachable]
    if strangers:
        raise change.unplaced(strangers)


def _listing(query: Query, change: Change, key: TableKey) -> Query:
    """The query for rows of another table, under the same conditions."""
    asked, fitting = change.asked, ((), change.asked.tie_break(query.base))
    must_have(query.order in fitting, Text("可以沿用的排序", f"order that fits {named(asked.question, key).en}"))
    must_have(not (query.related or query.either), Text("可以沿用的限定", "conditions that could be kept"))
    names = asked.names_of(key) if {*query.columns} <= {*asked.names_of(query.base)} else []
    columns = names or [ColumnRef(key, name) for name in asked.all_columns(key)]
    kept, order = conditions_for(asked, query, key, change.notes), asked.tie_break(key)
    return Query(key, tuple(columns), conditions=kept, order=order, limit=query.limit, with_deleted=query.with_deleted)
