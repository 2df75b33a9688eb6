"""Values as columns of a type hold them: conversions, bounds of types, and what lies beside one."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from common.values import Column
from etl.meaning.value_kinds import DAYS, ValueKind, kind_of_type

ANCHOR = date(2024, 1, 1)
"""The day around which days are made up."""
TICK = timedelta(microseconds=1)
"""The time between a moment and the one before."""
_DAY = timedelta(days=1)
_USUAL_DAYS = (0, 1, 40)  # after the anchor
_USUAL: dict[ValueKind, tuple[Any, ...]] = {
    "integer": (1, 2, -3, 0),
    "numeric": (Decimal(1), Decimal(2), Decimal("-2.5"), Decimal(0)),
    "float": (1.0, 2.0, -2.5, 0.0),
    "text": ("A", "B", "C"),
    "boolean": (True, False),
}
_LARGEST_SMALLINT = Decimal(32767)
_LARGEST = Decimal(2_000_000_000)
_SCALE = 2  # digits behind the point, where a type has no bound for them
_NUMERIC = re.compile(r"numeric\((\d+)(?:, *(-?\d+))?\)")
_CHARACTERS = re.compile(r"character(?: varying)?\((\d+)\)")


def usual_values(kind: ValueKind, zone: str) -> list[Any]:
    """Return a few values of a kind; none of kinds that are only handed on."""
    if kind in DAYS:
        return [as_day(ANCHOR + day * _DAY, kind, zone) for day in _USUAL_DAYS]

    return list(_USUAL.get(kind, ()))


# ------------------------------------------------------------------------------
# conversions


def as_kind(value: Any, kind: ValueKind, zone: str) -> Any:
    """Return the value as a column of that kind holds it; None where it can't."""
    if kind in DAYS:
        return as_day(value, kind, zone)
    if kind in _PYTHON_TYPES:
        if isinstance(value, _PYTHON_TYPES[kind]):
            return value

        return None

    if kind in _CONVERSIONS and is_number(value):
        return _CONVERSIONS[kind](value)

    return None


_PYTHON_TYPES: dict[ValueKind, type] = {"boolean": bool, "text": str}
_CONVERSIONS: dict[ValueKind, Callable[[Any], Any]] = {
    "integer": int,
    "numeric": lambda value: Decimal(str(value)),
    "float": float,
}


def number_in(column: Column, number: int | Decimal) -> Any:
    """Return the number as the column holds it, a whole one unless its kind says otherwise."""
    convert = _CONVERSIONS.get(kind_of_type(column.type), int)
    return convert(number)


def as_day(value: Any, kind: ValueKind, zone: str) -> date | None:
    """Return a day or moment as columns of that kind hold it; None for what is none."""
    day = _read_day(value) if isinstance(value, str) else value
    if not isinstance(day, date):
        return None
    if kind == "date":
        return plain_day(day)

    moment = day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    if kind == "timestamp":
        return moment.replace(tzinfo=None)

    has_zone = moment.tzinfo is not None
    if has_zone:
        return moment

    return moment.replace(tzinfo=ZoneInfo(zone))


def _read_day(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def plain_day(day: date) -> date:
    """Return the day of a moment; a day as it is."""
    if isinstance(day, datetime):
        return day.date()

    return day


def is_number(value: Any) -> bool:
    """Tell whether a value is a number; truth values are none."""
    if not isinstance(value, int | float | Decimal):
        return False

    return not isinstance(value, bool)


def is_exact_number(value: Any) -> bool:
    """Tell whether a value is a number that computing does not round."""
    return is_number(value) and not isinstance(value, float)


# ------------------------------------------------------------------------------
# keys


def numbered_key(column: Column, number: int) -> Any:
    """Return the key with that number, in the column's type; None of types without keys."""
    kind = kind_of_type(column.type)
    if kind == "text" and column.allowed:
        return column.allowed[number % len(column.allowed)]
    if kind in DAYS:
        return usual_values(kind, "UTC")[0] + number * _DAY
    if column.type == "uuid":
        return UUID(int=number + 1)

    key_of = _KEYS.get(kind)
    if key_of is None:
        return None

    return key_of(number)


_KEYS: dict[ValueKind, Callable[[int], Any]] = {
    "integer": lambda number: number + 1,
    "numeric": lambda number: Decimal(number + 1),
    "float": lambda number: number + 1,
    "text": lambda number: f"K{number}",
    "boolean": lambda number: number % 2 == 0,
}


# ------------------------------------------------------------------------------
# what types hold


@cache
def largest_number(type_: str) -> Decimal:
    """Return the largest amount that made-up rows have in a column of the type."""
    if type_ == "smallint":
        return _LARGEST_SMALLINT

    precision = _precision(type_)
    if precision is None:
        return _LARGEST

    digits, scale = precision
    whole_digits = max(digits - scale, 0)
    return Decimal(10) ** whole_digits - 1


@cache
def longest_text(type_: str) -> int | None:
    """Return how many letters texts of the type may have; None for any number of them."""
    written = _CHARACTERS.fullmatch(type_)
    if written is not None:
        return int(written[1])

    return 1 if type_ == "character" else None


def _precision(type_: str) -> tuple[int, int] | None:
    """Return the digits of a `numeric` type, in all and behind the point; None without bounds."""
    written = _NUMERIC.fullmatch(type_)
    if written is None:
        return None

    return int(written[1]), int(written[2] or 0)


def neighbours_of(value: Any, type_: str) -> list[Any]:
    """Return the values right below and above one in a column of the type."""
    if isinstance(value, bool):
        return [not value]

    step = _smallest_step(value, type_)
    neighbours = []
    for move in (-step, step):
        with suppress(OverflowError):  # what lies beyond the calendar
            neighbours.append(value + move)

    return neighbours


def _smallest_step(value: Any, type_: str) -> Any:
    for python_type, step in _STEPS:
        if isinstance(value, python_type):
            return step

    precision = _precision(type_)
    scale = _SCALE if precision is None else precision[1]
    return Decimal(1).scaleb(-scale)


_STEPS: tuple[tuple[type, Any], ...] = (
    (datetime, TICK),
    (date, _DAY),
    (int, 1),
    (float, 0.5),
)
