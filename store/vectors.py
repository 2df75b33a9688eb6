"""The port for vectors of texts, which may be kept so that they need not be asked for again."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Protocol


class VectorRepository(Protocol):
    """Keeps vectors by keys as far as it can; raises nothing, as vectors can be had again."""

    async def read(self, keys: Sequence[bytes]) -> Mapping[bytes, "array[float]"]:
        """Return the vectors that are kept, by key."""

    async def write(self, vectors: Mapping[bytes, "array[float]"]) -> None:
        """Keep these vectors, by key."""
