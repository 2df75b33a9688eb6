"""A bounded cache that threads may share."""

from contextlib import suppress
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """The `most` values added last, by their keys.

    Threads may share it without a lock: the worst case is a value that is computed twice.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def put(self, key: K, value: V) -> None:
        """Keep the value in the place of the oldest one if there is no room."""
        if len(self) >= self._most:
            with suppress(KeyError, RuntimeError):  # another thread was faster
                del self[next(iter(self))]

        self[key] = value
