"""Values as a SELECT sees them: conditions and expressions of an intent over what it reads."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from common.values import PeriodUnit
from etl.meaning.bound import (
    AnyOf,
    BoundColumn,
    BoundCondition,
    ExpressionTest,
    RelativeDay,
    RowTest,
    Scalar,
)
from etl.meaning.read_columns import bound_column
from etl.meaning.row_expressions import type_of, with_time_zone
from etl.meaning.value_kinds import DAYS, kind_of_type
from etl.planning.sql_trees import all_of, any_of, call, cast, is_null, literal, not_null, variable

TIMESTAMP = "timestamp without time zone"


@dataclass(frozen=True)
class TypedValue:
    """An expression over what a SELECT reads, and PostgreSQL's type of it."""

    expression: exp.Expr
    type: str

    def tree(self) -> exp.Expr:
        """Return the expression for use in one place of a tree."""
        return self.expression.copy()


Resolve = Callable[[BoundColumn], TypedValue]
"""Gives the value of a column of the intent where it is asked for."""


def computed_value(expression: exp.Expression, resolve: Resolve, time_zone: str) -> TypedValue:
    """Return an intent's expression over what `resolve` gives.

    Division by zero is NULL, and integers are divided as decimals.
    """

    def types(node: exp.Column) -> str:
        return resolve(bound_column(node)).type

    result_type = type_of(expression, types)
    tree = with_time_zone(expression, types, time_zone)
    # A root that is replaced needs something to hang on.
    root = exp.Paren(this=tree)
    for division in list(root.find_all(exp.Div, exp.Mod)):
        _protect_division(division, types)

    for node in list(root.find_all(exp.Column)):
        node.replace(resolve(bound_column(node)).tree())

    return TypedValue(root.this, result_type)


def _protect_division(division: exp.Expr, types: Callable[[exp.Column], str]) -> None:
    """Give NULL for a divisor of 0, and a decimal for a quotient of integers."""
    dividend, divisor = division.this, division.expression
    is_quotient = isinstance(division, exp.Div)
    is_whole = kind_of_type(type_of(dividend, types)) == "integer"
    if not isinstance(divisor, exp.Nullif):
        protected = exp.Nullif(this=divisor.copy(), expression=exp.Literal.number(0))
        division.set("expression", protected)

    if is_quotient:
        division.set("typed", True)
        division.set("safe", False)

    if is_quotient and is_whole:
        division.set("this", cast(dividend.copy(), "numeric"))


# ------------------------------------------------------------------------------
# conditions

_COMPARISONS: dict[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NullSafeNEQ,
    ">": exp.GT,
    ">=": exp.GTE,
    "<": exp.LT,
    "<=": exp.LTE,
    "column=": exp.EQ,
}


def condition(test: RowTest, resolve: Resolve, time_zone: str) -> exp.Expr:
    """Return a condition of an intent over what `resolve` gives."""
    if isinstance(test, ExpressionTest):
        value = computed_value(test.expression, resolve, time_zone)
        return exp.Paren(this=value.tree())

    if isinstance(test, AnyOf):
        return any_of(condition(part, resolve, time_zone) for part in test.conditions)

    return _Comparison(test, resolve, time_zone).tree()


def conditions(tests: tuple[RowTest, ...], resolve: Resolve, time_zone: str) -> exp.Expr | None:
    """Return a condition that holds when all tests do; None when there are none."""
    return all_of(condition(test, resolve, time_zone) for test in tests)


class _Comparison:
    """A condition on one column."""

    def __init__(self, test: BoundCondition, resolve: Resolve, time_zone: str) -> None:
        self._test = test
        self._resolve = resolve
        self._time_zone = time_zone
        self._subject = resolve(test.column)

    def tree(self) -> exp.Expr:
        operator, value = self._test.operator, self._test.value
        if operator == "is_null":
            return is_null(self._subject.tree())
        if operator == "not_null":
            return not_null(self._subject.tree())
        if operator in ("is_true", "is_false"):
            wanted = exp.Boolean(this=operator == "is_true")
            return exp.Is(this=self._subject.tree(), expression=wanted)

        if operator in ("contains", "prefix", "suffix"):
            return self._text_test(str(value))
        if isinstance(value, tuple):
            return self._many(value)

        return self._aligned_value(value)

    def _aligned_value(self, value: Scalar | RelativeDay | BoundColumn | None) -> exp.Expr:
        if isinstance(value, BoundColumn):
            left, right = aligned(self._subject, self._resolve(value), self._time_zone)
        elif value is None:
            raise ValueError(f"the condition {self._test} lacks its value")
        else:
            left, right = self._side((value,)), _operand(value)

        return _COMPARISONS[self._test.operator](this=left, expression=right)

    def _many(self, values: tuple[Scalar | RelativeDay, ...]) -> exp.Expr:
        if self._test.operator == "between":
            low, high = (_operand(value) for value in values)
            return exp.Between(this=self._side(values), low=low, high=high)

        is_excluding = self._test.operator == "not_in"
        if not values:
            return exp.Boolean(this=is_excluding)

        listed = exp.In(this=self._side(values), expressions=[_operand(value) for value in values])
        if is_excluding:
            return any_of((exp.Not(this=listed), is_null(self._subject.tree())))

        return listed

    def _side(self, values: tuple[Scalar | RelativeDay, ...]) -> exp.Expr:
        """Return the column, as local time where it is compared with days or local times."""
        is_moment = kind_of_type(self._subject.type) == "timestamptz"
        has_zones = any(_has_zone(value) for value in values)
        if is_moment and not has_zones:
            return local_moment(self._subject, self._time_zone)

        return self._subject.tree()

    def _text_test(self, text: str) -> exp.Expr:
        subject = self._subject.tree()
        if kind_of_type(self._subject.type) != "text":
            subject = cast(subject, "text")

        text_literal = exp.Literal.string(text)
        if self._test.operator == "contains":
            position = exp.StrPosition(this=subject, substr=text_literal)
            return exp.GT(this=position, expression=exp.Literal.number(0))

        end = exp.Left if self._test.operator == "prefix" else exp.Right
        cut = end(this=subject, expression=exp.Literal.number(len(text)))
        return exp.EQ(this=cut, expression=text_literal)


def _operand(value: Scalar | RelativeDay) -> exp.Expr:
    if isinstance(value, RelativeDay):
        return variable(value)

    return literal(value)


def _has_zone(value: Scalar | RelativeDay) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


def aligned(left: TypedValue, right: TypedValue, time_zone: str) -> tuple[exp.Expr, exp.Expr]:
    """Return two values for a comparison that does not depend on the session's time zone."""
    kinds = {kind_of_type(left.type), kind_of_type(right.type)}
    if "timestamptz" in kinds and kinds != {"timestamptz"}:
        return local_moment(left, time_zone), local_moment(right, time_zone)

    return left.tree(), right.tree()


# ------------------------------------------------------------------------------
# days and moments


def local_moment(value: TypedValue, time_zone: str) -> exp.Expr:
    """Return a day or moment; one with a zone as local time."""
    if kind_of_type(value.type) != "timestamptz":
        return value.tree()

    return exp.AtTimeZone(this=value.tree(), zone=exp.Literal.string(time_zone))


def period(value: TypedValue, unit: PeriodUnit, time_zone: str) -> TypedValue:
    """Return the first day of the value's period, for `hour` the hour."""
    if kind_of_type(value.type) not in DAYS:
        raise ValueError(f"{value.type} has no periods")

    moment = local_moment(value, time_zone)
    if kind_of_type(value.type) == "date":
        # Cut as it is, PostgreSQL would take it for a moment with a zone.
        moment = cast(moment, "timestamp")

    cut = call("date_trunc", exp.Literal.string(unit), moment)
    if unit == "hour":
        return TypedValue(cut, TIMESTAMP)

    return TypedValue(cast(cut, "date"), "date")


def in_period(value: TypedValue, unit: PeriodUnit | None, time_zone: str) -> TypedValue:
    """Return the value's period, or without a unit the value itself."""
    if unit is None:
        return value

    return period(value, unit, time_zone)


def literal_type(value: Scalar) -> str:
    """Return PostgreSQL's type of a literal."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return "timestamp with time zone"
    if type(value) is int:
        return _whole_type(value)

    return _LITERAL_TYPES.get(type(value), "numeric")


def _whole_type(value: int) -> str:
    for type_, bits in (("integer", 31), ("bigint", 63)):
        if -(2**bits) <= value < 2**bits:
            return type_

    return "numeric"


_LITERAL_TYPES: dict[type, str] = {
    bool: "boolean",
    Decimal: "numeric",
    date: "date",
    datetime: TIMESTAMP,
    str: "text",
}
