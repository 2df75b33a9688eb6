"""Find tables that mean what a question means, by vectors of an embedding model.

They help the words, and are never needed.

Only names, comments and what the semantic file says are sent, never stored values. The vectors of a
catalogue are asked for in the background, in batches one after the other, and kept by the text and
the model, so that nothing is asked for twice. Until all are there, and whenever a question's own
does not come soon, words decide alone.
"""

import asyncio
import hashlib
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from heapq import nlargest, nsmallest
from operator import mul

from common.meanings import Metric, TableKey
from common.values import Catalog, Table
from knowledge.index import IndexPart
from knowledge.tables.table_texts import TextKind, metrics_of, no_values, texts_of
from llm.embedding import MOST_TEXTS, EmbeddingFailed, Vector
from store.vectors import VectorRepository

_log = logging.getLogger(__name__)

_WAIT_S = 0.5  # that a question waits for its own vector
_RETRY_AFTER_S = 60.0  # of a failure
_MOST_CHARS = 4_000  # of one text
_MOST_TABLES = 20_000
_MOST_QUESTIONS = 500  # whose vectors are remembered
_NEAREST = 50  # tables that are found
_COMPARED = 300  # tables of which the distance is worked out
_NOT_SENT: tuple[TextKind, ...] = (
    "value",
    "column_meaning",
)  # of the latter, some name stored values

Embed = Callable[[Sequence[str]], Awaitable[list[Vector]]]
"""See `llm.embedding.Embedder.embed`."""

Nearest = Callable[[Catalog, str], Awaitable[tuple[TableKey, ...]]]
"""See `TableVectors.nearest`."""


class _Tables:
    """The tables of a catalogue with their vectors, which `fill` brings later, all at once.

    Attributes:
        keys, texts, hashes: of each table, in the same order.
        fill_task: asks for the vectors; None before the first time.
    """

    def __init__(self, catalog: Catalog, model: str) -> None:
        metrics = metrics_of(catalog)
        tables = catalog.tables[:_MOST_TABLES]
        self.keys = [table.key for table in tables]
        self.texts = [_table_text(table, metrics.get(table.key, ())) for table in tables]
        self.hashes = [_hash(model, text) for text in self.texts]
        self.fill_task: asyncio.Task[None] | None = None
        self.failed_at = -math.inf  # on the monotonic clock
        self._vectors: list[Vector] = []
        self._signs: list[int] = []  # of each vector, as bits: see `nearest`

    @property
    def is_ready(self) -> bool:
        return bool(self._signs)

    def fill(self, vectors: Mapping[bytes, Vector]) -> None:
        """Take the vectors of all tables."""
        self._vectors = [vectors[key] for key in self.hashes]
        self._signs = list(map(_signs, self._vectors))

    def nearest(self, vector: Vector) -> tuple[TableKey, ...]:
        """Return the nearest tables, the nearest first; none when the vector is of another length.

        The signs of a vector's numbers say nearly as well where it points, and thousands are
        compared in milliseconds.
        """
        if not self._vectors or len(vector) != len(self._vectors[0]):
            return ()

        wanted = _signs(vector)

        def signs_apart(at: int) -> int:
            return (wanted ^ self._signs[at]).bit_count()

        def likeness(at: int) -> float:
            product: float = sum(map(mul, vector, self._vectors[at]))
            return product

        near = nsmallest(_COMPARED, range(len(self._signs)), key=signs_apart)
        best = nlargest(_NEAREST, near, key=likeness)
        return tuple(self.keys[at] for at in best)


class TableVectors:
    """Finds the tables nearest to questions.

    Args:
        model: its name, which tells its vectors from those of others.
        embed: gives vectors.
        repository: keeps them beyond this process; None: nothing does.
    """

    def __init__(
        self, model: str, embed: Embed, repository: VectorRepository | None = None
    ) -> None:
        self._model = model
        self._embed = embed
        self._repository = repository
        self._part = IndexPart(lambda index: _Tables(index.catalog, model), ignores_row_counts=True)
        self._questions: OrderedDict[str, asyncio.Task[Vector]] = OrderedDict()
        self._known: OrderedDict[bytes, Vector] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def nearest(self, catalog: Catalog, question: str) -> tuple[TableKey, ...]:
        """Return the tables nearest to the question, at most 50, the nearest first.

        Empty if they are not known soon.
        """
        try:
            async with asyncio.timeout(_WAIT_S):
                tables = await self._part.ready(catalog)
                self._start_filling(tables)
                if not tables.is_ready:
                    return ()

                question = question[:_MOST_CHARS]
                vector = await asyncio.shield(self._question(question))
                keys = await asyncio.to_thread(tables.nearest, vector)
                if not keys:  # a vector of another length is not worth keeping
                    self._questions.pop(question, None)

                return keys
        except (TimeoutError, EmbeddingFailed):
            return ()

    async def begin(self, catalog: Catalog) -> None:
        """Ask for the vectors of the catalogue's tables, unless they are there.

        They come in the background.
        """
        self._start_filling(await self._part.ready(catalog))

    async def settled(self) -> None:
        """Wait until the vectors that were asked for are there, or have failed."""
        await asyncio.gather(*self._tasks)

    def _start_filling(self, tables: _Tables) -> None:
        if not tables.texts or tables.is_ready:
            return
        if tables.fill_task is not None and not tables.fill_task.done():
            return

        has_just_failed = time.monotonic() - tables.failed_at < _RETRY_AFTER_S
        if has_just_failed:
            return

        tables.fill_task = asyncio.create_task(self._fill(tables))
        self._tasks.add(tables.fill_task)
        tables.fill_task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Stop asking for vectors."""
        for task in (*self._tasks, *self._questions.values()):
            task.cancel()

    async def _fill(self, tables: _Tables) -> None:
        try:
            texts = dict(zip(tables.hashes, tables.texts, strict=True))
            vectors = await self._vectors_of(texts)
            await asyncio.to_thread(tables.fill, vectors)
        except EmbeddingFailed as exc:
            tables.failed_at = time.monotonic()
            _log.warning("the tables' vectors could not be had, words alone rank them: %s", exc)

    async def _vectors_of(self, texts: Mapping[bytes, str]) -> Mapping[bytes, Vector]:
        vector_by_text = await self._kept(texts)
        missing = [key for key in texts if key not in vector_by_text]
        for start in range(0, len(missing), MOST_TEXTS):
            keys = missing[start : start + MOST_TEXTS]
            vectors = await self._embed([texts[key] for key in keys])
            new = dict(zip(keys, vectors, strict=True))
            if self._repository is not None:
                await self._repository.write(new)

            vector_by_text |= new
            self._remember(new)

        self._remember(vector_by_text)
        sizes = set(map(len, vector_by_text.values()))
        if len(sizes) > 1:
            raise EmbeddingFailed("the model's vectors have another length than before")

        return vector_by_text

    async def _kept(self, texts: Mapping[bytes, str]) -> dict[bytes, Vector]:
        """Return the vectors that this process remembers, and those that are kept beyond it."""
        kept = {}
        unknown = []
        for key in texts:
            if key in self._known:
                kept[key] = self._known[key]
            else:
                unknown.append(key)

        if self._repository is not None:
            kept |= await self._repository.read(unknown)

        return kept

    def _remember(self, vectors: Mapping[bytes, Vector]) -> None:
        for key, vector in vectors.items():
            self._known[key] = vector
            self._known.move_to_end(key)

        while len(self._known) > _MOST_TABLES:
            self._known.popitem(last=False)

    def _question(self, question: str) -> "asyncio.Task[Vector]":
        """Return the question's vector; one request serves all, also when nobody waits any more."""
        task = self._questions.get(question)
        if task is None or _has_failed(task):
            task = self._questions[question] = asyncio.create_task(self._embed_question(question))
            task.add_done_callback(_has_failed)  # nobody else may look at its error

        self._questions.move_to_end(question)
        while len(self._questions) > _MOST_QUESTIONS:
            self._questions.popitem(last=False)

        return task

    async def _embed_question(self, question: str) -> Vector:
        (vector,) = await self._embed([question])
        return vector


def _has_failed(task: "asyncio.Task[Vector]") -> bool:
    if not task.done():
        return False

    return task.cancelled() or task.exception() is not None


def _table_text(table: Table, metrics: Sequence[Metric]) -> str:
    return "\n".join(_sent(table, metrics))[:_MOST_CHARS]


def _sent(table: Table, metrics: Sequence[Metric]) -> Iterator[str]:
    """Return the table's text without stored values and whatever stands for one."""
    for kind, text, _ in texts_of(table, no_values, metrics):
        if kind not in _NOT_SENT:
            yield text

    for column in table.columns:
        if column.meaning is None:
            continue

        yield from column.meaning.names.all
        yield from filter(None, column.meaning.description or ())


def _hash(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{model}\0{text}".encode()).digest()


def _signs(vector: Vector) -> int:
    """Return a bit for each number, which is set when the number is positive."""
    bits = ["1" if number > 0 else "0" for number in vector]
    return int("".join(bits), 2)
