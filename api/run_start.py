"""Begins the run that a request asks for, or finds the one that the same request began before.

Every way to ask goes through here, so that all of them treat repeated requests and clients that
leave alike.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

from agent.question import Question
from agent.runs.live_run import LiveRun
from agent.runs.run_service import RunService
from common.errors import StoreUnavailable
from store import RunRecord

_RESERVE_S = 10.0  # the store's own timeouts end sooner


@dataclass(frozen=True)
class RunRequest:
    """A question with what its request says of repetitions and of leaving.

    Attributes:
        key: names the request, so that it can be repeated; None: each request begins a run.
        fingerprint: equal for the requests that may have the same key.
        outlives_clients: whether the run goes on when nobody watches it any more.
        grace_s: if it does not, seconds in which the client may come back before it is cancelled.
    """

    question: Question
    key: str | None = None
    fingerprint: str = ""
    outlives_clients: bool = False
    grace_s: float = 0.0

    async def earlier(self, service: RunService) -> RunRecord | None:
        """Return the run that the same request began before.

        None: there is none, and the key belongs to this one.

        Raises:
            IdempotencyKeyReused: the key came with another request before.
        """
        if self.key is None:
            return None

        try:
            async with asyncio.timeout(_RESERVE_S):
                return await service.reserve_key(self.question, self.key, self.fingerprint)
        except (StoreUnavailable, TimeoutError):
            return None  # the question is still answered, and the answer warns that it is not kept

    async def give_up(self, service: RunService) -> None:
        """Free the key, because the run is not begun after all."""
        if self.key is not None:
            await service.release_key(self.question.owner, self.key, self.question.run_id)

    def begin(
        self, service: RunService, on_end: Callable[[], None], *, is_watched: bool
    ) -> LiveRun:
        """Start answering; call it on the loop. See `RunService.begin`."""
        return service.begin(
            self.question,
            is_watched=is_watched,
            outlives_readers=self.outlives_clients,
            grace_s=self.grace_s,
            on_end=on_end,
            key=self.key,
        )


def fingerprint_of(body: object) -> str:
    """Return a digest of a JSON value that does not depend on the order of its keys."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
