"""The values of columns that an intent's steps make."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from etl.meaning.bound import BoundColumn, MapStep, RateStep, WindowStep
from etl.meaning.row_expressions import common_type
from etl.meaning.value_kinds import bare_type, kind_of_type
from etl.planning.group_query import aggregate_type
from etl.planning.row_query import InputRows, RowQuery
from etl.planning.sql_trees import all_of, call, cast, literal, not_null, selection, sorting, table
from etl.planning.typed_values import (
    Resolve,
    TypedValue,
    literal_type,
    local_moment,
)
from etl.schemas.parameters import WindowFunction


def mapped_value(step: MapStep, resolve: Resolve) -> TypedValue:
    """Return what stored values are mapped to."""
    subject = resolve(step.column)
    default = None if step.default is None else literal(step.default)
    if not step.mapping:
        return TypedValue(default or exp.Null(), "text")

    cases = []
    types = []
    for old, new in step.mapping:
        cases.append(exp.If(this=literal(old), true=literal(new)))
        types.append(literal_type(new))

    if step.default is not None:
        types.append(literal_type(step.default))

    case = exp.Case(this=subject.tree(), ifs=cases, default=default)
    kind = common_type(types)
    if kind == "text":
        return TypedValue(cast(case, "text"), kind)

    return TypedValue(case, kind)


def rated_value(step: RateStep, resolve: Resolve, rates: InputRows, time_zone: str) -> TypedValue:
    """Return the amount in the wanted currency, by the rate of its day or the last before it."""
    amount, currency = resolve(step.amount), resolve(step.currency)
    of_rates = rates.values()

    def rates_column(name: str) -> TypedValue:
        return of_rates[BoundColumn(step.rates, name)]

    rate = rates_column(step.rate)
    rate_day = _day(rates_column(step.rate_day), time_zone)
    compared = exp.LTE if step.is_latest else exp.EQ
    kept = [
        exp.EQ(this=rates_column(step.rate_currency).tree(), expression=currency.tree()),
        compared(this=rate_day, expression=_day(resolve(step.day), time_zone)),
        not_null(rate.tree()),
    ]
    if step.target_currency is not None:
        target = rates_column(step.target_currency).tree()
        kept.append(exp.EQ(this=target, expression=exp.Literal.string(step.to)))

    last = selection([(step.rate, rate.tree())], table(rates.name)).where(all_of(kept))
    order = [sorting(rate.tree(), "desc")]
    if step.is_latest:
        order.insert(0, sorting(rate_day.copy(), "desc"))

    last.set("order", exp.Order(expressions=order))
    last.limit(1, copy=False)
    converted = exp.Mul(this=amount.tree(), expression=exp.Subquery(this=last))
    is_there = exp.EQ(this=currency.tree(), expression=exp.Literal.string(step.to))
    stays = exp.If(this=is_there, true=amount.tree())
    case = exp.Case(ifs=[stays], default=converted)
    return TypedValue(case, common_type([bare_type(amount.type), bare_type(rate.type)]))


def _day(value: TypedValue, time_zone: str) -> exp.Expr:
    """Return the day of a date, or of a moment in the intent's time zone."""
    if kind_of_type(value.type) == "date":
        return value.tree()

    return cast(local_moment(value, time_zone), "date")


# ------------------------------------------------------------------------------
# windows

_RANKINGS: Mapping[WindowFunction, Callable[[], exp.Expr]] = {
    "row_number": lambda: exp.RowNumber(),
    "rank": lambda: call("rank"),
    "dense_rank": lambda: call("dense_rank"),
}


def window_value(step: WindowStep, rows: RowQuery) -> TypedValue:
    """Return a window's value over rows whose columns are settled."""
    if step.function in _RANKINGS:
        return TypedValue(_window_figure(step, rows, _RANKINGS[step.function]()), "bigint")
    if step.column is None:
        raise ValueError(f"the window {step.name} needs a column")

    value = rows.value(BoundColumn("", step.column))
    if step.function == "share":
        return _share(step, rows, value)
    if step.function in ("lag", "lead"):
        shift = exp.Lag if step.function == "lag" else exp.Lead
        offset = exp.Literal.number(step.offset)
        shifted = shift(this=value.tree(), offset=offset)
        return TypedValue(_window_figure(step, rows, shifted), value.type)

    function: WindowFunction = step.function
    figure = call(function, value.tree())
    kind = aggregate_type("avg" if function == "avg" else "sum", value.type)
    return TypedValue(_window_figure(step, rows, figure), kind)


def _window_figure(step: WindowStep, rows: RowQuery, figure: exp.Expr) -> exp.Expr:
    order = [(BoundColumn("", name), direction) for name, direction in step.sorting]
    return exp.Window(
        this=figure,
        partition_by=[rows.value(BoundColumn("", name)).tree() for name in step.partition],
        order=rows.ordering(order) if order else None,
        spec=_frame(step),
    )


def _frame(step: WindowStep) -> exp.WindowSpec | None:
    if step.rows is None:
        return None

    return exp.WindowSpec(
        kind="ROWS",
        start=exp.Literal.number(step.rows - 1),
        start_side="PRECEDING",
        end="CURRENT ROW",
    )


def _share(step: WindowStep, rows: RowQuery, value: TypedValue) -> TypedValue:
    """Return the value divided by the sum of its partition, whatever the order is."""
    total = exp.Window(
        this=call("sum", value.tree()),
        partition_by=[rows.value(BoundColumn("", name)).tree() for name in step.partition],
    )
    is_whole = kind_of_type(value.type) == "integer"
    part = cast(value.tree(), "numeric") if is_whole else value.tree()
    whole = exp.Nullif(this=total, expression=exp.Literal.number(0))
    kind = "double precision" if kind_of_type(value.type) == "float" else "numeric"
    return TypedValue(exp.Div(this=part, expression=whole, typed=True), kind)
