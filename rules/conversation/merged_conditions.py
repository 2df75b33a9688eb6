"""Merges conditions of a follow-up into the earlier query: one on the same column replaces, others are added."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import cast

from common.text import Text
from rules.conversation.follow_ups import Change
from rules.linking.dates import Period, Unit
from rules.planning.carrying import listed, named
from rules.planning.event_dates import resolved
from rules.planning.measuring import group_order
from rules.planning.plan import Plan
from rules.planning.restricting import with_conditions
from rules.query.conditions import Span, Threshold
from rules.query.query import ColumnRef, Condition, Dimension, Operand, Query, Related
from rules.query.refusals import not_combinable, nothing_to_change
from rules.schema.links import column_link
from rules.schema.schema import TableKey, is_year, kind_of


def with_restrictions(query: Query, change: Change) -> Query:
    """The query with the follow-up's conditions, and with those of its own that the follow-up keeps.

    Raises:
        Refusal: a condition can't be applied, or there is none to remove or to move.
    """
    plan = change.plan
    if change.cues & {"all", "all:dates"}:
        query = _without(query, change)
    if change.shift is not None:
        query = _shifted(query, plan, *change.shift)
        if plan.asks.compare:
            return _by_period(query, plan)
    if not change.restricts:
        return query
    for span in plan.filters.spans:
        _say_column(query, plan, span)
    for threshold in plan.filters.thresholds:
        _say_figure(query, threshold)
    compared = plan.asks.compare and _compared(query, plan, plan.filters.spans)
    plan.filters.with_deleted |= query.with_deleted
    limit, plan.asks.limit = plan.asks.limit, None
    wider = with_conditions(plan, replace(query, having=()))
    plan.asks.limit = limit
    if plan.asks.compare and len(plan.filters.spans) == 1 and len(plan.filters.spans[0].periods) == 1 and not compared:
        raise nothing_to_change(Text("可以对比的时间范围", "period to compare with"))
    adds = "add" in change.cues or compared
    merged = _merged(plan, query, wider, adds=bool(adds), narrows=bool(change.cues & {"only", "these"}))
    return _by_period(merged, plan) if compared else merged


# ----------------------------------------------------------------------------------------------------------- together


def _merged(plan: Plan, before: Query, after: Query, *, adds: bool, narrows: bool) -> Query:
    """`after`, which has the conditions of both, with only those of each column that hold now."""
    new = [one for one in after.conditions if one not in before.conditions]
    kept = [one for one in after.conditions if one in before.conditions]
    measures = after.measures
    for new_one in new:
        if any(one.column == new_one.column for measure in measures for one in measure.share_of):
            parts = [tuple(_replaced(measure.share_of, new_one, adds=adds)) for measure in measures]
            measures = tuple(replace(one, share_of=part) for one, part in zip(measures, parts, strict=True))
            continue
        if not narrows and not adds and not any(_same_column(one, new_one) for one in kept):
            kept = _without_narrower(plan, kept, new_one)
        kept = _replaced(kept, new_one, adds=adds)
    new_related = [one for one in after.related if one not in before.related]
    sideways = {one.table for one in before.dimensions} - plan.reading.graph.above(before.base).keys()
    if new_related and sideways:
        raise not_combinable()  # it would not be clear whose rows are meant
    measured = {one.measure for one in after.having}
    having = (*(one for one in before.having if one.measure not in measured), *after.having)
    order = () if after.counts_rows else before.order or after.order
    related = _related(before.related, new_related)
    return replace(after, measures=measures, conditions=tuple(kept), related=related, having=having, order=order)


def _same_column(first: Condition, second: Condition) -> bool:
    return (first.column.table, first.column.column) == (second.column.table, second.column.column)


_POSITIVE, _NEGATIVE = ("=", "in"), ("!=", "not in")


def _replaced(before: Sequence[Condition], new: Condition, *, adds: bool) -> list[Condition]:
    """The conditions with `new`, which replaces those on its column or joins them."""
    same = [one for one in before if _same_column(one, new)]
    place = before.index(same[0]) if same else len(before)
    others = [one for one in before if one not in same]
    return [*others[:place], *_together(same, new, adds=adds), *others[place:]]


def _together(same: list[Condition], new: Condition, *, adds: bool) -> list[Condition]:
    """The conditions on one column after `new` was said."""
    excluded = new.operator in _NEGATIVE
    for one in same:
        if excluded and one.operator in _POSITIVE:
            left = tuple(operand for operand in one.operands if operand not in new.operands)
            return [_among(one, left)] if left else [new]
        if excluded and one.operator in _NEGATIVE:
            both = tuple(dict.fromkeys((*one.operands, *new.operands)))
            return [replace(new, operator="not in" if len(both) > 1 else "!=", operands=both)]
        if adds and one.operator in _POSITIVE and new.operator in _POSITIVE:
            return [_among(one, tuple(dict.fromkeys((*one.operands, *new.operands))))]
        if adds and one.operator == new.operator == "during":
            return [replace(new, operands=tuple(dict.fromkeys((*one.operands, *new.operands))))]
    return [new]


def _among(condition: Condition, operands: tuple[object, ...]) -> Condition:
    return replace(condition, operator="=" if len(operands) == 1 else "in", operands=operands)  # type: ignore[arg-type]


def _without_narrower(plan: Plan, kept: list[Condition], new: Condition) -> list[Condition]:
    """Removes a condition on one thing where a wider one is new: `嘉兴服务区`, then `浙江的呢`."""
    for one in kept:
        facts = plan.reading.facts(one.column.table)
        single = one.operator in _POSITIVE and one.column.column in (*facts.display, *facts.key)
        if single and new.column.table in plan.reading.graph.above(one.column.table) and new.operator in _POSITIVE:
            names = "、".join(map(str, one.operands))
            plan.warnings.append(Text(f"不再限定“{names}”。", f'No longer restricted to "{names}".'))
            return [other for other in kept if other != one]
    return kept


def _related(before: tuple[Related, ...], new: list[Related]) -> tuple[Related, ...]:
    """The related tables; a new one with conditions on the same columns replaces an earlier one."""

    def about(one: Related) -> tuple[TableKey, frozenset[ColumnRef]]:
        return one.table, frozenset(condition.column for condition in one.conditions)

    replaced = set(map(about, new))
    return (*(one for one in before if about(one) not in replaced), *new)


# --------------------------------------------------------------------------------------------------------------- dates


_OF_YEARS = ("=", "in", ">=", "<", ">", "<=", "between")


def _date_columns(query: Query, plan: Plan) -> list[ColumnRef]:
    """The columns of the earlier periods."""
    found = []
    for condition in query.conditions:
        column = plan.reading.schema.column(condition.column.table, condition.column.column)
        dated = kind_of(column) in ("date", "timestamp") and condition.operator in ("during", "not during")
        if dated or (is_year(column) and condition.operator in _OF_YEARS):
            found.append(condition.column)
    return list(dict.fromkeys(found))


def _say_column(query: Query, plan: Plan, span: Span) -> None:
    """Gives a period without a column that of the earlier period."""
    columns = _date_columns(query, plan)
    if span.link is None and len(columns) == 1 and columns[0].via is None:
        span.link = column_link(columns[0].table, columns[0].column)


def _say_figure(query: Query, threshold: Threshold) -> None:
    """Gives a comparison the measure of the shown figure, if it names that figure or none."""
    link = threshold.link
    shown = [one for one in query.measures if link and (one.table, one.column) == (link.table, link.column)]
    if shown and threshold.function is None and shown[0].function in ("avg", "min", "max"):
        threshold.function = shown[0].function
    first = query.measures[0] if query.measures else None
    if first and first.function == "count_distinct" and link is None and threshold.table is None and first.column:
        threshold.link, threshold.function = column_link(first.table, first.column), "count_distinct"
        return
    counts = bool(query.measures) and query.measures[0].column is None and bool(query.dimensions)
    if counts and link is None and threshold.table is None and not threshold.hint:
        threshold.table = query.measures[0].table
    compared = {one.column for one in query.conditions if one.operator in _COMPARISONS}
    if not query.measures and link is None and threshold.table is None and not threshold.hint and len(compared) == 1:
        column = compared.pop()
        threshold.link = replace(column_link(column.table, column.column), derived="age" if column.is_age else None)


_COMPARISONS = ("between", ">", ">=", "<", "<=")


def _compared(query: Query, plan: Plan, spans: list[Span]) -> bool:
    """Whether the follow-up compares its period with the earlier one."""
    return len(spans) == 1 and len(_date_columns(query, plan)) == 1 and bool(query.measures)


def _by_period(query: Query, plan: Plan) -> Query:
    """The query grouped by the unit that both periods have."""
    periods = [one for condition in query.conditions for one in condition.operands if isinstance(one, Period)]
    grains = {period.grain for period in periods}
    grain = grains.pop() if len(grains) == 1 else None
    if grain is None:
        raise nothing_to_change(Text("与之可比的时间范围", "period that could be compared with it"))
    unit = resolved(plan, Dimension(("", ""), None, grain), query.measures[0].table)
    query = replace(query, dimensions=tuple(dict.fromkeys((*query.dimensions, unit))))
    return replace(query, order=group_order(query))


def _shifted(query: Query, plan: Plan, unit: str, count: int) -> Query:
    """The query with every period moved: `去年同期`."""
    columns = _date_columns(query, plan)
    if not columns:
        raise nothing_to_change(Text("时间范围", "period"))
    try:
        moved = {one: _moved(one, unit, count) for one in query.conditions if one.column in columns}
    except (ValueError, OverflowError) as failure:
        raise nothing_to_change(Text("可以这样移动的时间范围", "period that can be moved so")) from failure
    if plan.asks.compare:
        moved = {one: replace(one, operands=(*one.operands, *other.operands)) for one, other in moved.items()}
    return replace(query, conditions=tuple(moved.get(one, one) for one in query.conditions))


def _moved(condition: Condition, unit: str, count: int) -> Condition:
    """The condition with its periods, or the numbers of its years, moved.

    Raises:
        OverflowError, ValueError: the calendar ends before, or years can't be moved by this unit.
    """

    def moved(operand: Operand) -> Operand:
        if isinstance(operand, Period):
            return _moved_period(operand, unit, count)
        if isinstance(operand, Decimal) and unit in ("year", "period"):
            return operand + count
        raise ValueError(unit)

    return replace(condition, operands=tuple(map(moved, condition.operands)))


def _moved_period(period: Period, unit: str, count: int) -> Period:
    steps = _length(period) if unit == "period" else [(cast(Unit, unit), 1)]
    ends = [period.start, period.end]
    for each, times in steps:
        ends = [end.shifted(each, times * count) if end is not None else None for end in ends]
    return Period(ends[0], ends[1], period.grain)


def _length(period: Period) -> list[tuple[Unit, int]]:
    """The length of the period, in units by which it can be moved.

    Raises:
        ValueError: it is open, or only one of its ends depends on today's date.
    """
    start, end = period.start, period.end
    if period.grain is not None:
        return [(period.grain, 1)]
    if start is None or end is None:
        raise ValueError(period)
    if start.day is None or end.day is None:
        if start.day is not end.day or start.trunc != end.trunc:
            raise ValueError(period)
        return [("month", end.months - start.months), ("day", end.days - start.days)]
    if start.day.day == end.day.day == 1:
        return [("month", (end.day.year - start.day.year) * 12 + end.day.month - start.day.month)]
    return [("day", (end.day - start.day).days)]


# ------------------------------------------------------------------------------------------------------------ taken off


def _without(query: Query, change: Change) -> Query:
    """The query without its limit, else without its only condition: 不限, "all of them"."""
    plan = change.plan
    dates = set(_date_columns(query, plan))
    if "all:dates" in change.cues:
        return _dropped(query, plan, dates, Text("时间范围", "period"))
    lifted = {one.column for one in query.conditions if _is_lifted(one, change)}
    if lifted or (change.lifts and query.limit is None):
        return _dropped(query, plan, lifted, Text("这样的条件", "such condition"))
    if not change.lifts and change.says_more_than_all:
        return query
    if query.limit is not None:
        return replace(query, limit=None, top_per=())
    if query.having and not query.conditions:
        return replace(query, having=())
    columns = {condition.column for condition in query.conditions}
    if len(columns) != 1 or query.having:
        raise nothing_to_change(Text("唯一可以取消的限制", "single restriction to lift"))
    return _dropped(query, plan, columns, Text("限制", "restriction"))


def _is_lifted(condition: Condition, change: Change) -> bool:
    column = condition.column
    return (column.table, column.column) in change.lifts or (column.table, None) in change.lifts


def _dropped(query: Query, plan: Plan, columns: set[ColumnRef], what: Text) -> Query:
    kept = tuple(one for one in query.conditions if one.column not in columns)
    if len(kept) == len(query.conditions):
        raise nothing_to_change(what)
    names = listed(named(plan, one.table, one.column) for one in columns)
    plan.warnings.append(Text(f"不再限定“{names.zh}”。", f'No longer restricted by "{names.en}".'))
    return replace(query, conditions=kept)
