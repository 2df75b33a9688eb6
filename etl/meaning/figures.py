"""What the functions of measures and windows give for values."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

from etl.meaning.evaluation import add, divide
from etl.schemas.parameters import MeasureFunction


def figure(function: MeasureFunction, values: Sequence[Any]) -> Any:
    """Aggregate values; None is left out, and nothing gives None but for counts."""
    known = [value for value in values if value is not None]
    if function == "count":
        return len(known)
    if function == "count_distinct":
        return len({hashable(value) for value in known})
    return _FIGURES[function](known) if known else None


def hashable(value: Any) -> Hashable:
    """Return something that is equal exactly where the values are."""
    if isinstance(value, dict | list):
        return repr(value)
    hashed: Hashable = value
    return hashed


def total(values: Sequence[Any]) -> Any:
    """Add up; there is at least one value."""
    return reduce(add, values)


def average(values: Sequence[Any]) -> Any:
    """Return the mean; of integers it is a decimal."""
    return divide(total(values), len(values))


def _median(values: Sequence[Any]) -> Any:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        value = ordered[middle]
        return Decimal(value) if isinstance(value, int) else value
    return divide(add(ordered[middle - 1], ordered[middle]), 2)


_FIGURES: Mapping[MeasureFunction, Callable[[Sequence[Any]], Any]] = {
    "sum": total,
    "avg": average,
    "min": min,
    "max": max,
    "median": _median,
}
