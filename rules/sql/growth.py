"""Figures beside those they are compared with, and how they changed: of two sets of rows, or from bucket to bucket."""

from collections.abc import Iterable
from dataclasses import replace

from common.postgres.identifiers import quoted
from rules.linking.moments import Moment, Period, Unit
from rules.query.query import Change, ColumnRef, Condition, Dimension, Measure, Order, Query
from rules.schema.facts import kind_of
from rules.sql.column_names import Output, direction, group_name
from rules.sql.expressions import comparison, moment_sql
from rules.sql.statement import Statement, Unrenderable, clause, nested, order_and_limit, over, percentage

_LONGEST = 44  # bytes of a figure's name; PostgreSQL would cut what is put behind it at 63
_STEPS: dict[Unit, str] = {
    "day": "1 day",
    "week": "7 days",
    "month": "1 month",
    "quarter": "3 months",
    "year": "1 year",
}
_YEARS: dict[Unit, tuple[Unit, int]] = {"week": ("week", 52)}  # a year before the week is no Monday
_COUNTS = ("count", "count_distinct", "metric")


def names_of(measure: Measure, statement: Statement) -> tuple[str, str]:
    """What the columns of both figures are called: of what it is compared with, and of the figure itself."""
    short = _short(measure, statement)
    if statement.query.comparison is not None:
        return f"{short}_first", f"{short}_second"
    return f"{short}_before", statement.alias(measure)


def _short(measure: Measure, statement: Statement) -> str:
    return statement.alias(measure).encode()[:_LONGEST].decode(errors="ignore")


def _changes(measure: Measure, statement: Statement) -> dict[Change | None, Output]:
    """The second figure and its changes, of the columns of both."""
    before, after = map(quoted, names_of(measure, statement))
    percent = percentage(f"({after} - {before})", f"abs({before})", statement.is_float(measure))
    name = f"{_short(measure, statement)}_change"
    return {
        None: Output(after),
        "difference": Output(f"{after} - {before}", name),
        "percent": Output(percent, f"{name}_percent"),
    }


def compared(statement: Statement) -> str:
    """A statement that gives both figures of each group, with the names that `with_changes` takes."""
    query = statement.query
    assert query.comparison is not None
    sides = [statement.frame.all_of(side) for side in (query.comparison.first, query.comparison.second)]
    outputs = statement.dimension_outputs()
    for measure in query.measures:
        for side, name in zip(sides, names_of(measure, statement), strict=True):
            outputs.append(Output(statement.aggregate_sql(measure, side), name))
    return statement.selected(outputs)


def grown(statement: Statement) -> str:
    """The statement for the figures of each bucket and their changes."""
    query = statement.query
    dated = [one for one in query.dimensions if one.bucket is not None]
    if len(dated) != 1 or any(one.is_share or one.per for one in query.measures):
        raise Unrenderable("growth is that of plain figures by one date")
    step, conditions, start = _reach(query, dated[0])
    inner = statement.of(replace(query, conditions=conditions, having=(), order=(), limit=None))
    groups = [sql for one in query.dimensions if one not in dated for sql in inner.group_columns(one)]
    reach = f"RANGE BETWEEN '{step}' PRECEDING AND '{step}' PRECEDING"
    window = over(groups, inner.group_columns(dated[0]), [reach])
    outputs = inner.dimension_outputs()
    for measure in query.measures:
        figure, (before, after) = inner.aggregate_sql(measure), names_of(measure, statement)
        outputs += [Output(figure, after), Output(f"max({figure}) {window}", before)]
    shown = [f"{quoted(group_name(dated[0]))} >= {moment_sql(start)}"] if start is not None else []
    order = query.order or (Order(column=ColumnRef(dated[0].table, str(dated[0].column)), descending=False),)
    return with_changes(statement.of(replace(query, order=order)), inner.selected(outputs), shown)


def _reach(query: Query, dated: Dimension) -> tuple[str, tuple[Condition, ...], Moment | None]:
    """How far before each bucket is looked, the conditions for that, and from where on buckets are shown.

    Where the period begins with a whole bucket, it is widened by that step.
    """
    unit, column = dated.bucket, ColumnRef(dated.table, str(dated.column), dated.via)
    assert unit is not None
    back, count = (unit, 1) if query.growth == "bucket" else _YEARS.get(unit, ("year", 1))
    step = _STEPS[back] if count == 1 else f"{count * 7} days"
    conditions = (*query.conditions, Condition(column, "not null"))
    found = [one for one in query.conditions if one.operator == "during" and one.column == column]
    period = found[0].operands[0] if len(found) == 1 and len(found[0].operands) == 1 else None
    if not isinstance(period, Period) or period.start is None or not _begins(period.start, unit):
        return step, conditions, None
    try:
        wider = replace(period, start=period.start.shifted(back, -count), grain=None)
    except (ValueError, OverflowError):  # before the calendar
        return step, conditions, None
    return step, tuple(replace(one, operands=(wider,)) if one == found[0] else one for one in conditions), period.start


_WHOLE: dict[Unit, tuple[Unit, ...]] = {"month": ("month", "quarter", "year"), "quarter": ("quarter", "year")}
_MONTHS = {"quarter": 3, "year": 12}


def _begins(moment: Moment, unit: Unit) -> bool:
    """Whether a bucket of the unit begins with the moment, whatever day it is today."""
    if unit == "day":
        return True
    if moment.day is not None:
        return Moment(trunc=unit).on(moment.day) == moment.day
    is_whole = moment.days % 7 == moment.months == 0 if unit == "week" else moment.days == 0
    return is_whole and moment.trunc in _WHOLE.get(unit, (unit,)) and moment.months % _MONTHS.get(unit, 1) == 0


def with_changes(statement: Statement, figures: str, shown: Iterable[str] = ()) -> str:
    """The statement that adds the changes to `figures`, keeps the rows that are asked for, and puts them in order."""
    query = statement.query
    are_numbers = all(_is_number(one, statement) for one in query.measures)
    if query.top_per or query.columns or query.distinct or not are_numbers:
        raise Unrenderable("only figures change")
    groups = statement.group_names()
    outputs = [Output(name) for names in groups for name in names]
    for measure in query.measures:
        before, (after, *changes) = (
            Output(quoted(names_of(measure, statement)[0])),
            _changes(measure, statement).values(),
        )
        outputs += [*((before, after) if query.comparison is not None else (after, before)), *changes]
    having = [
        comparison(_changes(one.measure, statement)[one.change].sql, one.operator, one.operands) for one in query.having
    ]
    keys = [key for one in query.order for key in _keys(statement, one, groups)]
    where = clause("WHERE", [*shown, *having], "\n  AND ")
    lines = ["SELECT " + ", ".join(map(str, outputs)), f"FROM {nested(figures)} AS figures", *where]
    return "\n".join([*lines, *order_and_limit(keys, query)])


def _keys(statement: Statement, order: Order, groups: list[list[str]]) -> list[str]:
    if order.measure is not None:
        names = [_changes(order.measure, statement)[order.change].name]
    elif order.column is None:
        names = groups[0]
    else:
        dimensions = statement.query.dimensions
        shown = [(one.table, one.column, one.via) for one in dimensions]
        names = groups[shown.index((order.column.table, order.column.column, order.column.via))]
    return [name + direction(order.descending) for name in names]


def _is_number(measure: Measure, statement: Statement) -> bool:
    if measure.function in _COUNTS or measure.is_age:
        return True
    return kind_of(statement.schema.column(measure.table, str(measure.column))) == "number"
