"""The port for small documents that all hosts share, such as API keys."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class SharedDocument:
    """A document as it was kept.

    Attributes:
        revision: grows with each change, from 1.
    """

    revision: int
    text: str


class SharedDocuments(Protocol):
    """Keeps documents by their names. All methods raise `StoreUnavailable`."""

    async def read(self, name: str) -> SharedDocument | None:
        """Return the document; None: there is none."""

    async def write(self, name: str, text: str, revision: int) -> bool:
        """Replace the document of that revision; 0: there is none yet.

        Return false, and change nothing, when it has been changed since.
        """
