"""API keys of all hosts: they are kept in the store, and each host has a copy, its file of keys.

Requests are judged by the copy, so that they never wait for the store, and go on to be let in while
it is away. A change goes into the store first; every worker looks for changes once a second.
"""

import asyncio
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from api.access.key_file import KeyFile, KeysUnreadable
from common.errors import StoreUnavailable
from store.shared_documents import SharedDocuments

_log = logging.getLogger(__name__)

_NAME = "api_keys"
_LOOK_S = 1.0
T = TypeVar("T")


class SharedKeys:
    """The keys in the store, and their copy in a file."""

    def __init__(self, file: KeyFile, documents: SharedDocuments) -> None:
        self._file = file
        self._documents = documents
        self._revision = 0  # of the copy

    async def fetch(self) -> None:
        """Bring the copy up to date; while the store has no keys, the file stays as it is.

        Raises:
            StoreUnavailable: the store can't be read.
            KeysUnreadable: the file can't be written, or the store has something else.
        """
        stored = await self._documents.read(_NAME)
        if stored is None or (stored.revision == self._revision and self._file.is_needed()):
            return

        if self._text_of_copy() != stored.text:
            self._file.replace(stored.text)

        self._revision = stored.revision

    def _text_of_copy(self) -> str:
        try:
            return self._file.text()
        except KeysUnreadable:  # the store has what it should be
            return ""

    async def are_made(self) -> bool:
        """Tell whether the store has keys. Raises StoreUnavailable."""
        return await self._documents.read(_NAME) is not None

    async def follow(self) -> None:
        """Keep the copy up to date for ever."""
        problem = ""
        while True:
            try:
                await self.fetch()
                problem = ""
            except StoreUnavailable:
                pass  # the store itself says so in the log
            except KeysUnreadable as exc:
                if str(exc) != problem:
                    _log.error("API keys of the store are not taken: %s", exc)

                problem = str(exc)

            await asyncio.sleep(_LOOK_S)

    async def change(self, do: Callable[[KeyFile], T]) -> T:
        """Change the keys of all hosts as `do` changes a file of them; return what it returns.

        The first change takes over the keys that this host's file has.

        Raises:
            StoreUnavailable: the store can't be reached, and nothing is changed.
            InvalidKeyRequest, KeysUnreadable: as `do`.
        """
        while True:
            stored = await self._documents.read(_NAME)
            before = stored.text if stored is not None else self._file.text()
            with tempfile.TemporaryDirectory() as folder:
                draft = KeyFile(Path(folder) / "api_keys.json")
                if before:
                    draft.replace(before)

                result = do(draft)
                text = draft.text()

            revision = stored.revision if stored is not None else 0
            if await self._documents.write(_NAME, text, revision):
                await self.fetch()
                return result
