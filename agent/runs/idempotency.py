"""Idempotency-Keys: the first request with a key starts a run, later ones find that run."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from agent.runs.stored_runs import last_event
from common.errors import IdempotencyKeyReused, NotFound, StoreUnavailable
from common.text import Text
from store import IdempotencyRecord, RunHead, RunRecord, Runs
from store.journal import Journal

# If a key's run is still unknown after this, its worker has died or hangs, and keeps no answer.
_LONGEST_WAIT_S = 5.0
_POLL_S = 0.05

_OTHER_BODY = Text(
    "这个 Idempotency-Key 已用于另一个请求：请为新的请求换一个键。",
    "This Idempotency-Key was sent with another request: use a new key for a new request.",
)


class IdempotencyKeys:
    """Finds the run that a key belongs to.

    Args:
        find: the run of a user by its id; raises NotFound.
        give_up: ends a run that the store doesn't know, so that its worker, should it still live,
            keeps no answer; false when the store knows it after all.
        cut_off_s: seconds after which a worker that does not answer counts as lost.
    """

    def __init__(
        self,
        runs: Runs,
        journal: Journal,
        find: Callable[[str, str], Awaitable[RunRecord]],
        give_up: Callable[[RunHead], Awaitable[bool]],
        cut_off_s: float,
    ) -> None:
        self._runs = runs
        self._journal = journal
        self._find = find
        self._give_up = give_up
        self._wait_s = min(_LONGEST_WAIT_S, cut_off_s)

    async def reserve_key(self, head: RunHead, key: str, fingerprint: str) -> RunRecord | None:
        self._journal.check()
        try:
            return await self._reserve(head, key, IdempotencyRecord(head.run_id, fingerprint))
        except StoreUnavailable as exc:
            self._journal.fail(exc)
            raise

    async def _reserve(
        self, head: RunHead, key: str, own_record: IdempotencyRecord
    ) -> RunRecord | None:
        """Reserve a key for the run of `head`; return the run that has it already, else None.

        A run that was lost, or failed so that another try makes sense, has to give its key up.

        Raises:
            IdempotencyKeyReused: the key's run was begun by another request.
        """
        while True:
            holder = await self._runs.reserve_key(head.user_id, key, own_record)
            if holder.run_id == own_record.run_id:
                return None
            if holder.fingerprint != own_record.fingerprint:
                raise IdempotencyKeyReused(_OTHER_BODY)

            record = await self._run_of_key(head.user_id, holder.run_id)
            if record is None:
                # A worker of its own, so that of two that give it up at once one does.
                unknown = replace(head, run_id=holder.run_id, worker_id=head.run_id)
                if not await self._give_up(unknown):
                    continue
            elif not await self._is_worth_another_try(record):
                return record

            await self._runs.release_key(head.user_id, key, holder.run_id)

    async def _run_of_key(self, user_id: str, run_id: str) -> RunRecord | None:
        """Return the run that holds a key; None when it never began.

        Waits for the run, because a key is taken before its run begins.
        """
        with suppress(TimeoutError, NotFound):
            async with asyncio.timeout(self._wait_s):
                while True:
                    with suppress(NotFound):
                        return await self._find(user_id, run_id)

                    await asyncio.sleep(_POLL_S)

        return None

    async def _is_worth_another_try(self, record: RunRecord) -> bool:
        if record.state == "cancelled":
            return True
        if record.state in ("running", "waiting"):
            return False

        # Ask the store, not the live run: the end of a run may be kept already and not be shown
        # yet.
        last = await last_event(self._runs, record)
        if last is None:
            return True

        return last.type == "error" and bool(last.data["retryable"])
