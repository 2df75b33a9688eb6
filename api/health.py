"""`/health` says that the process is alive, `/ready` whether it should be sent questions now."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from flask import Blueprint, Response, request

from api.responses import reply
from common.actor import NOBODY
from common.after_fork import restart_after_fork
from common.envelope import failure, success
from common.errors import CituError
from common.rate_limits import RateLimits
from common.runtime import is_stopping, run

_log = logging.getLogger(__name__)
_CHECK_TIMEOUT_S = 5.0
_FRESH_S = 1.0  # seconds a result is reused, so that many probes cost one check
# For one address. RATE_LIMIT does not apply: it counts requests that cost a statement or a model
# call.
_LIMIT = "20/second"

Check = Callable[[], Awaitable[dict[str, Any]]]
"""Checks one dependency: returns its state, a dict with the key `status`, or raises `CituError`."""

Found = Mapping[str, dict[str, Any]]
"""The results of the checks, by name."""


class Readiness:
    """Runs the checks at most once in `_FRESH_S` seconds; other requests wait for the same run.

    Args:
        checks: by name; they run side by side.
    """

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Forget the last look, which a forked child can't wait for."""
        self._looking: asyncio.Task[Found] | None = None
        self._looked_at = 0.0

    async def found(self) -> Found:
        """Return the result of each check, which is `unavailable` if it fails or takes over 5 s."""
        return await asyncio.shield(self._check_if_due())

    def _check_if_due(self) -> "asyncio.Task[Found]":
        is_fresh = time.monotonic() - self._looked_at < _FRESH_S
        if self._looking is None or (self._looking.done() and not is_fresh):
            self._looking = asyncio.create_task(self._look_at_all())

        return self._looking

    async def _look_at_all(self) -> Found:
        states = await asyncio.gather(*map(_look_at, self._checks.values()))
        self._looked_at = time.monotonic()
        return dict(zip(self._checks, states, strict=True))


async def _look_at(check: Check) -> dict[str, Any]:
    try:
        async with asyncio.timeout(_CHECK_TIMEOUT_S):
            return await check()
    except (CituError, TimeoutError) as error:
        _log.warning("a dependency is not ready: %s", error)
        return {"status": "unavailable"}


def health_blueprint(
    checks: Mapping[str, Check], required: frozenset[str], shown: Callable[[Found], Found]
) -> Blueprint:
    """Return the blueprint of both endpoints.

    Args:
        checks: the checks that `/ready` runs, by name.
        required: names of the checks without which no question can be answered; the others only
            degrade answers.
        shown: gives what the sender of the request being served may see of the results.
    """
    blueprint = Blueprint("health", __name__)
    readiness = Readiness(checks)
    limits = RateLimits(_LIMIT, redis_url="", timeout_s=0)

    @blueprint.get("/health")
    def health() -> Response:
        return reply(success({"status": "ok"}, "alive"))

    @blueprint.get("/ready")
    def ready() -> Response:
        if is_stopping():
            return reply(failure(503, "stopping", {"service": {"status": "stopping"}}))

        limits.count(NOBODY, request.remote_addr)
        states = run(readiness.found(), 2 * _CHECK_TIMEOUT_S)
        if any(states[name]["status"] == "unavailable" for name in required):
            return reply(failure(503, "not ready", dict(shown(states))))

        return reply(success(dict(shown(states)), "ready"))

    return blueprint
