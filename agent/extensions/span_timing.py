"""Times spans for the observers that report how long each took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def timed(note: Callable[[float, str], None]) -> Iterator[None]:
    """Call `note` when the context ends, with its seconds and with `done` or `failed`."""
    started = time.perf_counter()
    outcome = "failed"
    try:
        yield
        outcome = "done"
    finally:
        note(time.perf_counter() - started, outcome)
