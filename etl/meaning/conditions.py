"""Conditions of an intent: which rows fulfil them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from etl.meaning.bound import (
    AnyOf,
    BoundColumn,
    BoundCondition,
    ExpressionTest,
    RelativeDay,
    RowTest,
)
from etl.meaning.evaluation import Lookup, comparable, evaluate_expression, same_value
from etl.schemas.parameters import ConditionOperator

Values = Callable[[BoundColumn], Any]
"""Gives the value that a column has in the row."""

_COMPARISONS: Mapping[ConditionOperator, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: bool(left == right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    "contains": lambda left, right: right in left,
    "prefix": lambda left, right: left.startswith(right),
    "suffix": lambda left, right: left.endswith(right),
}


def holds_all(tests: Iterable[RowTest], values: Values, time_zone: str) -> bool:
    """Tell whether a row fulfils all tests."""
    return all(_holds(test, values, time_zone) for test in tests)


def _holds(test: RowTest, values: Values, time_zone: str) -> bool:
    if isinstance(test, AnyOf):
        return any(_condition_holds(condition, values, time_zone) for condition in test.conditions)
    if isinstance(test, ExpressionTest):
        result = evaluate_expression(test.expression, expression_lookup(values), time_zone)
        return result is True

    return _condition_holds(test, values, time_zone)


def expression_lookup(values: Values) -> Lookup:
    """Return `values` as the lookup of an expression's columns."""
    return lambda column: values(BoundColumn(column.table, column.name))


_NULL_TESTS: Mapping[ConditionOperator, Callable[[Any], bool]] = {
    "is_null": lambda value: value is None,
    "not_null": lambda value: value is not None,
    "is_true": lambda value: value is True,
    "is_false": lambda value: value is False,
}
"""Operators that compare a value with nothing."""
_KEEPING_NULL = ("!=", "not_in")
"""Exclusions, which drop the values that they name and no others; the rest drops NULL."""


def _condition_holds(condition: BoundCondition, values: Values, time_zone: str) -> bool:
    value = values(condition.column)
    operator = condition.operator
    if operator in _NULL_TESTS:
        return _NULL_TESTS[operator](value)
    if value is None:
        return operator in _KEEPING_NULL
    if operator in _COMPARISONS:
        (other,) = _listed(condition)
        return _compares(value, operator, other, time_zone)

    if operator == "column=":
        other = values(_column(condition))
        if other is None:
            return False

        return same_value(value, other, time_zone)

    return _LIST_TESTS[operator](value, _listed(condition), time_zone)


def _column(condition: BoundCondition) -> BoundColumn:
    if not isinstance(condition.value, BoundColumn):
        raise TypeError(f"{condition.operator} compares with a column")

    return condition.value


def _listed(condition: BoundCondition) -> list[Any]:
    """Return the values of a condition, days in place of relative ones."""
    value = condition.value
    given = value if isinstance(value, tuple) else (value,)
    return [one.value if isinstance(one, RelativeDay) else one for one in given]


def _compares(value: Any, operator: ConditionOperator, other: Any, time_zone: str) -> bool:
    left, right = comparable(value, other, time_zone)
    return _COMPARISONS[operator](left, right)


def _is_among(value: Any, listed: Sequence[Any], time_zone: str) -> bool:
    return any(same_value(value, one, time_zone) for one in listed)


def _is_not_among(value: Any, listed: Sequence[Any], time_zone: str) -> bool:
    return not _is_among(value, listed, time_zone)


def _is_between(value: Any, bounds: Sequence[Any], time_zone: str) -> bool:
    low, high = bounds
    is_from_low = _compares(value, ">=", low, time_zone)
    return is_from_low and _compares(value, "<=", high, time_zone)


_LIST_TESTS: Mapping[ConditionOperator, Callable[[Any, Sequence[Any], str], bool]] = {
    "!=": _is_not_among,
    "not_in": _is_not_among,
    "in": _is_among,
    "between": _is_between,
}
