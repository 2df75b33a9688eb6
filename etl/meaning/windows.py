"""The functions of window steps, over the rows of a result."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, cmp_to_key
from typing import Any

from etl.meaning.bound import WindowStep
from etl.meaning.evaluation import divide
from etl.meaning.figures import figure, row_identity
from etl.schemas.parameters import SortOrder, WindowFunction

Row = dict[str, Any]
Sorting = Sequence[tuple[str, SortOrder]]


def sort_key(sorting: Sorting) -> Callable[[Mapping[str, Any]], Any]:
    """Return a key that sorts rows as PostgreSQL does: NULL last when ascending, else first.

    In the order `desc_nulls_last` NULL is the last as well.
    """
    return cmp_to_key(lambda one, other: _compared_rows(one, other, sorting))


def _compared_rows(one: Mapping[str, Any], other: Mapping[str, Any], sorting: Sorting) -> int:
    """Return less than 0 where the first row comes first, 0 where they are peers, else more."""
    for column, order in sorting:
        value, other_value = one[column], other[column]
        difference = _compared(value, other_value)
        has_null = value is None or other_value is None
        if order == "desc" or (order == "desc_nulls_last" and not has_null):
            difference = -difference
        if difference:
            return difference

    return 0


def _compared(one: Any, other: Any) -> int:
    """Return -1, 0 or 1; NULL is more than any value."""
    if one is None or other is None:
        return int(one is None) - int(other is None)

    return int(one > other) - int(one < other)


def add_window(step: WindowStep, rows: Sequence[Row]) -> None:
    """Put the step's column into each row."""
    partitions: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        partitions[row_identity(row, step.partition)].append(row)

    compute = _FUNCTIONS[step.function]
    for partition in partitions.values():
        ordered = _Partition(step, partition)
        computed = [compute(ordered, place) for place in range(len(partition))]
        for row, value in zip(ordered.rows, computed, strict=True):
            row[step.name] = value


class _Partition:
    """The rows of a partition in the step's order; a place is an index into them."""

    def __init__(self, step: WindowStep, rows: Sequence[Row]) -> None:
        self.step = step
        self.rows = sorted(rows, key=sort_key(step.sorting))

    def rank(self, place: int) -> int:
        first_peer = place
        while first_peer > 0 and self._are_peers(first_peer - 1, place):
            first_peer -= 1

        return first_peer + 1

    def dense_rank(self, place: int) -> int:
        rank = 1
        for one in range(1, place + 1):
            if not self._are_peers(one - 1, one):
                rank += 1

        return rank

    def shifted(self, place: int, rows: int) -> Any:
        """Return the value some rows after a place; NULL where the partition has no such row."""
        other_place = place + rows
        if other_place not in range(len(self.rows)):
            return None

        return self._values[other_place]

    def share(self, place: int) -> Any:
        value = self._values[place]
        if value is None:
            return None

        return divide(value, figure("sum", self._values))

    def framed_values(self, place: int) -> Sequence[Any]:
        """Return the values of the row at a place and of rows before it, over which it is added up.

        They are those of the step's number of rows, else of all rows before it and of its peers.
        """
        if self.step.rows is not None:
            first = max(0, place - self.step.rows + 1)
            return self._values[first : place + 1]

        end = place + 1
        while end < len(self.rows) and self._are_peers(place, end):
            end += 1

        return self._values[:end]

    def _are_peers(self, place: int, other: int) -> bool:
        """Tell whether the step's order puts two rows at the same rank."""
        return _compared_rows(self.rows[place], self.rows[other], self.step.sorting) == 0

    @cached_property
    def _values(self) -> list[Any]:
        column = self.step.column
        if column is None:
            raise TypeError(f"{self.step.function} needs a column")

        return [row[column] for row in self.rows]


_FUNCTIONS: Mapping[WindowFunction, Callable[[_Partition, int], Any]] = {
    "row_number": lambda _, place: place + 1,
    "rank": _Partition.rank,
    "dense_rank": _Partition.dense_rank,
    "lag": lambda partition, place: partition.shifted(place, -partition.step.offset),
    "lead": lambda partition, place: partition.shifted(place, partition.step.offset),
    "sum": lambda partition, place: figure("sum", partition.framed_values(place)),
    "avg": lambda partition, place: figure("avg", partition.framed_values(place)),
    "share": _Partition.share,
}
