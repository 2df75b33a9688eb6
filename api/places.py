"""Limits how many questions run at once. A request that finds no free place is refused; it does not queue."""

import asyncio
import threading

from flask import Response, after_this_request

from common.errors import TooManyStreams
from common.text import Text

_RETRY_AFTER_S = 2
# A place becomes free a moment after the client has read the end of its answer. Waiting for that moment keeps a client
# that asks its next question at once from being refused because of its last one.
_MOMENT_S = 0.1
_FULL = Text("同时进行的提问已达上限，请稍后重试。", "All places for questions are taken; try again in a moment.")


class Places:
    """A counter of places, of which at most `limit` are taken at any moment."""

    def __init__(self, limit: int) -> None:
        self._free = threading.BoundedSemaphore(limit)

    def take(self) -> "Place":
        """Takes a place for the request being served. It stays taken until the response has been written and everybody
        who called `hold` has called `leave`.

        Raises:
            TooManyStreams: all are taken.
        """
        if not self._free.acquire(timeout=_MOMENT_S):
            raise TooManyStreams(_FULL, retry_after_s=_RETRY_AFTER_S)
        place = Place(self._free)

        # Every response, also an error, holds a thread until it has been written; only then is the place free.
        @after_this_request
        def leave_when_written(response: Response) -> Response:
            response.call_on_close(place.leave)
            return response

        return place

    async def take_for_message(self) -> "Place":
        """Takes a place for a question that came over an open connection; whoever takes it calls `leave`.

        Raises:
            TooManyStreams: all are taken.
        """
        if not self._free.acquire(blocking=False):
            await asyncio.sleep(_MOMENT_S)
            if not self._free.acquire(blocking=False):
                raise TooManyStreams(_FULL, retry_after_s=_RETRY_AFTER_S)
        return Place(self._free)


class Place:
    """One taken place. It counts its holders, one at first, and becomes free when the last has left."""

    def __init__(self, free: threading.BoundedSemaphore) -> None:
        self._free = free
        self._lock = threading.Lock()
        self._holders = 1

    def hold(self) -> None:
        """Adds a holder, for work that may go on after the client has left."""
        with self._lock:
            self._holders += 1

    def leave(self) -> None:
        """Removes a holder; the last one frees the place."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._free.release()
