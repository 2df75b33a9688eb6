"""The operator's notes: a text file, of which prompts get the sections that fit the question."""

import logging
from collections.abc import Sequence
from pathlib import Path

from agent.extensions.points import Provided
from common.actor import Actor
from common.learning import Document
from databases.datasources import DEFAULT
from knowledge.experience.text_ranking import TextIndex, ranked
from knowledge.language.terms import terms_with_roots
from knowledge.learning.documents import documents_of_text

_log = logging.getLogger(__name__)
_MAX_BYTES = 1_000_000
_MOST_SECTIONS = 5  # sections for one question


class NotesFile:
    """`LlmContextEnhancer`. The file is read again when it has changed.

    Raises:
        OSError: it can't be read.
        ValueError: it is too large, or not UTF-8.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reload()

    def _reload(self) -> None:
        found = self._path.stat()
        if found.st_size > _MAX_BYTES:
            raise ValueError(f"{self._path} is larger than {_MAX_BYTES} bytes")

        text = self._path.read_text("utf-8")
        self._stamp = (found.st_mtime_ns, found.st_size)
        self._documents = {
            one.document_id: one for one in documents_of_text(DEFAULT, self._path.name, text)
        }
        words = {
            key: terms_with_roots(f"{one.title}\n{one.text}")
            for key, one in self._documents.items()
        }
        self._index = TextIndex({key: frozenset(found) for key, found in words.items()})

    async def __call__(
        self,
        question: str,
        actor: Actor,  # noqa: ARG002 - the point's
    ) -> Sequence[Document]:
        """Return the sections that share words with the question, those that share most first."""
        try:
            found = self._path.stat()
            if (found.st_mtime_ns, found.st_size) != self._stamp:
                self._reload()
        except (OSError, ValueError) as error:
            _log.warning("the notes can't be read again, the ones from before are used: %s", error)

        return [self._documents[key] for key in ranked(question, (self._index,), _MOST_SECTIONS)]


def notes_file(provided: Provided) -> NotesFile | None:
    """Return the extension, if `NOTES_FILE` names a file."""
    path: str = provided.settings.notes_file
    return NotesFile(Path(path).expanduser()) if path else None
