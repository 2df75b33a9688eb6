"""Chooses what a prompt shows of the tables of a database that does not fit: many tables before many columns.

The first ten tables, which are nearly always enough, come with their keys if anything fits at all. What room is left
goes to the columns that matter to the question, then to all columns, of one table after the other, then to further
tables. Each table says how many of its columns are left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from common.llm.tokens import PER_TOKEN, weight
from knowledge.telling_columns import Telling

_SURE = 10  # tables that come with their keys before any comes with more
_MOST_COLUMNS = 120  # of one table
_MOST_FAILURES = 40  # tables in a row that don't fit, after which no more are tried
_LEFT_OUT = "  -- {} more columns are not shown"


@dataclass(frozen=True)
class Described:
    """The text of a table: its head, a line for each column, and lines for keys of several columns."""

    head: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        """All of it."""
        return "\n".join((self.head, *self.columns, *self.keys))


class Shown:
    """A table that may be shown with some of its columns, the first ones of `telling`."""

    def __init__(self, described: Described, telling: Telling) -> None:
        self._described = described
        self._telling = telling
        self.count = 0

    @cached_property
    def _weights(self) -> list[int]:
        """In quarters of a token: of the table without columns, with one, with two …, not yet saying how many."""
        total = weight("\n".join((self._described.head, *self._described.keys))) + PER_TOKEN
        weights = [total]
        for at in self._telling.order:
            total += weight(self._described.columns[at]) + 1
            weights.append(total)
        return weights

    def weight(self, count: int) -> int:
        """Of the table with `count` columns, with the line's end behind it."""
        left_out = len(self._described.columns) - count
        return self._weights[count] + (weight(_LEFT_OUT.format(left_out)) + 1 if left_out else 0)

    @property
    def least(self) -> int:
        """The columns without which it is not shown."""
        return self._telling.keys

    @property
    def usual(self) -> int:
        """The columns that matter."""
        return min(self._telling.usual, max(_MOST_COLUMNS, self.least))

    @property
    def most(self) -> int:
        """The columns that it has at the most."""
        return min(len(self._described.columns), max(_MOST_COLUMNS, self.least))

    def fitting(self, count: int, room: int) -> int:
        """How many columns fit, at most `count`; at least those that it has."""
        return next((fits for fits in range(count, self.count, -1) if self.weight(fits) <= room), self.count)

    @property
    def text(self) -> str:
        """With the columns that it has, in the table's own order."""
        shown = sorted(self._telling.order[: self.count])
        left_out = len(self._described.columns) - self.count
        lines = [self._described.columns[at] for at in shown]
        more = [_LEFT_OUT.format(left_out)] if left_out else []
        return "\n".join((self._described.head, *lines, *more, *self._described.keys))


def packed(candidates: Iterable[Shown], room: int) -> list[Shown | None]:
    """The candidates with as many columns as fit into `room` quarters of a token; None for those that don't fit.

    Args:
        candidates: the most relevant first; those after many that don't fit are not looked at.
    """
    tried: list[Shown | None] = []
    places = iter(candidates)
    for table in places:
        is_in = table.weight(table.least) <= room
        if is_in:
            table.count = table.least
            room -= table.weight(table.least)
        tried.append(table if is_in else None)
        if len(tried) == _SURE:
            break
    room = _grown([table for table in tried if table], room)
    failures = 0
    for table in places:
        count = next((one for one in (table.most, table.usual, table.least) if table.weight(one) <= room), None)
        if count is not None:
            table.count = count
            room -= table.weight(count)
        tried.append(table if count is not None else None)
        failures = failures + 1 if count is None else 0
        if failures > _MOST_FAILURES:
            break
    return tried


def _grown(tables: Sequence[Shown], room: int) -> int:
    """Gives the tables the columns that matter, then all, as far as there is room; what is left of it."""
    for is_whole in (False, True):
        for table in tables:
            before = table.weight(table.count)
            count = table.most if is_whole else table.usual
            table.count = table.fitting(count, room + before)
            room += before - table.weight(table.count)
    return room
