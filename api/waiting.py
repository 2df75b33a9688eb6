"""Lets a view wait for work on the event loop, and cancels the work when the client leaves meanwhile."""

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

WAIT_S = 60.0  # seconds one wait for an item lasts; the caller then waits again
_STORE_S = 10.0  # the store's own timeouts end sooner; this one helps when the event loop is blocked
_STORE_RETRY_S = 2


def feed_of(source: AsyncIterator[T], environ: dict[str, Any], on_end: Callable[[], None] = lambda: None) -> Feed[T]:
    """A feed of `source` for an answer that is written when the feed has ended; cancelled when the client leaves.

    Args:
        environ: the request's WSGI environment.
        on_end: called when `source` has ended.
    """
    return Feed(source, on_end, Client(environ).has_left)


def streamed_feed_of(source: AsyncIterator[T], environ: dict[str, Any]) -> Feed[T]:
    """As `feed_of`, for an answer that is written meanwhile. Its writer must send something for every `Quiet` it takes,
    because that is how a client that half-closed is probed.
    """
    feed: Feed[T]
    client = Client(environ, lambda: feed.nudge())
    feed = Feed(source, is_abandoned=client.has_left)
    return feed


def from_store(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, a short access to the store.

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
class _Failure:
    """An error as an item of a feed: a feed that raises counts as a fault of the program."""

    error: CituError


def result_of(work: Coroutine[Any, Any, T], places: Places, environ: dict[str, Any]) -> T:
    """The result of `work`, which runs on the event loop and is cancelled when the client leaves.

    Takes one of `places` until `work` has ended and the request's response has been written.

    Raises:
        TooManyStreams: all places are taken.
        CituError: whatever `work` raises; `Cancelled` when the client left.
    """
    try:
        place = places.take()
    except CituError:
        work.close()
        raise
    place.hold()
    feed = feed_of(_outcome(work), environ, place.leave)
    # Stays when `work` raises anything but a CituError; the feed then logs it.
    result: T | _Failure = _Failure(InternalError(INTERNAL_ERROR_TEXT))
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
