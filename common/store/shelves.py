"""What an adapter keeps for what is learnt: records on shelves, changed only if they are still what somebody read.

A record is a text that may stand on several shelves, at a position on each. Rules about examples, lessons and reviews
are in `learned_book`, once for all adapters; an adapter knows nothing of them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Applied = Literal["done", "changed", "full"]
"""What became of changes. `changed`: a record is not what it was said to be. `full`: a shelf would hold too much. In
both cases nothing was kept."""


@dataclass(frozen=True)
class Record:
    """A text (JSON in ASCII) and its places: positions by the keys of shelves, each less than 2**53."""

    key: bytes
    text: str
    places: Mapping[bytes, int]


@dataclass(frozen=True)
class Change:
    """Replaces a record, adds it (`before` is None) or removes it (`after` is None).

    Attributes:
        before: the text as it was read.
    """

    key: bytes
    before: str | None
    after: Record | None


@dataclass(frozen=True)
class Room:
    """How many records shelves may hold.

    Attributes:
        most: changes that would put more on such a shelf are `full`.
        latest: when there are more on such a shelf, those at the lowest positions are removed, from all their shelves.
    """

    most: Mapping[bytes, int] = field(default_factory=dict)
    latest: Mapping[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A record as it is kept, and how often it was used."""

    key: bytes
    text: str
    uses: int
    position: int = 0


@dataclass(frozen=True)
class Shelf:
    """All records of a shelf, the highest position first. `revision` is another one with every change, "" at first."""

    revision: str
    records: tuple[Found, ...]


class Shelves(Protocol):
    """Implemented by each adapter; all methods raise `StoreUnavailable`."""

    async def revisions(self, shelves: Sequence[bytes]) -> tuple[str, ...]:
        """The revision of each shelf."""

    async def read(self, shelves: Sequence[bytes]) -> tuple[Shelf, ...]:
        """Each shelf, as of the moment of its revision."""

    async def find(self, keys: Sequence[bytes]) -> Mapping[bytes, Found]:
        """The records of these keys, as far as there are any."""

    async def page(self, shelves: Collection[bytes], limit: int, before: tuple[int, bytes]) -> tuple[Found, ...]:
        """Up to `limit` records of the shelves together that stand before this position and key, the highest first."""

    async def apply(self, changes: Sequence[Change], room: Room) -> Applied:
        """Makes all changes, or none; no record may be in two of them. What is done survives a crash of the server."""

    async def count_use(self, keys: Collection[bytes]) -> None:
        """Adds one use to each of the records that are there. No shelf's revision changes."""
