"""How many questions may run at once: a counted number of places, refused at once when all are taken."""

import threading
from collections.abc import Callable

from common.errors import TooManyStreams
from common.text import Text

_RETRY_AFTER_S = 2
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
        if not self._free.acquire(blocking=False):
            raise TooManyStreams(_FULL, retry_after_s=_RETRY_AFTER_S)
        lock = threading.Lock()

        def leave() -> None:
            nonlocal holders
            with lock:
                holders -= 1
                if holders == 0:
                    self._free.release()

        return leave
