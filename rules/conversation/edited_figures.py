"""Apply a follow-up's figures, counts, columns and things to the query before it."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from common.meanings import TableKey
from common.text import Text
from rules.composing.asked import Asked
from rules.composing.measuring import group_order
from rules.composing.retargeting import name_of, retargeted, retargeted_conditions
from rules.conversation.change import Change, must_have, refuse_part, refuse_rows_in_part
from rules.linking.moments import Unit
from rules.query.query import (
    ColumnRef,
    Dimension,
    Figure,
    Function,
    Measure,
    Query,
    ref,
    shown_tables,
    touched,
)
from rules.query.refusals import not_combinable, unused_words
from rules.reading.implied import column_dimension
from rules.schema.links import column_link

Edited = tuple[Query, list[Dimension]]
"""A query, and the groups that it is to have."""


# ------------------------------------------------------------------------------
# figures


def with_figures(query: Query, change: Change) -> Edited:
    """Return the query with the follow-up's figures, columns or things, and the groups for them."""
    _read_extreme_value(query, change)
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
    """Return the query for the rows, or the groups, that were counted or measured."""
    if query.counts_rows:
        return replace(query, counts_rows=False, order=query.order or group_order(query))

    has_rows = query.measures and not (query.dimensions or query.having)
    must_have(has_rows, Text("可以列出的明细", "rows to list"))
    asked, table = change.asked, query.measures[0].table
    columns = tuple(ColumnRef(table, name) for name in asked.all_columns(table))
    return replace(query, base=table, columns=columns, measures=(), order=asked.tie_break(table))


def _refuse_of_number(query: Query, change: Change, function: Function | None) -> None:
    """Refuse another figure, or an order, of a mere number of groups."""
    other_figures = (change.figures, change.per_unit, change.asked.says("per_entity"))
    keeps_count = function in (None, "count") and not any(other_figures)
    must_have(keeps_count, Text("可以替换的指标", "figure to replace"))
    orders = (change.ranking, change.direction, change.parts.limits)
    must_have(not any(orders), Text("可以排序的多行结果", "rows that could be put in order"))
    if change.restricts:
        refuse_rows_in_part(query)


def _total_of_shown(query: Query, change: Change) -> Function | None:
    """Return `sum` where the follow-up only asks to add up the figures of the groups before; else
    None.
    """
    asked, figures = change.asked, change.figures
    if "these" not in change.cues or not query.dimensions:
        return None
    if not change.is_figure_alone or len(figures) != 1:
        return None

    figure = figures[0]
    if figure.function is None:
        is_sum = asked.question.words[figure.position].mark.means("sum")
    else:
        is_sum = figure.function == "sum" and asked.measure(figure) in query.measures

    if not is_sum:
        return None

    change.asked = asked.with_parts(figures=(), bare=())
    return "sum"


def _read_extreme_value(query: Query, change: Change) -> None:
    """Take "the highest salary" for a figure where nobody is asked who has it."""
    ranking, asked = change.ranking, change.asked
    if ranking is None or ranking.figure is None:
        return

    asks_who = (ranking.limit, ranking.is_order, asked.question.has("which", "top"))
    others = (asked.tables, change.parts.columns, change.parts.groups)
    if not query.measures or any((*asks_who, *others)):
        return

    link = ranking.figure.link
    if link is None or ranking.figure.function:
        return
    if not asked.question.is_measure(link):
        return

    function: Function = "max" if ranking.descending else "min"
    figure = Figure(function, link, position=ranking.figure.position)
    change.asked = asked.with_parts(rankings=(), figures=(*change.parts.figures, figure))


def _measured(query: Query, change: Change) -> Query:
    """Return the query with the follow-up's figures, in the place of its own or beside them."""
    measures = [_as_before(query, change.asked, figure) for figure in change.figures]
    if not query.measures:
        return _listed_figures(query, change, measures)
    if "add" in change.cues:
        measures = [*query.measures, *measures]
    elif any(measure.is_share and not measure.share_of for measure in query.measures):
        measures += [replace(measure, is_share=True) for measure in measures]

    table = measures[0].table
    if table != query.measures[0].table:
        query = retargeted(change.asked, query, table, change.notes)

    measured = replace(query, base=table, measures=tuple(dict.fromkeys(measures)))
    return _reordered(measured, query)


_KEPT_FUNCTIONS = ("avg", "min", "max", "sum", "median")


def _as_before(query: Query, asked: Asked, figure: Figure) -> Measure:
    """Return the measure of a figure, with the function of the earlier one if it names none
    itself.
    """
    measure = asked.measure(figure)
    if figure.link is None or figure.function or figure.per_unit:
        return measure
    if not query.measures or query.measures[0].function == "metric":
        return measure

    old = query.measures[0]
    unit = old.per.bucket if old.per is not None else None
    if unit is not None and measure.function == "sum":
        date_column = asked.date_column(measure.table)
        return replace(measure, per=Dimension(measure.table, date_column, unit))

    if old.column is None or old.function not in _KEPT_FUNCTIONS:
        return measure

    default = asked.measure(Figure(None, column_link(old.table, old.column)))
    if old.function == default.function:
        return measure  # nobody has asked for this function

    return replace(measure, function=old.function)


def _listed_figures(query: Query, change: Change, measures: list[Measure]) -> Query:
    """Return the query for figures of listed things.

    Their own columns are shown, those of tables below are added up.
    """
    question, base = change.asked.question, query.base
    above = question.graph.above(base)
    is_own = all(measure.table in above for measure in measures)
    links = [figure.link for figure in change.figures if figure.function is None]
    columns = [ref(link) for link in links if link is not None]
    if is_own and len(columns) == len(change.figures):
        return _showing(query, change, columns)

    refuse_rows_in_part(query)
    if is_own:
        measured = _measuring(query, measures)
        return replace(measured, order=group_order(measured))

    is_per_thing = question.facts(base).is_entity and base in question.graph.above(
        measures[0].table
    )
    if not is_per_thing:
        raise unused_words([question.words[figure.position].mark.text for figure in change.figures])

    measured = _measuring(query, measures, (Dimension(base),))
    return replace(measured, order=group_order(measured))


def _measuring(
    query: Query, measures: Sequence[Measure], dimensions: tuple[Dimension, ...] = ()
) -> Query:
    """Return the query with these figures instead of its columns, without a limit and an order."""
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


def _reordered(query: Query, before: Query) -> Query:
    """Return the query, ordered by its first figure if it was ordered by one that is gone.

    Raises:
        Refusal: a comparison is with a figure that is gone.
    """
    having = tuple(one for one in query.having if one.measure in query.measures)
    fits = len(having) == len(before.having)
    must_have(fits, Text("适用于新指标的比较条件", "comparison that fits the new figure"))
    if not query.dimensions:
        return replace(query, order=(), having=having)

    order = []
    for key in query.order:
        is_gone = key.measure is not None and key.measure not in query.measures
        order.append(replace(key, measure=query.measures[0]) if is_gone else key)

    return replace(query, order=tuple(order), having=having)


# ------------------------------------------------------------------------------
# functions


def _extreme(query: Query, change: Change) -> Function | None:
    """Return the function that `最高呢` means after a total: the greatest single value.

    There are no groups to rank then; None if there are.
    """
    if query.dimensions or len(query.measures) != 1:
        return None
    if query.measures[0].column is None:
        return None

    ranking = change.ranking
    if ranking is None:
        return None
    if any((ranking.figure, ranking.limit, ranking.hint, change.parts.groups)):
        return None

    change.asked = change.asked.with_parts(rankings=())
    return "max" if ranking.descending else "min"


def _with_function(query: Query, change: Change, function: Function) -> Query:
    """Return the query with an aggregate that names no column, over its rows or of its figures."""
    refuse_part(query, change.cues | change.ties, function)
    if not query.measures:
        return _aggregated_rows(query, change, function)

    first = query.measures[0]
    functions = {measure.function for measure in query.measures}
    if function == "sum" and functions <= {"sum", "count"}:
        totals = [measure for measure in query.measures if not measure.is_share]
        return _measuring(query, totals)

    averages_counts = function == "avg" and _is_count(first)
    if averages_counts and query.dimensions:
        *groups, last_group = query.dimensions
        per_group = replace(first, per=last_group)
        return _measuring(query, [per_group], tuple(groups))

    if any(map(_is_count, query.measures)):
        raise change.no_measure(query)

    return _with_each_measure(query, lambda one: replace(one, function=function, per=None))


def _aggregated_rows(query: Query, change: Change, function: Function) -> Query:
    """Return the query for the aggregate of the only figure that listed rows are ordered by or
    show.
    """
    if change.asks_number:
        return counting(query)  # `一共多少`

    ordered_by = [one.column for one in query.order if one.column is not None]
    figures = change.figures_among(ordered_by) or change.figures_among(query.columns)
    if len(figures) != 1:
        raise change.no_measure(query)

    return _measuring(query, [Measure(function, figures[0].table, figures[0].column)])


def _with_each_measure(query: Query, edit: Callable[[Measure], Measure]) -> Query:
    """Return the query with `edit` applied to its measures and to those that it is ordered by."""
    measures = tuple(dict.fromkeys(map(edit, query.measures)))
    order = []
    for key in query.order:
        order.append(replace(key, measure=edit(key.measure)) if key.measure else key)

    return replace(query, measures=measures, order=tuple(order))


_COUNTS = ("count", "count_distinct")
_THINGS_TO_COUNT = Text("可以计数的对象", "things to count")


def _is_count(measure: Measure) -> bool:
    """Tell whether it counts rows, or values of any kind."""
    return measure.column is None or measure.function == "count_distinct"


def _counted(query: Query, change: Change) -> Query:
    """Return the query for "how many": counts rows of a listing, or groups that were selected."""
    means_shown = "these" in change.cues | change.ties
    needs_all = change.restricts if query.dimensions else means_shown
    if needs_all:
        refuse_rows_in_part(query)
    if not query.measures:
        return counting(query)
    if query.counts_rows:
        return query

    is_count = any(measure.function in _COUNTS for measure in query.measures)
    if not query.dimensions:
        must_have(is_count, _THINGS_TO_COUNT)
        return query

    selection = (query.having, change.parts.thresholds, "these" in change.cues)
    if is_count and not any(selection):
        must_have(change.restricts, _THINGS_TO_COUNT)
        return query

    return counting_groups(query)


def counting_groups(query: Query) -> Query:
    """Return the query for the number of groups that were shown."""
    if query.limit is not None:
        # The limit bounds the number; in which order the groups stand makes no difference.
        return replace(query, counts_rows=True)

    return replace(query, counts_rows=True, order=(), top_per=())


def counting(query: Query) -> Query:
    """Return the query for the number of rows that a listing shows."""
    measure = Measure("count", query.base)
    if query.distinct and len(query.columns) == 1:
        only = query.columns[0]
        measure = Measure("count_distinct", only.table, only.column)

    return _measuring(query, [measure], query.dimensions)


def _averaged_per_thing(query: Query, change: Change) -> Query:
    """Return the query for the average of a figure over things: `平均每个服务区呢`."""
    named_groups = [group.dimension for group in change.parts.groups]
    named_tables = [Dimension(table.link.table) for table in change.asked.tables]
    shown = [dimension for dimension in query.dimensions if dimension.column is None]
    things = [*named_groups, *named_tables] or shown
    is_single_thing = len(things) == 1 and not query.having
    may_average = is_single_thing and _is_single_total(query)
    must_have(may_average, Text("可以按它求平均的单个指标", "single figure to average so"))
    change.asked = change.asked.with_parts(groups=())
    thing = things[0]
    average = replace(query.measures[0], per=thing)
    others = tuple(dimension for dimension in query.dimensions if dimension != thing)
    return _measuring(query, [average], others)


def _is_single_total(query: Query) -> bool:
    """Tell whether the query has one figure, which is no average of totals yet."""
    return len(query.measures) == 1 and query.measures[0].per is None


def _averaged_over(query: Query, change: Change) -> Query:
    """Return the query for the average of totals over periods: `日均呢`."""
    must_have(_is_single_total(query), Text("可以求平均的单个指标", "single figure to average"))
    table = query.measures[0].table
    unit = cast(Unit, change.per_unit)
    per = Dimension(table, change.asked.date_column(table), unit)

    def averaged(total: Measure) -> Measure:
        function: Function = "count" if total.column is None else "sum"
        return replace(total, function=function, per=per)

    averaging = _with_each_measure(query, averaged)
    if query.dimensions:
        return averaging

    return replace(averaging, order=())


# ------------------------------------------------------------------------------
# columns and things


def _with_columns(query: Query, change: Change) -> Edited:
    """Return the query with the columns that are named.

    They are shown beside the names of what is listed, or group the figures.
    """
    asked, columns = change.asked, change.parts.columns
    if query.measures:
        tables = {measure.table for measure in query.measures}
        if len(tables) > 1 and "add" in change.cues:
            # Figures of several tables are joined on their groups, which may be empty
            raise not_combinable()

        change.cues |= {"replace"}
        return query, [column_dimension(asked.question, column.link) for column in columns]

    shown: list[ColumnRef] = []
    texts, has_reference = [], False
    for column in columns:
        text = asked.question.words[column.at].mark.text
        texts.append(text)
        shown += asked.shown_column(column.link, text)
        if column.link.column in asked.question.facts(column.link.table).reference_columns:
            has_reference = True

    if has_reference and "only" in change.cues:
        raise unused_words(texts)  # some of the rows

    return _showing(query, change, shown), []


def _showing(query: Query, change: Change, columns: list[ColumnRef]) -> Query:
    """Return the query for a list with these columns: beside its own, its names, or nothing
    else.
    """
    asked = change.asked
    if "add" in change.cues:
        beside = [*query.columns]
    elif "only" in change.cues:
        beside = []
    else:
        beside = asked.names_of(query.base)

    shown = tuple(dict.fromkeys([*beside, *columns]))
    above = asked.question.graph.above(query.base)
    if any(column.table not in above for column in shown):
        raise change.unplaced(change.parts.columns)

    order = query.order or asked.tie_break(query.base)
    return replace(query, columns=shown, distinct=False, order=order)


def _with_thing(query: Query, change: Change) -> Edited:
    """Return the query for a table that is named alone.

    It is listed, counted or grouped by, unless the query has it.
    """
    asked, tables = change.asked, change.asked.tables
    if not tables or change.lifts:
        return query, []

    key = tables[-1].link.table
    other_changes = (change.restricts, change.parts.groups, change.function)
    if any(other_changes) or key in shown_tables(query):
        _refuse_strangers(query, change)
        return query, []

    if not query.measures:
        return _listing(query, change, key), []

    measured = query.measures[0].table
    if key != measured:
        if key in asked.question.graph.above(measured):
            change.cues |= {"replace"}
            return query, _grouped_by_thing(query, key)

        measures_columns = any(measure.column is not None for measure in query.measures)
        if query.counts_rows or measures_columns:
            raise change.unplaced(tables)

    moved = replace(retargeted(asked, query, key, change.notes), measures=(Measure("count", key),))
    return _reordered(moved, query), []


def _grouped_by_thing(query: Query, key: TableKey) -> list[Dimension]:
    """Return the groups by a table: in the place of those that are no periods, else of all."""
    periods = [dimension for dimension in query.dimensions if dimension.bucket]
    if len(periods) == len(query.dimensions):
        return [Dimension(key)]

    return [*periods, Dimension(key)]


def _refuse_strangers(query: Query, change: Change) -> None:
    """Refuse tables that have to do with nothing in the query or the follow-up's conditions."""
    parts, graph = change.parts, change.asked.question.graph
    restricted = {condition.column.table for condition in parts.conditions}
    related = {one.table for one in parts.related}
    in_reach = touched(query) | restricted | related
    if not parts.groups:
        in_reach = set(itertools.chain.from_iterable(map(graph.above, in_reach)))

    strangers = [table for table in change.asked.tables if table.link.table not in in_reach]
    if strangers:
        raise change.unplaced(strangers)


def _listing(query: Query, change: Change, key: TableKey) -> Query:
    """Return the query for rows of another table, under the same conditions."""
    asked = change.asked
    name = name_of(asked.question, key)
    keeps_order = query.order in ((), asked.tie_break(query.base))
    must_have(keeps_order, Text("可以沿用的排序", f"order that fits {name.en}"))
    is_plain = not query.related and not query.either
    must_have(is_plain, Text("可以沿用的限定", "conditions that could be kept"))
    shows_only_names = {*query.columns} <= {*asked.names_of(query.base)}
    names = asked.names_of(key) if shows_only_names else []
    columns = names or [ColumnRef(key, column) for column in asked.all_columns(key)]
    return Query(
        key,
        tuple(columns),
        conditions=retargeted_conditions(asked, query, key, change.notes),
        order=asked.tie_break(key),
        limit=query.limit,
        with_deleted=query.with_deleted,
    )
