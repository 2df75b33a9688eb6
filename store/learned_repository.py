"""Keeps what is learnt in the record sets of any adapter.

Each change reads what is there, decides, and is applied only if nothing was changed meanwhile.
"""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from common.errors import StoreUnavailable
from common.learning import SHARED, Document, Example, Feedback, Lesson, Topic, Trust
from store import Retention
from store.learned import (
    Added,
    Item,
    Kept,
    LearnedFilter,
    LearnedPage,
    Learning,
    LearntKind,
    Reviewed,
    ReviewVerdict,
    Visible,
)
from store.learned_cache import LearnedCache
from store.learned_changes import feedback_change, is_same_state, loaded_item, reviewed_item
from store.learned_json import (
    LISTED_KINDS,
    OWN_KINDS,
    all_set,
    item_id,
    item_key,
    item_of,
    kind_of,
    listed_at,
    lists,
    note_key,
    note_of,
    note_record,
    notes_set,
    own_set,
    record_of,
    shared_set,
    state_of,
    trust_of,
)
from store.outages import BUSY
from store.record_json import parse_place_cursor, place_cursor
from store.records import (
    Applied,
    Record,
    RecordChange,
    RecordLimits,
    RecordRepository,
    StoredRecord,
)

_TRIES = 20  # of a change whose items others change at the same moment
_PAUSE_S = 0.05  # at most, before the next one
_BATCH = 100  # items of a load that are added at once
_NEWEST = (2**62, b"\xff" * 16)  # before every position and key


class LearnedRepository:
    """Implements `store.Learned` over `record_sets`."""

    def __init__(self, record_sets: RecordRepository, retention: Retention) -> None:
        self._record_sets = record_sets
        self._retention = retention
        self._cache = LearnedCache(record_sets)

    async def visible(self, datasource: str, user_id: str, topic: Topic = "question") -> Visible:
        return await self._cache.visible(datasource, user_id, topic)

    # --------------------------------------------------------------------------
    # feedback

    async def feedback(self, user_id: str, run_id: str) -> Feedback | None:
        key = note_key(user_id, run_id)
        record = (await self._record_sets.find([key])).get(key)
        return note_of(record).feedback if record else None

    async def keep(self, learning: Learning) -> Kept:
        """Keep feedback with what is learnt from it."""
        kept: Kept = "kept"
        for _ in range(_TRIES):
            applied = await self._keep_once(learning)
            if applied == "done":
                return kept
            if applied == "full":
                learning, kept = replace(learning, example=None, lesson=None), "full"

            await _pause()

        raise StoreUnavailable(BUSY)

    async def _keep_once(self, learning: Learning) -> Applied:
        feedback, datasource = learning.feedback, learning.datasource
        note = note_key(feedback.user_id, feedback.run_id)
        there = dict(await self._record_sets.find([note, *_item_keys(learning)]))
        before = there.pop(note, None)
        of_examples, of_lessons = OWN_KINDS[learning.topic]
        own_examples = own_set(datasource, of_examples, feedback.user_id)
        own_lessons = own_set(datasource, of_lessons, feedback.user_id)
        examples, lessons = await self._record_sets.read([own_examples, own_lessons])
        own = [*examples.records, *lessons.records]
        there |= {record.key: record for record in own}
        items = {item_id(item): item for item in map(item_of, there.values())}
        noted_before = note_of(before) if before else None
        noted, changed = feedback_change(
            learning, noted_before, _decidable(map(item_of, own)), items
        )
        changes = [*_changes(changed, there), *_note_changes(before, note_record(noted))]
        if not changes:
            return "done"

        retention = self._retention
        latest = {
            notes_set(feedback.user_id): retention.feedback,
            own_examples: retention.own_examples,
            own_lessons: retention.own_lessons,
        }
        return await self._record_sets.apply(changes, RecordLimits(self._most(datasource), latest))

    def _most(self, datasource: str) -> dict[bytes, int]:
        retention = self._retention
        most = {shared_set(datasource, "document"): retention.documents}
        for examples, lessons in OWN_KINDS.values():
            most[all_set(datasource, examples)] = retention.all_examples
            most[all_set(datasource, lessons)] = retention.all_lessons
            most[shared_set(datasource, examples)] = retention.shared_examples
            most[shared_set(datasource, lessons)] = retention.shared_lessons

        return most

    # --------------------------------------------------------------------------
    # loads

    async def add(self, datasource: str, items: Sequence[Item]) -> Mapping[str, Added]:
        """Add examples, lessons and documents as they are."""
        outcomes: dict[str, Added] = {}
        for start in range(0, len(items), _BATCH):
            batch = {item_id(item): item for item in items[start : start + _BATCH]}
            outcomes |= await self._add(datasource, batch)

        return outcomes

    async def _add(self, datasource: str, items: Mapping[str, Item]) -> dict[str, Added]:
        """Add all of them at once, or as many as there is room for."""
        for _ in range(_TRIES):
            there = await self._records_of(items)
            changed = _additions(items, there)
            outcomes: dict[str, Added] = dict.fromkeys(items, "known")
            outcomes |= dict.fromkeys(changed, "added")
            if not changed:
                return outcomes

            most = self._most(datasource) | self._own_most(datasource, changed.values())
            applied = await self._record_sets.apply(_changes(changed, there), RecordLimits(most))
            if applied == "done":
                return outcomes
            if applied == "full":
                return await self._add_singly(datasource, items)

            await _pause()

        raise StoreUnavailable(BUSY)

    async def _add_singly(self, datasource: str, items: Mapping[str, Item]) -> dict[str, Added]:
        """Add as many as there is room for, when there is none for all of them."""
        if len(items) == 1:
            return dict.fromkeys(items, "full")

        outcomes: dict[str, Added] = {}
        for id_, item in items.items():
            outcomes |= await self._add(datasource, {id_: item})

        return outcomes

    def _own_most(self, datasource: str, items: Iterable[Item]) -> dict[bytes, int]:
        """Return how many items their authors may have that are not shared."""
        allowed: dict[str, int] = {}
        for examples, lessons in OWN_KINDS.values():
            allowed[examples] = self._retention.own_examples
            allowed[lessons] = self._retention.own_lessons

        most: dict[bytes, int] = {}
        for item in _decidable(items):
            if trust_of(item) not in SHARED:
                kind = kind_of(item)
                most[own_set(datasource, kind, item.author)] = allowed[kind]

        return most

    async def replace_documents(
        self, datasource: str, source: str, documents: Sequence[Document]
    ) -> Mapping[str, Added]:
        """Add documents of `source`, and remove its others."""
        new = {each.document_id: each for each in documents}
        record_set = shared_set(datasource, "document")
        for _ in range(_TRIES):
            (read,) = await self._record_sets.read([record_set])
            there = {record.key: record for record in read.records}
            gone = _documents_of(source, there.values()) - new.keys()
            # The new ones come last and in their order, which decides on their positions.
            changed: dict[str, Item | None] = {**dict.fromkeys(sorted(gone)), **new}
            if not changed:
                return {}

            limits = RecordLimits(self._most(datasource))
            applied = await self._record_sets.apply(_changes(changed, there), limits)
            if applied != "changed":
                return dict.fromkeys(new, "added" if applied == "done" else "full")

            await _pause()

        raise StoreUnavailable(BUSY)

    # --------------------------------------------------------------------------
    # reviews

    async def find(self, datasource: str, item_id: str) -> Example | Lesson | None:
        """Return the example or lesson of this id."""
        return _decidable_item(await self._records_of([item_id]), datasource, item_id)

    async def review(
        self,
        datasource: str,
        item_id: str,
        reviewer: str,
        verdict: ReviewVerdict,
        *,
        seen: Trust | None = None,
    ) -> Reviewed:
        """Decide on an example or a lesson."""
        first: Example | Lesson | None = None
        for _ in range(_TRIES):
            there = await self._records_of([item_id])
            item = _decidable_item(there, datasource, item_id)
            if item is None:
                return Reviewed("unknown")

            outcome, new = reviewed_item(item, reviewer, verdict, seen)
            if outcome != "done" or new is None:
                return Reviewed(outcome, item)
            if first is not None and not is_same_state(first, item):
                return Reviewed("changed", item)

            limits = RecordLimits(self._most(datasource))
            applied = await self._record_sets.apply(_changes({item_id: new}, there), limits)
            if applied == "done":
                return Reviewed("done", new)
            if applied == "full":
                return Reviewed("full", item)

            first = first or item
            await _pause()

        raise StoreUnavailable(BUSY)

    async def delete(self, datasource: str, item_id: str, by: str | None) -> bool:
        """Forget an example or a lesson."""
        for tries in range(_TRIES):
            there = await self._records_of([item_id])
            item = _decidable_item(there, datasource, item_id)
            if item is None:
                # Gone since the first look, perhaps by a try of which no reply came.
                return tries > 0
            if by is not None and (item.author != by or trust_of(item) in SHARED):
                return False

            changes = _changes({item_id: None}, there)
            if await self._record_sets.apply(changes, RecordLimits()) == "done":
                return True

            await _pause()

        raise StoreUnavailable(BUSY)

    # --------------------------------------------------------------------------
    # proofs

    async def mark_stale(self, datasource: str, reasons: Mapping[str, str]) -> None:
        """Mark examples whose tables have changed."""

        def stale(example: Example) -> Example:
            return replace(example, is_stale=True, stale_reason=reasons[example.example_id])

        await self._alter(datasource, reasons, stale)

    async def mark_proven(self, datasource: str, hashes: Mapping[str, str], proven_at: str) -> None:
        """Mark examples as proven."""

        def proven(example: Example) -> Example:
            return replace(
                example,
                is_stale=False,
                stale_reason=None,
                tables_hash=hashes[example.example_id],
                proven_at=proven_at,
            )

        await self._alter(datasource, hashes, proven)

    async def _alter(
        self, datasource: str, example_ids: Collection[str], alter: Callable[[Example], Example]
    ) -> None:
        for _ in range(_TRIES):
            there = await self._records_of(example_ids)
            changed: dict[str, Item | None] = {}
            for example in _examples_of(datasource, there.values()):
                altered = alter(example)
                if altered != example:
                    changed[example.example_id] = altered

            if not changed:
                return
            if await self._record_sets.apply(_changes(changed, there), RecordLimits()) == "done":
                return

            await _pause()

        raise StoreUnavailable(BUSY)

    async def count_use(
        self,
        datasource: str,  # noqa: ARG002 - the port has it
        example_ids: Iterable[str],
    ) -> None:
        """Count an answer for each of the examples."""
        keys = [item_key(id_) for id_ in example_ids]
        if keys:
            await self._record_sets.count_use(keys)

    # --------------------------------------------------------------------------
    # lists

    async def page(
        self,
        datasource: str,
        kind: LearntKind,
        wanted: LearnedFilter,
        limit: int,
        cursor: str | None = None,
    ) -> LearnedPage:
        """Return one page of examples or lessons, the newest first."""
        before = _NEWEST if cursor is None else parse_place_cursor(cursor)
        candidates = await self._candidates(datasource, kind, wanted, limit, before)
        items: dict[tuple[int, bytes], Example | Lesson] = {}
        for record in candidates:
            item = item_of(record)
            if not isinstance(item, Document) and _is_wanted(item, wanted):
                items[listed_at(item), record.key] = item

        following = sorted((place for place in items if place < before), reverse=True)
        shown = following[:limit]
        cursor = place_cursor(*shown[-1]) if len(following) > limit else None
        return LearnedPage(tuple(items[place] for place in shown), cursor)

    async def _candidates(
        self,
        datasource: str,
        kind: LearntKind,
        wanted: LearnedFilter,
        limit: int,
        before: tuple[int, bytes],
    ) -> list[StoredRecord]:
        """Read what the page is chosen from: `limit` records and one more, and all the user's."""
        trusts = wanted.trusts
        if wanted.seen_by is not None:
            trusts = [trust for trust in trusts if trust in SHARED]

        records: list[StoredRecord] = []
        record_sets = lists(datasource, kind, trusts, wanted.states)
        if record_sets:
            records += await self._record_sets.page(record_sets, limit + 1, before)
        if wanted.seen_by is not None:
            own_sets = [own_set(datasource, name, wanted.seen_by) for name in LISTED_KINDS[kind]]
            for own in await self._record_sets.read(own_sets):
                records += own.records

        return records

    async def _records_of(self, ids: Iterable[str]) -> Mapping[bytes, StoredRecord]:
        return await self._record_sets.find([item_key(id_) for id_ in ids])


def _item(there: Mapping[bytes, StoredRecord], id_: str) -> Item | None:
    record = there.get(item_key(id_))
    return item_of(record) if record else None


def _decidable(items: Iterable[Item]) -> list[Example | Lesson]:
    return [item for item in items if not isinstance(item, Document)]


def _decidable_item(
    there: Mapping[bytes, StoredRecord], datasource: str, id_: str
) -> Example | Lesson | None:
    item = _item(there, id_)
    if not isinstance(item, Example | Lesson) or item.datasource != datasource:
        return None

    return item


def _item_keys(learning: Learning) -> list[bytes]:
    """Return the keys of the example and the lesson that are learnt."""
    items = (learning.example, learning.lesson)
    return [item_key(item_id(item)) for item in items if item is not None]


def _documents_of(source: str, records: Iterable[StoredRecord]) -> set[str]:
    """Return the ids of the documents of this source."""
    ids: set[str] = set()
    for item in map(item_of, records):
        if isinstance(item, Document) and item.source == source:
            ids.add(item.document_id)

    return ids


def _examples_of(datasource: str, records: Iterable[StoredRecord]) -> list[Example]:
    """Return the examples for this datasource."""
    examples: list[Example] = []
    for item in map(item_of, records):
        if isinstance(item, Example) and item.datasource == datasource:
            examples.append(item)

    return examples


def _is_wanted(item: Example | Lesson, wanted: LearnedFilter) -> bool:
    return trust_of(item) in wanted.trusts and state_of(item) in wanted.states


def _additions(items: Mapping[str, Item], there: Mapping[bytes, StoredRecord]) -> dict[str, Item]:
    """Return the items that a load changes, by their ids."""
    changed: dict[str, Item] = {}
    for id_, item in items.items():
        new = loaded_item(item, _item(there, id_))
        if new is not None:
            changed[id_] = new

    return changed


def _changes(
    changed: Mapping[str, Item | None], there: Mapping[bytes, StoredRecord]
) -> list[RecordChange]:
    """Return the changes to the items; each is written only if nobody changed it meanwhile.

    Documents keep their order.
    """
    changes = []
    now = time.time_ns() // 1000
    for number, (id_, item) in enumerate(changed.items()):
        key = item_key(id_)
        record = there.get(key)
        before = record.text if record else None
        after = record_of(item, now - number) if item else None
        changes.append(RecordChange(key, before, after))

    return changes


def _note_changes(before: StoredRecord | None, note: Record) -> list[RecordChange]:
    """Return the change of a note, if it changes."""
    if before is None:
        return [RecordChange(note.key, None, note)]
    if before.text == note.text:
        return []

    return [RecordChange(note.key, before.text, note)]


async def _pause() -> None:
    """Wait for a moment, so that others who change the same records get on."""
    await asyncio.sleep(random.uniform(0, _PAUSE_S))  # noqa: S311 - no secret
