"""Work on large catalogues in pieces, so that the event loop serves others in between."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")
_ITEMS_AT_ONCE = 500  # of a large catalogue, before the event loop goes on


async def yielding_to_loop(items: Iterable[T]) -> AsyncIterator[T]:
    """Return the items; after every `_ITEMS_AT_ONCE` of them the event loop serves others."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _ITEMS_AT_ONCE == 0:
            await asyncio.sleep(0)
