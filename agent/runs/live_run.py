"""One run in the process that answers it: its events are stored and shown to readers.

A frame is shown only after it is kept, so that another worker can show a client the same bytes
again. When the store fails, frames are shown as they come, and the whole run is kept as soon as the
store is back.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress

from agent.runs.events import Event, error_event, stored_event, with_warning
from agent.runs.pauses import Pause
from common import runtime
from common.errors import (
    ENDING_TEXT,
    INTERNAL_ERROR_TEXT,
    Cancelled,
    InternalError,
    ServiceEnding,
    StoreUnavailable,
)
from common.text import Text
from store import (
    EventFrame,
    RunEnd,
    RunHead,
    RunRecord,
    Runs,
    RunState,
    RunWrite,
    Unkept,
    Waiting,
)
from store.journal import Journal

_log = logging.getLogger(__name__)

# Nobody reads the frames of a sync answer, so the first write waits: a short answer is kept in one
# write with its end.
_LINGER_S = 0.25
# Least time from the beginning, and between two writes; frames that come meanwhile go into one
# write
_GATHER_S = 0.02
_PATIENCE_S = 600.0  # how long a run that ended while the store was down is tried to be kept
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.25, 60.0  # between those tries
_NOT_KEPT = Text(
    "会话存储暂时不可用，本轮对话可能不会被保存。",
    "The conversation store is unavailable; this turn may not be kept.",
)


class LiveRun:
    """A question being answered; used on the event loop only, made by `RunService.begin`.

    Attributes:
        readers: how many read it; a reader adds one when it comes and calls `leave` when it goes.
        has_kept_end: whether the store has the run's end from this worker.
    """

    def __init__(
        self,
        head: RunHead,
        answer: Callable[[Callable[[Event], None]], Awaitable[None]],
        journal: Journal,
        runs: Runs,
        *,
        is_watched: bool,
        outlives_readers: bool,
        grace_s: float = 0.0,
        on_end: Callable[[], None],
        on_kept: Callable[[], None],
        on_own_end: Callable[[Event], None] = lambda _: None,
        on_ending: Callable[[Event, EventFrame], None] = lambda _, __: None,
        on_other_end: Callable[[], None] = lambda: None,
        earlier: Sequence[EventFrame] = (),
    ) -> None:
        """Start answering, or go on after the user's answer.

        Args:
            answer: answers the question, passing events on as they happen; they end in a last
                event.
            is_watched: whether somebody may read frames before the end.
            outlives_readers: whether it goes on when its last reader has left.
            grace_s: otherwise, seconds in which another reader may come before it is cancelled.
            on_end: called when the last event is shown.
            on_kept: called when the run is kept, or given up as impossible to keep.
            on_own_end: called with the last event, once, unless another worker has ended the run.
            on_ending: called with it and its frame before they are kept for the first time.
            on_other_end: called when another worker has ended the run.
            earlier: frames of a run that goes on; they are kept already.
        """
        self.head = head
        self.readers = 0
        self.has_kept_end = False
        self._produce = answer
        self._journal = journal
        self._runs = runs
        self._is_watched = is_watched
        self._outlives_readers = outlives_readers
        self._grace_s = grace_s
        self._no_readers_timer: asyncio.TimerHandle | None = None
        self._on_end = on_end
        self._on_kept = on_kept
        self._on_own_end = on_own_end
        self._on_ending = on_ending
        self._on_other_end = on_other_end
        self._events = [stored_event(frame.data) for frame in earlier]
        # For the first events; the others are rendered when they are kept or shown.
        self._frames = list(earlier)
        self._kept = self._shown = len(earlier)
        self._failures = journal.failures
        self._ending: asyncio.Task[None] | None = None
        self._last: Event | None = None  # as shown
        self._is_producing = True
        self._is_resumed, self._is_abandoned = bool(earlier), False
        self._writing: asyncio.Task[None] | None = None
        self._gathering: asyncio.TimerHandle | None = None
        self._watchers: set[asyncio.Future[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._written_at = self._loop.time()
        self._linger = None if is_watched else self._loop.call_later(_LINGER_S, self._write_soon)
        runtime.track(self)
        self._task = self._loop.create_task(self._answer())
        self._task.add_done_callback(self._done)

    @property
    def record(self) -> RunRecord:
        """Return the run as far as its events are shown."""
        state: RunState = _state_of(self._last) if self._last else "running"
        return RunRecord(self.head, state, self._shown)

    @property
    def last_frame(self) -> EventFrame | None:
        """Return the frame of the last event; None until it is shown."""
        return self._frames[-1] if self.is_over else None

    @property
    def is_over(self) -> bool:
        """Tell whether its last event is shown: it has ended, or waits for the user."""
        return self._last is not None

    def cancel(self) -> None:
        """Stop the model call and the SQL; the flow's last event ends the run."""
        # Later, not now: a task that is cancelled before its first step never runs, so it would
        # send no last event.
        self._loop.call_soon(self._cancel)

    def _cancel(self) -> None:
        if self._is_producing:
            self._task.cancel()

    def leave(self) -> None:
        """Note that one reader has left."""
        self.readers -= 1
        if self.readers == 0 and not self._outlives_readers:
            if self._no_readers_timer is not None:
                self._no_readers_timer.cancel()

            self._no_readers_timer = self._loop.call_later(self._grace_s, self._cancel_unread)

    def _cancel_unread(self) -> None:
        if self.readers == 0:
            self._cancel()

    async def follow(self, after: int = 0) -> AsyncIterator[EventFrame]:
        """Yield the frames after number `after`, then each as soon as it is shown."""
        while True:
            while after < self._shown:
                frame = self._frames[after]
                after += 1
                yield frame

            if self.is_over or self._is_abandoned:
                return

            await self._change()

    async def begun(self) -> None:
        """Wait until the first event is kept: from then on, others know the run and may end it."""
        while not (self._shown or self.is_over or self._is_abandoned):
            await self._change()

    async def last(self) -> Event:
        """Wait for the last event; an error when another worker will go on with the run."""
        while self._last is None:
            if self._is_abandoned:
                return error_event(ServiceEnding(ENDING_TEXT), self.head)

            await self._change()

        return self._last

    async def _change(self) -> None:
        watcher = self._loop.create_future()
        self._watchers.add(watcher)
        try:
            await watcher
        finally:
            self._watchers.discard(watcher)

    # --------------------------------------------------------------------------
    # producing

    async def _answer(self) -> None:
        try:
            await self._produce(self._take_event)
        finally:
            if self._ending is not None:
                await self._ending

    def _is_left_behind(self, event: Event) -> bool:
        """Tell whether the process ends while the run can be taken over.

        Another worker then goes on with it and loses nothing.
        """
        is_cancelled = event.type == "error" and event.code == Cancelled.code
        if not is_cancelled or not runtime.is_ending():
            return False

        is_stored = self.head.request is not None and self._kept > 0
        return self._is_resumed or is_stored

    def _take_event(self, event: Event) -> None:
        if event.is_last:
            self._is_producing = False
            if self._is_left_behind(event):
                self._is_abandoned = True
                self._wake()
            else:
                self._ending = self._loop.create_task(self._finish(event))

            return

        self._events.append(event)
        if self._is_watched and self._journal.is_failing:
            self._show(len(self._events))
        elif self._is_watched:
            self._write_soon()

    def catch_up(self) -> None:
        """Write what was shown while the store was down and what its crash may have lost."""
        if self._journal.is_failing:
            return

        has_failed = self._failures != self._journal.failures
        if has_failed and self._writing is None:
            self._failures = self._journal.failures
            self._kept = 0

        if self._kept < self._shown and self._is_producing:
            self._write_soon()

    def _write_soon(self) -> None:
        self._is_watched = True
        if self._writing is not None or self._gathering is not None:
            return
        if self._is_producing and self._kept < len(self._events):
            at = self._written_at + _GATHER_S
            self._gathering = self._loop.call_at(at, self._begin_to_write)

    def _begin_to_write(self) -> None:
        self._gathering = None
        self._written_at = self._loop.time()
        self._writing = self._loop.create_task(self._write())

    async def _write(self) -> None:
        """Keep the new events, then show them; later ones wait for the next write."""
        count = len(self._events)
        try:
            unkept = await self._journal.keep(self._new(count))
        except StoreUnavailable:
            self._show(len(self._events))
        else:
            self._note_kept(count, unkept)
        finally:
            self._writing = None

    def _note_kept(self, count: int, unkept: Unkept | None) -> None:
        """Show the events that the store has now, or write again what it has lost."""
        if unkept == "taken":  # the lease ran out: further events no longer belong to the run
            self.cancel()
            return

        self._kept = 0 if unkept == "lost" else count
        if unkept is None:
            self._show(count)

        self._loop.call_soon(self._write_soon)

    def _new(self, count: int, last: Event | None = None) -> RunWrite:
        """Return what the store lacks of the first `count` events, and the last one if given."""
        frames = tuple(self._rendered_frames(count)[self._kept :])
        if last is None:
            return RunWrite(self.head, frames)
        if last.pause is not None:
            return RunWrite(self.head, frames, waiting=_waiting(last.pause))

        return RunWrite(self.head, frames, RunEnd(_state_of(last), last.turn))

    def _rendered_frames(self, count: int) -> list[EventFrame]:
        for number in range(len(self._frames), count):
            self._frames.append(EventFrame(number + 1, self._events[number].rendered))

        return self._frames[:count]

    def _show(self, count: int) -> None:
        self._rendered_frames(count)
        self._shown = max(self._shown, count)
        self._wake()

    def _wake(self) -> None:
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)

    # --------------------------------------------------------------------------
    # ending

    async def _finish(self, event: Event) -> None:
        for timer in (self._linger, self._gathering):
            if timer is not None:
                timer.cancel()

        if self._writing is not None:
            await self._writing

        count = len(self._events) + 1
        self._events.append(event)
        try:
            self._on_ending(event, self._rendered_frames(count)[-1])
            is_ours = await self._is_ended(count, event)
        except StoreUnavailable:
            self._on_own_end(event)
            self._end(self._unkept(event, count))
            await self._keep_later(count, event)
        else:
            if is_ours:
                self._on_own_end(event)
                self._end(event)
            else:
                self._on_other_end()
                await self._end_as_stored()

    async def _is_ended(self, count: int, last: Event) -> bool:
        """Keep the run's last event; return false when another worker has taken the run.

        Raises StoreUnavailable.
        """
        unkept = await self._journal.keep(self._new(count, last))
        while unkept == "lost":
            self._kept = 0  # write the whole run again, so that no frame is missing
            unkept = await self._journal.keep(self._new(count, last))

        is_kept = unkept is None
        self.has_kept_end = is_kept and last.is_terminal
        return is_kept

    def _end(self, event: Event) -> None:
        self._last = event
        self._show(len(self._events))
        self._on_end()

    def _done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            _log.error("a run broke", exc_info=task.exception(), extra={"run_id": self.head.run_id})
        if not self.is_over and not self._is_abandoned:
            # An event that can't be rendered must not break the end as well.
            del self._events[len(self._frames) :]
            self._events.append(error_event(InternalError(INTERNAL_ERROR_TEXT), self.head))
            self._on_own_end(self._events[-1])
            self._end(self._events[-1])

        runtime.untrack(self)
        self._on_kept()

    def _unkept(self, event: Event, count: int) -> Event:
        """Return the last event of a run that is not kept; an answer gets a warning."""
        if event.type == "completed":
            event = with_warning(event, _NOT_KEPT.to(self.head.lang))
            self._events[count - 1] = event
            del self._frames[count - 1 :]

        return event

    async def _keep_later(self, count: int, last: Event) -> None:
        self._kept = 0  # the store may have lost what was kept
        with self._journal.waiting_room(self._new(count, last)) as has_room:
            if has_room and not await self._kept_in_time(count, last):
                _log.error("a run was not kept", extra={"run_id": self.head.run_id})

    async def _kept_in_time(self, count: int, last: Event) -> bool:
        """Keep the run's last event once the store works; return false if it takes too long."""
        pause_s = _FIRST_PAUSE_S
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                while True:
                    await self._journal.recovery()
                    with suppress(StoreUnavailable):
                        return await self._is_ended(count, last)

                    # Pause: a write that the store always refuses fails other runs' writes in the
                    # same batch too.
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, _LAST_PAUSE_S)

        return False

    async def _end_as_stored(self) -> None:
        """End with the events from the store, because another worker has ended the run."""
        del self._events[self._shown :], self._frames[self._shown :]
        stored_frames: tuple[EventFrame, ...] = ()
        with suppress(StoreUnavailable):
            stored_frames = await self._runs.frames(
                self.head.user_id, self.head.run_id, self._kept, 1000
            )

        for frame in stored_frames[self._shown - self._kept :]:
            self._events.append(stored_event(frame.data))
            self._frames.append(frame)

        # More frames may have been shown than the store has.
        if not self._events or not self._events[-1].is_last:
            self._events.append(self._stored_end(stored_frames))

        self._end(self._events[-1])

    def _stored_end(self, stored_frames: Sequence[EventFrame]) -> Event:
        """Return the last of the stored frames, or an error when it does not end the run."""
        if stored_frames:
            last = stored_event(stored_frames[-1].data)
            if last.is_last:
                return last

        return error_event(InternalError(INTERNAL_ERROR_TEXT), self.head)


def _state_of(event: Event) -> RunState:
    if event.type == "question":
        return "waiting"
    if event.type == "completed":
        return "completed"

    return "cancelled" if event.code == Cancelled.code else "error"


def _waiting(pause: Pause) -> Waiting:
    assert pause.question.agent is not None, "the runner has named the flow"
    return Waiting(pause.interrupt_id, pause.question.agent, pause.to_json())
