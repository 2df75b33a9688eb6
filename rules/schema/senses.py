"""What the phrases of one catalogue mean, held small: ten thousand tables have hundreds of thousands of meanings.

A sense is a tuple of plain values. Python's collector of garbage looks at any other object again and again, and stops
all threads while it does.
"""

from array import array
from collections.abc import Iterator, MutableSequence, Sequence
from typing import Literal

from rules.schema.links import Link, TableKey

COLUMN_BITS = 12  # PostgreSQL allows 1,600 columns
AFTER_COLUMNS = (1 << COLUMN_BITS) - 1
"""The number of what stands after all columns, such as a product of two."""

Places = MutableSequence[int]
"""Where things stand that go by the same phrases, in order. A place is the number of the table, shifted by
`COLUMN_BITS`, plus the number of the column from 1; 0 is the table itself."""

Sense = tuple[Literal["table", "column", "value"], float, str, str | None, str | None, bool, str | None, int | Places]
"""A link's kind, quality, spelling, value, `derived` and `is_exact`; its column if it stands after all; the places."""


def no_places() -> Places:
    """Room for places."""
    return array("L")


def sense_of(link: Link, places: int | Places) -> Sense:
    """What the link says, at one place or at several."""
    column = link.column if isinstance(places, int) and places & AFTER_COLUMNS == AFTER_COLUMNS else None
    return (link.kind, link.quality, link.spelling, link.value, link.derived, link.is_exact, column, places)


def places_of(sense: Sense) -> Sequence[int]:
    """Where the thing stands."""
    places = sense[-1]
    return (places,) if isinstance(places, int) else places


def size(senses: Sequence[Sense]) -> int:
    """How many things a phrase with these senses may mean."""
    return sum([len(places_of(sense)) for sense in senses])


def link_to(sense: Sense, table: TableKey, column: str | None) -> Link:
    """The link to one of the things."""
    kind, quality, spelling, value, derived, is_exact, after_columns, _ = sense
    return Link(kind, table, after_columns or column, value, quality, spelling, derived, is_exact)


class Senses:
    """Senses by the keys of phrases."""

    def __init__(self) -> None:
        self._senses: dict[str, Sense | list[Sense]] = {}  # most phrases have one, which needs no list

    def __contains__(self, key: object) -> bool:
        return key in self._senses

    def of(self, key: str) -> Sequence[Sense]:
        """The senses of the phrase, in the order in which they were added."""
        found = self._senses.get(key, ())
        return (found,) if isinstance(found, tuple) and found else found

    def items(self) -> Iterator[tuple[str, Sequence[Sense]]]:
        """All phrases with their senses."""
        return ((key, self.of(key)) for key in self._senses)

    def add(self, key: str, link: Link, places: int | Places) -> None:
        """Adds a sense."""
        known, sense = self._senses.get(key), sense_of(link, places)
        if known is None:
            self._senses[key] = sense
        elif isinstance(known, list):
            known.append(sense)
        else:
            self._senses[key] = [known, sense]

    def add_shared(self, key: str, link: Link, place: int) -> None:
        """Adds a place, which is after all others, to the sense that is the same but for its places, or a new sense."""
        sense = sense_of(link, place)
        for number, known in enumerate(self.of(key) if not link.derived else ()):
            if known[2] == sense[2] and known[:-1] == sense[:-1]:
                if isinstance(known[-1], int):
                    self._replace(key, number, (*known[:-1], array("L", (known[-1], place))))
                else:
                    known[-1].append(place)
                return
        self.add(key, link, place)

    def _replace(self, key: str, number: int, sense: Sense) -> None:
        known = self._senses[key]
        if isinstance(known, list):
            known[number] = sense
        else:
            self._senses[key] = sense
