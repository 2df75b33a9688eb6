"""Where a step of the rules runs: on the event loop where it is surely quick, else in a thread."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from common.inquiry import Inquiry

T = TypeVar("T")

_SHORT_BYTES, _FEW_TABLES = 120, 200  # a Chinese character, which is a word, counts as three


def is_quick(inquiry: Inquiry) -> bool:
    """Tell whether a step over the question surely takes few milliseconds."""
    if len(inquiry.question) > _SHORT_BYTES or len(inquiry.catalog.tables) > _FEW_TABLES:
        return False

    return len(inquiry.question.encode()) <= _SHORT_BYTES


async def compute_step(work: Callable[[], T], inquiry: Inquiry) -> T:
    """Run a step over the question, so that others are served meanwhile."""
    if is_quick(inquiry):
        return work()

    return await asyncio.to_thread(work)
