"""`/health`: is the process alive; `/ready`: can it answer questions now."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from flask import Blueprint, Response, request

from api.access.rate_limits import RateLimits
from api.responses import reply
from common.actor import NOBODY
from common.envelope import failure, success
from common.errors import CituError
from common.runtime import run

_log = logging.getLogger(__name__)
_CHECK_TIMEOUT_S = 5.0
_FRESH_S = 1.0  # how long the result of a look is given to everybody who asks
# Of one address. RATE_LIMIT is not for it: that counts what costs a statement or a model call.
_LIMIT = "20/second"

Check = Callable[[], Awaitable[dict[str, Any]]]
"""Looks at one dependency: returns what is known of it (`status` among the keys) or raises `CituError`."""

Found = Mapping[str, dict[str, Any]]
"""What the checks say, by their names."""


class Readiness:
    """The checks' results, at most `_FRESH_S` old. Whoever asks during a look waits for the same one.

    Args:
        checks: what is looked at, side by side, by name.
    """

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks
        self._looking: asyncio.Task[Found] | None = None
        self._pid = 0
        self._looked_at = 0.0

    async def found(self) -> Found:
        """What each check says; `{"status": "unavailable"}` for one that fails or takes longer than 5 s."""
        return await asyncio.shield(self._look())

    def _look(self) -> "asyncio.Task[Found]":
        is_fresh = self._pid == os.getpid() and time.monotonic() - self._looked_at < _FRESH_S
        if self._looking is None or (self._looking.done() and not is_fresh) or self._pid != os.getpid():
            self._pid = os.getpid()
            self._looking = asyncio.create_task(self._look_at_all())
        return self._looking

    async def _look_at_all(self) -> Found:
        found = await asyncio.gather(*map(_look_at, self._checks.values()))
        self._looked_at = time.monotonic()
        return dict(zip(self._checks, found, strict=True))


async def _look_at(check: Check) -> dict[str, Any]:
    try:
        async with asyncio.timeout(_CHECK_TIMEOUT_S):
            return await check()
    except (CituError, TimeoutError) as error:
        _log.warning("a dependency is not ready: %s", error)
        return {"status": "unavailable"}


def health_blueprint(checks: Mapping[str, Check], required: frozenset[str]) -> Blueprint:
    """Both endpoints.

    Args:
        checks: what `/ready` looks at, by name.
        required: names without which no question can be answered; the others only degrade answers.
    """
    blueprint = Blueprint("health", __name__)
    readiness = Readiness(checks)
    limits = RateLimits(_LIMIT, redis_url="", timeout_s=0)

    @blueprint.get("/health")
    def health() -> Response:
        return reply(success({"status": "ok"}, "alive"))

    @blueprint.get("/ready")
    def ready() -> Response:
        limits.count(NOBODY, request.remote_addr)
        found = run(readiness.found(), 2 * _CHECK_TIMEOUT_S)
        if any(found[name]["status"] == "unavailable" for name in required):
            return reply(failure(503, "not ready", dict(found)))
        return reply(success(dict(found), "ready"))

    return blueprint
