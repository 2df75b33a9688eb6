"""Values of an intent as values of a column's type, and days that are relative to today."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation

from common.errors import InvalidRequest
from etl.binding.intent_checks import invalid
from etl.meaning.bound import RelativeDay, Scalar
from etl.meaning.calendar_periods import period_of, shifted
from etl.meaning.value_kinds import DAYS, NUMBERS, kind_of_type
from etl.schemas.parameters import RelativeDayValue
from etl.schemas.reading import read_model

_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}


def bind_value(value: object, type_: str, field: str, today: date) -> Scalar | RelativeDay:
    """Return a value of the request as one that can be compared with values of the type.

    Raises:
        InvalidRequest: it can't.
    """
    kind = kind_of_type(type_)
    if kind in DAYS:
        return _day(value, type_, field, today)
    if kind in NUMBERS:
        return _number(value, type_, field)
    if kind == "boolean":
        return _boolean(value, type_, field)
    if not isinstance(value, str):
        raise _wrong_type(type_, field)

    return value


def _number(value: object, type_: str, field: str) -> int | Decimal:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, float | Decimal | str):
        raise _wrong_type(type_, field)

    try:
        number = Decimal(str(value))
    except InvalidOperation as error:
        raise _wrong_type(type_, field) from error

    if not number.is_finite():
        raise _wrong_type(type_, field)

    return number


def _boolean(value: object, type_: str, field: str) -> bool:
    if isinstance(value, bool):
        return value

    word = value.lower() if isinstance(value, str) else ""
    if word not in _BOOLEANS:
        raise _wrong_type(type_, field)

    return _BOOLEANS[word]


def _day(value: object, type_: str, field: str, today: date) -> date | datetime | RelativeDay:
    if isinstance(value, dict):
        return _relative_day(read_model(RelativeDayValue, value, field), today, field)
    if not isinstance(value, str):
        raise _wrong_type(type_, field)

    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise _wrong_type(type_, field) from error

    has_time = ":" in value or "T" in value
    return moment if has_time else moment.date()


def _relative_day(value: RelativeDayValue, today: date, field: str) -> RelativeDay:
    period = period_of(today, value.unit, "UTC")
    try:
        day = shifted(period, value.unit, value.offset)
    except (ValueError, OverflowError) as error:
        zh, en = "超出了日历的范围。", "it is beyond the calendar."
        raise invalid(f"{field}.offset", zh, en) from error

    return RelativeDay(_variable(value), day)


def _variable(value: RelativeDayValue) -> str:
    """Return the name of the project's variable for a relative day."""
    if not value.offset:
        return f"{value.unit}_start"

    sign = "plus" if value.offset > 0 else "minus"
    return f"{value.unit}_{sign}_{abs(value.offset)}"


def next_day(day: date | RelativeDay) -> date | RelativeDay:
    """Return the day after, which bounds a whole day of moments."""
    if isinstance(day, RelativeDay):
        return RelativeDay(f"{day.variable}_next_day", day.value + timedelta(days=1))

    return day + timedelta(days=1)


def is_day(value: object) -> bool:
    """Tell whether a bound value is a day, not a moment."""
    if isinstance(value, RelativeDay):
        return True

    if not isinstance(value, date):
        return False

    return not isinstance(value, datetime)


def _wrong_type(type_: str, field: str) -> InvalidRequest:
    return invalid(field, f"应为类型 {type_} 的值。", f"it must be a value of the type {type_}.")
