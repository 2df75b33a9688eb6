"""What is learnt, prepared for looking it up: for everybody's stock, and for each user's own.

A shelf is made of a stock and does not change. The next one takes over what the entries have in common with the one
before, so a new example costs its own words alone.
"""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from common.learning import Example
from common.store.learned import Stock
from knowledge.experience.phrasing import Phrasing, Piece
from knowledge.experience.ranking import TextIndex
from knowledge.experience.shapes import Shape, shape_of
from knowledge.terms import terms_with_roots

_MOST_CHARS = 2_000  # of an entry that are looked at
_MOST_OWNERS = 100  # users whose own shelf is kept
_End = tuple[str, str] | None
"""Kind and text of a question's first or last piece; None where it may differ."""


@dataclass(frozen=True)
class _Pattern:
    """What a question must be like for an example to be used again.

    Attributes:
        ends: how it begins and ends.
        fixed: pieces that it has to have.
    """

    shape: Shape
    ends: tuple[_End, _End]
    fixed: frozenset[tuple[str, str]]


class Shelf:
    """A stock, ready to be looked up.

    Args:
        before: an earlier one, of which is used what has not changed.
    """

    def __init__(self, stock: Stock, before: "Shelf | None" = None) -> None:
        self.stock = stock
        self.examples = {one.example_id: one for one in stock.examples}
        self.lessons = {one.lesson_id: one for one in stock.lessons}
        self.documents = {one.document_id: one for one in stock.documents}
        known: dict[str, frozenset[str]] = before._words if before is not None else {}
        texts = {entry: text[:_MOST_CHARS] for entry, text in self._texts()}
        self._words: dict[str, frozenset[str]] = {
            text: known.get(text) or terms_with_roots(text) for text in texts.values()
        }
        words = {entry: self._words[text] for entry, text in texts.items()}
        self.example_index = TextIndex({one: words[one] for one in self.examples})
        self.lesson_index = TextIndex({one: words[one] for one in self.lessons})
        self.document_index = TextIndex({one: words[one] for one in self.documents})
        self._patterns: dict[tuple[str, str], _Pattern | None] = self._read(
            before._patterns if before is not None else {}
        )
        self._reusable: defaultdict[tuple[_End, _End], list[tuple[Example, _Pattern]]] = defaultdict(list)
        for example in stock.examples:
            pattern = self._patterns.get((example.question, example.sql))
            if pattern is not None and example.trust != "candidate":
                self._reusable[pattern.ends].append((example, pattern))

    def __len__(self) -> int:
        return len(self.examples) + len(self.lessons) + len(self.documents)

    def _texts(self) -> Iterator[tuple[str, str]]:
        yield from ((key, one.question) for key, one in self.examples.items())
        yield from ((key, one.question) for key, one in self.lessons.items())
        yield from ((key, f"{one.title}\n{one.text}") for key, one in self.documents.items())

    def _read(self, known: dict[tuple[str, str], _Pattern | None]) -> dict[tuple[str, str], _Pattern | None]:
        pairs = {(one.question, one.sql) for one in self.stock.examples if one.trust != "candidate"}
        return {pair: known[pair] if pair in known else _pattern(*pair) for pair in pairs}

    def alike(self, asked: Phrasing) -> Iterator[tuple[Example, Shape]]:
        """Examples whose question has no word that the asked one lacks, and begins and ends in the same way."""
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
    free = {number for slot in shape.slots for number in range(slot.first, slot.last)}
    pieces = shape.phrasing.pieces
    ends = (None if 0 in free else _end(pieces[0]), None if len(pieces) - 1 in free else _end(pieces[-1]))
    return _Pattern(shape, ends, frozenset(_end(piece) for at, piece in enumerate(pieces) if at not in free))


def _end(piece: Piece) -> tuple[str, str]:
    return piece.kind, piece.text


_EMPTY = Shelf(Stock(revision=""))


class Shelves:
    """Keeps the shelves of one datasource. Each is made in a thread, once for all that wait for it."""

    def __init__(self) -> None:
        self._made: OrderedDict[str | None, Shelf] = OrderedDict()
        self._making: dict[str | None, asyncio.Task[Shelf]] = {}

    async def ready(self, owner: str | None, stock: Stock) -> Shelf:
        """The shelf of a stock; `owner` None is everybody's."""
        if not (stock.examples or stock.lessons or stock.documents):
            return _EMPTY  # most users have nothing of their own
        made = self._made.get(owner)
        if made is not None and made.stock is stock:
            self._made.move_to_end(owner)
            return made
        making = self._making.get(owner)
        if making is None or making.done() or making.get_loop() is not asyncio.get_running_loop():
            making = self._making[owner] = asyncio.create_task(self._make(owner, stock, made))
        shelf = await asyncio.shield(making)
        return shelf if shelf.stock is stock else await self.ready(owner, stock)

    async def _make(self, owner: str | None, stock: Stock, before: Shelf | None) -> Shelf:
        try:
            shelf = await asyncio.to_thread(Shelf, stock, before)
        finally:
            self._making.pop(owner, None)
        self._made[owner] = shelf
        self._made.move_to_end(owner)
        own = [key for key in self._made if key is not None]
        for key in own[: max(0, len(own) - _MOST_OWNERS)]:
            del self._made[key]
        return shelf
