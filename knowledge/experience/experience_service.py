"""Find examples, lessons and documents for a question, as its actor may see them, in bounded time.

When the store is slow or away, questions go on without experience; the log says so once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from common.actor import NOBODY, Actor
from common.errors import CituError, StoreUnavailable
from common.inquiry import Inquiry
from common.learning import Document, Example, Experience, Lesson, Topic
from common.ports import Database, Definitions
from common.tasks import is_running_here
from common.values import Catalog
from knowledge.experience.actor_access import ActorAccess, ClosedNames
from knowledge.experience.entry_indexes import EntryIndex, EntryIndexes
from knowledge.experience.hidden_rows import HiddenRows
from knowledge.experience.phrasing import Phrasing, phrasing_of
from knowledge.experience.proving import PER_MINUTE, Prover
from knowledge.experience.reuse import ReuseContext, bound
from knowledge.experience.shapes import ExampleShape
from knowledge.experience.text_ranking import ranked
from knowledge.tables.tables_read import tables_hash
from store.learned import Learned, Visible

T = TypeVar("T")
_log = logging.getLogger(__name__)

_PATIENCE_S = 0.5  # that a question waits for the store and for indexes that are being made
_MOST_EXAMPLES = 5
_MOST_TRUSTED = 50
_MOST_LESSONS = 3
_MOST_DOCUMENTS = 3
_FEW = 50  # entries, which are ranked in less time than a thread takes to begin
_LOOKED_AT = 24  # of each kind, the best, of which those are taken that the actor may see
_MOST_CHARS = 1_000  # of a question that are looked at
_MOST_REUSABLE = 20  # examples of one wording that are tried
_USES_PAUSE_S = 1.0  # uses of this time are counted together
_MOST_USES = 1_000


@dataclass(frozen=True)
class Reusable:
    """An example of the same question, and its SQL with the literals of the new one."""

    example: Example
    sql: str


@dataclass(frozen=True)
class _UserIndexes:
    """The entries of one user, and those that are shared with everybody."""

    own: EntryIndex
    shared: EntryIndex

    def __len__(self) -> int:
        return len(self.own) + len(self.shared)

    async def alike(self, question: str) -> tuple[list[Example], list[Lesson], list[Document]]:
        """Return the entries that have to do with the question, best first.

        Many entries are looked through in a thread.
        """
        if len(self) <= _FEW:
            return self._similar_experience(question)

        return await asyncio.to_thread(self._similar_experience, question)

    def _similar_experience(
        self, question: str
    ) -> tuple[list[Example], list[Lesson], list[Document]]:
        own = self.own
        shared = self.shared
        question = question[:_MOST_CHARS]
        examples = ranked(question, (own.example_index, shared.example_index), _LOOKED_AT)
        lessons = ranked(question, (own.lesson_index, shared.lesson_index), _LOOKED_AT)
        documents = ranked(question, (shared.document_index,), _LOOKED_AT)
        return (
            [own.examples.get(key) or shared.examples[key] for key in examples],
            [own.lessons.get(key) or shared.lessons[key] for key in lessons],
            [shared.documents[key] for key in documents],
        )


class ExperienceService:
    """The experience of one topic with one datasource, for any number of questions at once.

    Args:
        topic: what was answered; what was learnt of others has no part in anything.
        database_of: gives the datasource as an actor may see it, not audited.
        definitions: gives the catalogue of everybody; default: that of nobody's own rights.
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
        topic: Topic = "question",
        definitions: Callable[[], Definitions] | None = None,
        check: Callable[[], None] = lambda: None,
        reuses: bool = True,
        proven_per_minute: float = PER_MINUTE,
    ) -> None:
        self._learned = learned
        self._datasource = datasource
        self._topic = topic
        self._database_of = database_of
        self._check = check
        self.reuses = reuses
        self._definitions = definitions or (lambda: database_of(NOBODY))
        self._prover = Prover(learned, datasource, self._definitions, per_minute=proven_per_minute)
        self._indexes = EntryIndexes(reuses=reuses)
        self._closed = ClosedNames()
        self._reading: dict[str, asyncio.Task[_UserIndexes]] = {}
        self._hashes: dict[tuple[tuple[str, str], ...], str] = {}
        self._hashed: Catalog | None = None
        self._uses: list[str] = []
        self._counting: asyncio.Task[None] | None = None
        self._is_away = False

    async def view(self, actor: Actor) -> "ExperienceView | None":
        """Return the experience as the actor may see it now.

        None when there is nothing, or when it can't be known in time.
        """
        return await self.safely(self._view(actor), None)

    async def warm(self) -> None:
        """Prepare the shared entries, before the first question waits for them."""
        await self._indexes_of(NOBODY)

    async def examples(self, question: str, actor: Actor) -> tuple[Example, ...]:
        """Return proven examples of similar questions that the actor may be shown, best first.

        None when that can't be known in time.
        """
        return await self.safely(self._examples(question, actor), ())

    async def safely(self, found: Awaitable[T], otherwise: T) -> T:
        """Await `found` for a short time; return `otherwise` when it fails or takes longer.

        Whatever people have brought must not keep anybody from an answer.
        """
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await found
        except (TimeoutError, CituError) as error:
            if not self._is_away:
                reason = "timeout"
                if isinstance(error, CituError):
                    reason = error.error_type

                _log.warning("questions go on without what was learnt: %s", reason)

            self._is_away = True
        except Exception:  # noqa: BLE001 - see above
            _log.exception("what was learnt could not be used")

        return otherwise

    def used(self, examples: Iterable[Example]) -> None:
        """Count an answer for each of the examples.

        The count may be lost in a crash, or while the store is away.
        """
        self._uses += [example.example_id for example in examples]
        del self._uses[_MOST_USES:]
        if self._counting is None or not is_running_here(self._counting):
            self._counting = asyncio.create_task(self._count())

    async def aclose(self) -> None:
        """Stop the work in the background."""
        await self._prover.aclose()
        for task in self._reading.values():
            task.cancel()

        if self._counting is not None:
            self._counting.cancel()

    # --------------------------------------------------------------------------
    # reading

    async def _indexes_of(self, actor: Actor) -> _UserIndexes:
        """Return the user's indexes, read once for all who wait; that goes on when they have
        left.
        """
        self._check()
        user = actor.owner
        reading = self._reading.get(user)
        if reading is None or not is_running_here(reading):
            reading = self._reading[user] = asyncio.create_task(self._read_indexes(user))
            reading.add_done_callback(lambda task: self._has_read(user, task))

        indexes = await asyncio.shield(reading)
        self._is_away = False
        return indexes

    async def _read_indexes(self, user: str) -> _UserIndexes:
        visible: Visible = await self._learned.visible(self._datasource, user, self._topic)
        shared = await self._indexes.ready(None, visible.shared)
        return _UserIndexes(await self._indexes.ready(user, visible.own), shared)

    def _has_read(self, user: str, task: "asyncio.Task[_UserIndexes]") -> None:
        if self._reading.get(user) is task:
            del self._reading[user]
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may have

    async def _view(self, actor: Actor) -> "ExperienceView | None":
        indexes = await self._indexes_of(actor)
        if not len(indexes):
            return None

        return ExperienceView(self, actor.owner, indexes, await self._access(actor))

    async def _examples(self, question: str, actor: Actor) -> tuple[Example, ...]:
        view = await self._view(actor)
        if view is not None:
            return await view.examples(question)

        return ()

    async def _access(self, actor: Actor) -> ActorAccess:
        """Return what the actor may read now; hashes of an earlier catalogue are forgotten."""
        database = self._database_of(actor)
        catalog = await database.catalog()
        whole = await self._definitions().catalog()
        if self._hashed is not whole:
            self._hashed = whole
            self._hashes = {}

        closed = self._closed.names(whole, catalog)
        return ActorAccess(database, catalog, whole, closed, await HiddenRows.of(database))

    def is_proven(self, example: Example) -> bool:
        """Tell whether the example holds for the tables as they are; else have it proven again."""
        assert self._hashed is not None
        now = self._hashes.get(example.tables)
        if now is None:
            now = tables_hash(example.tables, self._hashed)
            self._hashes[example.tables] = now

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
class ExperienceView:
    """The experience as one actor may see it, for one question."""

    service: ExperienceService
    user: str
    indexes: _UserIndexes
    access: ActorAccess

    async def recalled(self, inquiry: Inquiry) -> Experience:
        """Return the entries that may help with the question."""
        examples, lessons, documents = await self.indexes.alike(inquiry.question)
        return Experience(
            await self._usable(examples),
            await self._instructive(lessons),
            tuple(islice(filter(self.access.may_see, documents), _MOST_DOCUMENTS)),
        )

    async def examples(self, question: str) -> tuple[Example, ...]:
        """Return examples of similar questions that may be shown to a model."""
        examples, _, _ = await self.indexes.alike(question)
        return await self._usable(examples)

    async def _usable(self, examples: Iterable[Example]) -> tuple[Example, ...]:
        """Return the first of the examples that are proven and may be shown to a model.

        Candidates stand behind the others.
        """
        chosen: dict[tuple[str, str], Example] = {}
        reviewed = [one for one in examples if not is_unseen(one)]
        reviewed.sort(key=lambda one: one.trust == "candidate")
        for example in reviewed:
            content = (example.question, example.sql)
            if len(chosen) == _MOST_EXAMPLES:
                break
            if content not in chosen and await self._may_be_shown(example):
                chosen[content] = example

        return tuple(chosen.values())

    async def _may_be_shown(self, example: Example) -> bool:
        """Tell whether a model may be shown the example, which also has to be proven."""
        is_own = example.author == self.user
        if not is_own and self.access.names_somebody(example):
            return False

        return await self._holds(example)

    async def _holds(self, example: Example) -> bool:
        """Tell whether the example is proven, and the user may read its tables."""
        if not self.service.is_proven(example):
            return False

        return await self.access.may_use(example, is_own=example.author == self.user)

    async def questions_with(self, words: str) -> tuple[str, ...]:
        """Return questions of examples that hold these case-folded words and may be shown."""
        examples = [*self.indexes.own.examples.values(), *self.indexes.shared.examples.values()]
        alike = [one for one in examples if words in one.question.casefold()]
        usable = await self._usable(_by_trust(alike, self.user)[:_LOOKED_AT])
        return tuple(one.question for one in usable)

    async def asked_the_same(self, asked: str) -> tuple[Example, ...]:
        """Return examples of the very same request that may decide for the user, the most trusted
        and then the newest first.

        Args:
            asked: as `Example.asked` gives it.
        """
        examples_seen = [
            *self.indexes.own.examples.values(),
            *self.indexes.shared.examples.values(),
        ]
        same = [one for one in examples_seen if one.asked == asked]
        examples: list[Example] = []
        for example in _by_trust(same, self.user):
            may_decide = example.trust != "candidate"
            if may_decide and await self._holds(example):
                examples.append(example)

        return tuple(examples)

    async def trusted(self) -> tuple[Example, ...]:
        """Return examples that somebody stands for and that may be shown to a model, the most
        trusted and then the newest first.
        """
        example_by_id = {**self.indexes.shared.examples, **self.indexes.own.examples}
        examples: list[Example] = []
        for example in _by_trust(example_by_id.values(), self.user):
            if len(examples) == _MOST_TRUSTED:
                break
            if example.trust != "candidate" and await self._may_be_shown(example):
                examples.append(example)

        return tuple(examples)

    async def _instructive(self, lessons: Iterable[Lesson]) -> tuple[Lesson, ...]:
        """Return the first of the lessons that may be shown to a model, each hint once."""
        chosen: dict[str, Lesson] = {}
        for lesson in lessons:
            if len(chosen) == _MOST_LESSONS:
                break
            if lesson.avoidance_hint in chosen:
                continue
            if await self.access.may_learn(lesson, is_own=lesson.author == self.user):
                chosen[lesson.avoidance_hint] = lesson

        return tuple(chosen.values())

    async def reusable(self, inquiry: Inquiry) -> tuple[Reusable, ...]:
        """Return examples that answer this very question, with its literals, most trusted first.

        Their SQL has passed the guard for the actor, with the literals of the example; it has not
        been planned.
        """
        if not self.service.reuses or len(inquiry.question) > _MOST_CHARS:
            return ()

        asked = phrasing_of(inquiry.question)
        reuse_context = ReuseContext(
            inquiry.catalog,
            tuple(found_value for found_value in inquiry.found_values if found_value.is_meant),
        )
        reusable: dict[str, Reusable] = {}
        for example, shape in self._most_trusted(asked)[:_MOST_REUSABLE]:
            if not _is_about(example, inquiry):
                continue

            sql = bound(shape, asked, reuse_context)
            if sql is None or sql in reusable:
                continue
            if await self._holds(example):
                reusable[sql] = Reusable(example, sql)

        return tuple(reusable.values())

    def _most_trusted(self, asked: Phrasing) -> list[tuple[Example, ExampleShape]]:
        """Return examples of questions with these words, by trust, then the newest first."""
        own = self.indexes.own
        shared = self.indexes.shared
        shapes = dict[str, ExampleShape]()
        alike: list[Example] = []
        for example, shape in (*own.alike(asked), *shared.alike(asked)):
            shapes[example.example_id] = shape
            alike.append(example)

        ordered = _by_trust(alike, self.user)
        return [(example, shapes[example.example_id]) for example in ordered]


def is_unseen(example: Example) -> bool:
    """Tell whether a model saved it and nobody has looked at it since.

    That it ran does not make it right.
    """
    return example.source == "agent" and example.trust == "candidate"


def _by_trust(examples: Iterable[Example], user: str) -> list[Example]:
    """Return the examples by trust, then the newest first."""
    newest = sorted(examples, key=lambda one: one.created_at, reverse=True)
    return sorted(newest, key=lambda one: _rank(one, user))


_RANKS = ("certified", "reviewed", "personal", "candidate")


def _rank(example: Example, user: str) -> int:
    """Return the place of an example in the order of trust; the user's own corrections come
    first.
    """
    if example.author == user and example.source == "correction":
        return -1

    return _RANKS.index(example.trust)


def _is_about(example: Example, inquiry: Inquiry) -> bool:
    """Tell whether the example reads the table that the caller says the question is about."""
    if inquiry.table is None:
        return True

    table_name = inquiry.table.replace('"', "").lower()
    for schema, name in example.tables:
        if table_name in (name.lower(), f"{schema}.{name}".lower()):
            return True

    return False
