"""Joins small pieces of a model's text, so that single letters don't become an event each."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from common.inquiry import Emit

_PAUSE_S = 0.05  # between two events; at twenty a second, text looks continuous
_PATIENCE = 200  # events after which the pause doubles, which bounds the events of a long answer
_MOST_CHARS = 2_000  # of one event


class TokenBatches:
    """An `Emit` that passes pieces on: the first at once, the later ones of a pause together.

    No piece waits longer than the pause. The pieces passed on concatenate to the same text. Used on
    the event loop.

    Args:
        loop: gives the clock; the running one by default.
    """

    def __init__(self, emit: Emit, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._emit = emit
        self._pending: list[str] = []
        self._size = self._count = 0
        self._loop = loop or asyncio.get_running_loop()
        self._next = 0.0  # when the next event may be sent, by the loop's clock
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, piece: str) -> None:
        self._pending.append(piece)
        self._size += len(piece)
        if self._size >= _MOST_CHARS or self._loop.time() >= self._next:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_at(self._next, self.flush)

    def flush(self) -> None:
        """Pass on what is left; call it at the end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

        if not self._pending:
            return

        text = "".join(self._pending)
        self._pending.clear()
        self._size = 0
        self._count += 1
        self._next = self._loop.time() + _PAUSE_S * 2 ** (self._count // _PATIENCE)
        self._emit(text)


@contextmanager
def emitting(is_wanted: bool, write: Emit) -> Iterator[Emit | None]:
    """Give a node the `Emit` for its text, None when nobody watches; on leaving, send the rest.

    Args:
        write: sends an event.
    """
    if not is_wanted:
        yield None
        return

    batches = TokenBatches(write)
    try:
        yield batches
    finally:
        batches.flush()
