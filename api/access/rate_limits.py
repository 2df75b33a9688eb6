"""How often one caller may ask, over a moving window, counted in Redis or in this process."""

import ipaddress
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

from common.actor import Actor
from common.errors import RateLimited
from common.text import Text

_log = logging.getLogger(__name__)
_PREFIX = "citu:limits"
_PAUSE_S = 5.0  # how long a storage that failed is left alone


class RateLimits:
    """`limits` such as `60/minute, 1000/day`, for each caller; counted in the Redis of `redis_url`, if there is one."""

    def __init__(self, limits: str, *, redis_url: str, timeout_s: float) -> None:
        self._limits = parse_many(limits.lower())
        self._redis_url = redis_url
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._paused_until = -math.inf

    def count(self, caller: Actor, address: str | None) -> None:
        """Counts one request, of the caller's user or, when it has none, of `address`.

        Raises:
            RateLimited: it is one too many.
        """
        if time.monotonic() < self._paused_until:
            return
        try:
            wait_s = self._wait_s(*_identity(caller, address))
        except StorageError as exc:
            self._pause(exc)
            return
        self._paused_until = -math.inf
        if wait_s:
            raise RateLimited(_too_often(wait_s), retry_after_s=wait_s)

    def _wait_s(self, *identity: str) -> int:
        for limit in self._limits:
            if not self._counter.hit(limit, *identity):
                left = self._counter.get_window_stats(limit, *identity).reset_time - time.time()
                return max(1, math.ceil(left))
        return 0

    @cached_property
    def _counter(self) -> MovingWindowRateLimiter:
        # Made with the first request: the storage in memory has a thread, which would not live through a fork.
        if not self._redis_url:
            return MovingWindowRateLimiter(MemoryStorage())
        pool = ConnectionPool.from_url(
            self._redis_url,
            socket_timeout=self._timeout_s,
            socket_connect_timeout=self._timeout_s,
            # Once more, on a new connection, when Redis had closed the one it was; not when it says nothing.
            retry=Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)),
        )
        storage = RedisStorage("redis://", connection_pool=pool, key_prefix=_PREFIX, wrap_exceptions=True)
        return MovingWindowRateLimiter(storage)

    def _pause(self, error: StorageError) -> None:
        """A storage that is down must not take the service down with it, nor make every request wait for it."""
        with self._lock:
            first = self._paused_until == -math.inf
            self._paused_until = time.monotonic() + _PAUSE_S
        if first:
            _log.warning(
                "requests are not limited while Redis can't be reached: %s", type(error.storage_error).__name__
            )


def _identity(caller: Actor, address: str | None) -> tuple[str, str]:
    if caller.user_id is not None:
        return "user", caller.user_id
    return "address", _network(address or "")


def _network(address: str) -> str:
    """Who has one IPv6 address has all of its /64 network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))


def _too_often(wait_s: int) -> Text:
    return Text(f"提问过于频繁，请在 {wait_s} 秒后重试。", f"You ask too often: try again in {wait_s} s.")
