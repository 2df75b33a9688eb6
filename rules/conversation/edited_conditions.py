"""Puts a follow-up's conditions into the query before it: one on the same column replaces, others are added."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import cast

from common.meanings import TableKey
from common.text import Text
from rules.composing.asked import Asked
from rules.composing.carrying import named
from rules.composing.changing import changing
from rules.composing.measuring import group_order
from rules.composing.restricting import restricted
from rules.conversation.change import Change, must_have
from rules.linking.moments import Period, Unit, unit_period
from rules.query.query import OPPOSITE, ColumnRef, Comparison, Condition, Dimension, Operand, Query, Related
from rules.query.refusals import enumerated, not_combinable, nothing_to_change
from rules.reading.parts import NO_TABLE, Parts, Span, Threshold
from rules.schema.facts import is_year
from rules.schema.links import column_link


def with_restrictions(query: Query, change: Change) -> Query:
    """The query with the follow-up's conditions, and with those of its own that the follow-up keeps.

    Raises:
        Refusal: a condition can't be applied, or there is none to remove or to move.
    """
    if change.takes_away or "all:dates" in change.cues:
        query = _without(query, change)
    if change.shift is not None and change.may_be_from_today and not _dates(query, change.asked):
        unit, count = change.shift
        since_today = Span((unit_period(cast(Unit, unit), count),), 0)
        change.asked = change.asked.with_parts(spans=(*change.parts.spans, since_today))
    elif change.shift is not None:
        query = _shifted(query, change.asked, *change.shift)
        if change.asked.says("compare"):
            return _by_period(query, change.asked)
    asked, parts = change.asked, change.parts
    if not change.restricts:
        return query
    spans = tuple(_on_same_date(query, asked, span) for span in parts.spans)
    one_period = len(spans) == 1 and len(spans[0].periods) == 1
    compared = asked.says("compare") and len(spans) == 1 and len(_dates(query, asked)) == 1 and bool(query.measures)
    has_period = compared or not (one_period and asked.says("compare"))
    must_have(has_period, Text("可以对比的时间范围", "period to compare with"))
    thresholds = tuple(_on_same_figure(query, one) for one in parts.thresholds)
    deleted = (*parts.with_deleted, *query.with_deleted)
    parts = replace(parts, spans=spans, thresholds=thresholds, with_deleted=deleted, limits=())
    wider = restricted(replace(asked, parts=_on_rows(query, asked, parts)), replace(query, having=()))
    merged = _merged(change, query, wider, adds="add" in change.cues or compared)
    return _by_period(merged, asked) if compared else merged


def _on_rows(query: Query, asked: Asked, parts: Parts) -> Parts:
    """The parts, where "exclude cancelled orders" keeps cancelled rows out of the orders that the query is about."""
    above = asked.question.graph.above(query.base)
    own = [one for one in parts.related if one.negated and len(one.conditions) == 1 and one.table in above]
    conditions = [replace(one.conditions[0], operator=OPPOSITE[one.conditions[0].operator]) for one in own]
    related = tuple(one for one in parts.related if one not in own)
    return replace(parts, related=related, conditions=(*parts.conditions, *conditions))


# ----------------------------------------------------------------------------------------------------------- together


def _merged(change: Change, before: Query, after: Query, *, adds: bool) -> Query:
    """`after`, which has the conditions of both, with only those of each column that hold now."""
    new = [one for one in after.conditions if one not in before.conditions]
    kept = [one for one in after.conditions if one in before.conditions]
    measures, words = after.measures, change.asked.question.words
    begins_and = bool(words) and words[0].mark.means("and")
    for new_one in new:
        if any(one.column == new_one.column for measure in measures for one in measure.share_of):
            measures = tuple(
                replace(one, share_of=tuple(_replaced(one.share_of, new_one, adds=adds))) for one in measures
            )
            continue
        narrows = adds or change.cues & {"only", "these"}
        if not narrows and not any(_same_column(one, new_one) for one in kept):
            kept = _without_narrower(change, kept, new_one)
        kept = _replaced(kept, new_one, adds=adds, narrows=begins_and or not change.ties & {"lead", "end", "replace"})
    new_related = [one for one in after.related if one not in before.related]
    sideways = {one.table for one in before.dimensions} - change.asked.question.graph.above(before.base).keys()
    if new_related and sideways:
        raise not_combinable()  # it would not be clear whose rows are meant
    measured = {one.measure for one in after.having}
    having = (*(one for one in before.having if one.measure not in measured), *after.having)
    order = () if after.counts_rows else before.order or after.order
    related = _related(before.related, new_related)
    return replace(after, measures=measures, conditions=tuple(kept), related=related, having=having, order=order)


def _same_column(first: Condition, second: Condition) -> bool:
    return replace(first.column, via=None) == replace(second.column, via=None)


_POSITIVE, _NEGATIVE = ("=", "in"), ("!=", "not in")


def _replaced(before: Sequence[Condition], new: Condition, *, adds: bool, narrows: bool = False) -> list[Condition]:
    """The conditions with `new`, which replaces those on its column or joins them."""
    same = [one for one in before if _same_column(one, new)]
    if narrows and _narrowed(same, new):
        return [*before, new]
    place = before.index(same[0]) if same else len(before)
    others = [one for one in before if one not in same]
    return [*others[:place], _together(same, new, adds=adds), *others[place:]]


def _narrowed(same: list[Condition], new: Condition) -> bool:
    """Whether the new comparison is the other end of a range: "less than 12000" after "more than 9000"."""
    if len(same) != 1 or not all(isinstance(one, Decimal) for one in (*same[0].operands, *new.operands)):
        return False
    low, high = (new, same[0]) if new.operands < same[0].operands else (same[0], new)
    return low.operator in (">", ">=") and high.operator in ("<", "<=") and low.operands != high.operands


def _together(same: list[Condition], new: Condition, *, adds: bool) -> Condition:
    """The condition on one column after `new` was said."""
    for one in same:
        both = tuple(dict.fromkeys((*one.operands, *new.operands)))
        if new.operator in _NEGATIVE and one.operator in _POSITIVE:
            left = tuple(operand for operand in one.operands if operand not in new.operands)
            return _among(one, left) if left else new
        if new.operator in _NEGATIVE and one.operator in _NEGATIVE:
            return replace(new, operator="not in" if len(both) > 1 else "!=", operands=both)
        if adds and one.operator in _POSITIVE and new.operator in _POSITIVE:
            return _among(one, both)
        if adds and one.operator == new.operator == "during":
            return replace(new, operands=both)
    return new


def _among(condition: Condition, operands: tuple[Operand, ...]) -> Condition:
    return replace(condition, operator="=" if len(operands) == 1 else "in", operands=operands)


def _without_narrower(change: Change, kept: list[Condition], new: Condition) -> list[Condition]:
    """Removes a condition on one thing where a wider one is new: `嘉兴服务区`, then `浙江的呢`."""
    question = change.asked.question
    for one in kept:
        facts = question.facts(one.column.table)
        single = one.operator in _POSITIVE and one.column.column in (*facts.display, *facts.key)
        if single and new.column.table in question.graph.above(one.column.table) and new.operator in _POSITIVE:
            names = "、".join(map(str, one.operands))
            change.notes.append(Text(f"不再限定“{names}”。", f'No longer restricted to "{names}".'))
            return [other for other in kept if other != one]
    return kept


def _related(before: tuple[Related, ...], new: list[Related]) -> tuple[Related, ...]:
    """The related tables; a new one with conditions on the same columns replaces an earlier one."""

    def about(one: Related) -> tuple[TableKey, frozenset[ColumnRef]]:
        return one.table, frozenset(condition.column for condition in one.conditions)

    replaced = set(map(about, new))
    return (*(one for one in before if about(one) not in replaced), *new)


def _on_same_figure(query: Query, threshold: Threshold) -> Threshold:
    """The comparison with the measure of the shown figure, if it names that figure or none."""
    link = threshold.link
    shown = [one for one in query.measures if link and (one.table, one.column) == (link.table, link.column)]
    if shown and threshold.function is None and shown[0].function in ("avg", "min", "max"):
        threshold = replace(threshold, function=shown[0].function)
    if link is not None or threshold.table is not None or threshold.hint:
        return threshold
    first = query.measures[0] if query.measures else None
    of_groups = first and query.dimensions and first.per is None and first.function in ("avg", "min", "max", "median")
    if first and (of_groups or first.function == "count_distinct"):
        return replace(threshold, link=column_link(first.table, str(first.column)), function=first.function)
    if first and first.column is None and query.dimensions:
        return replace(threshold, table=first.table)
    compared = {one.column for one in query.conditions if one.operator in _COMPARISONS}
    if not query.measures and len(compared) == 1:
        column = compared.pop()
        link = replace(column_link(column.table, column.column), derived="age" if column.is_age else None)
        return replace(threshold, link=link)
    return threshold


_COMPARISONS = ("between", ">", ">=", "<", "<=")

# --------------------------------------------------------------------------------------------------------------- dates


def _dates(query: Query, asked: Asked) -> list[ColumnRef]:
    """The columns of the earlier periods."""
    schema = asked.question.schema
    dated = [one.column for one in query.conditions if one.operator in ("during", "not during")]
    years = [one for one in (one.column for one in query.conditions) if is_year(schema.column(one.table, one.column))]
    return list(dict.fromkeys((*dated, *years)))


def _on_same_date(query: Query, asked: Asked, span: Span) -> Span:
    """The period; without a column it gets that of the earlier period."""
    columns = _dates(query, asked)
    is_same = span.link is None and len(columns) == 1 and columns[0].via is None
    return replace(span, link=column_link(columns[0].table, columns[0].column)) if is_same else span


def _by_period(query: Query, asked: Asked) -> Query:
    """The query grouped by the unit that both periods have."""
    operands = [one for condition in query.conditions for one in condition.operands]
    grains = {one.grain for one in operands if isinstance(one, Period)}
    is_same = len(grains) == 1 and None not in grains
    must_have(is_same, Text("与之可比的时间范围", "period that could be compared with it"))
    unit = asked.resolved(Dimension(NO_TABLE, None, grains.pop()), query.measures[0].table)
    query = replace(query, dimensions=tuple(dict.fromkeys((*query.dimensions, unit))))
    return replace(query, order=group_order(query))


def _shifted(query: Query, asked: Asked, unit: str, count: int) -> Query:
    """The query with every period moved: `去年同期`."""
    moved, compares = _moved(query, asked, unit, count), asked.says("compare")
    must_have(moved and (query.measures or not compares), Text("时间范围", "period"))
    if compares:
        moved = {one: replace(one, operands=(*one.operands, *other.operands)) for one, other in moved.items()}
    return replace(query, conditions=tuple(moved.get(one, one) for one in query.conditions))


def with_growth(query: Query, asked: Asked) -> Query:
    """The query with the change of its figures: from bucket to bucket, else from the period before (环比, 同比).

    Raises:
        Refusal: it has no figures, or no period that another could be compared with.
    """
    may_change = query.measures and not query.counts_rows and not query.having
    must_have(may_change, Text("可以比较变化的指标", "figure whose change could be computed"))
    if asked.parts.spans or not _dates(query, asked) or any(one.bucket for one in query.dimensions):
        return changing(asked, query)
    moved = _moved(query, asked, "year" if asked.says("growth:year") else "period", -1)
    rest = tuple(one for one in query.conditions if one not in moved)
    comparison = Comparison(tuple(moved.values()), tuple(moved))
    return replace(query, conditions=rest, comparison=comparison, order=query.order if query.dimensions else ())


def _moved(query: Query, asked: Asked, unit: str, count: int) -> dict[Condition, Condition]:
    """The conditions on periods, each with the same on periods, or numbers of years, that are moved.

    Raises:
        Refusal: the calendar ends before, or the periods can't be moved by this unit.
    """

    def moved(operand: Operand) -> Operand:
        if isinstance(operand, Period):
            return _moved_period(operand, unit, count)
        if isinstance(operand, Decimal) and unit in ("year", "period"):
            return operand + count
        raise ValueError(unit)

    dated = [one for one in query.conditions if one.column in _dates(query, asked)]
    try:
        return {one: replace(one, operands=tuple(map(moved, one.operands))) for one in dated}
    except (ValueError, OverflowError) as failure:
        raise nothing_to_change(Text("可以这样移动的时间范围", "period that can be moved so")) from failure


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
    if start is None or end is None or start.trunc != end.trunc:
        raise ValueError(period)
    if start.day is None and end.day is None:
        return [("month", end.months - start.months), ("day", end.days - start.days)]
    if start.day is None or end.day is None:
        raise ValueError(period)
    if start.begins_month and end.begins_month:
        return [("month", (end.day.year - start.day.year) * 12 + end.day.month - start.day.month)]
    return [("day", (end.day - start.day).days)]


# ------------------------------------------------------------------------------------------------------------ taken off


def _without(query: Query, change: Change) -> Query:
    """The query without its limit, else without its only condition: 不限, "all of them"."""
    asked = change.asked
    if "all:dates" in change.cues:
        return _dropped(query, asked, set(_dates(query, asked)), Text("时间范围", "period"), change.notes)
    lifts, columns = change.lifts, {one.column for one in query.conditions}
    lifted = {one for one in columns if lifts & {(one.table, one.column), (one.table, None)}}
    if lifted or (lifts and query.limit is None):
        return _dropped(query, asked, lifted, Text("这样的条件", "such condition"), change.notes)
    if not lifts and change.says_more_than_all:
        return query
    if query.limit is not None:
        return replace(query, limit=None, top_per=())
    if query.having and not query.conditions:
        return replace(query, having=())
    must_have(len(columns) == 1 and not query.having, Text("唯一可以取消的限制", "single restriction to lift"))
    return _dropped(query, asked, columns, Text("限制", "restriction"), change.notes)


def _dropped(query: Query, asked: Asked, columns: set[ColumnRef], what: Text, notes: list[Text]) -> Query:
    kept = tuple(one for one in query.conditions if one.column not in columns)
    must_have(len(kept) < len(query.conditions), what)
    names = enumerated(dict.fromkeys(named(asked.question, one.table, one.column) for one in columns))
    notes.append(Text(f"不再限定“{names.zh}”。", f'No longer restricted by "{names.en}".'))
    return replace(query, conditions=kept)
