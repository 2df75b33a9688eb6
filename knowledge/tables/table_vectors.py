"""Which tables mean what a question means, by vectors of an embedding model; an aid to the words,
never needed.

Only names, comments and what the semantic file says are sent, never stored values. The vectors of a
catalogue are asked for in the background, in batches one after the other, and kept by the text and
the model, so that nothing is asked for twice. Until all are there, and whenever a question's own
does not come soon, words decide alone.
"""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from heapq import nlargest, nsmallest
from operator import mul

from common.meanings import Metric, TableKey
from common.values import Catalog, Column, Table
from knowledge.index import IndexPart
from knowledge.tables.table_texts import Kind, metrics_of, texts_of
from llm.embedding import MOST_TEXTS, EmbeddingFailed, Vector
from store.vectors import VectorRepository

_log = logging.getLogger(__name__)

_WAIT_S = 0.5  # that a question waits for its own vector
_AGAIN_S = 60.0  # after a failure
_MOST_CHARS = 4_000  # of one text
_MOST_TABLES = 20_000
_MOST_QUESTIONS = 500  # whose vectors are remembered
_NEAREST, _COMPARED = (
    50,
    300,
)  # tables that are found, and those of which the distance is worked out
_NOT_SENT: tuple[Kind, ...] = ("value", "column_meaning")  # of the latter, some name stored values

Embed = Callable[[Sequence[str]], Awaitable[list[Vector]]]
"""See `llm.embedding.Embedder.embed`."""

Nearest = Callable[[Catalog, str], Awaitable[tuple[TableKey, ...]]]
"""See `TableVectors.nearest`."""


class _Tables:
    """The tables of a catalogue by vectors, as soon as all of these are there."""

    def __init__(self, catalog: Catalog, model: str) -> None:
        metrics = metrics_of(catalog)
        self.keys = [table.key for table in catalog.tables[:_MOST_TABLES]]
        self.texts = [
            _text(table, metrics.get(table.key, ())) for table in catalog.tables[:_MOST_TABLES]
        ]
        self.hashes = [_hash(model, text) for text in self.texts]
        self.filling: asyncio.Task[None] | None = None
        self.failed_at = -_AGAIN_S
        self._vectors: list[Vector] = []
        self._signs: list[int] = []

    @property
    def is_ready(self) -> bool:
        return bool(self._signs)

    def fill(self, vectors: Mapping[bytes, Vector]) -> None:
        """Takes the vectors of all tables."""
        self._vectors = [vectors[key] for key in self.hashes]
        self._signs = list(map(_signs, self._vectors))

    def nearest(self, vector: Vector) -> tuple[TableKey, ...]:
        """The nearest tables, the nearest first; none when the vector is of another length.

        The signs of a vector's numbers say nearly as well where it points, and thousands are
        compared in milliseconds.
        """
        if not self._vectors or len(vector) != len(self._vectors[0]):
            return ()
        wanted = _signs(vector)
        near = nsmallest(
            _COMPARED,
            range(len(self._signs)),
            key=lambda at: (wanted ^ self._signs[at]).bit_count(),
        )
        best = nlargest(_NEAREST, near, key=lambda at: sum(map(mul, vector, self._vectors[at])))
        return tuple(self.keys[at] for at in best)


class TableVectors:
    """Finds the tables nearest to questions.

    Args:
        model: its name, which tells its vectors from those of others.
        embed: gives vectors.
        shelf: keeps them beyond this process; None: nothing does.
    """

    def __init__(self, model: str, embed: Embed, shelf: VectorRepository | None = None) -> None:
        self._model = model
        self._embed = embed
        self._shelf = shelf
        self._part = IndexPart(lambda index: _Tables(index.catalog, model), ignores_row_counts=True)
        self._questions: OrderedDict[str, asyncio.Task[Vector]] = OrderedDict()
        self._known: OrderedDict[bytes, Vector] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def nearest(self, catalog: Catalog, question: str) -> tuple[TableKey, ...]:
        """The tables nearest to the question, at most 50, the nearest first; none if that is not
        known soon.
        """
        try:
            async with asyncio.timeout(_WAIT_S):
                tables = await self._part.ready(catalog)
                self._begin(tables)
                if not tables.is_ready:
                    return ()
                question = question[:_MOST_CHARS]
                found = await asyncio.to_thread(
                    tables.nearest, await asyncio.shield(self._question(question))
                )
                if not found:  # a vector of another length is not worth keeping
                    self._questions.pop(question, None)
                return found
        except (TimeoutError, EmbeddingFailed):
            return ()

    async def begin(self, catalog: Catalog) -> None:
        """Asks for the vectors of the catalogue's tables, unless they are there; they come in the
        background.
        """
        self._begin(await self._part.ready(catalog))

    async def settled(self) -> None:
        """Waits until the vectors that were asked for are there, or have failed."""
        await asyncio.gather(*self._tasks)

    def _begin(self, tables: _Tables) -> None:
        is_busy = tables.filling is not None and not tables.filling.done()
        if tables.texts and not (
            tables.is_ready or is_busy or time.monotonic() - tables.failed_at < _AGAIN_S
        ):
            tables.filling = asyncio.create_task(self._fill(tables))
            self._tasks.add(tables.filling)
            tables.filling.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Stops asking for vectors."""
        for task in (*self._tasks, *self._questions.values()):
            task.cancel()

    async def _fill(self, tables: _Tables) -> None:
        try:
            vectors = await self._vectors_of(dict(zip(tables.hashes, tables.texts, strict=True)))
            await asyncio.to_thread(tables.fill, vectors)
        except EmbeddingFailed as exc:
            tables.failed_at = time.monotonic()
            _log.warning("the tables' vectors could not be had, words alone rank them: %s", exc)

    async def _vectors_of(self, texts: Mapping[bytes, str]) -> Mapping[bytes, Vector]:
        found = {key: self._known[key] for key in texts if key in self._known}
        if self._shelf is not None:
            found |= await self._shelf.read([key for key in texts if key not in found])
        missing = [key for key in texts if key not in found]
        for start in range(0, len(missing), MOST_TEXTS):
            keys = missing[start : start + MOST_TEXTS]
            new = dict(zip(keys, await self._embed([texts[key] for key in keys]), strict=True))
            if self._shelf is not None:
                await self._shelf.write(new)
            found |= new
            self._remember(new)
        self._remember(found)
        if len({len(vector) for vector in found.values()}) > 1:
            raise EmbeddingFailed("the model's vectors have another length than before")
        return found

    def _remember(self, vectors: Mapping[bytes, Vector]) -> None:
        for key, vector in vectors.items():
            self._known[key] = vector
            self._known.move_to_end(key)
        while len(self._known) > _MOST_TABLES:
            self._known.popitem(last=False)

    def _question(self, question: str) -> "asyncio.Task[Vector]":
        """Return the question's vector; one request serves all, also when nobody waits any more."""
        known = self._questions.get(question)
        if known is None or (known.done() and (known.cancelled() or known.exception() is not None)):
            known = self._questions[question] = asyncio.create_task(self._one(question))
            known.add_done_callback(
                lambda task: task.cancelled() or task.exception()
            )  # nobody may look at it
        self._questions.move_to_end(question)
        while len(self._questions) > _MOST_QUESTIONS:
            self._questions.popitem(last=False)
        return known

    async def _one(self, question: str) -> Vector:
        (vector,) = await self._embed([question])
        return vector


def _text(table: Table, metrics: Sequence[Metric]) -> str:
    return "\n".join(_sent(table, metrics))[:_MOST_CHARS]


def _sent(table: Table, metrics: Sequence[Metric]) -> Iterator[str]:
    """Return the table's text without stored values and whatever stands for one."""
    yield from (
        text for kind, text, _ in texts_of(table, _no_values, metrics) if kind not in _NOT_SENT
    )
    for column in table.columns:
        if column.meaning:
            yield from (*column.meaning.names.all, *filter(None, column.meaning.description or ()))


def _no_values(_table: Table, _column: Column) -> tuple[str, ...]:
    return ()


def _hash(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{model}\0{text}".encode()).digest()


def _signs(vector: Vector) -> int:
    """A bit for each number: whether it is positive."""
    return int("".join("1" if number > 0 else "0" for number in vector), 2)
