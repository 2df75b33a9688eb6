"""The port for vectors of texts, which may be kept so that they need not be asked for again."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Protocol


class VectorShelf(Protocol):
    """Keeps vectors by keys, as far as it can; methods raise nothing, because vectors can be had again."""

    async def read(self, keys: Sequence[bytes]) -> Mapping[bytes, "array[float]"]:
        """Those that are known."""

    async def write(self, vectors: Mapping[bytes, "array[float]"]) -> None:
        """Keeps them."""
