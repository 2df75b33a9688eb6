"""What is learnt, over the shelves of any adapter: reads what is there, decides, and changes it if it is still so."""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from common.errors import StoreUnavailable
from common.learning import SHARED, Document, Example, Feedback, Lesson, Trust
from common.store import Retention
from common.store.learned import (
    Added,
    Item,
    Kept,
    Kind,
    LearnedPage,
    Learning,
    Reviewed,
    Verdict,
    Visible,
    Wanted,
)
from common.store.learned_changes import added, decided, is_same_state, learnt
from common.store.learned_json import (
    all_shelf,
    item_id,
    item_key,
    item_of,
    kind_of,
    listed_at,
    lists,
    note_key,
    note_of,
    note_record,
    notes_shelf,
    own_shelf,
    record_of,
    shared_shelf,
    state_of,
    trust_of,
)
from common.store.record_json import parse_place_cursor, place_cursor
from common.store.shelves import Applied, Change, Found, Room, Shelves
from common.store.stocks import Stocks
from common.store.trouble import BUSY

_TRIES = 20  # of a change whose items others change at the same moment
_PAUSE_S = 0.05  # at most, before the next one
_BATCH = 100  # items of a load that are added at once
_NEWEST = (2**62, b"\xff" * 16)  # before every position and key
_KINDS: tuple[Kind, ...] = ("example", "lesson")


class LearnedBook:
    """Implements `common.store.Learned` over `shelves`."""

    def __init__(self, shelves: Shelves, retention: Retention) -> None:
        self._shelves = shelves
        self._retention = retention
        self._stocks = Stocks(shelves)

    async def visible(self, datasource: str, user_id: str) -> Visible:
        """All that this user may be shown."""
        return await self._stocks.visible(datasource, user_id)

    # ----------------------------------------------------------------------------------------------------- feedback

    async def feedback(self, user_id: str, run_id: str) -> Feedback | None:
        """What the user said last of this run."""
        key = note_key(user_id, run_id)
        found = (await self._shelves.find([key])).get(key)
        return note_of(found).feedback if found else None

    async def keep(self, learning: Learning) -> Kept:
        """Keeps feedback with what is learnt from it."""
        kept: Kept = "kept"
        for _ in range(_TRIES):
            applied = await self._keep_once(learning)
            if applied == "done":
                return kept
            if applied == "full":
                learning, kept = replace(learning, example=None, lesson=None), "full"
            await _others()
        raise StoreUnavailable(BUSY)

    async def _keep_once(self, learning: Learning) -> Applied:
        said, datasource = learning.feedback, learning.datasource
        note = note_key(said.user_id, said.run_id)
        brought = [item_key(item_id(item)) for item in (learning.example, learning.lesson) if item is not None]
        there = dict(await self._shelves.find([note, *brought]))
        own_shelves = {kind: own_shelf(datasource, kind, said.user_id) for kind in _KINDS}
        own = [found for shelf in await self._shelves.read(list(own_shelves.values())) for found in shelf.records]
        before = there.pop(note, None)
        there |= {found.key: found for found in own}
        items = {item_id(item): item for item in map(item_of, there.values())}
        noted, changed = learnt(learning, note_of(before) if before else None, _decidable(map(item_of, own)), items)
        changes = _changes(changed, there)
        record = note_record(noted)
        if before is None or before.text != record.text:
            changes.append(Change(note, before.text if before else None, record))
        if not changes:
            return "done"
        retention = self._retention
        latest = {
            notes_shelf(said.user_id): retention.feedback,
            own_shelves["example"]: retention.own_examples,
            own_shelves["lesson"]: retention.own_lessons,
        }
        return await self._shelves.apply(changes, Room(self._most(datasource), latest))

    def _most(self, datasource: str) -> dict[bytes, int]:
        retention = self._retention
        return {
            all_shelf(datasource, "example"): retention.all_examples,
            all_shelf(datasource, "lesson"): retention.all_lessons,
            shared_shelf(datasource, "example"): retention.shared_examples,
            shared_shelf(datasource, "lesson"): retention.shared_lessons,
            shared_shelf(datasource, "document"): retention.documents,
        }

    # -------------------------------------------------------------------------------------------------------- loads

    async def add(self, datasource: str, items: Sequence[Item]) -> Mapping[str, Added]:
        """Adds examples, lessons and documents as they are."""
        outcomes: dict[str, Added] = {}
        for start in range(0, len(items), _BATCH):
            batch = {item_id(item): item for item in items[start : start + _BATCH]}
            outcomes |= await self._add(datasource, batch)
        return outcomes

    async def _add(self, datasource: str, items: Mapping[str, Item]) -> dict[str, Added]:
        """Adds all of them at once, or as many as there is room for."""
        for _ in range(_TRIES):
            there = await self._found(items)
            changed = {
                known: new for known, item in items.items() if (new := added(item, _item(there, known))) is not None
            }
            outcomes: dict[str, Added] = {known: "added" if known in changed else "known" for known in items}
            if not changed:
                return outcomes
            room = Room(self._most(datasource) | self._own_most(datasource, changed.values()))
            applied = await self._shelves.apply(_changes(changed, there), room)
            if applied == "done":
                return outcomes
            if applied == "full":
                if len(items) == 1:
                    return dict.fromkeys(items, "full")
                return {
                    known: outcome
                    for each in items.items()
                    for known, outcome in (await self._add(datasource, dict([each]))).items()
                }
            await _others()
        raise StoreUnavailable(BUSY)

    def _own_most(self, datasource: str, items: Iterable[Item]) -> dict[bytes, int]:
        most = {"example": self._retention.own_examples, "lesson": self._retention.own_lessons}
        return {
            own_shelf(datasource, kind_of(item), item.author): most[kind_of(item)]
            for item in _decidable(items)
            if trust_of(item) not in SHARED
        }

    async def replace_documents(
        self, datasource: str, source: str, documents: Sequence[Document]
    ) -> Mapping[str, Added]:
        """Adds documents of `source` and removes its others."""
        new = {each.document_id: each for each in documents}
        shelf = shared_shelf(datasource, "document")
        for _ in range(_TRIES):
            there = {found.key: found for found in (await self._shelves.read([shelf]))[0].records}
            items = [item for item in map(item_of, there.values()) if isinstance(item, Document)]
            gone = [item.document_id for item in items if item.source == source and item.document_id not in new]
            changed: dict[str, Item | None] = {**dict.fromkeys(gone), **new}
            if not changed:
                return {}
            applied = await self._shelves.apply(_changes(changed, there), Room(self._most(datasource)))
            if applied != "changed":
                return dict.fromkeys(new, "added" if applied == "done" else "full")
            await _others()
        raise StoreUnavailable(BUSY)

    # ------------------------------------------------------------------------------------------------------ reviews

    async def find(self, datasource: str, item_id: str) -> Example | Lesson | None:
        """The example or lesson of this id."""
        item = _item(await self._found([item_id]), item_id)
        return item if isinstance(item, Example | Lesson) and item.datasource == datasource else None

    async def review(
        self, datasource: str, item_id: str, reviewer: str, verdict: Verdict, *, seen: Trust | None = None
    ) -> Reviewed:
        """Decides on an example or a lesson."""
        first: Example | Lesson | None = None
        for _ in range(_TRIES):
            there = await self._found([item_id])
            item = _item(there, item_id)
            if not isinstance(item, Example | Lesson) or item.datasource != datasource:
                return Reviewed("unknown")
            outcome, new = decided(item, reviewer, verdict, seen)
            if first is not None and outcome == "done" and new is not None and not is_same_state(first, item):
                outcome = "changed"
            if outcome != "done" or new is None:
                return Reviewed(outcome, item)
            applied = await self._shelves.apply(_changes({item_id: new}, there), Room(self._most(datasource)))
            if applied != "changed":
                return Reviewed("done", new) if applied == "done" else Reviewed("full", item)
            first = first or item
            await _others()
        raise StoreUnavailable(BUSY)

    async def delete(self, datasource: str, item_id: str, by: str | None) -> bool:
        """Forgets an example or a lesson."""
        for tries in range(_TRIES):
            there = await self._found([item_id])
            item = _item(there, item_id)
            if not isinstance(item, Example | Lesson) or item.datasource != datasource:
                return tries > 0  # gone since the first look, perhaps by a try of which no reply came
            if by is not None and (item.author != by or trust_of(item) in SHARED):
                return False
            if await self._shelves.apply(_changes({item_id: None}, there), Room()) == "done":
                return True
            await _others()
        raise StoreUnavailable(BUSY)

    # ------------------------------------------------------------------------------------------------------- proofs

    async def mark_stale(self, datasource: str, example_ids: Collection[str]) -> None:
        """Marks examples whose tables have changed."""
        await self._alter(datasource, example_ids, lambda example: replace(example, is_stale=True))

    async def mark_proven(self, datasource: str, hashes: Mapping[str, str], proven_at: str) -> None:
        """Marks examples as proven."""

        def proven(example: Example) -> Example:
            return replace(example, is_stale=False, tables_hash=hashes[example.example_id], proven_at=proven_at)

        await self._alter(datasource, hashes, proven)

    async def _alter(self, datasource: str, example_ids: Collection[str], alter: Callable[[Example], Example]) -> None:
        for _ in range(_TRIES):
            there = await self._found(example_ids)
            changed: dict[str, Item | None] = {
                item.example_id: new
                for item in map(item_of, there.values())
                if isinstance(item, Example) and item.datasource == datasource and (new := alter(item)) != item
            }
            if not changed or await self._shelves.apply(_changes(changed, there), Room()) == "done":
                return
            await _others()
        raise StoreUnavailable(BUSY)

    async def count_use(self, datasource: str, example_ids: Iterable[str]) -> None:  # noqa: ARG002 - as the port has it
        """Counts an answer for each of the examples."""
        if keys := [item_key(known) for known in dict.fromkeys(example_ids)]:
            await self._shelves.count_use(keys)

    # -------------------------------------------------------------------------------------------------------- lists

    async def page(
        self, datasource: str, kind: Kind, wanted: Wanted, limit: int, cursor: str | None = None
    ) -> LearnedPage:
        """One page of examples or lessons."""
        before = _NEWEST if cursor is None else parse_place_cursor(cursor)
        trusts = [trust for trust in wanted.trusts if wanted.seen_by is None or trust in SHARED]
        found: list[Found] = []
        if shelves := lists(datasource, kind, trusts, wanted.states):
            found += await self._shelves.page(shelves, limit + 1, before)
        if wanted.seen_by is not None:
            [own] = await self._shelves.read([own_shelf(datasource, kind, wanted.seen_by)])
            found += own.records
        items = [(listed_at(item), each.key, item) for each in found for item in _decidable([item_of(each)])]
        items = [
            each
            for each in items
            if each[:2] < before and trust_of(each[2]) in wanted.trusts and state_of(each[2]) in wanted.states
        ]
        items.sort(key=lambda each: each[:2], reverse=True)
        page = tuple(item for _, _, item in items[:limit])
        return LearnedPage(page, place_cursor(*items[limit - 1][:2]) if len(items) > limit else None)

    async def _found(self, ids: Iterable[str]) -> Mapping[bytes, Found]:
        return await self._shelves.find([item_key(known) for known in ids])


def _item(there: Mapping[bytes, Found], known: str) -> Item | None:
    found = there.get(item_key(known))
    return item_of(found) if found else None


def _decidable(items: Iterable[Item]) -> list[Example | Lesson]:
    return [item for item in items if not isinstance(item, Document)]


def _changes(changed: Mapping[str, Item | None], there: Mapping[bytes, Found]) -> list[Change]:
    """The changes that make each item as it is to be, if it is as it was found. Documents keep their order."""
    changes, now = [], time.time_ns() // 1000
    for number, (known, item) in enumerate(changed.items()):
        key = item_key(known)
        found = there.get(key)
        changes.append(Change(key, found.text if found else None, record_of(item, now - number) if item else None))
    return changes


async def _others() -> None:
    """Lets those go on who change the same."""
    await asyncio.sleep(random.uniform(0, _PAUSE_S))  # noqa: S311 - no secret
