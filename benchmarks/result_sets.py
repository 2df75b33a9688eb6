"""Says whether two results hold the same rows. Titles of columns and the order of columns don't
count.

- Each column of the wanted result has to be a column of the answer; the answer may have more.
- The rows are the same, each as often; their order counts only if it is asked for.
- Numbers are the same if they differ by at most 0.0001, or by a 10^12th of their size; whole
  numbers have to be equal.
- A timestamp at midnight is the same as its date. Blanks at the end of texts don't count. NULL is
  the same as NULL; nothing else is the same as a value of another kind: a number is not its text,
  and a truth value is no number.
"""

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

Rows = Sequence[Sequence[Any]]

_CLOSE = Decimal("0.0001")
_CLOSE_SHARE = Decimal(
    "1e-12"
)  # of a number's size: what sums of floats differ by when they are added in another order


def same_result(wanted: Rows, answer: Rows, *, in_order: bool = False) -> bool:
    """Tell whether some choice of the answer's columns gives the rows of `wanted`; results without
    rows are the same.

    Args:
        wanted, answer: rows as psycopg2 gives them.
        in_order: whether the rows have to come in the same order, too.
    """
    if len(wanted) != len(answer):
        return False
    if not wanted:
        return True
    names = _number_names(value for rows in (wanted, answer) for row in rows for value in row)
    columns = [
        tuple(_plain(value, names) for value in column) for column in zip(*wanted, strict=True)
    ]
    offered = Counter(
        tuple(_plain(value, names) for value in column) for column in zip(*answer, strict=True)
    )
    if in_order:
        return Counter(columns) <= offered
    return _is_found(columns, offered)


def _is_found(columns: Sequence[tuple[Any, ...]], offered: Counter[tuple[Any, ...]]) -> bool:
    """Tell whether the columns are offered with their rows in some order.

    Chooses one column after the other and compares the rows as far as they are chosen.
    """
    length = len(columns[0])
    bags = {other: Counter(other) for other in offered}
    candidates = [
        [other for other, bag in bags.items() if bag == Counter(column)] for column in columns
    ]

    def search(at: int, wanted: list[tuple[Any, ...]], chosen: list[tuple[Any, ...]]) -> bool:
        if at == len(columns):
            return True
        longer = _beside(wanted, columns[at])
        for other in candidates[at]:
            if not offered[other]:
                continue
            rows = _beside(chosen, other)
            if Counter(rows) != Counter(longer):
                continue
            offered[other] -= 1
            if search(at + 1, longer, rows):
                return True
            offered[other] += 1
        return False

    return search(0, [()] * length, [()] * length)


def _beside(rows: list[tuple[Any, ...]], column: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [(*row, value) for row, value in zip(rows, column, strict=True)]


def _plain(value: Any, names: dict[Decimal, int]) -> Any:
    """Return a value that can be hashed and equals that of every value which counts as the same."""
    if value is None:
        return None
    if isinstance(value, bool | int | float | Decimal):
        return ("truth", value) if isinstance(value, bool) else ("number", _name(value, names))
    if isinstance(value, str):
        return "text", value.rstrip(" ")
    if isinstance(value, datetime.datetime):
        if value.time() == datetime.time():
            return "date", value.date()
        return "time", value if value.tzinfo is None else value.astimezone(datetime.UTC)
    if isinstance(value, datetime.date):
        return "date", value
    if isinstance(value, list | tuple):
        return "list", tuple(_plain(each, names) for each in value)
    if isinstance(value, dict):
        return "object", frozenset((key, _plain(each, names)) for key, each in value.items())
    if isinstance(value, memoryview):
        return "bytes", bytes(value)
    return type(value).__name__, str(value)


def _name(value: int | float | Decimal, names: dict[Decimal, int]) -> Any:
    number = Decimal(value)
    return names[number] if number.is_finite() else str(number)


def _number_names(values: Iterable[Any]) -> dict[Decimal, int]:
    """Give each number a name that it shares with those close to it."""
    numbers = sorted(set(_numbers(values)))
    names: dict[Decimal, int] = {}
    first: Decimal | None = None
    for number in numbers:
        if first is None or not _are_close(first, number):
            first = number
        names[number] = names.get(first, len(names))
    return names


def _numbers(values: Iterable[Any]) -> Iterable[Decimal]:
    for value in values:
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            number = Decimal(value)
            if number.is_finite():
                yield number
        elif isinstance(value, list | tuple):
            yield from _numbers(value)
        elif isinstance(value, dict):
            yield from _numbers(value.values())


def _are_close(one: Decimal, other: Decimal) -> bool:
    if one == one.to_integral_value() and other == other.to_integral_value():
        return one == other
    return abs(one - other) <= max(_CLOSE, _CLOSE_SHARE * abs(other))
