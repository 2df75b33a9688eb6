"""Bounds how many questions one user may ask in 24 hours, whichever key asks them.

`RATE_LIMIT` counts the requests of a key. A key that acts for others asks for many users; this
counts each of them.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent.extensions.points import EndedRun, Provided
from agent.question import Question
from common.rate_limits import RateLimits
from store.shared_hits import shared_hit


class DailyQuota:
    """`LifecycleHook` that counts in the store, for all workers together."""

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits

    async def before_question(self, question: Question) -> None:
        """Count the question. Raises `RateLimited` for one that is too many."""
        actor = replace(question.actor, user_id=question.owner)
        await asyncio.to_thread(
            self._limits.count, actor, None
        )  # in a thread, because the store may take a while

    async def after_question(self, question: Question, ended: EndedRun) -> None:
        """Do nothing: only questions are counted."""

    async def before_tool(
        self, question: Question, name: str, arguments: Mapping[str, Any]
    ) -> None:
        """Do nothing: only questions are counted."""

    async def after_tool(self, question: Question, name: str, error_type: str | None) -> None:
        """Do nothing: only questions are counted."""


def daily_quota(provided: Provided) -> DailyQuota | None:
    """Return the extension, unless `QUESTIONS_PER_DAY` is 0."""
    settings: Any = provided.settings
    if not settings.questions_per_day:
        return None

    limits = f"{settings.questions_per_day}/day"
    return DailyQuota(
        RateLimits(
            limits,
            redis_url=settings.redis_url,
            timeout_s=settings.store_timeout_s,
            counts="questions",
            hit=shared_hit(provided.store, settings.store_timeout_s),
        )
    )
