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
from itertools import chain
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
    all_rows = chain(wanted, answer)
    names = _number_names(chain.from_iterable(all_rows))
    columns = _plain_columns(wanted, names)
    offered = Counter(_plain_columns(answer, names))
    if in_order:
        return Counter(columns) <= offered
    return _is_found(columns, offered)


def _plain_columns(rows: Rows, names: dict[Decimal, int]) -> list[tuple[Any, ...]]:
    """Return the columns of rows, of values that can be compared."""
    columns = zip(*rows, strict=True)
    return [tuple(_plain(value, names) for value in column) for column in columns]


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
    match value:
        case bool():
            return "truth", value
        case int() | float() | Decimal():
            number = Decimal(value)
            return "number", names.get(number, str(number))
        case str():
            return "text", value.rstrip(" ")
        case datetime.date():
            return _plain_day(value)
        case list() | tuple():
            return "list", tuple(_plain(each, names) for each in value)
        case dict():
            return "object", frozenset((key, _plain(each, names)) for key, each in value.items())
        case memoryview():
            return "bytes", bytes(value)
    return type(value).__name__, str(value)


def _plain_day(value: datetime.date) -> tuple[str, datetime.date]:
    """Return a day or a moment; a timestamp at midnight is its day."""
    if not isinstance(value, datetime.datetime):
        return "date", value
    if value.time() == datetime.time():
        return "date", value.date()
    if value.tzinfo is None:
        return "time", value
    return "time", value.astimezone(datetime.UTC)


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
    """Yield the finite numbers, those in lists and objects too."""
    for value in values:
        match value:
            case bool():
                continue  # which is an int in Python
            case int() | float() | Decimal():
                number = Decimal(value)
                if number.is_finite():
                    yield number
            case list() | tuple():
                yield from _numbers(value)
            case dict():
                yield from _numbers(value.values())


def _are_close(one: Decimal, other: Decimal) -> bool:
    if one == one.to_integral_value() and other == other.to_integral_value():
        return one == other
    return abs(one - other) <= max(_CLOSE, _CLOSE_SHARE * abs(other))
