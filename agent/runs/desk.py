"""Runs: begun, watched from any worker, found again by an Idempotency-Key, cancelled, ended when their worker has died.

A worker holds its runs by leases that it renews. A run whose lease ran out is an orphan: whichever worker sees it first
ends it with an error, so that nobody waits for an answer that will never come.
"""

import asyncio
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent.runs.events import Event, error_event, stored_event
from agent.runs.live_run import LiveRun
from agent.runs.runner import CituLangGraphAgent, Question
from common.envelope import to_bytes
from common.errors import IdempotencyKeyReused, NotFound, StoreUnavailable, WorkerLost
from common.runtime import is_ending
from common.store import Claim, Frame, RunHead, RunRecord, Store
from common.store.journal import Journal
from common.text import Text, language_of
from common.values import Turn

_log = logging.getLogger(__name__)

_BEAT_S = 1.0  # at most, between two looks at what other workers want: so long a cancellation may take to arrive
_FIRST_POLL_S, _LAST_POLL_S = 0.05, 0.5  # between looks at a run of another worker; the longer nothing comes, the rarer
_PAGE = 200  # frames read at once
_END_S = 4.0  # how long who cancels a run waits for its end: two beats of its worker and more
_CLAIM_S = 5.0  # an Idempotency-Key whose run is not known after so long, or a lease, belongs to a worker that died
_PREVIEW_ROWS, _PREVIEW_COLUMNS = 5, 30
_PREVIEW_CHARS = 200  # of one value
_ANSWER_CHARS = 16_000

_UNKNOWN = Text(
    "没有这次运行，或它已过期被清除。", "There is no such run, or it was kept for its time and has been forgotten."
)
_OTHER_BODY = Text(
    "这个 Idempotency-Key 已用于另一个请求：请为新的请求换一个键。",
    "This Idempotency-Key was sent with another request: use a new key for a new request.",
)


@dataclass(frozen=True)
class RunView:
    """A run as its user sees it; `terminal` is its last event once it has ended."""

    record: RunRecord
    terminal: Event | None


class RunDesk:
    """The runs of this process, and a look at those of others.

    Args:
        lease_s: seconds after which a run whose worker says nothing is an orphan, as the store counts them.
    """

    def __init__(self, agent: CituLangGraphAgent, store: Store, journal: Journal, *, lease_s: float) -> None:
        self._agent = agent
        self._store = store
        self._journal = journal
        self._lease_s = lease_s
        self._beat_s = min(_BEAT_S, lease_s / 4)
        self._start()

    @property
    def cut_off_after_s(self) -> float:
        """Most seconds from the last sign of a run's worker until another ends the run, accesses to the store aside."""
        return 2 * (self._lease_s + self._beat_s)  # until it is an orphan and that is seen, and once more

    def _start(self) -> None:
        self._pid = os.getpid()
        self._worker_id = f"{self._pid}-{secrets.token_hex(6)}"
        self._live: dict[str, LiveRun] = {}
        self._beating: asyncio.Task[None] | None = None
        self._suspects: dict[str, float] = {}  # since when, on time.monotonic(), a run is seen to be an orphan

    def watch_over(self) -> None:
        """Begins to renew leases and to look for orphans, if that has not begun; called on the loop."""
        if self._pid != os.getpid():
            self._start()
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat())

    async def aclose(self) -> None:
        """Stops looking after runs; the next one begun starts it again."""
        if self._beating is not None and self._pid == os.getpid():
            self._beating.cancel()
            self._beating = None

    # --------------------------------------------------------------------------------------------------- one's own

    def begin(
        self, question: Question, *, is_watched: bool, outlives_readers: bool, on_end: Callable[[], None]
    ) -> LiveRun:
        """Begins to answer; called on the loop.

        Args:
            is_watched: whether events are shown as they come; else only the last one is waited for.
            outlives_readers: whether it goes on when everybody who watched it in this process has left.
            on_end: called when the last event is there to be read.
        """
        self.watch_over()
        asked_at = _now()
        head = RunHead(
            run_id=question.run_id,
            user_id=question.owner,
            conversation_id=question.conversation_id,
            question=question.question,
            lang=question.lang or language_of(question.question),
            worker_id=self._worker_id,
            started_at=asked_at,
        )
        self._live[head.run_id] = run = LiveRun(
            head,
            self._agent.process_question_stream(question),
            self._journal,
            self._store.runs,
            is_watched=is_watched,
            outlives_readers=outlives_readers,
            turn_of=lambda event: _turn(head, event),
            on_end=on_end,
            on_kept=lambda: self._forget(head.run_id),
        )
        return run

    def _forget(self, run_id: str) -> None:
        self._live.pop(run_id, None)

    async def watch(self, run: LiveRun, after: int = 0) -> AsyncIterator[Frame]:
        """The run's frames beyond `after`; leaving before the end may cancel it, see `begin`."""
        run.readers += 1
        try:
            async for frame in run.follow(after):
                after = frame.seq
                yield frame
        except asyncio.CancelledError:
            if not is_ending():
                raise
            async for frame in run.follow(after):  # the process ends: the run says so, and that is still read
                yield frame
        finally:
            run.leave()

    async def terminal(self, run: LiveRun) -> Event:
        """The run's last event; leaving before may cancel it, see `begin`."""
        run.readers += 1
        try:
            return await run.terminal()
        except asyncio.CancelledError:
            if not is_ending():
                raise
            return await run.terminal()
        finally:
            run.leave()

    # --------------------------------------------------------------------------------------------------- any run

    async def look(self, user_id: str, run_id: str) -> RunView:
        """The run as it is now.

        Raises:
            NotFound: it is unknown, another user's, or has expired.
            StoreUnavailable: nobody can say.
        """
        run = self._mine(user_id, run_id)
        if run is not None:
            return RunView(run.record, stored_event(run.last_frame.data) if run.last_frame else None)
        record = await self._record(user_id, run_id)
        return RunView(record, await self._kept_end(record))

    async def _kept_end(self, record: RunRecord) -> Event | None:
        """The terminal event in the store; None: it is still to come, or lost."""
        if record.state == "running":
            return None
        frames = await self._store.runs.frames(record.head.user_id, record.head.run_id, record.last_seq - 1, 1)
        return stored_event(frames[-1].data) if frames else None

    async def follow(self, user_id: str, run_id: str, after: int) -> AsyncIterator[Frame]:
        """The frames beyond number `after`, then each as it comes, to the last; also of a run of another worker."""
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
            except NotFound:  # it was found before, and is forgotten now
                return
            for frame in frames:
                after = frame.seq
                yield frame
            if record is not None and record.state != "running" and (after >= record.last_seq or not frames):
                return  # also when the store has lost frames of it: no more will come
            if frames:
                poll_s = _FIRST_POLL_S
            else:
                await asyncio.sleep(poll_s)
                poll_s = min(poll_s * 1.5, _LAST_POLL_S)

    async def cancel(self, user_id: str, run_id: str) -> RunView:
        """Asks for the run's end and waits a moment for it; a run that has ended is left as it is.

        Raises:
            NotFound, StoreUnavailable: as `look`.
        """
        run = self._mine(user_id, run_id)
        view = await self.look(user_id, run_id)
        if view.terminal is not None:
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

    async def claim(self, user_id: str, key: str, fingerprint: str, run_id: str) -> RunRecord | None:
        """Takes an Idempotency-Key for `run_id`; None: it is that run's, which may begin. Else the run that has it.

        A key whose run was cancelled, or failed in a way that another try may mend, is free again.

        Raises:
            IdempotencyKeyReused: the key came with another request.
            StoreUnavailable: nobody can say.
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
        """The run that holds a key; it may have to be waited for, since a key is taken before the run begins."""
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
        if record.state == "running":
            return False
        # Not `look`: a run that is kept here and not shown yet, in the moment between the two, has an answer.
        terminal = await self._kept_end(record)
        return terminal is None or (terminal.type == "error" and bool(terminal.data["retryable"]))

    def _mine(self, user_id: str, run_id: str) -> LiveRun | None:
        run = self._live.get(run_id) if self._pid == os.getpid() else None
        return run if run is not None and run.head.user_id == user_id else None

    async def _record(self, user_id: str, run_id: str) -> RunRecord:
        record = await self._store.runs.find(user_id, run_id)
        if record is not None and record.is_orphaned and self._is_lost(record):
            await self._bury(record)
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
                await self._bury(record)

    def _is_lost(self, record: RunRecord) -> bool:
        """Whether the run's worker could have renewed the lease and did not.

        While the store was away nobody could; so who sees that a lease has run out gives one more.
        """
        if record.head.run_id in self._live:
            return False
        since = self._suspects.setdefault(record.head.run_id, time.monotonic())
        return time.monotonic() - since >= self._lease_s

    async def _bury(self, record: RunRecord) -> None:
        event = error_event(WorkerLost(), record.head)
        if await self._store.runs.end_orphan(record.head.run_id, Frame(record.last_seq + 1, event.rendered)):
            _log.warning("a run's worker is gone", extra={"run_id": record.head.run_id})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _turn(head: RunHead, event: Event) -> Turn | None:
    """What a terminal event adds to its conversation: an answer; a failure is no part of it."""
    if event.type != "completed":
        return None
    data = event.data
    result = data.get("query_result")
    return Turn(
        run_id=head.run_id,
        question=head.question,
        question_type=data["response_type"],
        routing_mode=data["routing_mode_used"],
        answer=data["response"][:_ANSWER_CHARS],
        asked_at=head.started_at,
        sql=data.get("sql"),
        row_count=result["row_count"] if result else None,
        columns=tuple(result["columns"][:_PREVIEW_COLUMNS]) if result else (),
        rows=_preview(result["rows"]) if result else (),
    )


def _preview(rows: list[list[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(map(_shortened, row[:_PREVIEW_COLUMNS])) for row in rows[:_PREVIEW_ROWS])


def _shortened(value: Any) -> Any:
    """A value of a row as a turn keeps it: what is long is cut."""
    if isinstance(value, str) and len(value) > _PREVIEW_CHARS:
        return value[:_PREVIEW_CHARS] + "…"
    if isinstance(value, list | dict):
        text = to_bytes(value).decode()
        return text if len(text) <= _PREVIEW_CHARS else text[:_PREVIEW_CHARS] + "…"
    return value
