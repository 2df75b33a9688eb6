"""What is worked out of a catalogue once, for all questions: off the event loop, and kept as long as the catalogue is.

A large catalogue takes seconds. Whoever asks meanwhile waits for the same work, and other questions go on.
"""

import asyncio
import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from common.values import Catalog

T = TypeVar("T")


class Prepared(Generic[T]):
    """Keeps what `make` makes of each catalogue object."""

    def __init__(self, make: Callable[[Catalog], T]) -> None:
        self._make = make
        self._made: dict[int, tuple[weakref.ref[Catalog], T]] = {}
        self._making: dict[int, asyncio.Task[T]] = {}
        self._turn = threading.RLock()

    def of(self, catalog: Catalog) -> T:
        """What is made of this very catalogue object; in this thread, now, if it is not there yet."""
        known = self._made.get(id(catalog))
        if known is not None and known[0]() is catalog:
            return known[1]
        with self._turn:  # the second of two threads finds what the first has made
            known = self._made.get(id(catalog))
            if known is not None and known[0]() is catalog:
                return known[1]
            return self._keep(catalog, self._make(catalog))

    async def ready(self, catalog: Catalog) -> T:
        """As `of`, made in a thread, once for all that wait for it."""
        known = self._made.get(id(catalog))
        if known is not None and known[0]() is catalog:
            return known[1]
        making = self._making.get(id(catalog))
        if making is None or making.get_loop() is not asyncio.get_running_loop():
            making = self._making[id(catalog)] = asyncio.create_task(asyncio.to_thread(self.of, catalog))
            making.add_done_callback(lambda _: self._making.pop(id(catalog), None))
        return await asyncio.shield(making)

    def keep(self, catalog: Catalog, like: Catalog) -> None:
        """Uses what was made of `like` for `catalog` as well, because it would be the same."""
        known = self._made.get(id(like))
        if known is not None and known[0]() is like:
            self._keep(catalog, known[1])

    def _keep(self, catalog: Catalog, made: T) -> T:
        identity = id(catalog)
        self._made[identity] = (weakref.ref(catalog, lambda _: self._made.pop(identity, None)), made)
        return made
