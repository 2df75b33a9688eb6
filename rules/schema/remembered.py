"""What was worked out lately, for as many keys as there is room for."""

from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """The latest `most` values by their keys. Threads may share it: at worst, one works out a value again."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value; None if there is none, or none any more."""
        return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """Keeps the value in the place of the oldest one if there is no room."""
        if len(self._values) >= self._most:
            with suppress(KeyError, RuntimeError):  # another thread was faster
                del self._values[next(iter(self._values))]
        self._values[key] = value
