"""Limits how often one caller may ask, over a moving window.

All workers count together, in Redis or in what is given for it; without either each for itself.
"""

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property

from limits import parse_many
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis import ConnectionError, ConnectionPool
from redis.backoff import NoBackoff
from redis.retry import Retry

from common.actor import Actor, caller_id_of
from common.errors import RateLimited, StoreUnavailable
from common.text import Text

_log = logging.getLogger(__name__)
_PREFIX = "citu:limits"
_PAUSE_S = 5.0  # seconds to leave a storage alone after it failed


SharedHit = Callable[[str, int, int], float]
"""Counts a request by the caller, the most requests and the seconds of the window; may wait.

It returns 0, or after how many seconds there is room. It raises StoreUnavailable or TimeoutError.
"""


class RateLimits:
    """Counts the requests of each caller.

    Args:
        limits: such as `60/minute, 1000/day`.
        redis_url: the Redis to count in; empty: this process counts for itself.
        timeout_s: seconds one access to Redis may take.
        counts: what is counted (`requests`, `questions` …); each kind has counts of its own.
        hit: counts one request of a caller where all workers count, without Redis; None: there is
            no such place.
    """

    def __init__(
        self,
        limits: str,
        *,
        redis_url: str,
        timeout_s: float,
        counts: str = "requests",
        hit: SharedHit | None = None,
    ) -> None:
        self._counts = counts
        self._limits = parse_many(limits.lower())
        self._redis_url = redis_url
        self._hit = hit if not redis_url else None
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._paused_until = -math.inf

    def count(self, caller: Actor, address: str | None) -> None:
        """Count one request for the caller's user or, without one, for `address`.

        While Redis can't be reached, nothing is counted and nothing refused; while another store
        can't, this process counts for itself.

        Raises:
            RateLimited: the request is one too many.
        """
        identity = (*caller_id_of(caller, address), *self._key_prefix)
        wait_s = self._in_redis(identity) if self._hit is None else self._in_store(identity)
        if wait_s:
            raise RateLimited(_too_often(wait_s), retry_after_s=wait_s)

    def _in_redis(self, identity: Sequence[str]) -> int:
        """Count in Redis, or in this process where there is none; return how long to wait."""
        if time.monotonic() < self._paused_until:
            return 0

        try:
            wait_s = self._wait_s(identity)
        except StorageError as exc:
            self._pause(
                "requests are not limited while Redis can't be reached: %s",
                type(exc.storage_error).__name__,
            )
            return 0

        self._paused_until = -math.inf
        return wait_s

    def _in_store(self, identity: Sequence[str]) -> int:
        """Count in the store, or in this process while it is away; return how long to wait."""
        if time.monotonic() < self._paused_until:
            return self._wait_s(identity)

        try:
            wait_s = self._shared_wait_s(identity)
        except (StoreUnavailable, TimeoutError) as exc:
            self._pause(
                "each worker counts requests for itself while the store can't be reached: %s",
                type(exc).__name__,
            )
            return self._wait_s(identity)

        self._paused_until = -math.inf
        return wait_s

    @property
    def _key_prefix(self) -> tuple[str, ...]:
        if self._counts == "requests":
            return ()

        return (self._counts,)

    def _wait_s(self, identity: Sequence[str]) -> int:
        for limit in self._limits:
            is_allowed = self._counter.hit(limit, *identity)
            if not is_allowed:
                window = self._counter.get_window_stats(limit, *identity)
                left = window.reset_time - time.time()
                return max(1, math.ceil(left))

        return 0

    def _shared_wait_s(self, identity: Sequence[str]) -> int:
        assert self._hit is not None, "there is a store to count in"
        caller = json.dumps(identity)
        for limit in self._limits:
            wait_s = self._hit(caller, limit.amount, limit.get_expiry())
            if wait_s:
                return math.ceil(wait_s)

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

    def _pause(self, consequence: str, problem: str) -> None:
        """Leave the storage alone for a while, so that one that is down slows no request down."""
        with self._lock:
            first = self._paused_until == -math.inf
            self._paused_until = time.monotonic() + _PAUSE_S

        if first:
            _log.warning(consequence, problem)


def _too_often(wait_s: int) -> Text:
    return Text(
        f"提问过于频繁，请在 {wait_s} 秒后重试。", f"You ask too often: try again in {wait_s} s."
    )
