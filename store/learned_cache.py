"""Keeps what is learnt in memory: a question costs one small read while nothing has changed."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from common.after_fork import restart_after_fork
from common.learning import Document, Example, Lesson, Topic
from store.learned import Item, LearnedItems, Visible
from store.learned_json import OWN_KINDS, SHARED_KINDS, item_of, own_set, shared_set
from store.records import RecordRepository, RecordSet

_MAX_OWN_ITEMS = 20_000  # remembered of all users together, about 1 KB each
_MAX_USERS = 1_000
_MANY = 200  # records that would block the loop for too long if they were read on it

_Part = tuple[str, tuple[Item, ...]]  # the revision and items of a record set
_NOTHING: _Part = ("", ())
_User = tuple[str, Topic, str]


@dataclass(frozen=True)
class _Held:
    """Learned items, and the parts they are made of."""

    parts: tuple[_Part, ...]
    learned: LearnedItems

    @property
    def size(self) -> int:
        return sum(len(items) for _, items in self.parts)


class LearnedCache:
    """Keeps the shared items, and those of the users who asked last; for the event loop only."""

    def __init__(self, record_sets: RecordRepository) -> None:
        self._record_sets = record_sets
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Forget everything; a forked child reads it again."""
        self._shared: dict[tuple[str, Topic], _Held] = {}
        # Who asked last is at the end.
        self._own: OrderedDict[_User, _Held] = OrderedDict()
        self._own_items = 0

    async def visible(self, datasource: str, user_id: str, topic: Topic) -> Visible:
        shared_kinds, own_kinds = SHARED_KINDS[topic], OWN_KINDS[topic]
        record_sets = [shared_set(datasource, kind) for kind in shared_kinds]
        record_sets += [own_set(datasource, kind, user_id) for kind in own_kinds]
        everybody = (datasource, topic)
        user = (datasource, topic, user_id)
        shared_before = _parts(self._shared.get(everybody), len(shared_kinds))
        own_before = _parts(self._own.get(user), len(own_kinds))
        parts = await self._current(record_sets, shared_before + own_before)
        # Another question may have read them meanwhile; what it keeps is used if it is the same.
        shared = _held(self._shared.get(everybody), parts[: len(shared_kinds)])
        own = _held(self._own.get(user), parts[len(shared_kinds) :])
        self._shared[everybody] = shared
        self._remember(user, own)
        return Visible(shared.learned, own.learned)

    async def _current(
        self, record_sets: Sequence[bytes], before: Sequence[_Part]
    ) -> tuple[_Part, ...]:
        """Return the parts as the store has them; only those that changed are read."""
        parts = list(before)
        changed: dict[int, bytes] = {}
        revisions = await self._record_sets.revisions(record_sets)
        for number, revision in enumerate(revisions):
            if not revision:  # nothing was ever kept there, or the store has lost it
                parts[number] = _NOTHING
            elif revision != parts[number][0]:
                changed[number] = record_sets[number]

        if changed:
            read = await self._record_sets.read(list(changed.values()))
            for number, found in zip(changed, read, strict=True):
                parts[number] = await _part_of(found)

        return tuple(parts)

    def _remember(self, user: _User, own: _Held) -> None:
        if user in self._own:
            self._own_items -= self._own.pop(user).size

        self._own[user] = own
        self._own_items += own.size
        while len(self._own) > 1 and self._holds_too_much():
            _, oldest = self._own.popitem(last=False)
            self._own_items -= oldest.size

    def _holds_too_much(self) -> bool:
        return self._own_items > _MAX_OWN_ITEMS or len(self._own) > _MAX_USERS


def _parts(held: _Held | None, count: int) -> tuple[_Part, ...]:
    return held.parts if held else (_NOTHING,) * count


def _held(before: _Held | None, parts: tuple[_Part, ...]) -> _Held:
    """Return the items of the parts; `before`, if it has the same."""
    revision = ".".join(part_revision for part_revision, _ in parts)
    if before is not None and before.learned.revision == revision:
        return before

    examples: list[Example] = []
    lessons: list[Lesson] = []
    documents: list[Document] = []
    for _, items in parts:
        for item in items:
            match item:
                case Example():
                    examples.append(item)
                case Lesson():
                    lessons.append(item)
                case Document():
                    documents.append(item)

    learned = LearnedItems(revision, tuple(examples), tuple(lessons), tuple(documents))
    return _Held(parts, learned)


async def _part_of(record_set: RecordSet) -> _Part:
    """Return the items of a record set with its revision; many are read in a thread."""
    if len(record_set.records) > _MANY:
        items = await asyncio.to_thread(_items, record_set)
    else:
        items = _items(record_set)

    return record_set.revision, items


def _items(record_set: RecordSet) -> tuple[Item, ...]:
    items = []
    for record in record_set.records:
        item = item_of(record)
        if isinstance(item, Document) or not item.is_rejected:
            items.append(item)

    return tuple(items)
