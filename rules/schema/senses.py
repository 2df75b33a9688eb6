"""What the phrases of one catalogue mean, held small: ten thousand tables have hundreds of
thousands of meanings.

A sense is a tuple of plain values. Python's collector of garbage looks at any other object again
and again, and stops all threads while it does.
"""

import heapq
from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from common.meanings import TableKey
from rules.schema.links import Link

COLUMN_BITS = 12  # PostgreSQL allows 1,600 columns
AFTER_COLUMNS = (1 << COLUMN_BITS) - 1
"""The number of what stands after all columns, such as a product of two."""

Sense = tuple[
    Literal["table", "column", "value"], float, str, str | None, str | None, bool, str | None, int
]
"""A link's kind, quality, spelling, value, `derived` and `is_exact`; its column if it stands after
all; where it is: a place, or a number of `Places`.
"""


class Places:
    """The places of things that go by the same phrases, in order, by negative numbers.

    A place is the number of a table, shifted by `COLUMN_BITS`, plus the number of the column from
    1; 0 is the table itself. A place that stands alone is its own number.
    """

    def __init__(self) -> None:
        self._places: list[array[int]] = []

    def new(self, *places: int) -> int:
        """Return a number for these places, to which others may be added."""
        self._places.append(array("L", places))
        return ~(len(self._places) - 1)

    def add(self, number: int, place: int) -> None:
        """Add a place after those of the number."""
        self._places[~number].append(place)

    def of(self, sense: Sense) -> Sequence[int]:
        """Return where the thing stands."""
        if sense[-1] >= 0:
            return (sense[-1],)

        return self._places[~sense[-1]]

    def found(
        self, senses: Sequence[Sense], near: Collection[int], most: int
    ) -> Iterator[tuple[int, Sense]]:
        """Return where the senses stand, in the order of tables and columns.

        Args:
            near: numbers of tables; of more than `most` places, those in these tables count first,
                then the best.
        """
        placed = [(place, index) for index, sense in enumerate(senses) for place in self.of(sense)]
        if len(placed) > most:
            first = {number: order for order, number in enumerate(near)}
            ranked = [
                (first.get(place >> COLUMN_BITS, len(first)), -senses[index][1], index, place)
                for place, index in placed
            ]
            placed = [(place, index) for *_, index, place in heapq.nsmallest(most, ranked)]

        return ((place, senses[index]) for place, index in sorted(placed))


def sense_of(link: Link, place: int) -> Sense:
    """Return the link as it is kept for one place, or for the places that a number stands for.

    The column is in the place's bits, and named beside it only where it has no number there.
    """
    column = link.column if place >= 0 and place & AFTER_COLUMNS == AFTER_COLUMNS else None
    return (
        link.kind,
        link.quality,
        link.spelling,
        link.value,
        link.derived,
        link.is_exact,
        column,
        place,
    )


def link_to(sense: Sense, table: TableKey, column: str | None) -> Link:
    """Return the link to one of the things."""
    kind, quality, spelling, value, derived, is_exact, after_columns, _ = sense
    return Link(kind, table, after_columns or column, value, quality, spelling, derived, is_exact)


class Senses:
    """Senses by the keys of phrases."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._senses: dict[
            str, Sense | list[Sense]
        ] = {}  # most phrases have one, which needs no list

    def __contains__(self, key: object) -> bool:
        return key in self._senses

    def of(self, key: str) -> Sequence[Sense]:
        """Return the senses of the phrase, in the order in which they were added."""
        senses = self._senses.get(key)
        if senses is None:
            return ()

        return senses if isinstance(senses, list) else (senses,)

    def items(self) -> Iterator[tuple[str, Sequence[Sense]]]:
        """Return all phrases with their senses."""
        return ((key, self.of(key)) for key in self._senses)

    def add(self, key: str, sense: Sense) -> None:
        """Add a sense of the phrase."""
        senses = self._senses.get(key)
        if senses is None:
            self._senses[key] = sense
        elif isinstance(senses, list):
            senses.append(sense)
        else:
            self._senses[key] = [senses, sense]

    def add_shared(self, key: str, sense: Sense) -> None:
        """Add a sense with a place after all others: to a sense that differs only in its
        places, if any is.
        """
        for sense_before in self.of(key):
            if sense_before[2] == sense[2] and sense_before[:-1] == sense[:-1]:
                self._places.add(sense_before[-1], sense[-1])
                return

        self.add(key, (*sense[:-1], self._places.new(sense[-1])))
