"""The port for learned records: texts in record sets, changed only if still as they were read.

A record is a text that may be in several record sets, at a position in each. The rules about
examples, lessons and reviews are in `learned_repository`, once for all adapters.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Applied = Literal["done", "changed", "full"]
"""The outcome of `RecordRepository.apply`, which keeps all changes if it is `done`, else none.

`changed`: a record is not as the change says it was. `full`: a record set would hold too many.
"""


@dataclass(frozen=True)
class Record:
    """A record to be kept.

    Attributes:
        text: JSON in ASCII.
        positions: its position in each of its record sets, by their keys; below 2**53.
    """

    key: bytes
    text: str
    positions: Mapping[bytes, int]


@dataclass(frozen=True)
class RecordChange:
    """One record's change: it is added, replaced or removed.

    Attributes:
        before: the text as it was read; None adds the record.
        after: the new record; None removes it.
    """

    key: bytes
    before: str | None
    after: Record | None


@dataclass(frozen=True)
class RecordLimits:
    """The most records that the changed record sets may hold, by their keys.

    Attributes:
        most: changes that would put more into the set are refused as `full`.
        latest: records beyond this number are removed from everywhere, those at the lowest
            positions of the set first.
    """

    most: Mapping[bytes, int] = field(default_factory=dict)
    latest: Mapping[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredRecord:
    """A record as the store keeps it.

    Attributes:
        uses: how often it was used.
        position: in the record set it was read from; 0 if it was read by its key.
    """

    key: bytes
    text: str
    uses: int
    position: int = 0


@dataclass(frozen=True)
class RecordSet:
    """All records of a record set at one moment.

    Attributes:
        revision: differs after every change of the set; "" before the first.
        records: the highest position first.
    """

    revision: str
    records: tuple[StoredRecord, ...]


class RecordRepository(Protocol):
    """Keeps records; one adapter for each server. All methods raise `StoreUnavailable`."""

    async def revisions(self, record_sets: Sequence[bytes]) -> tuple[str, ...]:
        """Return the revision of each record set."""

    async def read(self, record_sets: Sequence[bytes]) -> tuple[RecordSet, ...]:
        """Return each record set with its revision, both of the same moment."""

    async def find(self, keys: Sequence[bytes]) -> Mapping[bytes, StoredRecord]:
        """Return the records with these keys that exist."""

    async def page(
        self, record_sets: Collection[bytes], limit: int, before: tuple[int, bytes]
    ) -> tuple[StoredRecord, ...]:
        """Return up to `limit` records of the record sets together, the highest position first.

        Args:
            before: position and key; only records below them are returned.
        """

    async def apply(self, changes: Sequence[RecordChange], limits: RecordLimits) -> Applied:
        """Make all changes or none. Those that are made survive a crash of the server.

        Args:
            changes: at most one of each record.
        """

    async def count_use(self, keys: Collection[bytes]) -> None:
        """Add one use for each time that a record is among the keys; revisions stay as they are."""
