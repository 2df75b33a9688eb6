"""Chooses the tables and columns of a prompt when not all fit: many tables before many columns.

The first ten tables, which are nearly always enough, come with their keys if anything fits at all.
What room is left goes to the columns that matter to the question, then to all columns, of one table
after the other, then to further tables. Each table says how many of its columns are left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from knowledge.tables.informative_columns import InformativeColumns
from llm.tokens import PER_TOKEN, weight

_SURE = 10  # tables that come with their keys before any comes with more
_MOST_COLUMNS = 120  # of one table
_MOST_FAILURES = 40  # tables in a row that don't fit, after which no more are tried
_LEFT_OUT = "  -- {} more columns are not shown"


@dataclass(frozen=True)
class DescribedTables:
    """The text of a table: a head, a line for each column, lines for keys of several columns."""

    head: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        return "\n".join((self.head, *self.columns, *self.keys))


class ShownTable:
    """A table that may be shown with some of its columns, the first ones of `columns`."""

    def __init__(self, described: DescribedTables, columns: InformativeColumns) -> None:
        self._described = described
        self._columns = columns
        self.count = 0

    @cached_property
    def _weights(self) -> list[int]:
        """Return weights of the table with no column, with one, with two …, in quarters of a token.

        The line that counts the columns left out is not in them.
        """
        total = weight("\n".join((self._described.head, *self._described.keys))) + PER_TOKEN
        weights = [total]
        for index in self._columns.order:
            total += weight(self._described.columns[index]) + 1
            weights.append(total)

        return weights

    def weight(self, count: int) -> int:
        """Return the weight of the table with `count` columns and the line's end behind it."""
        left_out = len(self._described.columns) - count
        if not left_out:
            return self._weights[count]

        return self._weights[count] + weight(_LEFT_OUT.format(left_out)) + 1

    @property
    def least(self) -> int:
        """Return the number of columns without which it is not shown."""
        return self._columns.keys

    @property
    def usual(self) -> int:
        """Return the number of columns that matter."""
        return min(self._columns.usual, max(_MOST_COLUMNS, self.least))

    @property
    def most(self) -> int:
        """Return the most columns that it is shown with."""
        return min(len(self._described.columns), max(_MOST_COLUMNS, self.least))

    def fitting(self, count: int, room: int) -> int:
        """Return how many columns fit, at most `count`; at least those that it has."""
        for fits in range(count, self.count, -1):
            if self.weight(fits) <= room:
                return fits

        return self.count

    def fitting_kind(self, room: int) -> int | None:
        """Count all columns, those that matter or the keys: the most that fit; None if none fit."""
        for count in (self.most, self.usual, self.least):
            if self.weight(count) <= room:
                return count

        return None

    @property
    def text(self) -> str:
        """Return the text with the columns that it has, in the table's own order."""
        shown = sorted(self._columns.order[: self.count])
        left_out = len(self._described.columns) - self.count
        lines = [self._described.columns[index] for index in shown]
        if left_out:
            lines.append(_LEFT_OUT.format(left_out))

        return "\n".join((self._described.head, *lines, *self._described.keys))


def with_fitting_columns(candidates: Iterable[ShownTable], room: int) -> list[ShownTable | None]:
    """Return the candidates with as many columns as fit, None for those that don't fit.

    Args:
        candidates: the most relevant first; those after many that don't fit are not looked at.
        room: in quarters of a token.
    """
    remaining = iter(candidates)
    first, room = _with_keys(islice(remaining, _SURE), room)
    room = _grown([table for table in first if table], room)
    return first + _with_most(remaining, room)


def _with_keys(tables: Iterable[ShownTable], room: int) -> tuple[list[ShownTable | None], int]:
    """Give the tables their keys as far as they fit; return them and the room that is left."""
    tried: list[ShownTable | None] = []
    for table in tables:
        needed = table.weight(table.least)
        if needed > room:
            tried.append(None)
            continue

        table.count = table.least
        room -= needed
        tried.append(table)

    return tried, room


def _with_most(tables: Iterable[ShownTable], room: int) -> list[ShownTable | None]:
    """Give one table after the other as many columns as fit, until many in a row don't."""
    tried: list[ShownTable | None] = []
    failures = 0
    for table in tables:
        count = table.fitting_kind(room)
        if count is None:
            tried.append(None)
            failures += 1
            if failures > _MOST_FAILURES:
                break

            continue

        failures = 0
        table.count = count
        room -= table.weight(count)
        tried.append(table)

    return tried


def _grown(tables: Sequence[ShownTable], room: int) -> int:
    """Give the tables the columns that matter, then all; return the room that is left."""
    for is_whole in (False, True):
        for table in tables:
            before = table.weight(table.count)
            count = table.most if is_whole else table.usual
            table.count = table.fitting(count, room + before)
            room += before - table.weight(table.count)

    return room
