"""What a window step computes over the rows of a result."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, Literal

from etl.meaning.bound import WindowStep
from etl.meaning.evaluation import divide
from etl.meaning.figures import average, hashable, total
from etl.schemas.parameters import WindowFunction

Row = dict[str, Any]
Direction = Literal["asc", "desc"]
Sorting = Sequence[tuple[str, Direction]]


def sorted_rows(rows: Sequence[Row], sorting: Sorting) -> list[Row]:
    """Sort rows as PostgreSQL does: NULL last when ascending, first when descending."""

    def compared(one: Row, other: Row) -> int:
        for column, direction in sorting:
            sign = _compared(one[column], other[column])
            if sign:
                return sign if direction == "asc" else -sign
        return 0

    return sorted(rows, key=cmp_to_key(compared))


def _compared(one: Any, other: Any) -> int:
    """Return -1, 0 or 1; NULL is more than any value."""
    if one is None or other is None:
        return int(one is None) - int(other is None)
    return int(one > other) - int(one < other)


def add_window(step: WindowStep, rows: Sequence[Row]) -> None:
    """Put the step's column into each row."""
    partitions: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        key = tuple(hashable(row[column]) for column in step.partition)
        partitions[key].append(row)
    for partition in partitions.values():
        ordered = sorted_rows(partition, step.sorting)
        computed = [_COMPUTED[step.function](step, ordered, place) for place in range(len(ordered))]
        for row, value in zip(ordered, computed, strict=True):
            row[step.name] = value


def _is_peer(step: WindowStep, one: Row, other: Row) -> bool:
    return all(_compared(one[column], other[column]) == 0 for column, _ in step.sorting)


def _row_number(_step: WindowStep, _rows: Sequence[Row], place: int) -> int:
    return place + 1


def _first_peer(step: WindowStep, rows: Sequence[Row], place: int) -> int:
    while place > 0 and _is_peer(step, rows[place - 1], rows[place]):
        place -= 1
    return place


def _rank(step: WindowStep, rows: Sequence[Row], place: int) -> int:
    return _first_peer(step, rows, place) + 1


def _dense_rank(step: WindowStep, rows: Sequence[Row], place: int) -> int:
    before = range(1, place + 1)
    return 1 + sum(not _is_peer(step, rows[one - 1], rows[one]) for one in before)


def _shifted(step: WindowStep, rows: Sequence[Row], place: int) -> Any:
    wanted = place - step.offset if step.function == "lag" else place + step.offset
    return rows[wanted][_column(step)] if 0 <= wanted < len(rows) else None


def _framed(step: WindowStep, rows: Sequence[Row], place: int) -> Any:
    values = [row[_column(step)] for row in _frame(step, rows, place)]
    known = [value for value in values if value is not None]
    if not known:
        return None
    return total(known) if step.function == "sum" else average(known)


def _frame(step: WindowStep, rows: Sequence[Row], place: int) -> Sequence[Row]:
    if step.rows is not None:
        return rows[max(0, place - step.rows + 1) : place + 1]
    end = place + 1
    while end < len(rows) and _is_peer(step, rows[place], rows[end]):
        end += 1
    return rows[:end]


def _share(step: WindowStep, rows: Sequence[Row], place: int) -> Any:
    values = [row[_column(step)] for row in rows]
    value = values[place]
    known = [one for one in values if one is not None]
    return None if value is None else divide(value, total(known))


def _column(step: WindowStep) -> str:
    if step.column is None:
        raise TypeError(f"{step.function} needs a column")
    return step.column


_COMPUTED: Mapping[WindowFunction, Callable[[WindowStep, Sequence[Row], int], Any]] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "lag": _shifted,
    "lead": _shifted,
    "sum": _framed,
    "avg": _framed,
    "share": _share,
}
