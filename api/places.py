"""How many questions may run at once: a counted number of places; who finds none is refused and does not queue."""

import threading
from collections.abc import Callable

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

    def take(self, holders: int) -> Callable[[], None]:
        """Takes a place shared by `holders`; each calls the returned function once, and the last frees it.

        Raises:
            TooManyStreams: there is none.
        """
        if not self._free.acquire(timeout=_MOMENT_S):
            raise TooManyStreams(_FULL, retry_after_s=_RETRY_AFTER_S)
        lock = threading.Lock()

        def leave() -> None:
            nonlocal holders
            with lock:
                holders -= 1
                if holders == 0:
                    self._free.release()

        return leave
