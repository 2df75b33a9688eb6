"""Starts, finds, follows, resumes and cancels runs, from any worker."""

import asyncio
import json
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from agent.extensions.points import UNOBSERVED, ObservabilityProvider
from agent.question import Question
from agent.runs.events import Event, error_event, is_result, stored_event
from agent.runs.idempotency import IdempotencyKeys
from agent.runs.leases import Leases, cut_off_of
from agent.runs.live_run import LiveRun
from agent.runs.pauses import Beginning, GivenAnswer, Resumption
from agent.runs.run_counts import RunCounts
from agent.runs.runner import Runner, Show
from agent.runs.stored_runs import PAGE, all_frames, last_event
from agent.runs.uncounted_ends import UncountedEnds
from common.actor import Actor, caller_id_of, charged_to
from common.after_fork import restart_after_fork
from common.answer_check import check_answer, load_checker
from common.errors import (
    CANCELLED_TEXT,
    Cancelled,
    Conflict,
    LeaseLost,
    NotFound,
    StoreUnavailable,
    WorkerLost,
)
from common.runtime import is_ending
from common.text import Text
from store import EventFrame, RunEnd, RunHead, RunRecord, RunWrite, Store, Waiting
from store.checkpoints import held_by
from store.journal import Journal
from store.outages import UNREACHABLE

# Between reads of another worker's run; grows while nothing comes.
_FIRST_POLL_S, _LAST_POLL_S = 0.05, 0.5
# How long `cancel` waits for the run's end; longer than its worker takes to hear of it.
_END_S = 4.0

_UNKNOWN = Text(
    "没有这次运行，或它已过期被清除。",
    "There is no such run, or it was kept for its time and has been forgotten.",
)
_NEVER_ASKED = Text(
    "这次运行没有提出过这个问题：请核对 run_id 和 interrupt_id。",
    "This run has not asked that question: check run_id and interrupt_id.",
)
_ANSWERED = Text(
    "这个问题已经有了答案，或这次运行已结束。",
    "This question has been answered, or the run has ended.",
)
_NO_FLOW = Text(
    "提出这个问题的流程已不存在：请取消这次运行，重新提问。",
    "What asked this question is no longer part of the service: cancel the run and ask again.",
)
_OTHER_GRAPH = Text(
    "提出这个问题后流程已随升级改变，无法从这里继续：请取消这次运行，重新提问。",
    "The flow was changed by an upgrade after it asked this, and can't go on from here: cancel the "
    "run and ask again.",
)


@dataclass(frozen=True)
class RunView:
    """A run as its user sees it.

    Attributes:
        last: its last event, once it has ended or while it waits for the user.
    """

    record: RunRecord
    last: Event | None


class RunService:
    """Executes this process's runs, and gives access to those of other processes.

    Args:
        lease_s: seconds without renewal after which the store counts a run as abandoned.
        uncounted: remembers ends of runs until they are counted; None: nothing does.
    """

    def __init__(
        self,
        runner: Runner,
        store: Store,
        journal: Journal,
        *,
        lease_s: float,
        observer: ObservabilityProvider = UNOBSERVED,
        uncounted: UncountedEnds | None = None,
    ) -> None:
        self._runner = runner
        self._counts = RunCounts(
            observer, lambda question: runner.agent_of(question), store.runs, lease_s, uncounted
        )
        self._store = store
        self._journal = journal
        self._lease_s = lease_s
        self._keys = IdempotencyKeys(
            store.runs, journal, self._record, self._give_up, cut_off_of(lease_s)
        )
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Begin without runs and as another worker, as a forked child does."""
        self._worker_id = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._live: dict[str, LiveRun] = {}
        self._leases = Leases(
            self._store.runs,
            self._journal,
            self._live,
            self._worker_id,
            self._lease_s,
            can_go_on=self._runner.can_go_on,
            go_on=self._take_over,
            ending=lambda record, frame: self._counts.without_run(record, frame, WorkerLost),
            on_beat=lambda: self._counts.count_left(),
        )
        self._clearing: set[asyncio.Task[None]] = set()
        # (run, interrupt) ids of answers that this process works on.
        self._accepting: set[tuple[str, str]] = set()

    def watch_over(self) -> None:
        """Start renewing leases and looking for abandoned runs; call it on the event loop."""
        self._leases.start()

    async def aclose(self) -> None:
        """Stop renewing leases; the next run starts it again."""
        self._leases.stop()

    # --------------------------------------------------------------------------
    # runs of this process

    def begin(
        self,
        question: Question,
        *,
        is_watched: bool,
        outlives_readers: bool,
        on_end: Callable[[], None],
        grace_s: float = 0.0,
        key: str | None = None,
    ) -> LiveRun:
        """Start answering; call it on the loop.

        Args:
            key: the Idempotency-Key that belongs to the run.
            is_watched: whether events are shown as they come; else the caller waits only for the
                last one.
            outlives_readers: whether it goes on when its last reader in this process has left.
            grace_s: if it does not, seconds in which another reader may come before it is
                cancelled.
            on_end: called when the last event can be read.
        """
        self.watch_over()
        beginning = self._runner.beginning_of(question)
        request = beginning.to_json() if beginning is not None else None
        return self._work(
            question,
            replace(self._head_of(question), key=key, request=request),
            on_end,
            # What outlives its worker is kept from its first event on.
            is_watched=is_watched or beginning is not None,
            outlives_readers=outlives_readers,
            grace_s=grace_s,
        )

    def _head_of(self, question: Question) -> RunHead:
        return RunHead(
            run_id=question.run_id,
            user_id=question.owner,
            conversation_id=question.conversation_id,
            question=question.question,
            lang=question.answer_lang,
            worker_id=self._worker_id,
            started_at=question.asked_at,
        )

    def _work(
        self,
        question: Question,
        head: RunHead,
        on_end: Callable[[], None],
        *,
        is_watched: bool = True,
        outlives_readers: bool = True,
        grace_s: float = 0.0,
        resumed: Resumption | Beginning | None = None,
        earlier: Sequence[EventFrame] = (),
    ) -> LiveRun:
        """Run the flow in this process: from the question, from the user's answer, or from where
        a worker that is gone had come.
        """

        def on_kept() -> None:
            if isinstance(resumed, Resumption):
                self._accepting.discard((question.run_id, resumed.pause.interrupt_id))

            self._forget(run, self._runner.keeps_state(question))

        async def answer(show: Show) -> None:
            with held_by(self._worker_id):
                await self._runner.answer(question, show, resumed)

        run = LiveRun(
            head,
            answer,
            self._journal,
            self._store.runs,
            is_watched=is_watched,
            outlives_readers=outlives_readers,
            grace_s=grace_s,
            on_end=on_end,
            on_kept=on_kept,
            on_own_end=lambda last: self._counts.count(head.run_id, question, last),
            on_ending=lambda last, frame: self._counts.note(head, question, frame, last),
            on_other_end=lambda: self._counts.forget(head.run_id),
            earlier=earlier,
        )
        self._live[head.run_id] = run
        return run

    def _forget(self, run: LiveRun, keeps_state: bool) -> None:
        run_id = run.head.run_id
        if self._live.get(run_id) is run:  # a resumed run may have its next live run already
            del self._live[run_id]
        # A run that another worker has taken over, or may take over, goes on from its checkpoints.
        if keeps_state and run.has_kept_end:
            self._clear_up(run_id)

    def _clear_up(self, run_id: str) -> None:
        """Delete the checkpoints of an ended run; else the store does when the run expires."""

        async def delete() -> None:
            with suppress(StoreUnavailable, LeaseLost):
                await self._store.checkpoints.adelete_thread(run_id)

        task = asyncio.get_running_loop().create_task(delete())
        self._clearing.add(task)
        task.add_done_callback(self._clearing.discard)

    async def watch(self, run: LiveRun, after: int = 0) -> AsyncGenerator[EventFrame, None]:
        """Yield the run's frames after number `after`; leaving early may cancel it, see `begin`."""
        run.readers += 1
        try:
            async for frame in run.follow(after):
                after = frame.seq
                yield frame
        except asyncio.CancelledError:
            if not is_ending():
                raise

            # The process is ending: still read the last event, which says so.
            async for frame in run.follow(after):
                yield frame
        finally:
            run.leave()

    async def last(self, run: LiveRun) -> Event:
        """Return the run's last event; leaving before may cancel it, see `begin`."""
        run.readers += 1
        try:
            return await run.last()
        except asyncio.CancelledError:
            if not is_ending():
                raise

            return await run.last()
        finally:
            run.leave()

    # --------------------------------------------------------------------------
    # any run

    async def look(self, user_id: str, run_id: str) -> RunView:
        """Return the run as it is now.

        Raises:
            NotFound: it is unknown, another user's, or has expired.
            StoreUnavailable: the store can't be read.
        """
        run = self._mine(user_id, run_id)
        if run is not None:
            last = stored_event(run.last_frame.data) if run.last_frame else None
            return RunView(run.record, last)

        record = await self._record(user_id, run_id)
        return RunView(record, await last_event(self._store.runs, record))

    async def follow(
        self, user_id: str, run_id: str, after: int
    ) -> AsyncGenerator[EventFrame, None]:
        """Yield the frames after number `after`, then each as it comes; of any worker's run."""
        run = self._mine(user_id, run_id)
        if run is not None:
            async for frame in self.watch(run, after):
                yield frame

            return

        poll_s = _FIRST_POLL_S
        while True:
            frames, is_complete = await self._next_frames(user_id, run_id, after)
            for frame in frames:
                after = frame.seq
                yield frame

            if is_complete:
                return
            if frames:
                poll_s = _FIRST_POLL_S
            else:
                await asyncio.sleep(poll_s)
                poll_s = min(poll_s * 1.5, _LAST_POLL_S)

    async def _next_frames(
        self, user_id: str, run_id: str, after: int
    ) -> tuple[Sequence[EventFrame], bool]:
        """Return the stored frames after number `after`, and whether no more will come."""
        try:
            record = await self._record(user_id, run_id)
            frames = await self._store.runs.frames(user_id, run_id, after, PAGE)
        except StoreUnavailable:
            return (), False
        except NotFound:  # it has expired since it was found
            return (), True

        if record.state == "running":
            return frames, False

        # Without frames, the store has lost some.
        is_complete = not frames or frames[-1].seq >= record.last_seq
        return frames, is_complete

    async def result_of_call(self, user_id: str, run_id: str, call_id: str) -> Event | None:
        """Return the event with the rows that a tool's call of an ended run found, if there is one.

        Raises:
            NotFound, StoreUnavailable: as `look`.
        """
        await self.look(user_id, run_id)
        async for frame in self.follow(user_id, run_id, 0):
            if is_result(frame):
                event = stored_event(frame.data)
                if event.data["call_id"] == call_id:
                    return event

        return None

    async def cancel(self, user_id: str, run_id: str) -> RunView:
        """Ask for the run's end and wait up to 4 s for it; do nothing to a run that has ended.

        Raises:
            NotFound, StoreUnavailable: as `look`.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                while True:
                    if await self._ends(user_id, run_id):
                        break

                    # It asked its user, or got an answer, meanwhile.
                    await asyncio.sleep(_FIRST_POLL_S)

        return await self.look(user_id, run_id)

    async def _ends(self, user_id: str, run_id: str) -> bool:
        """Ask the run once for its end; return whether it is neither running nor waiting then."""
        run = self._mine(user_id, run_id)
        record = (await self.look(user_id, run_id)).record
        if record.state == "waiting":
            await self._cancel_waiting(record)
        elif record.state == "running":
            if run is not None:
                run.cancel()
            else:
                await self._store.runs.request_cancel(user_id, run_id)

            async for _ in self.follow(user_id, run_id, record.last_seq):
                pass

        return (await self.look(user_id, run_id)).record.state not in ("running", "waiting")

    async def _cancel_waiting(self, record: RunRecord) -> None:
        head = record.head
        event = error_event(Cancelled(CANCELLED_TEXT), head)
        frame = EventFrame(record.last_seq + 1, event.rendered)
        with self._counts.without_run(record, frame, Cancelled) as count:
            if await self._store.runs.end_waiting(head, frame, turn=event.turn):
                count()
                self._clear_up(head.run_id)

    # --------------------------------------------------------------------------
    # after an answer

    async def resume(
        self,
        actor: Actor,
        run_id: str,
        interrupt_id: str,
        answer: Any,
        *,
        on_end: Callable[[], None],
    ) -> RunView:
        """Go on with a waiting run in this process, even when nobody reads it; call it on the loop.

        Args:
            actor: who answers; the run goes on with their present rights.
            on_end: called when the run's next last event can be read.

        Raises:
            NotFound: the user has no such run, or the run never asked this.
            Conflict: the question was answered before, the run was cancelled, or its flow is gone.
            InvalidRequest: the answer does not have the form that was asked for.
            StoreUnavailable: the store can't be reached.
        """
        record = await self._waiting_record(actor.owner, run_id)
        asked = record.waiting
        if record.state == "waiting" and asked is not None and asked.interrupt_id == interrupt_id:
            await load_checker()
            self._check(await last_event(self._store.runs, record), asked, answer)

        # Read the frames first: once the answer is accepted, nothing may fail before the run goes
        # on.
        earlier = await all_frames(self._store.runs, record)
        given_answer = GivenAnswer(answer, actor)
        resumed = Resumption.of(asked.request, given_answer) if asked is not None else None
        await self._accept(record, interrupt_id, given_answer)
        assert resumed is not None, "an answer was accepted"
        return RunView(self._go_on(record, resumed, earlier, on_end).record, None)

    async def _waiting_record(self, user_id: str, run_id: str) -> RunRecord:
        try:
            return await self._record(user_id, run_id)
        except NotFound:
            # Its question is shown, and not kept since the store was down.
            if self._mine(user_id, run_id) is not None:
                raise StoreUnavailable(UNREACHABLE) from None

            raise

    async def _accept(self, record: RunRecord, interrupt_id: str, answer: GivenAnswer) -> None:
        """Accept the first answer only.

        This process checks too, because the store accepts another from the same worker.
        """
        run_id = record.head.run_id
        answer_to = (run_id, interrupt_id)
        if answer_to in self._accepting:
            raise Conflict(_ANSWERED, run_id=run_id, retryable=False)

        self._accepting.add(answer_to)
        try:
            verdict = await self._store.runs.resume(
                record.head.user_id, run_id, interrupt_id, answer.to_json(), self._worker_id
            )
        except BaseException:
            self._accepting.discard(answer_to)
            raise

        if verdict != "resumed":
            self._accepting.discard(answer_to)
            if verdict == "unknown":
                raise NotFound(_NEVER_ASKED)

            raise Conflict(_ANSWERED, run_id=run_id, retryable=False)

        self._counts.count_resumed()

    def _check(self, question: Event | None, asked: Waiting, answer: Any) -> None:
        if question is None:
            raise NotFound(_NEVER_ASKED)
        if not self._runner.can_go_on(asked.flow, asked.request.get("graph_version")):
            reason = _OTHER_GRAPH if self._runner.knows(asked.flow) else _NO_FLOW
            raise Conflict(reason, run_id=question.data["run_id"], retryable=False)

        # Parse the event again, because an answer has floats for fractions where a stored event has
        # Decimals.
        check_answer(json.loads(question.rendered)["data"], answer)

    async def _take_over(self, record: RunRecord, resumed: Resumption | Beginning) -> None:
        """Go on with a run whose worker is gone, charged to the user who asked or answered."""
        earlier = await all_frames(self._store.runs, record)
        with charged_to(caller_id_of(resumed.question.actor, None)):
            self._go_on(record, resumed, earlier, on_end=lambda: None)

    def _go_on(
        self,
        record: RunRecord,
        resumed: Resumption | Beginning,
        earlier: Sequence[EventFrame],
        on_end: Callable[[], None],
    ) -> LiveRun:
        """Go on from where the graph stands; this process holds the run's lease."""
        self.watch_over()
        head = replace(record.head, worker_id=self._worker_id)
        return self._work(resumed.question, head, on_end, resumed=resumed, earlier=earlier)

    # --------------------------------------------------------------------------
    # Idempotency-Keys, and runs by their ids

    async def reserve_key(self, question: Question, key: str, fingerprint: str) -> RunRecord | None:
        """Reserve an Idempotency-Key for the question's run; return None, or the run that has it.

        A key whose run was cancelled, or failed with a retryable error, is free again.

        Raises:
            IdempotencyKeyReused: the key came with another request before.
            StoreUnavailable: the store can't be reached.
        """
        return await self._keys.reserve_key(self._head_of(question), key, fingerprint)

    async def _give_up(self, head: RunHead) -> bool:
        """End a run that the store doesn't know; return false when it does.

        If its worker only hung, what that worker has of the run belongs to the run no longer.
        """
        event = error_event(WorkerLost(), head)
        frame = EventFrame(1, event.rendered)
        with self._counts.without_run(RunRecord(head, "running", 0), frame, WorkerLost) as count:
            unkept = await self._store.runs.write([RunWrite(head, (frame,), RunEnd("error"))])
            if unkept:
                return False

            count()

        return True

    async def release_key(self, user_id: str, key: str, run_id: str) -> None:
        """Free a key whose run is not begun after all; if that fails, `reserve_key` frees it."""
        with suppress(StoreUnavailable):
            await self._store.runs.release_key(user_id, key, run_id)

    def _mine(self, user_id: str, run_id: str) -> LiveRun | None:
        run = self._live.get(run_id)
        if run is not None and run.head.user_id == user_id:
            return run

        return None

    async def _record(self, user_id: str, run_id: str) -> RunRecord:
        record = await self._store.runs.find(user_id, run_id)
        if record is not None and await self._leases.take_care_of(record):
            record = await self._store.runs.find(user_id, run_id)
        if record is None:
            raise NotFound(_UNKNOWN)

        return record
