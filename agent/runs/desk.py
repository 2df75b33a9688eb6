"""Starts runs, follows them from any worker, finds them by an Idempotency-Key, resumes and cancels them.

A worker holds its runs by leases that it renews. A run whose lease ran out is an orphan: the first worker that notices
ends it with an error, so that nobody waits for an answer that will never come. A run that went on after the user's
answer is taken over instead, because its graph is in the store and the user's answer would be lost otherwise.
"""

import asyncio
import json
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from agent.flow import Question
from agent.runs.events import Event, error_event, stored_event
from agent.runs.live_run import LiveRun
from agent.runs.pauses import GivenAnswer, Resumption
from agent.runs.runner import Runner
from common.actor import Actor
from common.answer_check import check_answer
from common.errors import (
    CANCELLED_TEXT,
    Cancelled,
    Conflict,
    IdempotencyKeyReused,
    NotFound,
    StoreUnavailable,
    WorkerLost,
)
from common.runtime import is_ending
from common.store import Claim, Frame, RunHead, RunRecord, Store
from common.store.journal import Journal
from common.store.trouble import UNREACHABLE
from common.text import Text

_log = logging.getLogger(__name__)

_BEAT_S = 1.0  # at most, between two renewals; a cancellation from another worker may take as long to arrive
_FIRST_POLL_S, _LAST_POLL_S = 0.05, 0.5  # between reads of another worker's run; grows while nothing comes
_PAGE = 200  # frames read at once
_END_S = 4.0  # how long `cancel` waits for the run's end; more than two beats of its worker
_CLAIM_S = 5.0  # at most; if a key's run is still unknown after this or one lease, its worker has died

_UNKNOWN = Text(
    "没有这次运行，或它已过期被清除。", "There is no such run, or it was kept for its time and has been forgotten."
)
_NEVER_ASKED = Text(
    "这次运行没有提出过这个问题：请核对 run_id 和 interrupt_id。",
    "This run has not asked that question: check run_id and interrupt_id.",
)
_ANSWERED = Text("这个问题已经有了答案，或这次运行已结束。", "This question has been answered, or the run has ended.")
_NO_FLOW = Text(
    "提出这个问题的流程已不存在：请取消这次运行，重新提问。",
    "What asked this question is no longer part of the service: cancel the run and ask again.",
)
_OTHER_BODY = Text(
    "这个 Idempotency-Key 已用于另一个请求：请为新的请求换一个键。",
    "This Idempotency-Key was sent with another request: use a new key for a new request.",
)


@dataclass(frozen=True)
class RunView:
    """A run as its user sees it; `last` is its last event, once it has ended or while it waits for the user."""

    record: RunRecord
    last: Event | None


class RunDesk:
    """Runs this process's runs, and gives access to those of other processes.

    Args:
        lease_s: seconds without renewal after which the store counts a run as an orphan.
    """

    def __init__(self, runner: Runner, store: Store, journal: Journal, *, lease_s: float) -> None:
        self._runner = runner
        self._store = store
        self._journal = journal
        self._lease_s = lease_s
        self._beat_s = min(_BEAT_S, lease_s / 4)
        self._start()

    @property
    def cut_off_after_s(self) -> float:
        """Most seconds from a worker's last renewal until another worker ends the run, not counting store accesses."""
        # One lease and beat until the run is seen to be an orphan, one more until it is declared lost.
        return 2 * (self._lease_s + self._beat_s)

    def _start(self) -> None:
        self._pid = os.getpid()
        self._worker_id = f"{self._pid}-{secrets.token_hex(6)}"
        self._live: dict[str, LiveRun] = {}
        self._beating: asyncio.Task[None] | None = None
        self._clearing: set[asyncio.Task[None]] = set()
        self._accepting: set[tuple[str, str]] = set()  # (run, interrupt) ids of answers that this process works on
        self._suspects: dict[str, float] = {}  # time.monotonic() when each orphan was first seen

    def watch_over(self) -> None:
        """Starts renewing leases and looking for orphans, unless started; call it on the loop."""
        if self._pid != os.getpid():
            self._start()
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat())

    async def aclose(self) -> None:
        """Stops renewing leases; the next run starts it again."""
        if self._beating is not None and self._pid == os.getpid():
            self._beating.cancel()
            self._beating = None

    # --------------------------------------------------------------------------------------------------- one's own

    def begin(
        self,
        question: Question,
        *,
        is_watched: bool,
        outlives_readers: bool,
        on_end: Callable[[], None],
        key: str | None = None,
    ) -> LiveRun:
        """Starts answering; call it on the loop.

        Args:
            key: the Idempotency-Key that the run has claimed.
            is_watched: whether events are shown as they come; else the caller waits only for the last one.
            outlives_readers: whether it goes on when its last reader in this process has left.
            on_end: called when the last event can be read.
        """
        self.watch_over()
        head = RunHead(
            run_id=question.run_id,
            user_id=question.owner,
            conversation_id=question.conversation_id,
            question=question.question,
            lang=question.answer_lang,
            worker_id=self._worker_id,
            started_at=question.asked_at,
            key=key,
        )
        run = LiveRun(
            head,
            self._runner.events(question),
            self._journal,
            self._store.runs,
            is_watched=is_watched,
            outlives_readers=outlives_readers,
            on_end=on_end,
            on_kept=lambda: self._forget(run, self._runner.keeps_state(question)),
        )
        self._live[head.run_id] = run
        return run

    def _forget(self, run: LiveRun, keeps_state: bool) -> None:
        run_id = run.head.run_id
        if self._live.get(run_id) is run:  # a resumed run may have its next live run already
            del self._live[run_id]
        if keeps_state and run.is_over and run.record.state != "waiting":
            self._clear_up(run_id)

    def _clear_up(self, run_id: str) -> None:
        """Deletes the checkpoints of an ended run; if that fails, the store deletes them when the run expires."""

        async def delete() -> None:
            with suppress(StoreUnavailable):
                await self._store.checkpoints.adelete_thread(run_id)

        task = asyncio.get_running_loop().create_task(delete())
        self._clearing.add(task)
        task.add_done_callback(self._clearing.discard)

    async def watch(self, run: LiveRun, after: int = 0) -> AsyncIterator[Frame]:
        """The run's frames after number `after`; leaving before the end may cancel it, see `begin`."""
        run.readers += 1
        try:
            async for frame in run.follow(after):
                after = frame.seq
                yield frame
        except asyncio.CancelledError:
            if not is_ending():
                raise
            async for frame in run.follow(after):  # the process is ending: still read the last event, which says so
                yield frame
        finally:
            run.leave()

    async def last(self, run: LiveRun) -> Event:
        """The run's last event; leaving before may cancel it, see `begin`."""
        run.readers += 1
        try:
            return await run.last()
        except asyncio.CancelledError:
            if not is_ending():
                raise
            return await run.last()
        finally:
            run.leave()

    # --------------------------------------------------------------------------------------------------- any run

    async def look(self, user_id: str, run_id: str) -> RunView:
        """The run as it is now.

        Raises:
            NotFound: it is unknown, another user's, or has expired.
            StoreUnavailable: the store can't be read.
        """
        run = self._mine(user_id, run_id)
        if run is not None:
            return RunView(run.record, stored_event(run.last_frame.data) if run.last_frame else None)
        record = await self._record(user_id, run_id)
        return RunView(record, await self._kept_end(record))

    async def _kept_end(self, record: RunRecord) -> Event | None:
        """The last event in the store; None when it has not come yet, or is lost."""
        if record.state == "running":
            return None
        frames = await self._store.runs.frames(record.head.user_id, record.head.run_id, record.last_seq - 1, 1)
        return stored_event(frames[-1].data) if frames else None

    async def follow(self, user_id: str, run_id: str, after: int) -> AsyncIterator[Frame]:
        """The frames after number `after`, then each as it comes, to the last. The run may be another worker's."""
        run = self._mine(user_id, run_id)
        if run is not None:
            async for frame in self.watch(run, after):
                yield frame
            return
        poll_s = _FIRST_POLL_S
        while True:
            try:
                record = await self._record(user_id, run_id)
                frames = await self._store.runs.frames(user_id, run_id, after, _PAGE)
            except StoreUnavailable:
                frames, record = (), None
            except NotFound:  # it has expired since it was found
                return
            for frame in frames:
                after = frame.seq
                yield frame
            if record is not None and record.state != "running" and (after >= record.last_seq or not frames):
                return  # without frames, the store has lost some: no more will come
            if frames:
                poll_s = _FIRST_POLL_S
            else:
                await asyncio.sleep(poll_s)
                poll_s = min(poll_s * 1.5, _LAST_POLL_S)

    async def cancel(self, user_id: str, run_id: str) -> RunView:
        """Asks for the run's end and waits up to 4 s for it; does nothing to a run that has ended.

        Raises:
            NotFound, StoreUnavailable: as `look`.
        """
        run = self._mine(user_id, run_id)
        view = await self.look(user_id, run_id)
        if view.record.state == "waiting":
            await self._cancel_waiting(view.record)
            return await self.look(user_id, run_id)
        if view.last is not None:
            return view
        if run is not None:
            run.cancel()
        else:
            await self._store.runs.request_cancel(user_id, run_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                async for _ in self.follow(user_id, run_id, view.record.last_seq):
                    pass
        return await self.look(user_id, run_id)

    async def _cancel_waiting(self, record: RunRecord) -> None:
        head = record.head
        frame = Frame(record.last_seq + 1, error_event(Cancelled(CANCELLED_TEXT), head).rendered)
        if await self._store.runs.end_waiting(head.user_id, head.run_id, frame):
            self._clear_up(head.run_id)

    # --------------------------------------------------------------------------------------------- after an answer

    async def resume(
        self, actor: Actor, run_id: str, interrupt_id: str, answer: Any, *, on_end: Callable[[], None]
    ) -> RunView:
        """Goes on with a waiting run in this process, even when nobody reads it; call it on the loop.

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
            self._check(await self._kept_end(record), asked.flow, answer)
        # Read the frames first: once the answer is accepted, nothing may fail before the run goes on.
        earlier = await self._all_frames(record)
        given = GivenAnswer(answer, actor)
        resumed = Resumption.of(asked.request, given) if asked is not None else None
        await self._accept(record, interrupt_id, given)
        assert resumed is not None, "an answer was accepted"
        return RunView(self._go_on(record, resumed, earlier, on_end).record, None)

    async def _waiting_record(self, user_id: str, run_id: str) -> RunRecord:
        try:
            return await self._record(user_id, run_id)
        except NotFound:
            if self._mine(user_id, run_id) is not None:  # its question is shown, and not kept since the store was down
                raise StoreUnavailable(UNREACHABLE) from None
            raise

    async def _accept(self, record: RunRecord, interrupt_id: str, given: GivenAnswer) -> None:
        """Accepts the first answer only; checks here too, because the store accepts another from the same worker."""
        run_id = record.head.run_id
        answer_to = (run_id, interrupt_id)
        if answer_to in self._accepting:
            raise Conflict(_ANSWERED, run_id=run_id, retryable=False)
        self._accepting.add(answer_to)
        try:
            verdict = await self._store.runs.resume(
                record.head.user_id, run_id, interrupt_id, given.to_json(), self._worker_id
            )
        except BaseException:
            self._accepting.discard(answer_to)
            raise
        if verdict != "resumed":
            self._accepting.discard(answer_to)
            if verdict == "unknown":
                raise NotFound(_NEVER_ASKED)
            raise Conflict(_ANSWERED, run_id=run_id, retryable=False)

    def _check(self, question: Event | None, flow: str, answer: Any) -> None:
        if question is None:
            raise NotFound(_NEVER_ASKED)
        if not self._runner.knows(flow):
            raise Conflict(_NO_FLOW, run_id=question.data["run_id"], retryable=False)
        check_answer(json.loads(question.rendered)["data"], answer)

    def _go_on(
        self,
        record: RunRecord,
        resumed: Resumption,
        earlier: Sequence[Frame],
        on_end: Callable[[], None] = lambda: None,
    ) -> LiveRun:
        """Runs on from where the graph stands; this process holds the run's lease."""
        self.watch_over()
        question = resumed.pause.question

        def on_kept() -> None:
            self._accepting.discard((question.run_id, resumed.pause.interrupt_id))
            self._forget(run, keeps_state=True)

        head = replace(record.head, worker_id=self._worker_id)
        run = LiveRun(
            head,
            self._runner.events(question, resumed),
            self._journal,
            self._store.runs,
            is_watched=True,
            outlives_readers=True,
            on_end=on_end,
            on_kept=on_kept,
            earlier=earlier,
        )
        self._live[head.run_id] = run
        return run

    async def _all_frames(self, record: RunRecord) -> list[Frame]:
        frames: list[Frame] = []
        while len(frames) < record.last_seq:
            head = record.head
            page = await self._store.runs.frames(head.user_id, head.run_id, len(frames), _PAGE)
            if not page:
                break
            frames += page
        return frames

    async def claim(self, user_id: str, key: str, fingerprint: str, run_id: str) -> RunRecord | None:
        """Takes an Idempotency-Key for `run_id`; returns None when it is taken, else the run that already has it.

        A key whose run was cancelled, or failed with a retryable error, is free again.

        Raises:
            IdempotencyKeyReused: the key came with another request before.
            StoreUnavailable: the store can't be reached.
        """
        self._journal.check()
        try:
            return await self._claim(user_id, key, Claim(run_id, fingerprint))
        except StoreUnavailable as exc:
            self._journal.fail(exc)
            raise

    async def _claim(self, user_id: str, key: str, claim: Claim) -> RunRecord | None:
        while True:
            holder = await self._store.runs.claim(user_id, key, claim)
            if holder.run_id == claim.run_id:
                return None
            if holder.fingerprint != claim.fingerprint:
                raise IdempotencyKeyReused(_OTHER_BODY)
            record = await self._claimant(user_id, holder.run_id)
            if record is not None and not await self._is_worth_another_try(record):
                return record
            await self._store.runs.release_claim(user_id, key, holder.run_id)

    async def _claimant(self, user_id: str, run_id: str) -> RunRecord | None:
        """The run that holds a key; waits for it, because a key is taken before its run begins. None: it never came."""
        with suppress(TimeoutError, NotFound):
            async with asyncio.timeout(min(self._lease_s, _CLAIM_S)):
                while True:
                    with suppress(NotFound):
                        return await self._record(user_id, run_id)
                    await asyncio.sleep(_FIRST_POLL_S)
        return None

    async def _is_worth_another_try(self, record: RunRecord) -> bool:
        if record.state == "cancelled":
            return True
        if record.state in ("running", "waiting"):
            return False
        # Don't use `look`: for a run whose end is kept but not shown yet, it gives no last event.
        last = await self._kept_end(record)
        return last is None or (last.type == "error" and bool(last.data["retryable"]))

    def _mine(self, user_id: str, run_id: str) -> LiveRun | None:
        run = self._live.get(run_id) if self._pid == os.getpid() else None
        return run if run is not None and run.head.user_id == user_id else None

    async def _record(self, user_id: str, run_id: str) -> RunRecord:
        record = await self._store.runs.find(user_id, run_id)
        if record is not None and record.is_orphaned and self._is_lost(record):
            await self._take_care_of(record)
            record = await self._store.runs.find(user_id, run_id)
        if record is None:
            raise NotFound(_UNKNOWN)
        return record

    # ------------------------------------------------------------------------------------------------ leases

    async def _beat(self) -> None:
        while True:
            try:
                await self._renew()
                await self._look_for_orphans()
            except StoreUnavailable as exc:
                self._journal.fail(exc)
            except Exception:  # noqa: BLE001 - without this task runs that live would pass for dead
                _log.exception("leases could not be renewed")
            await asyncio.sleep(self._beat_s)

    async def _renew(self) -> None:
        if not self._live or self._journal.is_failing:
            return
        for run_id in await self._store.runs.renew(tuple(self._live), self._worker_id):
            if run_id in self._live:
                self._live[run_id].cancel()
        for run in tuple(self._live.values()):
            run.catch_up()

    async def _look_for_orphans(self) -> None:
        if self._journal.is_failing:
            return
        found = {record.head.run_id: record for record in await self._store.runs.orphans()}
        self._suspects = {run_id: since for run_id, since in self._suspects.items() if run_id in found}
        for record in found.values():
            if self._is_lost(record):
                await self._take_care_of(record)

    def _is_lost(self, record: RunRecord) -> bool:
        """Whether the run's worker could have renewed the lease and did not.

        While the store was down no worker could renew, so an orphan gets one more lease from when it is first seen.
        """
        if record.head.run_id in self._live:
            return False
        since = self._suspects.setdefault(record.head.run_id, time.monotonic())
        return time.monotonic() - since >= self._lease_s

    async def _take_care_of(self, record: RunRecord) -> None:
        """Goes on with an orphan that was working on a user's answer; ends any other."""
        resumed = self._resumption(record)
        if resumed is None:
            await self._bury(record)
        elif await self._store.runs.adopt(record.head.run_id, self._worker_id):
            _log.warning("a run's worker is gone; going on with it", extra={"run_id": record.head.run_id})
            self._go_on(record, resumed, await self._all_frames(record))

    def _resumption(self, record: RunRecord) -> Resumption | None:
        """Where the run goes on; None: it was working on no answer, or on one that this version can't read."""
        asked = record.waiting
        if asked is None or not self._runner.knows(asked.flow):
            return None
        try:
            return Resumption.of(asked.request, GivenAnswer.from_json(record.answer))
        except (KeyError, TypeError, ValueError):
            _log.exception("what a run goes on from can't be read", extra={"run_id": record.head.run_id})
            return None

    async def _bury(self, record: RunRecord) -> None:
        event = error_event(WorkerLost(), record.head)
        if await self._store.runs.end_orphan(record.head.run_id, Frame(record.last_seq + 1, event.rendered)):
            _log.warning("a run's worker is gone", extra={"run_id": record.head.run_id})
