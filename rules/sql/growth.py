"""Statements for changes: figures of two sets of rows, or of each bucket and of an earlier one.

Beside both figures stand their difference and the change in percent.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from postgres.identifiers import quoted
from rules.linking.moments import Moment, Period, Unit
from rules.query.query import Change, ColumnRef, Condition, Dimension, Measure, Order, Query
from rules.schema.table_facts import kind_of
from rules.sql.column_names import SelectItem, direction, group_name
from rules.sql.expressions import comparison, moment_sql
from rules.sql.statement import (
    SelectStatement,
    Unrenderable,
    clause,
    nested,
    order_and_limit,
    over,
    percentage,
)

# Bytes of a figure's name: PostgreSQL cuts names at 63, and `_change_percent` comes behind.
_LONGEST = 44
_STEPS: dict[Unit, str] = {
    "day": "1 day",
    "week": "7 days",
    "month": "1 month",
    "quarter": "3 months",
    "year": "1 year",
}
# How far a year before a bucket is. A year before a week does not begin with a Monday.
_YEARS: dict[Unit, tuple[Unit, int]] = {"week": ("week", 52)}
_DAYS_OF_WEEK = 7
_COUNTS = ("count", "count_distinct", "metric")


def names_of(measure: Measure, statement: SelectStatement) -> tuple[str, str]:
    """Return the names of two columns: of the figure that is compared with, and of the figure."""
    short = _short(measure, statement)
    if statement.query.comparison is not None:
        return f"{short}_first", f"{short}_second"

    return f"{short}_before", statement.alias(measure)


def _short(measure: Measure, statement: SelectStatement) -> str:
    return statement.alias(measure).encode()[:_LONGEST].decode(errors="ignore")


def _changes(measure: Measure, statement: SelectStatement) -> dict[Change | None, SelectItem]:
    """Return the figure (None) and its changes, as expressions over the columns of `names_of`."""
    before, after = (quoted(name) for name in names_of(measure, statement))
    percent = percentage(f"({after} - {before})", f"abs({before})", statement.is_float(measure))
    name = f"{_short(measure, statement)}_change"
    return {
        None: SelectItem(after),
        "difference": SelectItem(f"{after} - {before}", name),
        "percent": SelectItem(percent, f"{name}_percent"),
    }


def compared(statement: SelectStatement) -> str:
    """Write the statement for both figures of each group, in the columns of `names_of`."""
    query = statement.query
    assert query.comparison is not None
    first = statement.frame.all_of(query.comparison.first)
    second = statement.frame.all_of(query.comparison.second)
    outputs = statement.dimension_outputs()
    for measure in query.measures:
        first_name, second_name = names_of(measure, statement)
        outputs.append(SelectItem(statement.aggregate_sql(measure, first), first_name))
        outputs.append(SelectItem(statement.aggregate_sql(measure, second), second_name))

    return statement.selected(outputs)


def grown(statement: SelectStatement) -> str:
    """Write the statement for the figures of each bucket and their changes."""
    query = statement.query
    dated = [dimension for dimension in query.dimensions if dimension.bucket is not None]
    if len(dated) != 1 or any(measure.is_share or measure.per for measure in query.measures):
        raise Unrenderable("growth is that of plain figures by one date")

    bucket = dated[0]
    earlier = _earlier_buckets(query, bucket)
    inner = statement.of(
        replace(query, conditions=earlier.conditions, having=(), order=(), limit=None)
    )
    figures = inner.selected(_figures_with_earlier(statement, inner, bucket, earlier.step))
    shown = []
    if earlier.shown_from is not None:
        shown.append(f"{quoted(group_name(bucket))} >= {moment_sql(earlier.shown_from)}")

    by_date = Order(column=ColumnRef(bucket.table, str(bucket.column)), descending=False)
    ordered = replace(query, order=query.order or (by_date,))
    return with_changes(statement.of(ordered), figures, shown)


def _figures_with_earlier(
    statement: SelectStatement, inner: SelectStatement, bucket: Dimension, step: str
) -> list[SelectItem]:
    """Return the groups, and each figure beside that of the bucket which lies `step` before."""
    groups = []
    for dimension in statement.query.dimensions:
        if dimension != bucket:
            groups += inner.group_columns(dimension)

    reach = f"RANGE BETWEEN '{step}' PRECEDING AND '{step}' PRECEDING"
    window = over(groups, inner.group_columns(bucket), [reach])
    outputs = inner.dimension_outputs()
    for measure in statement.query.measures:
        figure = inner.aggregate_sql(measure)
        before, after = names_of(measure, statement)
        outputs += [SelectItem(figure, after), SelectItem(f"max({figure}) {window}", before)]

    return outputs


@dataclass(frozen=True)
class _EarlierBuckets:
    """The buckets with which those of the question are compared.

    Attributes:
        step: how far each of them lies before its bucket, as an interval.
        conditions: the conditions of the query, whose period also covers the earlier buckets.
        shown_from: the first bucket of the question; None where all buckets are shown.
    """

    step: str
    conditions: tuple[Condition, ...]
    shown_from: Moment | None = None


def _earlier_buckets(query: Query, dated: Dimension) -> _EarlierBuckets:
    unit = dated.bucket
    assert unit is not None
    back, count = (unit, 1) if query.growth == "bucket" else _YEARS.get(unit, ("year", 1))
    step = _STEPS[back] if count == 1 else f"{count * _DAYS_OF_WEEK} days"
    column = ColumnRef(dated.table, str(dated.column), dated.via)
    conditions = (*query.conditions, Condition(column, "not null"))
    unchanged = _EarlierBuckets(step, conditions)
    condition = _only_period(query, column)
    if condition is None:
        return unchanged

    (period,) = condition.operands
    if not isinstance(period, Period) or period.start is None or not _begins(period.start, unit):
        return unchanged

    try:
        start = period.start.shifted(back, -count)
    except (ValueError, OverflowError):  # before the calendar
        return unchanged

    wider = replace(condition, operands=(replace(period, start=start, grain=None),))
    widened = tuple(wider if one == condition else one for one in conditions)
    return _EarlierBuckets(step, widened, period.start)


def _only_period(query: Query, column: ColumnRef) -> Condition | None:
    """Return the condition that the date lies in a period; None without one, or with several."""
    periods = []
    for condition in query.conditions:
        if condition.operator == "during" and condition.column == column:
            periods.append(condition)

    if len(periods) != 1 or len(periods[0].operands) != 1:
        return None

    return periods[0]


# The units at whose beginning a bucket begins as well; for other buckets only their own unit.
_WHOLE: dict[Unit, tuple[Unit, ...]] = {
    "month": ("month", "quarter", "year"),
    "quarter": ("quarter", "year"),
}
_MONTHS = {"quarter": 3, "year": 12}


def _begins(moment: Moment, unit: Unit) -> bool:
    """Tell whether the moment is the beginning of a bucket, on whatever day it is reckoned from."""
    if unit == "day":
        return True
    if moment.day is not None:
        return Moment(trunc=unit).on(moment.day) == moment.day
    if moment.trunc not in _WHOLE.get(unit, (unit,)):
        return False
    if unit == "week":
        return moment.months == 0 and moment.days % _DAYS_OF_WEEK == 0

    return moment.days == 0 and moment.months % _MONTHS.get(unit, 1) == 0


def with_changes(statement: SelectStatement, figures: str, shown: Iterable[str] = ()) -> str:
    """Write the statement that adds the changes to the rows of `figures`.

    Args:
        figures: a statement with the columns of `names_of`.
        shown: conditions on its rows.

    Raises:
        Unrenderable: the query lists rows, or a figure is no number.
    """
    query = statement.query
    are_numbers = all(_is_number(one, statement) for one in query.measures)
    if query.top_per or query.columns or query.distinct or not are_numbers:
        raise Unrenderable("only figures change")

    groups = statement.group_names()
    outputs = [SelectItem(name) for names in groups for name in names]
    for measure in query.measures:
        outputs += _shown_changes(measure, statement)

    having = []
    for one in query.having:
        sql = _changes(one.measure, statement)[one.change].sql
        having.append(comparison(sql, one.operator, one.operands))

    where = clause("WHERE", [*shown, *having], "\n  AND ")
    keys = [key for one in query.order for key in _sort_keys(statement, one, groups)]
    lines = [
        "SELECT " + ", ".join(map(str, outputs)),
        f"FROM {nested(figures)} AS figures",
        *where,
        *order_and_limit(keys, query),
    ]
    return "\n".join(lines)


def _shown_changes(measure: Measure, statement: SelectStatement) -> list[SelectItem]:
    """Return both figures and the changes; in a series the later figure stands first."""
    before = SelectItem(quoted(names_of(measure, statement)[0]))
    after, *changes = _changes(measure, statement).values()
    if statement.query.comparison is not None:
        return [before, after, *changes]

    return [after, before, *changes]


def _sort_keys(statement: SelectStatement, order: Order, groups: list[list[str]]) -> list[str]:
    if order.measure is not None:
        names = [_changes(order.measure, statement)[order.change].name]
    elif order.column is None:
        times = [at for at, one in enumerate(statement.query.dimensions) if at and one.is_of_time]
        later = [name for at in times for name in groups[at]]
        return [*(name + direction(order.descending) for name in groups[0]), *later]
    else:
        dimensions = statement.query.dimensions
        shown = [(dimension.table, dimension.column, dimension.via) for dimension in dimensions]
        names = groups[shown.index((order.column.table, order.column.column, order.column.via))]

    return [name + direction(order.descending) for name in names]


def _is_number(measure: Measure, statement: SelectStatement) -> bool:
    if measure.function in _COUNTS or measure.is_age:
        return True

    return kind_of(statement.schema.column(measure.table, str(measure.column))) == "number"
