"""`/health`: is the process alive; `/ready`: can it answer questions now."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from flask import Blueprint, Response

from api.replies import reply
from common.envelope import failure, success
from common.errors import CituError
from common.runtime import run

_log = logging.getLogger(__name__)
_CHECK_TIMEOUT_S = 5.0

Check = Callable[[], Awaitable[dict[str, Any]]]
"""Looks at one dependency: returns what is known of it (`status` among the keys) or raises `CituError`."""


def health_blueprint(checks: Mapping[str, Check], required: frozenset[str]) -> Blueprint:
    """Both endpoints.

    Args:
        checks: what `/ready` looks at, by name.
        required: names without which no question can be answered; the others only degrade answers.
    """
    blueprint = Blueprint("health", __name__)

    @blueprint.get("/health")
    def health() -> Response:
        return reply(success({"status": "ok"}, "alive"))

    @blueprint.get("/ready")
    def ready() -> Response:
        found = {name: _look(check) for name, check in checks.items()}
        if any(found[name]["status"] == "unavailable" for name in required):
            return reply(failure(503, "not ready", found))
        return reply(success(found, "ready"))

    return blueprint


def _look(check: Check) -> dict[str, Any]:
    async def looked() -> dict[str, Any]:
        return await check()

    try:
        return run(looked(), _CHECK_TIMEOUT_S)
    except (CituError, TimeoutError) as error:
        _log.warning("a dependency is not ready: %s", error)
        return {"status": "unavailable"}
