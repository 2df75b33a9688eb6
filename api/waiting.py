"""How a view waits for work on the event loop, which is cancelled when the client leaves meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from api.disconnect import Client
from api.places import Places
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
from common.runtime import Feed, Quiet, is_ending, run
from common.store.trouble import UNREACHABLE

T = TypeVar("T")

WAIT_S = 60.0  # for the next item, before waiting for it again
_STORE_S = 10.0  # the store's own limits end sooner; this one is for a loop that is held up
_STORE_RETRY_S = 2


def feed_of(source: AsyncIterator[T], environ: dict[str, Any], on_end: Callable[[], None] = lambda: None) -> Feed[T]:
    """A feed that is cancelled when the client of the request leaves; `environ` is the request's.

    For an answer that is written when the feed has ended.
    """
    return Feed(source, on_end, Client(environ).has_left)


def streamed_feed_of(source: AsyncIterator[T], environ: dict[str, Any]) -> Feed[T]:
    """As `feed_of`, for an answer that is written meanwhile, and where `QUIET` makes the writer send something."""
    feed: Feed[T]
    client = Client(environ, lambda: feed.nudge())
    feed = Feed(source, is_abandoned=client.has_left)
    return feed


def from_store(work: Coroutine[Any, Any, T]) -> T:
    """What `work`, a short look into the store, returns.

    Raises:
        StoreUnavailable: the store can't be reached; with a time to try again.
        CituError: whatever else `work` raises.
    """
    try:
        return run(work, _STORE_S)
    except TimeoutError as exc:
        raise StoreUnavailable(UNREACHABLE, retry_after_s=_STORE_RETRY_S) from exc
    except StoreUnavailable as exc:
        raise StoreUnavailable(exc.text, retry_after_s=exc.retry_after_s or _STORE_RETRY_S) from exc


@dataclass(frozen=True)
class _Failure:
    """Why there is no result; errors travel as items, because a feed that raises is a fault."""

    error: CituError


def result_of(work: Coroutine[Any, Any, T], places: Places, environ: dict[str, Any]) -> T:
    """What `work` returns, run on the event loop; a client that leaves cancels it.

    It takes one of `places` until it has ended and the request's response has been written.

    Raises:
        TooManyStreams: there is no place.
        CituError: whatever `work` raises; `Cancelled` when the client left.
    """
    try:
        place = places.take()
    except CituError:
        work.close()
        raise
    place.hold()
    feed = feed_of(_outcome(work), environ, place.leave)
    result: T | _Failure = _Failure(InternalError(INTERNAL_ERROR_TEXT))  # stays when the work broke; the log has it
    while (item := feed.take(WAIT_S)) is not None:
        if not isinstance(item, Quiet):
            result = item
    if isinstance(result, _Failure):
        raise result.error
    return result


async def _outcome(work: Coroutine[Any, Any, T]) -> AsyncIterator[T | _Failure]:
    try:
        yield await work
    except CituError as error:
        yield _Failure(error)
    except asyncio.CancelledError:
        yield _Failure(ServiceEnding(ENDING_TEXT) if is_ending() else Cancelled(CANCELLED_TEXT))
