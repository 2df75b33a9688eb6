"""Index what was learnt for looking it up: the shared entries, and each user's own.

An index is made of the entries as the store gives them, and does not change. The next one takes
over the words of entries that the one before had, so a new example costs its own words alone.
"""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from common.learning import Example
from common.tasks import is_running_here
from knowledge.experience.phrasing import Phrasing, Piece
from knowledge.experience.shapes import ExampleShape, shape_of
from knowledge.experience.text_ranking import TextIndex
from knowledge.language.terms import terms_with_roots
from store.learned import LearnedItems

_MOST_CHARS = 2_000  # of an entry that are looked at
_MOST_OWNERS = 100  # users whose own index is kept
_End = tuple[str, str] | None
"""Kind and text of a question's first or last piece; None where it may differ."""
_Ends = tuple[_End, _End]
_Patterns = dict[tuple[str, str], "_Pattern | None"]
"""By question and SQL; None of examples that can't be used again."""


@dataclass(frozen=True)
class _Pattern:
    """The requirements on a question for an example to be used again.

    Attributes:
        ends: its first and last piece.
        fixed: pieces that it has to have.
    """

    shape: ExampleShape
    ends: _Ends
    fixed: frozenset[tuple[str, str]]


class EntryIndex:
    """Entries, ready to be looked up.

    Args:
        before: an earlier one, of which is used what has not changed.
        reuses: whether its examples may answer questions by themselves.
    """

    def __init__(
        self,
        entries: LearnedItems,
        before: "EntryIndex | None" = None,
        *,
        reuses: bool = True,
    ) -> None:
        self.entries = entries
        self.examples = {example.example_id: example for example in entries.examples}
        self.lessons = {lesson.lesson_id: lesson for lesson in entries.lessons}
        self.documents = {document.document_id: document for document in entries.documents}
        self._known_words: dict[str, frozenset[str]] = before._words if before is not None else {}
        self._words: dict[str, frozenset[str]] = {}
        self.example_index = self._index(
            (example.example_id, example.question) for example in entries.examples
        )
        self.lesson_index = self._index(
            (lesson.lesson_id, lesson.question) for lesson in entries.lessons
        )
        self.document_index = self._index(
            (document.document_id, f"{document.title}\n{document.text}")
            for document in entries.documents
        )
        self._known_words = {}  # kept no longer than needed
        self._patterns: _Patterns = {}
        self._reusable: defaultdict[_Ends, list[tuple[Example, _Pattern]]] = defaultdict(list)
        if reuses:
            self._read_patterns(before._patterns if before is not None else {})

    def __len__(self) -> int:
        return len(self.examples) + len(self.lessons) + len(self.documents)

    def _index(self, texts: Iterable[tuple[str, str]]) -> TextIndex:
        """Return the index of entries by id and text."""
        words = {}
        for entry, text in texts:
            text = text[:_MOST_CHARS]
            words[entry] = self._words_of(text)

        return TextIndex(words)

    def _words_of(self, text: str) -> frozenset[str]:
        words = self._words.get(text) or self._known_words.get(text) or terms_with_roots(text)
        self._words[text] = words
        return words

    def _read_patterns(self, earlier: _Patterns) -> None:
        """Read the patterns of the examples that may be used again; take over those known."""
        for example in self.entries.examples:
            if example.trust == "candidate":
                continue

            content = (example.question, example.sql)
            if content not in self._patterns:
                pattern = earlier[content] if content in earlier else _pattern(*content)
                self._patterns[content] = pattern

            pattern = self._patterns[content]
            if pattern is not None:
                self._reusable[pattern.ends].append((example, pattern))

    def alike(self, asked: Phrasing) -> Iterator[tuple[Example, ExampleShape]]:
        """Yield examples whose question has no word that the asked one lacks.

        They also begin and end in the same way.
        """
        if not asked.pieces:
            return

        pieces = frozenset(map(_end, asked.pieces))
        for first in (_end(asked.pieces[0]), None):
            for last in (_end(asked.pieces[-1]), None):
                for example, pattern in self._reusable.get((first, last), ()):
                    if pattern.fixed <= pieces:
                        yield example, pattern.shape


def _pattern(question: str, sql: str) -> _Pattern | None:
    shape = shape_of(question, sql)
    if shape is None:
        return None

    pieces: list[_End] = list(map(_end, shape.phrasing.pieces))
    for slot in shape.slots:
        for at in range(slot.first, slot.last):
            pieces[at] = None

    ends = (pieces[0], pieces[-1])
    fixed = frozenset(piece for piece in pieces if piece is not None)
    return _Pattern(shape, ends, fixed)


def _end(piece: Piece) -> tuple[str, str]:
    return piece.kind, piece.text


_EMPTY = EntryIndex(LearnedItems(revision=""))


class EntryIndexes:
    """The indexes of one datasource; each is made in a thread, once for all that wait for it.

    Args:
        reuses: as of `EntryIndex`.
    """

    def __init__(self, *, reuses: bool = True) -> None:
        self._reuses = reuses
        self._made: OrderedDict[str | None, EntryIndex] = OrderedDict()
        self._making: dict[str | None, asyncio.Task[EntryIndex]] = {}

    async def ready(self, owner: str | None, entries: LearnedItems) -> EntryIndex:
        """Return the index of the entries.

        Args:
            owner: None for everybody's.
        """
        if not any((entries.examples, entries.lessons, entries.documents)):
            return _EMPTY  # most users have nothing of their own

        made = self._made.get(owner)
        if made is not None and made.entries is entries:
            self._made.move_to_end(owner)
            return made

        making = self._making.get(owner)
        if making is None or not is_running_here(making):
            making = self._making[owner] = asyncio.create_task(self._make(owner, entries, made))

        index = await asyncio.shield(making)
        if index.entries is entries:
            return index

        return await self.ready(owner, entries)

    async def _make(
        self, owner: str | None, entries: LearnedItems, before: EntryIndex | None
    ) -> EntryIndex:
        try:
            index = await asyncio.to_thread(EntryIndex, entries, before, reuses=self._reuses)
        finally:
            self._making.pop(owner, None)

        self._made[owner] = index
        self._made.move_to_end(owner)
        own = [key for key in self._made if key is not None]
        for oldest in own[:-_MOST_OWNERS]:
            del self._made[oldest]

        return index
