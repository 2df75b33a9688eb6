"""Lets a view wait for work on the event loop; cancels it when the client leaves."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from api.disconnect import RequestClient
from api.slots import QuestionSlots
from common.errors import (
    CANCELLED_TEXT,
    ENDING_TEXT,
    INTERNAL_ERROR_TEXT,
    Cancelled,
    CituError,
    InternalError,
    ServiceEnding,
    StoreUnavailable,
)
from common.runtime import NoItem, ThreadQueue, is_ending, run
from store.outages import UNREACHABLE

T = TypeVar("T")

WAIT_S = 60.0  # seconds one wait for an item lasts; the caller then waits again
_STORE_S = (
    10.0  # the store's own timeouts end sooner; this one helps when the event loop is blocked
)
_STORE_RETRY_S = 2


def queue_of(
    source: AsyncIterator[T], environ: dict[str, Any], on_end: Callable[[], None] = lambda: None
) -> ThreadQueue[T]:
    """Return a queue of `source` for an answer written at its end; cancelled if the client leaves.

    Args:
        environ: the request's WSGI environment.
        on_end: called when `source` has ended.
    """
    return ThreadQueue(source, on_end, RequestClient(environ).has_left)


def streamed_queue_of(source: AsyncIterator[T], environ: dict[str, Any]) -> ThreadQueue[T]:
    """Return a queue like that of `queue_of`, for an answer that is written meanwhile.

    Its writer must send something for every `NoItem` it takes, because that is how a client that
    half-closed is probed.
    """
    queue: ThreadQueue[T]
    client = RequestClient(environ, lambda: queue.wake())
    queue = ThreadQueue(source, is_abandoned=client.has_left)
    return queue


def from_store(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, a short access to the store.

    Raises:
        StoreUnavailable: the store can't be reached; has `retry_after_s`.
        CituError: whatever else `work` raises.
    """
    try:
        return run(work, _STORE_S)
    except TimeoutError as exc:
        raise StoreUnavailable(UNREACHABLE, retry_after_s=_STORE_RETRY_S) from exc
    except StoreUnavailable as exc:
        raise StoreUnavailable(exc.text, retry_after_s=exc.retry_after_s or _STORE_RETRY_S) from exc


@dataclass(frozen=True)
class WorkOutcome(Generic[T]):
    """The outcome of work, as an item of a queue, in which an exception is a program's fault."""

    value: T | None = None
    # Stays when the work raises anything but a CituError; the queue then logs it.
    error: CituError | None = field(default_factory=lambda: InternalError(INTERNAL_ERROR_TEXT))

    def result(self) -> T:
        """Return the value; raises the error."""
        if self.error is not None:
            raise self.error

        return cast(T, self.value)


async def outcome_of(work: Coroutine[Any, Any, T]) -> AsyncIterator[WorkOutcome[T]]:
    """Yield the outcome of `work`, as the one item of a queue."""
    try:
        yield WorkOutcome(await work, None)
    except CituError as error:
        yield WorkOutcome(error=error)
    except asyncio.CancelledError:
        yield WorkOutcome(
            error=ServiceEnding(ENDING_TEXT) if is_ending() else Cancelled(CANCELLED_TEXT)
        )


def result_of(work: Coroutine[Any, Any, T], slots: QuestionSlots, environ: dict[str, Any]) -> T:
    """Return the result of `work`, run on the event loop; cancel it when the client leaves.

    Takes one of `slots` until `work` has ended and the request's response has been written.

    Raises:
        TooManyStreams: all slots are taken.
        CituError: whatever `work` raises; `Cancelled` when the client left.
    """
    try:
        slot = slots.take()
    except CituError:
        work.close()
        raise

    slot.hold()
    queue = queue_of(outcome_of(work), environ, slot.leave)
    outcome: WorkOutcome[T] = WorkOutcome()
    while (item := queue.take(WAIT_S)) is not None:
        if not isinstance(item, NoItem):
            outcome = item

    return outcome.result()
