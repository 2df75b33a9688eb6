"""Keeps one deadline for each of many things, and tells which have passed."""

import heapq
import itertools
from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")

_SPARE_ENTRIES = 1000  # of deadlines that were changed; more than this are cleared away


class Deadlines(Generic[Item]):
    """The deadlines of items, in seconds of one clock.

    Changing one costs the logarithm of their number.
    """

    def __init__(self) -> None:
        self._at: dict[Item, float] = {}
        # The number keeps items with the same deadline from being compared.
        self._queue: list[tuple[float, int, Item]] = []
        self._number = itertools.count()

    def set(self, item: Item, at: float) -> None:
        """Give the item this deadline in place of any other; it may be infinite."""
        if at == float("inf"):
            self.clear(item)
            return

        self._at[item] = at
        heapq.heappush(self._queue, (at, next(self._number), item))
        if len(self._queue) > 2 * len(self._at) + _SPARE_ENTRIES:
            self._queue = [entry for entry in self._queue if self._is_current(entry)]
            heapq.heapify(self._queue)

    def clear(self, item: Item) -> None:
        """Take the item's deadline away, if it has one."""
        self._at.pop(item, None)

    def next_at(self) -> float:
        """Return the earliest deadline; infinite: there is none."""
        while self._queue and not self._is_current(self._queue[0]):
            heapq.heappop(self._queue)

        return self._queue[0][0] if self._queue else float("inf")

    def passed(self, now: float) -> Iterator[Item]:
        """Yield the items whose deadline has passed, and forget these deadlines."""
        while self.next_at() <= now:
            item = heapq.heappop(self._queue)[2]
            del self._at[item]
            yield item

    def _is_current(self, entry: tuple[float, int, Item]) -> bool:
        at, _, item = entry
        return self._at.get(item) == at
