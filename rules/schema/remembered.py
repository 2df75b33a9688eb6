"""What was worked out lately, for as many keys as there is room for."""

from contextlib import suppress
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Remembered(dict[K, V]):
    """The latest `most` values by their keys. Threads may share it: at worst, one works out a value
    again.
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
