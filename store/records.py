"""The port for learned records: texts in record sets, changed only if still as they were read.

A record is a text that may be in several record sets, at a position in each. The rules about
examples, lessons and reviews are in `learned_repository`, once for all adapters.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Applied = Literal["done", "changed", "full"]
"""The outcome of changes; nothing was kept unless they are `done`.

`changed`: a record is not what it was said to be. `full`: a record set would hold too much.
"""


@dataclass(frozen=True)
class Record:
    """A text (JSON in ASCII), and its positions (below 2**53) by the keys of its record sets."""

    key: bytes
    text: str
    places: Mapping[bytes, int]


@dataclass(frozen=True)
class RecordChange:
    """Replaces a record, adds it (`before` is None) or removes it (`after` is None).

    Attributes:
        before: the text as it was read.
    """

    key: bytes
    before: str | None
    after: Record | None


@dataclass(frozen=True)
class RecordLimits:
    """The most records that record sets may hold.

    Attributes:
        most: changes that would put more into such a record set are `full`.
        latest: when there are more in such a record set, those at the lowest positions are removed,
            from all their record sets.
    """

    most: Mapping[bytes, int] = field(default_factory=dict)
    latest: Mapping[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptRecord:
    """A record as it is kept, and how often it was used."""

    key: bytes
    text: str
    uses: int
    position: int = 0


@dataclass(frozen=True)
class RecordSet:
    """All records of a record set, the highest position first. `revision` is another one with every
    change, "" at first.
    """

    revision: str
    records: tuple[KeptRecord, ...]


class RecordRepository(Protocol):
    """Implemented by each adapter; all methods raise `StoreUnavailable`."""

    async def revisions(self, record_sets: Sequence[bytes]) -> tuple[str, ...]:
        """The revision of each record set."""

    async def read(self, record_sets: Sequence[bytes]) -> tuple[RecordSet, ...]:
        """Each record set, as of the moment of its revision."""

    async def find(self, keys: Sequence[bytes]) -> Mapping[bytes, KeptRecord]:
        """The records of these keys, as far as there are any."""

    async def page(
        self, record_sets: Collection[bytes], limit: int, before: tuple[int, bytes]
    ) -> tuple[KeptRecord, ...]:
        """Up to `limit` records of the record sets together that stand before this position and key,
        the highest first.
        """

    async def apply(self, changes: Sequence[RecordChange], room: RecordLimits) -> Applied:
        """Makes all changes, or none; no record may be in two of them. What is done survives a
        crash of the server.
        """

    async def count_use(self, keys: Collection[bytes]) -> None:
        """Adds one use to each of the records that are there. No record set's revision changes."""
