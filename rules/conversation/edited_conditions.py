"""Apply a follow-up's conditions to the query before it.

A condition on the same column replaces the earlier one, others are added.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import cast

from common.meanings import TableKey
from common.text import Text
from rules.composing.asked import Asked
from rules.composing.changing import changing
from rules.composing.measuring import group_order
from rules.composing.restricting import restricted
from rules.composing.retargeting import name_of
from rules.conversation.change import Change, must_have
from rules.linking.moments import Period, Unit, unit_period
from rules.query.query import (
    OPPOSITE,
    ColumnRef,
    Comparison,
    Condition,
    Dimension,
    Measure,
    Operand,
    Operator,
    Query,
    Related,
)
from rules.query.refusals import enumerated, not_combinable, nothing_to_change
from rules.reading.parts import NO_TABLE, Parts, Span, Threshold
from rules.schema.links import Link, column_link
from rules.schema.table_facts import is_year

_POSITIVE = ("=", "in")
_COMPARISONS = ("between", ">", ">=", "<", "<=")


def with_restrictions(query: Query, change: Change) -> Query:
    """Return the query with the follow-up's conditions beside those of its own that it keeps.

    Raises:
        Refusal: a condition can't be applied, or there is none to remove or to move.
    """
    if change.takes_away or "all:dates" in change.cues:
        query = _without(query, change)
    if change.shift is not None:
        unit, count = change.shift
        if change.may_be_from_today and not _dates(query, change.asked):
            from_today = Span((unit_period(cast(Unit, unit), count),), 0)
            change.asked = change.asked.with_parts(spans=(*change.parts.spans, from_today))
        else:
            query = _shifted(query, change.asked, unit, count)
            if change.asked.says("compare"):
                return _by_period(query, change.asked)

    if not change.restricts:
        return query

    return _restricted(query, change)


def _restricted(query: Query, change: Change) -> Query:
    """Return the query with the conditions that the follow-up states."""
    asked, parts = change.asked, change.parts
    spans = tuple(_on_same_date(query, asked, span) for span in parts.spans)
    compares_periods = asked.says("compare") and _can_compare_periods(query, asked, spans)
    if asked.says("compare") and not compares_periods:
        is_one_period = len(spans) == 1 and len(spans[0].periods) == 1
        must_have(not is_one_period, Text("可以对比的时间范围", "period to compare with"))

    parts = replace(
        parts,
        spans=spans,
        thresholds=tuple(_on_same_figure(query, threshold) for threshold in parts.thresholds),
        with_deleted=(*parts.with_deleted, *query.with_deleted),
        limits=(),
    )
    parts = _on_rows(query, asked, parts)
    wider = restricted(replace(asked, parts=parts), replace(query, having=()))
    adds = compares_periods or "add" in change.cues
    merged = _merged(change, query, wider, adds=adds)
    return _by_period(merged, asked) if compares_periods else merged


def _can_compare_periods(query: Query, asked: Asked, spans: Sequence[Span]) -> bool:
    """Tell whether the query has figures of one period, and one other is named."""
    if len(spans) != 1 or len(_dates(query, asked)) != 1:
        return False

    return bool(query.measures)


def _on_rows(query: Query, asked: Asked, parts: Parts) -> Parts:
    """Return the parts, where a condition on related rows is one on the query's own rows.

    "exclude cancelled orders" excludes rows of the orders that the query is about.
    """
    above = asked.question.graph.above(query.base)
    related, conditions = [], [*parts.conditions]
    for one in parts.related:
        if one.negated and len(one.conditions) == 1 and one.table in above:
            condition = one.conditions[0]
            conditions.append(replace(condition, operator=OPPOSITE[condition.operator]))
        else:
            related.append(one)

    return replace(parts, related=tuple(related), conditions=tuple(conditions))


# ------------------------------------------------------------------------------
# old and new conditions


def _merged(change: Change, before: Query, after: Query, *, adds: bool) -> Query:
    """Return `after`, which has the conditions of both, with only those of each column that hold
    now.
    """
    new_related = [one for one in after.related if one not in before.related]
    dimensions = {dimension.table for dimension in before.dimensions}
    if new_related and dimensions - change.asked.question.graph.above(before.base).keys():
        raise not_combinable()  # it would not be clear whose rows are meant

    measures, conditions = _merged_conditions(change, before, after, adds=adds)
    compared_anew = {one.measure for one in after.having}
    having = [one for one in before.having if one.measure not in compared_anew]
    return replace(
        after,
        measures=measures,
        conditions=tuple(conditions),
        related=_related(before.related, new_related),
        having=(*having, *after.having),
        order=() if after.counts_rows else before.order or after.order,
    )


def _merged_conditions(
    change: Change, before: Query, after: Query, *, adds: bool
) -> tuple[tuple[Measure, ...], list[Condition]]:
    """Return the measures and the conditions with the new conditions of `after` put in their
    places.

    A condition on what a share is of belongs to the measure.
    """
    measures = after.measures
    kept = [condition for condition in after.conditions if condition in before.conditions]
    narrows = _may_narrow(change)
    keeps_narrower = adds or bool(change.cues & {"only", "these"})
    for new in after.conditions:
        if new in before.conditions:
            continue
        if _restricts_share(measures, new):
            measures = tuple(_with_share_of(measure, new, adds=adds) for measure in measures)
            continue

        if not keeps_narrower and not any(_same_column(one, new) for one in kept):
            kept = _without_narrower(change, kept, new)

        kept = _replaced(kept, new, adds=adds, narrows=narrows)

    return measures, kept


def _may_narrow(change: Change) -> bool:
    """Tell whether a comparison may be the other end of a range, instead of another one."""
    words = change.asked.question.words
    if words and words[0].mark.means("and"):
        return True

    return not change.ties & {"lead", "end", "replace"}


def _restricts_share(measures: Sequence[Measure], condition: Condition) -> bool:
    for measure in measures:
        columns = {one.column for one in measure.share_of}
        if condition.column in columns:
            return True

    return False


def _with_share_of(measure: Measure, condition: Condition, *, adds: bool) -> Measure:
    return replace(measure, share_of=tuple(_replaced(measure.share_of, condition, adds=adds)))


def _same_column(first: Condition, second: Condition) -> bool:
    return replace(first.column, via=None) == replace(second.column, via=None)


def _replaced(
    before: Sequence[Condition], new: Condition, *, adds: bool, narrows: bool = False
) -> list[Condition]:
    """Return the conditions with `new`, which replaces those on its column or joins them."""
    same = [one for one in before if _same_column(one, new)]
    if not same:
        return [*before, new]

    may_narrow = narrows and len(same) == 1
    if may_narrow and _is_other_end(same[0], new):
        return [*before, new]

    place = before.index(same[0])
    others = [one for one in before if one not in same]
    others.insert(place, _together(same, new, adds=adds))
    return others


def _is_other_end(old: Condition, new: Condition) -> bool:
    """Tell whether two comparisons are the ends of a range.

    "less than 12000" after "more than 9000" is its other end.
    """
    if not all(isinstance(operand, Decimal) for operand in (*old.operands, *new.operands)):
        return False
    if old.operands == new.operands:
        return False

    low, high = sorted((old, new), key=lambda one: one.operands)
    begins_with_low = low.operator in (">", ">=")
    return begins_with_low and high.operator in ("<", "<=")


def _together(same: list[Condition], new: Condition, *, adds: bool) -> Condition:
    """Return the condition on one column after `new` was said."""
    for old in same:
        both = tuple(dict.fromkeys((*old.operands, *new.operands)))
        operators = (_for_several(old.operator), _for_several(new.operator))
        if operators == ("in", "not in"):
            left = tuple(operand for operand in old.operands if operand not in new.operands)
            return _among(old, left) if left else new

        if operators == ("not in", "not in"):
            operator: Operator = "not in" if len(both) > 1 else "!="
            return replace(new, operator=operator, operands=both)

        if not adds:
            continue
        if operators == ("in", "in"):
            return _among(old, both)
        if operators == ("during", "during"):
            return replace(new, operands=both)

    return new


_SEVERAL: dict[Operator, Operator] = {"=": "in", "!=": "not in"}


def _for_several(operator: Operator) -> Operator:
    """Return the operator that says the same of several values as `operator` of one."""
    return _SEVERAL.get(operator, operator)


def _among(condition: Condition, operands: tuple[Operand, ...]) -> Condition:
    """Return the condition that the value is one of the operands."""
    operator: Operator = "=" if len(operands) == 1 else "in"
    return replace(condition, operator=operator, operands=operands)


def _without_narrower(change: Change, kept: list[Condition], new: Condition) -> list[Condition]:
    """Remove a condition on one thing where a wider one is new: `嘉兴服务区`, then `浙江的呢`."""
    if new.operator not in _POSITIVE:
        return kept

    question = change.asked.question
    for one in kept:
        table, facts = one.column.table, question.facts(one.column.table)
        is_on_thing = one.column.column in (*facts.display, *facts.key)
        if one.operator not in _POSITIVE or not is_on_thing:
            continue
        if new.column.table in question.graph.above(table):
            names = "、".join(map(str, one.operands))
            change.notes.append(Text(f"不再限定“{names}”。", f'No longer restricted to "{names}".'))
            return [other for other in kept if other != one]

    return kept


def _related(before: tuple[Related, ...], new: list[Related]) -> tuple[Related, ...]:
    """Return the related tables; a new one with conditions on the same columns replaces an earlier
    one.
    """

    def about(one: Related) -> tuple[TableKey, frozenset[ColumnRef]]:
        return one.table, frozenset(condition.column for condition in one.conditions)

    replaced = set(map(about, new))
    return (*(one for one in before if about(one) not in replaced), *new)


# ------------------------------------------------------------------------------
# comparisons with numbers

_OF_VALUES = ("avg", "min", "max")  # functions whose result is like the single values


def _on_same_figure(query: Query, threshold: Threshold) -> Threshold:
    """Return the comparison with the measure of the shown figure, if it names that figure or
    none.
    """
    if threshold.link is not None:
        return _with_shown_function(query, threshold, threshold.link)
    if threshold.table is not None or threshold.hint:
        return threshold
    if query.measures:
        return _on_first_measure(query, threshold)

    return _on_compared_column(query, threshold)


def _with_shown_function(query: Query, threshold: Threshold, link: Link) -> Threshold:
    """Return the comparison of a column, with the function that the shown figure applies to it."""
    if threshold.function is not None:
        return threshold

    for measure in query.measures:
        if (measure.table, measure.column) != (link.table, link.column):
            continue
        if measure.function in _OF_VALUES:
            return replace(threshold, function=measure.function)

        break

    return threshold


def _on_first_measure(query: Query, threshold: Threshold) -> Threshold:
    """Return a comparison that names no figure, with the first one that is shown."""
    first = query.measures[0]
    is_of_values = first.per is None and first.function in (*_OF_VALUES, "median")
    if first.function == "count_distinct" or (query.dimensions and is_of_values):
        link = column_link(first.table, str(first.column))
        return replace(threshold, link=link, function=first.function)

    if first.column is None and query.dimensions:
        return replace(threshold, table=first.table)

    return threshold


def _on_compared_column(query: Query, threshold: Threshold) -> Threshold:
    """Return a comparison that names no figure, with the only column of a list that has one
    already.
    """
    compared = {
        condition.column for condition in query.conditions if condition.operator in _COMPARISONS
    }
    if len(compared) != 1:
        return threshold

    column = compared.pop()
    link = column_link(column.table, column.column)
    return replace(threshold, link=replace(link, derived="age" if column.is_age else None))


# ------------------------------------------------------------------------------
# dates


def _dates(query: Query, asked: Asked) -> list[ColumnRef]:
    """Return the columns of the earlier periods: dates, then numbers of years."""
    schema = asked.question.schema
    dates, years = [], []
    for condition in query.conditions:
        column = condition.column
        if condition.operator in ("during", "not during"):
            dates.append(column)
        if is_year(schema.column(column.table, column.column)):
            years.append(column)

    return list(dict.fromkeys((*dates, *years)))


def _on_same_date(query: Query, asked: Asked, span: Span) -> Span:
    """Return the period; without a column it gets that of the earlier period."""
    columns = _dates(query, asked)
    if span.link is not None or len(columns) != 1 or columns[0].via is not None:
        return span

    return replace(span, link=column_link(columns[0].table, columns[0].column))


def _by_period(query: Query, asked: Asked) -> Query:
    """Return the query grouped by the unit that both periods have."""
    operands = [operand for condition in query.conditions for operand in condition.operands]
    grains = {operand.grain for operand in operands if isinstance(operand, Period)}
    is_same = len(grains) == 1 and None not in grains
    must_have(is_same, Text("与之可比的时间范围", "period that could be compared with it"))
    unit = asked.resolved(Dimension(NO_TABLE, None, grains.pop()), query.measures[0].table)
    query = replace(query, dimensions=tuple(dict.fromkeys((*query.dimensions, unit))))
    return replace(query, order=group_order(query))


def _shifted(query: Query, asked: Asked, unit: str, count: int) -> Query:
    """Return the query with every period moved: `去年同期`; beside the earlier ones in a
    comparison.
    """
    moved, compares = _moved(query, asked, unit, count), asked.says("compare")
    can_move = moved and (query.measures or not compares)
    must_have(can_move, Text("时间范围", "period"))
    if compares:
        for old, new in moved.items():
            moved[old] = replace(old, operands=(*old.operands, *new.operands))

    return replace(
        query, conditions=tuple(moved.get(condition, condition) for condition in query.conditions)
    )


def with_growth(query: Query, asked: Asked) -> Query:
    """Return the query with the change of its figures: 环比, 同比.

    From one unit of time to the next, or from the period before.

    Raises:
        Refusal: it has no figures, or no period that another could be compared with.
    """
    may_change = query.measures and not any((query.counts_rows, query.having))
    must_have(may_change, Text("可以比较变化的指标", "figure whose change could be computed"))
    is_series = any(dimension.bucket for dimension in query.dimensions)
    if is_series or asked.parts.spans:
        return changing(asked, query)
    if not _dates(query, asked):
        return changing(asked, query)

    unit = "year" if asked.says("growth:year") else "period"
    moved = _moved(query, asked, unit, -1)
    return replace(
        query,
        conditions=tuple(condition for condition in query.conditions if condition not in moved),
        comparison=Comparison(first=tuple(moved.values()), second=tuple(moved)),
        order=query.order if query.dimensions else (),
    )


def _moved(query: Query, asked: Asked, unit: str, count: int) -> dict[Condition, Condition]:
    """Return the conditions on periods, each with the same on the periods, or years, that are
    moved.

    Raises:
        Refusal: the calendar ends before, or the periods can't be moved by this unit.
    """

    def moved(operand: Operand) -> Operand:
        if isinstance(operand, Period):
            return _moved_period(operand, unit, count)
        if isinstance(operand, Decimal) and unit in ("year", "period"):
            return operand + count

        raise ValueError(unit)

    columns = _dates(query, asked)
    dated = [condition for condition in query.conditions if condition.column in columns]
    try:
        return {one: replace(one, operands=tuple(map(moved, one.operands))) for one in dated}
    except (ValueError, OverflowError) as failure:
        movable = Text("可以这样移动的时间范围", "period that can be moved so")
        raise nothing_to_change(movable) from failure


def _moved_period(period: Period, unit: str, count: int) -> Period:
    steps = _length(period) if unit == "period" else [(cast(Unit, unit), 1)]
    start, end = period.start, period.end
    for each, times in steps:
        if start is not None:
            start = start.shifted(each, times * count)
        if end is not None:
            end = end.shifted(each, times * count)

    return Period(start, end, period.grain)


def _length(period: Period) -> list[tuple[Unit, int]]:
    """Return the length of the period, in units by which it can be moved.

    Raises:
        ValueError: it is open, or only one of its ends depends on today's date.
    """
    start, end = period.start, period.end
    if period.grain is not None:
        return [(period.grain, 1)]
    if start is None or end is None:
        raise ValueError(period)
    if start.trunc != end.trunc:
        raise ValueError(period)
    if start.day is None and end.day is None:
        months, days = end.months - start.months, end.days - start.days
        return [("month", months), ("day", days)]

    if start.day is None or end.day is None:
        raise ValueError(period)
    if start.begins_month and end.begins_month:
        years = end.day.year - start.day.year
        return [("month", years * 12 + end.day.month - start.day.month)]

    return [("day", (end.day - start.day).days)]


# ------------------------------------------------------------------------------
# conditions that are removed


def _without(query: Query, change: Change) -> Query:
    """Return the query without the conditions, or the limit, that are removed: 不限, "all of
    them".
    """
    if "all:dates" in change.cues:
        dates = set(_dates(query, change.asked))
        return _dropped(query, change, dates, Text("时间范围", "period"))

    lifts = change.lifts
    if not lifts:
        if change.says_more_than_all:
            return query

        return _without_any(query, change)

    columns = {condition.column for condition in query.conditions}
    lifted = {
        column
        for column in columns
        if lifts & {(column.table, column.column), (column.table, None)}
    }
    if lifted or query.limit is None:
        return _dropped(query, change, lifted, Text("这样的条件", "such condition"))

    return _without_any(query, change)


def _without_any(query: Query, change: Change) -> Query:
    """Return the query without its limit, else without its only condition."""
    if query.limit is not None:
        return replace(query, limit=None, top_per=())
    if query.having and not query.conditions:
        return replace(query, having=())

    columns = {condition.column for condition in query.conditions}
    is_single = len(columns) == 1 and not query.having
    must_have(is_single, Text("唯一可以取消的限制", "single restriction to lift"))
    return _dropped(query, change, columns, Text("限制", "restriction"))


def _dropped(query: Query, change: Change, columns: set[ColumnRef], what: Text) -> Query:
    """Return the query without the conditions on these columns, with a note.

    Raises:
        Refusal: there is none; it says that the query has no `what`.
    """
    kept = tuple(condition for condition in query.conditions if condition.column not in columns)
    must_have(len(kept) < len(query.conditions), what)
    question = change.asked.question
    names = enumerated(
        dict.fromkeys(name_of(question, column.table, column.column) for column in columns)
    )
    change.notes.append(Text(f"不再限定“{names.zh}”。", f'No longer restricted by "{names.en}".'))
    return replace(query, conditions=kept)
