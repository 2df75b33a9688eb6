"""The bridge between WSGI threads and asyncio: an event loop per process, and queues for threads.

Flask views run in threads, the agent runs on an event loop. A loop per request would cost a thread
each, and adapters could not pool connections. So a process has one loop, started at first use; a
forked child starts one of its own, because its parent's does not run there.
"""

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, TypeVar

import uvloop

from common.after_fork import keep_for_parent

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Cancellable(Protocol):
    """Work on the loop that is stopped when the process ends."""

    def cancel(self) -> None:
        """Stop the work; called on the loop."""


_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
# Tracked work, and its callback for when the process is asked to stop; touched on the loop only.
_running: "dict[Cancellable, Callable[[], None] | None]" = {}
_watched: "dict[Cancellable, Callable[[], bool]]" = {}  # likewise
_is_looking = False  # likewise
_LOOK_S = 0.5  # seconds between two checks whether watched work is abandoned
_is_stopping = False
_is_ending = False
# Seconds in which a process that stops still takes new work, at most half of those that it has:
# balancers need a moment to see that it is not ready.
_TAKES_WORK_S = 10.0
_takes_work_until = float("inf")  # by time.monotonic()


def loop() -> asyncio.AbstractEventLoop:
    """Return this process's background loop; start it if it is not running."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = uvloop.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="citu-loop", daemon=True).start()

        return _loop


def _start_anew() -> None:
    """Begin without a loop in a forked child, which has none of its parent's threads."""
    global _lock, _loop, _waking, _is_looking
    keep_for_parent(_loop, *_running, *_watched)
    # Another thread of the parent may hold the lock during a fork, and nobody would release it in
    # the child.
    _lock = threading.Lock()
    _waking = _Waking()
    _loop = None
    _running.clear()
    _watched.clear()
    _is_looking = False


os.register_at_fork(after_in_child=_start_anew)


def run(coroutine: Coroutine[Any, Any, T], timeout_s: float) -> T:
    """Run `coroutine` on the loop and wait for it; for short work such as health checks.

    Raises:
        TimeoutError: it took longer and was cancelled.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, loop())
    try:
        return future.result(timeout_s)
    except TimeoutError:
        future.cancel()
        raise


def track(work: Cancellable, *, on_stopping: Callable[[], None] | None = None) -> None:
    """Let `work` be cancelled when the process ends; call it on the loop.

    Args:
        on_stopping: called on the loop as soon as the process is asked to stop, which is before it
            cancels anything: for work that goes on until somebody ends it. `drain` waits for such
            work. Called at once by a process that is stopping already.
    """
    _running[work] = on_stopping
    if _is_stopping and on_stopping is not None:
        on_stopping()


def untrack(work: Cancellable) -> None:
    """Undo `track`, because `work` has ended; call it on the loop."""
    _running.pop(work, None)


def cancel_all(after_s: float) -> None:
    """Cancel all tracked work in `after_s` seconds; signal handlers may call it."""
    global _is_stopping, _takes_work_until
    _is_stopping = True
    taken_s = min(_TAKES_WORK_S, after_s / 2)
    _takes_work_until = min(_takes_work_until, time.monotonic() + taken_s)
    running = _loop
    if running is not None:
        running.call_soon_threadsafe(_begin_to_stop)
        running.call_soon_threadsafe(running.call_later, after_s, _cancel_running)


def is_stopping() -> bool:
    """Tell whether the process was asked to stop; it may go on for a while."""
    return _is_stopping


def takes_work() -> bool:
    """Tell whether new work may begin; not where it would probably be cancelled."""
    return time.monotonic() < _takes_work_until


def has_work() -> bool:
    """Tell whether any tracked work has not ended; any thread may ask."""
    return bool(_running)


def _begin_to_stop() -> None:
    for on_stopping in tuple(_running.values()):
        if on_stopping is not None:
            on_stopping()


def drain(timeout_s: float) -> None:
    """Wait up to `timeout_s` seconds for the end of what was tracked with `on_stopping`."""
    if _loop is None:
        return

    with suppress(TimeoutError):
        run(_wait_for_all(), timeout_s)


async def _wait_for_all() -> None:
    while any(_running.values()):  # noqa: ASYNC110 - what runs does not know that it is waited for
        await asyncio.sleep(0.01)


def _cancel_running() -> None:
    global _is_ending, _is_stopping
    _is_stopping = True
    _begin_to_stop()
    _is_ending = True
    for work in tuple(_running):
        work.cancel()


def settle(timeout_s: float) -> None:
    """Cancel all tracked work and wait up to `timeout_s` seconds for its end."""
    if _loop is None:
        return

    with suppress(TimeoutError):
        run(_cancel_and_wait(), timeout_s)


async def _cancel_and_wait() -> None:
    _cancel_running()
    while _running:  # noqa: ASYNC110 - what runs does not know that it is waited for
        await asyncio.sleep(0.01)


def is_ending() -> bool:
    """Tell whether work is cancelled because the process ends, not because its clients left."""
    return _is_ending


def _watch(work: Cancellable, is_abandoned: Callable[[], bool]) -> None:
    global _is_looking
    _watched[work] = is_abandoned
    if not _is_looking:
        _is_looking = True
        asyncio.get_running_loop().call_later(_LOOK_S, _look)


def _look() -> None:
    """Cancel work whose client has left.

    One timer checks all of it: a thread per client would wake up a thousand times a second.
    """
    global _is_looking
    for work, is_abandoned in tuple(_watched.items()):
        if is_abandoned():
            del _watched[work]
            work.cancel()

    _is_looking = bool(_watched)
    if _is_looking:
        asyncio.get_running_loop().call_later(_LOOK_S, _look)


class NoItem:
    """The type of `NO_ITEM`, which stands for no item in time."""


NO_ITEM: Final = NoItem()


class _Waking:
    """Wakes waiting threads one after another.

    A thread that wakes up first needs the interpreter lock. Hundreds that ask for it at once spend
    more time on that than on their work, and keep the event loop from it. So each thread wakes the
    next one when it runs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: deque[threading.Lock] = deque()
        self._is_passed_on = False

    def wake(self, wakeup: threading.Lock) -> None:
        """Release `wakeup`, now or once those before it have called `woken` in their threads."""
        with self._lock:
            if self._is_passed_on:
                self._next.append(wakeup)
                return

            self._is_passed_on = True

        wakeup.release()

    def woken(self) -> None:
        """Wake the next thread, because the calling one runs."""
        with self._lock:
            if not self._next:
                self._is_passed_on = False
                return

            wakeup = self._next.popleft()

        wakeup.release()


_waking = _Waking()


class ThreadQueue(Generic[T]):
    """Items of an async iterator, produced on the loop and read from one thread.

    The producer never waits for the reader, so a slow client can't hold a database connection. What
    waits in memory is bounded by the source (one question's events: rows under the byte cap, text
    under the token cap).
    """

    def __init__(
        self,
        source: AsyncIterator[T],
        on_end: Callable[[], None] = lambda: None,
        is_abandoned: Callable[[], bool] | None = None,
    ) -> None:
        """Start to read `source` on the event loop.

        Args:
            on_end: called on the loop when the source is exhausted or cancelled.
            is_abandoned: called on the loop twice a second until the end; when it is true, the
                queue is cancelled.
        """
        self._source = source
        self._on_end = on_end
        self._is_abandoned = is_abandoned
        self._items: deque[T] = deque()
        self._lock = threading.Lock()
        self._wakeup = threading.Lock()
        self._wakeup.acquire()
        self._is_awaited = False
        self._ended = False
        self._task: asyncio.Task[None] | None = None
        self._loop = loop()
        # call_soon_threadsafe runs _start in a copy of this thread's context, so the task inherits
        # the request id.
        self._loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        track(self)
        if self._is_abandoned is not None:
            _watch(self, self._is_abandoned)

        self._task = self._loop.create_task(self._pump())
        self._task.add_done_callback(self._end)

    async def _pump(self) -> None:
        async for item in self._source:
            self._items.append(item)
            self._wake_reader()

    def _end(self, task: asyncio.Task[None]) -> None:
        untrack(self)
        _watched.pop(self, None)
        if not task.cancelled() and task.exception() is not None:
            _log.error("an event source raised", exc_info=task.exception())

        self._on_end()
        self._ended = True
        self._wake_reader()

    def _wake_reader(self) -> None:
        with self._lock:
            if not self._is_awaited:
                return

            self._is_awaited = False

        _waking.wake(self._wakeup)

    def wake(self) -> None:
        """Make a waiting `take` return `NO_ITEM` now; call it on the loop."""
        self._wake_reader()

    def take(self, timeout_s: float) -> T | NoItem | None:
        """Return the next item; `NO_ITEM` if none came in `timeout_s` seconds; None at the end."""
        with self._lock:
            waits = not self._items and not self._ended
            self._is_awaited = waits

        if waits:
            has_come = self._wait(timeout_s)
            if not has_come:
                return NO_ITEM

        # Read `_ended` before the items: an item and the end that come in between would look like
        # the end alone.
        ended = self._ended
        if self._items:
            return self._items.popleft()
        if ended:
            return None

        return NO_ITEM

    def more(self) -> Iterator[T]:
        """Yield the items that have come already, without waiting."""
        while self._items:
            yield self._items.popleft()

    def _wait(self, timeout_s: float) -> bool:
        """Wait for an item or the end; return false when none came in time."""
        if not self._wakeup.acquire(timeout=timeout_s):
            with self._lock:
                if self._is_awaited:
                    self._is_awaited = False
                    return False

            # `_wake_reader` is about to release it, and `_waking` waits for `woken`.
            self._wakeup.acquire()

        _waking.woken()
        return True

    def cancel(self) -> None:
        """Cancel the producer; if the source gives a last item then, it is still read."""
        if not self._ended:  # after the end, waking the loop would be useless
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        # _start was scheduled first, so there is a task. Cancel it after its first step, because a
        # source that never started could not send its last item.
        if self._task is not None:
            self._loop.call_soon(self._task.cancel)
