"""How many questions may run at once: a counted number of places; who finds none is refused and does not queue."""

import threading

from flask import Response, after_this_request

from common.errors import TooManyStreams
from common.text import Text

_RETRY_AFTER_S = 2
# A place is given back when the answer has been written, a moment after the client has read its end. A client that asks
# its next question in that moment must not be refused because of its last one.
_MOMENT_S = 0.1
_FULL = Text("同时进行的提问已达上限，请稍后重试。", "All places for questions are taken; try again in a moment.")


class Places:
    """At most `limit` places are taken at any moment."""

    def __init__(self, limit: int) -> None:
        self._free = threading.BoundedSemaphore(limit)

    def take(self) -> "Place":
        """A place for the request being served, until its response has been written and all who `hold` it have left.

        Raises:
            TooManyStreams: there is none.
        """
        if not self._free.acquire(timeout=_MOMENT_S):
            raise TooManyStreams(_FULL, retry_after_s=_RETRY_AFTER_S)
        place = Place(self._free)

        # Closed when the response, whichever it will be, has been written: until then it holds a thread.
        @after_this_request
        def leave_when_written(response: Response) -> Response:
            response.call_on_close(place.leave)
            return response

        return place


class Place:
    """One place that is taken, by one holder at first."""

    def __init__(self, free: threading.BoundedSemaphore) -> None:
        self._free = free
        self._lock = threading.Lock()
        self._holders = 1

    def hold(self) -> None:
        """One more holder: work that may outlive its client."""
        with self._lock:
            self._holders += 1

    def leave(self) -> None:
        """One holder has left; the last frees the place."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._free.release()
