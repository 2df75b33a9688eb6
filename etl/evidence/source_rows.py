"""A few rows of a source, in which each column has each kind of value that it has in all."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from etl.planning.draft_test import TypedRows

_LEAST = 4


def few_rows(source: TypedRows) -> TypedRows:
    """Return rows that are enough to test what is done to each row by itself."""
    kept: list[tuple[Any, ...]] = []
    seen: set[tuple[int, object]] = set()
    has_twins = False
    for row in source.rows:
        kinds = {(place, _kind(value)) for place, value in enumerate(row)}
        is_twin = not has_twins and row in kept
        if is_twin or len(kept) < _LEAST or not kinds <= seen:
            kept.append(row)
            seen |= kinds

        has_twins = has_twins or is_twin

    return replace(source, rows=tuple(kept))


def _kind(value: Any) -> object:
    """Return the kind of a value: values of one kind are treated alike by functions of one row."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float | Decimal):
        is_whole = value == int(value)
        return value > 0, value == 0, is_whole

    if isinstance(value, str):
        return value == "", value == value.lower(), value == value.strip()

    return type(value)
