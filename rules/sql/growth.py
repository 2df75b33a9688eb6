"""Figures beside those they are compared with, and how they changed: of two sets of rows, or from bucket to bucket."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from common.postgres.identifiers import quoted
from rules.linking.moments import Moment, Period, Unit
from rules.query.query import Change, ColumnRef, Condition, Dimension, Measure, Order, Query
from rules.schema.facts import kind_of
from rules.sql.column_names import Output, direction, group_name
from rules.sql.comparisons import comparison
from rules.sql.identifiers import moment_sql
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


@dataclass(frozen=True)
class Names:
    """What the columns of one figure are called: two figures, the difference, and it in percent."""

    before: str
    after: str
    difference: str
    percent: str

    def of(self, change: Change | None) -> str:
        """The column that an order is about."""
        return quoted({"difference": self.difference, "percent": self.percent, None: self.after}[change])


def names_of(measure: Measure, statement: Statement) -> Names:
    """The names of the columns of the figure."""
    name = statement.alias(measure)
    short = name.encode()[:_LONGEST].decode(errors="ignore")
    ends = ("_first", "_second") if statement.query.comparison is not None else ("_before", "")
    before, after = (f"{short}{end}" if end else name for end in ends)
    return Names(before, after, f"{short}_change", f"{short}_change_percent")


def _figures(measure: Measure, statement: Statement) -> dict[Change | None, str]:
    """The second figure and its changes as expressions over the columns of both."""
    names = names_of(measure, statement)
    before, after = quoted(names.before), quoted(names.after)
    percent = percentage(f"({after} - {before})", f"abs({before})", statement.is_float(measure))
    return {None: after, "difference": f"{after} - {before}", "percent": percent}


def compared(statement: Statement) -> str:
    """A statement that gives both figures of each group, with the names that `with_changes` takes."""
    query = statement.query
    assert query.comparison is not None
    sides = [statement.frame.all_of(side) for side in (query.comparison.first, query.comparison.second)]
    outputs = statement.dimension_outputs()
    for measure in query.measures:
        names = names_of(measure, statement)
        for side, name in zip(sides, (names.before, names.after), strict=True):
            outputs.append(Output(statement.aggregate_sql(measure, side), name))
    return statement.selected(outputs)


def grown(statement: Statement) -> str:
    """The statement for the figures of each bucket and their changes."""
    query = statement.query
    dated = [one for one in query.dimensions if one.bucket is not None]
    if len(dated) != 1 or any(one.is_share or one.per for one in query.measures):
        raise Unrenderable("growth is that of plain figures by one date")
    reach = _reach(query, dated[0])
    inner = statement.of(replace(query, conditions=reach.conditions, having=(), order=(), limit=None))
    groups = [sql for one in query.dimensions if one not in dated for sql in inner.group_columns(one)]
    back = f"'{reach.step}' PRECEDING"
    window = over(groups, inner.group_columns(dated[0]), [f"RANGE BETWEEN {back} AND {back}"])
    outputs = inner.dimension_outputs()
    for measure in query.measures:
        figure, names = inner.aggregate_sql(measure), names_of(measure, statement)
        outputs += [Output(figure, names.after), Output(f"max({figure}) {window}", names.before)]
    shown = [f"{quoted(group_name(dated[0]))} >= {moment_sql(reach.start)}"] if reach.start is not None else []
    order = query.order or (Order(column=ColumnRef(dated[0].table, str(dated[0].column)), descending=False),)
    return with_changes(statement.of(replace(query, order=order)), inner.selected(outputs), shown)


@dataclass(frozen=True)
class _Reach:
    """How far back figures are needed: `step` before each bucket; those before `start` are not shown."""

    step: str
    conditions: tuple[Condition, ...]
    start: Moment | None = None


def _reach(query: Query, dated: Dimension) -> _Reach:
    """The conditions with the period widened by one step, where it begins with a whole bucket."""
    unit, column = dated.bucket, ColumnRef(dated.table, str(dated.column), dated.via)
    assert unit is not None
    back, count = (unit, 1) if query.growth == "bucket" else _YEARS.get(unit, ("year", 1))
    step = _STEPS[back] if count == 1 else f"{count * 7} days"
    conditions = (*query.conditions, Condition(column, "not null"))
    found = [one for one in query.conditions if one.operator == "during" and one.column == column]
    period = found[0].operands[0] if len(found) == 1 and len(found[0].operands) == 1 else None
    if not isinstance(period, Period) or period.start is None or not _begins(period.start, unit):
        return _Reach(step, conditions)
    try:
        wider = replace(period, start=period.start.shifted(back, -count), grain=None)
    except (ValueError, OverflowError):  # 29 February has no such day a year before
        return _Reach(step, conditions)
    kept = tuple(replace(one, operands=(wider,)) if one == found[0] else one for one in conditions)
    return _Reach(step, kept, period.start)


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
        names, figures_of = names_of(measure, statement), _figures(measure, statement)
        both = [Output(quoted(names.before)), Output(quoted(names.after))]
        outputs += both if query.comparison is not None else both[::-1]
        outputs += [Output(figures_of["difference"], names.difference), Output(figures_of["percent"], names.percent)]
    having = [
        comparison(_figures(one.measure, statement)[one.change], one.operator, one.operands) for one in query.having
    ]
    keys = [key for one in query.order for key in _keys(statement, one, groups)]
    where = clause("WHERE", [*shown, *having], "\n  AND ")
    lines = ["SELECT " + ", ".join(map(str, outputs)), f"FROM {nested(figures)} AS figures", *where]
    return "\n".join([*lines, *order_and_limit(keys, query)])


def _keys(statement: Statement, order: Order, groups: list[list[str]]) -> list[str]:
    if order.measure is not None:
        names = [names_of(order.measure, statement).of(order.change)]
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
