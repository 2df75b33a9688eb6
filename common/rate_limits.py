"""Limits how often one caller may ask, over a moving window; counts in Redis or in this process."""

import logging
import math
import threading
import time
from functools import cached_property

from limits import parse_many
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis import ConnectionError, ConnectionPool
from redis.backoff import NoBackoff
from redis.retry import Retry

from common.actor import Actor, caller_id_of
from common.errors import RateLimited
from common.text import Text

_log = logging.getLogger(__name__)
_PREFIX = "citu:limits"
_PAUSE_S = 5.0  # seconds to leave a storage alone after it failed


class RateLimits:
    """Counts the requests of each caller.

    Args:
        limits: such as `60/minute, 1000/day`.
        redis_url: the Redis to count in; empty: this process counts for itself.
        timeout_s: seconds one access to Redis may take.
        counts: what is counted (`requests`, `questions` …); each kind has counts of its own.
    """

    def __init__(
        self, limits: str, *, redis_url: str, timeout_s: float, counts: str = "requests"
    ) -> None:
        self._counts = counts
        self._limits = parse_many(limits.lower())
        self._redis_url = redis_url
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._paused_until = -math.inf

    def count(self, caller: Actor, address: str | None) -> None:
        """Count one request for the caller's user or, without one, for `address`.

        While the storage can't be reached, nothing is counted and nothing refused.

        Raises:
            RateLimited: the request is one too many.
        """
        if time.monotonic() < self._paused_until:
            return

        try:
            wait_s = self._wait_s(*caller_id_of(caller, address), *self._kind)
        except StorageError as exc:
            self._pause(exc)
            return

        self._paused_until = -math.inf
        if wait_s:
            raise RateLimited(_too_often(wait_s), retry_after_s=wait_s)

    @property
    def _kind(self) -> tuple[str, ...]:
        if self._counts == "requests":
            return ()

        return (self._counts,)

    def _wait_s(self, *identity: str) -> int:
        for limit in self._limits:
            is_allowed = self._counter.hit(limit, *identity)
            if not is_allowed:
                window = self._counter.get_window_stats(limit, *identity)
                left = window.reset_time - time.time()
                return max(1, math.ceil(left))

        return 0

    @cached_property
    def _counter(self) -> MovingWindowRateLimiter:
        # Made at the first request, because the storage in memory has a thread, which a fork would
        # not copy.
        if not self._redis_url:
            return MovingWindowRateLimiter(MemoryStorage())

        pool = ConnectionPool.from_url(
            self._redis_url,
            socket_timeout=self._timeout_s,
            socket_connect_timeout=self._timeout_s,
            # Retry once, on a new connection, when Redis had closed the old one; not after a
            # timeout.
            retry=Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)),
        )
        storage = RedisStorage(
            "redis://", connection_pool=pool, key_prefix=_PREFIX, wrap_exceptions=True
        )
        return MovingWindowRateLimiter(storage)

    def _pause(self, error: StorageError) -> None:
        """Leave the storage alone for a while, so that one that is down slows no request down."""
        with self._lock:
            first = self._paused_until == -math.inf
            self._paused_until = time.monotonic() + _PAUSE_S

        if first:
            _log.warning(
                "requests are not limited while Redis can't be reached: %s",
                type(error.storage_error).__name__,
            )


def _too_often(wait_s: int) -> Text:
    return Text(
        f"提问过于频繁，请在 {wait_s} 秒后重试。", f"You ask too often: try again in {wait_s} s."
    )
