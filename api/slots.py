"""Limits how many questions run at once, in all and of one caller; refuses all others."""

import logging
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from flask import Response, after_this_request

from common import runtime
from common.actor import CallerId, caller_id
from common.errors import ServiceStopping, TooManyStreams
from common.fair_slots import FairSlots, Slot
from common.text import Text

T = TypeVar("T")
_log = logging.getLogger(__name__)

_RETRY_AFTER_S = 2
# A slot becomes free a moment after the client has read the end of its answer. Waiting for that
# moment keeps a client that asks its next question at once from being refused because of its last
# one.
_MOMENT_S = 0.1
_FULL = Text(
    "同时进行的提问已达上限，请稍后重试。",
    "As many questions are running as may; try again in a moment.",
)


_STOPPING = Text(
    "服务正在停止或重启，不再接受新的提问，请稍后重试。",
    "The service is being stopped or restarted and takes no new questions; try again in a moment.",
)


def _share_taken(most: int) -> Text:
    return Text(
        f"您同时进行的提问已达一个调用者的上限（{most} 个），请在其中一个结束后重试。",
        f"You have {most} questions running, as many as one caller may; "
        "try again when one has ended.",
    )


def _refuse_when_stopping() -> None:
    if not runtime.takes_work():
        raise ServiceStopping(_STOPPING, retry_after_s=_RETRY_AFTER_S)


class QuestionSlots:
    """The questions that may run at once.

    Args:
        limit: most of them at any moment.
        share: the part of them that one caller may have.
    """

    def __init__(self, limit: int, share: float = 1.0) -> None:
        self._slots = FairSlots(limit, share)

    def take(self) -> "QuestionSlot":
        """Take a slot for the request being served.

        It stays taken until the response has been written and everybody who called `hold` has
        called `leave`.

        Raises:
            TooManyStreams: all are taken, or the caller has its share of them.
            ServiceStopping: the process is about to end.
        """
        _refuse_when_stopping()
        slot = self._slots.acquire_in_thread(_MOMENT_S)
        if slot is None:
            raise self._refusal(caller_id.get())

        question_slot = QuestionSlot(slot)

        # Every response, also an error, holds a thread until it has been written; only then is the
        # slot free.
        @after_this_request
        def leave_when_written(response: Response) -> Response:
            response.call_on_close(question_slot.leave)
            return response

        return question_slot

    async def take_for_message(self) -> "QuestionSlot":
        """Take a slot for a question over an open connection; who takes it calls `leave`.

        Raises:
            TooManyStreams, ServiceStopping: as `take`.
        """
        _refuse_when_stopping()
        try:
            return QuestionSlot(await self._slots.acquire(_MOMENT_S))
        except TimeoutError as exc:
            raise self._refusal(caller_id.get()) from exc

    def _refusal(self, caller: CallerId) -> TooManyStreams:
        if not self._slots.has_whole_share(caller):
            return TooManyStreams(_FULL, retry_after_s=_RETRY_AFTER_S)

        most = self._slots.most_of(caller)
        _log.info("a caller has its whole share of questions", extra={"running": most})
        return TooManyStreams(_share_taken(most), retry_after_s=_RETRY_AFTER_S)


class QuestionSlot:
    """A slot that was taken.

    It counts its holders, one at first, and becomes free when the last has left.
    """

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self._lock = threading.Lock()
        self._holders = 1

    def hold(self) -> None:
        """Add a holder, for work that may go on after the client has left."""
        with self._lock:
            self._holders += 1

    def leave(self) -> None:
        """Remove a holder; the last one frees the slot."""
        with self._lock:
            self._holders -= 1
            is_free = self._holders == 0

        if is_free:
            self._slot.release()


class HeldSlot:
    """A slot that is kept for a run which a stream may begin, or not, while it is written.

    Held from the first, because the response may be closed before the run begins.
    """

    def __init__(self, slot: QuestionSlot) -> None:
        slot.hold()
        self._slot = slot
        self._is_given = False

    def give(self) -> Callable[[], None]:
        """Return what is to be called when the run has ended."""
        self._is_given = True
        return self._slot.leave

    async def over(self, items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """Yield the items; leave the slot when they end and no run was begun."""
        try:
            async with aclosing(items):
                async for item in items:
                    yield item
        finally:
            if not self._is_given:
                self._slot.leave()
