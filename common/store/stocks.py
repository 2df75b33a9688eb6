"""What a process remembers of what is learnt: a question costs one small read as long as nothing has changed."""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from common.learning import Document, Example, Lesson
from common.store.learned import Item, Stock, Visible
from common.store.learned_json import item_of, own_shelf, shared_shelf
from common.store.shelves import Shelf, Shelves

_SHARED = ("example", "lesson", "document")
_OWN = ("example", "lesson")
_MAX_OWN_ITEMS = 20_000  # remembered of all users together, about 1 KB each
_MAX_USERS = 1_000
_MANY = 200  # records that would block the loop for too long if they were read on it

_Part = tuple[str, tuple[Item, ...]]  # a shelf's revision and items
_NOTHING: _Part = ("", ())


@dataclass(frozen=True)
class _Held:
    """A stock, and the parts it is made of."""

    parts: tuple[_Part, ...]
    stock: Stock

    @property
    def size(self) -> int:
        return sum(len(items) for _, items in self.parts)


class Stocks:
    """Remembers shared stocks, and those of the users who asked last. Used on the event loop only."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._shared: dict[str, _Held] = {}
        self._own: OrderedDict[tuple[str, str], _Held] = OrderedDict()  # who asked last is at the end
        self._own_items = 0

    async def visible(self, datasource: str, user_id: str) -> Visible:
        """See `Learned.visible`."""
        if self._pid != os.getpid():
            self._start()
        shelves = [shared_shelf(datasource, kind) for kind in _SHARED]
        shelves += [own_shelf(datasource, kind, user_id) for kind in _OWN]
        user = (datasource, user_id)
        before = (*_parts(self._shared.get(datasource), len(_SHARED)), *_parts(self._own.get(user), len(_OWN)))
        parts = await self._current(shelves, before)
        # Another question may have read them meanwhile; what it keeps is used if it is the same.
        shared = _held(self._shared.get(datasource), parts[: len(_SHARED)])
        own = _held(self._own.get(user), parts[len(_SHARED) :])
        self._shared[datasource] = shared
        self._remember(user, own)
        return Visible(shared.stock, own.stock)

    async def _current(self, shelves: Sequence[bytes], before: Sequence[_Part]) -> tuple[_Part, ...]:
        parts = {}
        for shelf, part, revision in zip(shelves, before, await self._shelves.revisions(shelves), strict=True):
            if part[0] == revision:
                parts[shelf] = part
            elif not revision:  # the store has lost it
                parts[shelf] = _NOTHING
        changed = [shelf for shelf in shelves if shelf not in parts]
        if changed:
            for shelf, found in zip(changed, await self._shelves.read(changed), strict=True):
                parts[shelf] = await _part(found)
        return tuple(parts[shelf] for shelf in shelves)

    def _remember(self, user: tuple[str, str], own: _Held) -> None:
        known = self._own.pop(user, None)
        self._own_items += own.size - (known.size if known else 0)
        self._own[user] = own
        while len(self._own) > 1 and (self._own_items > _MAX_OWN_ITEMS or len(self._own) > _MAX_USERS):
            self._own_items -= self._own.popitem(last=False)[1].size


def _parts(held: _Held | None, count: int) -> tuple[_Part, ...]:
    return held.parts if held else (_NOTHING,) * count


def _held(before: _Held | None, parts: tuple[_Part, ...]) -> _Held:
    revision = ".".join(part[0] for part in parts)
    if before is not None and before.stock.revision == revision:
        return before
    items = [item for part in parts for item in part[1]]
    stock = Stock(
        revision=revision,
        examples=tuple(item for item in items if isinstance(item, Example)),
        lessons=tuple(item for item in items if isinstance(item, Lesson)),
        documents=tuple(item for item in items if isinstance(item, Document)),
    )
    return _Held(parts, stock)


async def _part(shelf: Shelf) -> _Part:
    items = await asyncio.to_thread(_items, shelf) if len(shelf.records) > _MANY else _items(shelf)
    return (shelf.revision, items)


def _items(shelf: Shelf) -> tuple[Item, ...]:
    items = map(item_of, shelf.records)
    return tuple(item for item in items if isinstance(item, Document) or not item.is_rejected)
