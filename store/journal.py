"""Group commit: writes what many runs have to keep at the same moment in one access to the store.

A frame is shown only after it is kept, so that nothing a client has seen is lost with its worker.
In the worst case that is one write per frame; under load, the frames of all runs that arrive during
one write go into the next.

A write that ends a run, or makes it wait for its user, waits for the store's disk. Such writes have
their own batches, so that frames of other runs don't wait for the disk too.

After a failure the store counts as down until a ping succeeds. Meanwhile no question waits for the
store.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from common.after_fork import restart_after_fork
from common.errors import StoreUnavailable
from store import RunWrite, Store, Unkept
from store.outages import UNREACHABLE

_log = logging.getLogger(__name__)

_MAX_WRITES = 256  # of one batch
_MAX_BYTES = 8 * 1024 * 1024  # of one batch's frames; a single write may be larger
_MAX_WAITING_BYTES = 32 * 1024 * 1024  # of frames in memory, of ended runs that wait for the store
_LOOK_S = 0.25  # between pings of a store that is down

_Waiting = tuple[RunWrite, "asyncio.Future[Unkept | None]"]


class _Lane:
    """Writes of one kind; those that come while a batch is written form the next batch."""

    def __init__(self) -> None:
        self.pending: deque[_Waiting] = deque()
        self.flushing: asyncio.Task[None] | None = None

    def batch(self) -> list[_Waiting]:
        """Take the next writes, up to the limits of a batch."""
        batch: list[_Waiting] = []
        size = 0
        while self.pending and len(batch) < _MAX_WRITES:
            size += _size(self.pending[0][0])
            if batch and size > _MAX_BYTES:
                break

            batch.append(self.pending.popleft())

        return batch


class Journal:
    """Keeps writes of runs; a run may have one write at a time. Used on the event loop only.

    Attributes:
        failures: how often an access to the store failed.
    """

    def __init__(
        self, store: Store, span: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """Begin to keep writes in `store`; `span` gives a context that each write is made in."""
        self._store = store
        self._span = span
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Forget what was to be kept; a forked child begins with nothing."""
        self._running, self._ending = _Lane(), _Lane()
        self._looking: asyncio.Task[None] | None = None
        self._recovered = asyncio.Event()
        self._waiting = self._lost = self.failures = 0
        self._failure: StoreUnavailable | None = None

    @contextmanager
    def waiting_room(self, write: RunWrite) -> Iterator[bool]:
        """Count a run that waits for the store to come back; false when the waiting ones hold too
        much memory.
        """
        size = _size(write)
        self._waiting += size
        has_room = self._waiting <= _MAX_WAITING_BYTES
        self._lost += not has_room
        try:
            yield has_room
        finally:
            self._waiting -= size

    async def recovery(self) -> None:
        """Wait until the store no longer counts as down."""
        while self.is_failing:
            await self._recovered.wait()

    @property
    def is_failing(self) -> bool:
        """Tell whether the store counts as down."""
        return self._failure is not None

    def check(self) -> None:
        """Raise `StoreUnavailable` when the store counts as down."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    def fail(self, failure: StoreUnavailable) -> None:
        """Report a failed access: the store counts as down until a ping succeeds."""
        self._failure = failure
        self.failures += 1
        self._recovered.clear()
        for lane in (self._running, self._ending):
            while lane.pending:
                _refuse(lane.pending.popleft()[1], failure)

        if self._looking is None:
            self._looking = asyncio.create_task(self._wait_until_reachable())

    async def _wait_until_reachable(self) -> None:
        while self._failure is not None:
            await asyncio.sleep(_LOOK_S)
            with suppress(Exception):  # any exception means that the store is not back
                await self._store.ping()
                self._failure = None

        self._looking = None
        self._recovered.set()
        if self._lost:
            _log.error("%d runs were not kept: too many waited for the store", self._lost)
            self._lost = 0

    async def keep(self, write: RunWrite) -> Unkept | None:
        """Return None when `write` is kept, else why nothing of it was.

        Raises:
            StoreUnavailable: it was not kept, or perhaps it was; repeating it is harmless.
        """
        self.check()
        kept: asyncio.Future[Unkept | None] = asyncio.get_running_loop().create_future()
        lane = self._ending if write.end or write.waiting else self._running
        lane.pending.append((write, kept))
        if lane.flushing is None:
            lane.flushing = asyncio.create_task(self._flush(lane))

        return await kept

    async def _flush(self, lane: _Lane) -> None:
        try:
            while lane.pending:
                await self._write(lane.batch())
        finally:
            lane.flushing = None

    async def _write(self, batch: list[_Waiting]) -> None:
        try:
            with self._span():
                unkept = await self._store.runs.write([write for write, _ in batch])
        # Whatever it is, nobody may wait for ever for what was not kept.
        except Exception as exc:  # noqa: BLE001
            self._fail(exc, [kept for _, kept in batch])
            return

        for write, kept in batch:
            if not kept.done():  # the caller may have been cancelled
                kept.set_result(unkept.get(write.head.run_id))

    def _fail(self, exc: Exception, waiting: list["asyncio.Future[Unkept | None]"]) -> None:
        failure = exc if isinstance(exc, StoreUnavailable) else StoreUnavailable(UNREACHABLE)
        if failure is not exc:
            _log.error("the store failed in an unknown way", exc_info=exc)

        for kept in waiting:
            _refuse(kept, failure)

        self.fail(failure)


def _size(write: RunWrite) -> int:
    """Return the bytes of the write's frames."""
    return sum(len(frame.data) for frame in write.frames)


def _refuse(kept: "asyncio.Future[Unkept | None]", failure: StoreUnavailable) -> None:
    if not kept.done():
        kept.set_exception(failure)
