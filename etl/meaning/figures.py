"""The functions of measures and windows."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

from etl.meaning.evaluation import add, divide, known_values
from etl.schemas.parameters import MeasureFunction


def figure(function: MeasureFunction, values: Iterable[Any]) -> Any:
    """Aggregate values; None is left out, and nothing gives None but for counts."""
    without_nulls = known_values(values)
    if function in _COUNTS:
        return _COUNTS[function](without_nulls)
    if not without_nulls:
        return None

    return _FIGURES[function](without_nulls)


def hashable(value: Any) -> Hashable:
    """Return something that is equal exactly where the values are."""
    if isinstance(value, dict | list):
        return repr(value)

    hashed: Hashable = value
    return hashed


def row_identity(row: Mapping[str, Any], names: Iterable[str]) -> Hashable:
    """Return something that is equal where rows have equal values in these columns."""
    return tuple(hashable(row[name]) for name in names)


def _distinct_count(values: Sequence[Any]) -> int:
    return len({hashable(value) for value in values})


def _sum(values: Sequence[Any]) -> Any:
    return reduce(add, values)


def _average(values: Sequence[Any]) -> Any:
    """Return the mean; of integers it is a decimal."""
    return divide(_sum(values), len(values))


def _median(values: Sequence[Any]) -> Any:
    """Return the middle value, or the mean of the two in the middle; of integers a decimal."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 0:
        return divide(add(ordered[middle - 1], ordered[middle]), 2)

    value = ordered[middle]
    if isinstance(value, int):
        return Decimal(value)

    return value


_COUNTS: Mapping[MeasureFunction, Callable[[Sequence[Any]], int]] = {
    "count": len,
    "count_distinct": _distinct_count,
}
_FIGURES: Mapping[MeasureFunction, Callable[[Sequence[Any]], Any]] = {
    "sum": _sum,
    "avg": _average,
    "min": min,
    "max": max,
    "median": _median,
}
"""Functions of at least one value."""
