"""Finds what has been learnt for a question, as its actor may see it, in bounded time.

When the store is slow or away, questions go on without experience; the log says so once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeVar

from common.actor import NOBODY, Actor
from common.errors import CituError, StoreUnavailable
from common.inquiry import Inquiry
from common.learning import Document, Example, Experience, Lesson
from common.ports import Database, Definitions
from common.store.learned import Learned, Visible
from common.values import Catalog
from knowledge.experience.hidden_rows import HiddenRows
from knowledge.experience.phrasing import phrasing_of
from knowledge.experience.proving import PER_MINUTE, Prover
from knowledge.experience.ranking import ranked
from knowledge.experience.reuse import Known, bound
from knowledge.experience.shelves import Shelf, Shelves
from knowledge.experience.sight import Closed, Sight
from knowledge.tables_read import tables_hash

T = TypeVar("T")
_log = logging.getLogger(__name__)

_PATIENCE_S = 0.5  # what a question waits for the store and for shelves that are being made
_MOST_EXAMPLES, _MOST_LESSONS, _MOST_DOCUMENTS = 5, 3, 3
_FEW = 50  # entries, which are ranked in less time than a thread takes to begin
_LOOKED_AT = 24  # of each kind, the best, of which those are taken that the actor may see
_MOST_CHARS = 1_000  # of a question that are looked at
_MOST_REUSABLE = 20  # examples of one wording that are tried
_USES_PAUSE_S = 1.0  # uses of this time are counted together
_MOST_USES = 1_000


@dataclass(frozen=True)
class Reusable:
    """An example whose question says the same, and its SQL with the literals of the new question."""

    example: Example
    sql: str


@dataclass(frozen=True)
class _Shelves:
    """What one user may be shown: their own, and what is shared."""

    own: Shelf
    shared: Shelf

    def __len__(self) -> int:
        return len(self.own) + len(self.shared)

    async def alike(self, question: str) -> tuple[list[Example], list[Lesson], list[Document]]:
        """What has to do with the question, the most alike first; looked for in a thread where there is much."""
        if len(self) <= _FEW:
            return self._alike(question)
        return await asyncio.to_thread(self._alike, question)

    def _alike(self, question: str) -> tuple[list[Example], list[Lesson], list[Document]]:
        own, shared, question = self.own, self.shared, question[:_MOST_CHARS]
        examples = ranked(question, (own.example_index, shared.example_index), _LOOKED_AT)
        lessons = ranked(question, (own.lesson_index, shared.lesson_index), _LOOKED_AT)
        documents = ranked(question, (shared.document_index,), _LOOKED_AT)
        return (
            [own.examples.get(key) or shared.examples[key] for key in examples],
            [own.lessons.get(key) or shared.lessons[key] for key in lessons],
            [shared.documents[key] for key in documents],
        )


class ExperienceDesk:
    """The experience with one datasource, for any number of questions at once.

    Args:
        database_of: gives the asked database as an actor may see it, not audited.
        definitions: gives what is known of it whoever asks; None: what nobody's rights narrow.
        check: raises `StoreUnavailable` when the store is known to be down.
        reuses: whether examples' SQL may be used again without being written anew.
        proven_per_minute: how many stale examples this worker proves again.
    """

    def __init__(
        self,
        learned: Learned,
        datasource: str,
        database_of: Callable[[Actor], Database],
        *,
        definitions: Callable[[], Definitions] | None = None,
        check: Callable[[], None] = lambda: None,
        reuses: bool = True,
        proven_per_minute: float = PER_MINUTE,
    ) -> None:
        self._learned = learned
        self._datasource = datasource
        self._database_of = database_of
        self._check = check
        self.reuses = reuses
        self._definitions = definitions or (lambda: database_of(NOBODY))
        self._prover = Prover(learned, datasource, self._definitions, per_minute=proven_per_minute)
        self._shelves = Shelves()
        self._closed = Closed()
        self._reading: dict[str, asyncio.Task[_Shelves]] = {}
        self._hashes: dict[tuple[tuple[str, str], ...], str] = {}
        self._hashed: Catalog | None = None
        self._uses: list[str] = []
        self._counting: asyncio.Task[None] | None = None
        self._is_away = False

    async def view(self, actor: Actor) -> "View | None":
        """What the actor may see of the experience now; None when there is nothing, or when it can't be known in
        time."""
        return await self.safely(self._view(actor), None)

    async def warm(self) -> None:
        """Makes the shelf of what is shared, before the first question waits for it."""
        await self._shelves_of(NOBODY)

    async def examples(self, question: str, actor: Actor) -> tuple[Example, ...]:
        """Proven examples of similar questions that the actor may be shown, the most alike first; none when that can't
        be known in time."""
        return await self.safely(self._examples(question, actor), ())

    async def safely(self, found: Awaitable[T], otherwise: T) -> T:
        """What is found in time, else `otherwise`: what people have brought, however strange it is, must not keep
        anybody from an answer."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await found
        except (TimeoutError, CituError) as error:
            if not self._is_away:
                reason = error.error_type if isinstance(error, CituError) else "timeout"
                _log.warning("questions go on without what was learnt: %s", reason)
            self._is_away = True
        except Exception:  # noqa: BLE001 - see above
            _log.exception("what was learnt could not be used")
        return otherwise

    def used(self, examples: Iterable[Example]) -> None:
        """Counts an answer for each of the examples; a crash or a store that is away may lose it."""
        self._uses += [example.example_id for example in examples]
        del self._uses[_MOST_USES:]
        counting = self._counting
        if counting is None or counting.done() or counting.get_loop() is not asyncio.get_running_loop():
            self._counting = asyncio.create_task(self._count())

    async def aclose(self) -> None:
        """Stops what goes on in the background."""
        await self._prover.aclose()
        for task in (*self._reading.values(), *([self._counting] if self._counting else [])):
            task.cancel()

    # ---------------------------------------------------------------------------------------------------- what is there

    async def _shelves_of(self, actor: Actor) -> _Shelves:
        """The user's shelves, which are read and made once for all who wait; that goes on when they have left."""
        self._check()
        user = actor.owner
        reading = self._reading.get(user)
        if reading is None or reading.done() or reading.get_loop() is not asyncio.get_running_loop():
            reading = self._reading[user] = asyncio.create_task(self._read(user))
            reading.add_done_callback(lambda task: self._has_read(user, task))
        shelves = await asyncio.shield(reading)
        self._is_away = False
        return shelves

    async def _read(self, user: str) -> _Shelves:
        visible: Visible = await self._learned.visible(self._datasource, user)
        shared = await self._shelves.ready(None, visible.shared)
        return _Shelves(await self._shelves.ready(user, visible.own), shared)

    def _has_read(self, user: str, task: "asyncio.Task[_Shelves]") -> None:
        if self._reading.get(user) is task:
            del self._reading[user]
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may have

    async def _view(self, actor: Actor) -> "View | None":
        shelves = await self._shelves_of(actor)
        return View(self, actor.owner, shelves, await self._sight(actor)) if len(shelves) else None

    async def _examples(self, question: str, actor: Actor) -> tuple[Example, ...]:
        view = await self._view(actor)
        return await view.examples(question) if view else ()

    async def _sight(self, actor: Actor) -> Sight:
        database = self._database_of(actor)
        catalog = await database.catalog()
        whole = await self._definitions().catalog()
        if self._hashed is not whole:
            self._hashed, self._hashes = whole, {}
        return Sight(database, catalog, whole, self._closed.names(whole, catalog), await HiddenRows.of(database))

    def is_proven(self, example: Example) -> bool:
        """Whether the example holds for the tables as they are; otherwise has it proven again."""
        assert self._hashed is not None
        now = self._hashes.get(example.tables)
        if now is None:
            now = self._hashes[example.tables] = tables_hash(example.tables, self._hashed)
        if not example.is_stale and example.tables_hash == now:
            return True
        self._prover.ask(example, now)
        return False

    async def _count(self) -> None:
        while self._uses:
            await asyncio.sleep(_USES_PAUSE_S)
            uses, self._uses = self._uses, []
            try:
                await self._learned.count_use(self._datasource, uses)
            except StoreUnavailable:
                _log.info("uses of %d examples were not counted", len(uses))


@dataclass(frozen=True)
class View:
    """What one actor may see of the experience, for one question."""

    desk: ExperienceDesk
    user: str
    shelves: _Shelves
    sight: Sight

    async def recalled(self, inquiry: Inquiry) -> Experience:
        """What may help with the question."""
        examples, lessons, documents = await self.shelves.alike(inquiry.question)
        return Experience(
            await self._usable(examples),
            await self._instructive(lessons),
            tuple(islice(filter(self.sight.may_see, documents), _MOST_DOCUMENTS)),
        )

    async def examples(self, question: str) -> tuple[Example, ...]:
        """Those of similar questions that may be shown to a model."""
        examples, _, _ = await self.shelves.alike(question)
        return await self._usable(examples)

    async def _usable(self, examples: Iterable[Example]) -> tuple[Example, ...]:
        """The first of the examples that are proven and may be shown to a model; candidates stand behind the others."""
        chosen: dict[tuple[str, str], Example] = {}
        looked_at = (one for one in examples if not is_unseen(one))
        for example in sorted(looked_at, key=lambda one: one.trust == "candidate"):
            said = (example.question, example.sql)
            if len(chosen) == _MOST_EXAMPLES or said in chosen:
                continue
            is_own = example.author == self.user
            may_be_told = is_own or not self.sight.names_somebody(example)
            if may_be_told and self.desk.is_proven(example) and await self.sight.may_use(example, is_own=is_own):
                chosen[said] = example
        return tuple(chosen.values())

    async def _instructive(self, lessons: Iterable[Lesson]) -> tuple[Lesson, ...]:
        """The first of the lessons that may be told to a model, each hint once."""
        chosen: dict[str, Lesson] = {}
        for lesson in lessons:
            if len(chosen) == _MOST_LESSONS or lesson.avoidance_hint in chosen:
                continue
            if await self.sight.may_learn(lesson, is_own=lesson.author == self.user):
                chosen[lesson.avoidance_hint] = lesson
        return tuple(chosen.values())

    async def reusable(self, inquiry: Inquiry) -> tuple[Reusable, ...]:
        """Examples that answer this very question with its own literals, the most trusted first.

        Their SQL has passed the guard for the actor, with the literals of the example; it has not been planned.
        """
        own, shared = self.shelves.own, self.shelves.shared
        if not self.desk.reuses or len(inquiry.question) > _MOST_CHARS:
            return ()
        asked = phrasing_of(inquiry.question)
        known = Known(inquiry.catalog, tuple(one for one in inquiry.found_values if one.is_meant))
        alike = sorted(
            chain(own.alike(asked), shared.alike(asked)),
            key=lambda each: each[0].created_at,
            reverse=True,
        )
        alike.sort(key=lambda each: _rank(each[0], self.user))  # of equal rank the newest stay first
        found: dict[str, Reusable] = {}
        for example, shape in alike[:_MOST_REUSABLE]:
            sql = bound(shape, asked, known)
            if sql is None or sql in found or not _is_about(example, inquiry):
                continue
            is_own = example.author == self.user
            if self.desk.is_proven(example) and await self.sight.may_use(example, is_own=is_own):
                found[sql] = Reusable(example, sql)
        return tuple(found.values())


def is_unseen(example: Example) -> bool:
    """Whether a model saved it and nobody has looked at it since: that it ran does not make it right."""
    return example.source == "agent" and example.trust == "candidate"


_RANKS = ("certified", "reviewed", "personal", "candidate")


def _rank(example: Example, user: str) -> int:
    """What the user has corrected themselves comes first, then what most people have looked at."""
    if example.author == user and example.source == "correction":
        return -1
    return _RANKS.index(example.trust)


def _is_about(example: Example, inquiry: Inquiry) -> bool:
    """Whether the example reads the table that the caller says the question is about, if they say one."""
    if inquiry.table is None:
        return True
    wanted = inquiry.table.replace('"', "").lower()
    return any(wanted in (name.lower(), f"{schema}.{name}".lower()) for schema, name in example.tables)
