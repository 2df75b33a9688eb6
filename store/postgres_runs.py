"""Runs in PostgreSQL.

Every run waits for `write`, so it is one call of one SQL function (`citu.write`), whatever it
writes.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from common.values import Turn
from postgres.connection import Row
from store import (
    EventFrame,
    FailedState,
    IdempotencyRecord,
    Resumption,
    Retention,
    RunHead,
    RunRecord,
    RunWrite,
    Unkept,
)
from store.postgres_access import PostgresAccess
from store.postgres_artefacts import REMOVE_ARTEFACTS
from store.postgres_checkpoints import CheckpointSweep
from store.postgres_values import columns_of, pack, read_bytes, unpack
from store.record_json import (
    from_text,
    head_to_text,
    key,
    record_from_texts,
    title_of,
    to_text,
    turn_to_text,
    waiting_to_text,
)

_WRITE = f"SELECT unkept, is_lost FROM citu.write({', '.join(['%s'] * 23)})"
# Frames of a running run don't wait for the disk: if the server loses them in a crash, the worker
# writes them again.
_WRITE_RUNNING = f"SET LOCAL synchronous_commit = off; {_WRITE}"
_IS_ABANDONED = "state = 'running' AND lease_until <= now()"
_RECORD = "head, state, last_seq"
_RESUMED_BY = "worker_id, waiting, answer, takeovers"
_FIND = f"""
SELECT {_RECORD}, {_IS_ABANDONED}, {_RESUMED_BY} FROM citu.run
WHERE run_key = %s AND user_key = %s AND expires_at > now()
"""
_FRAMES = """
SELECT page.data FROM citu.page JOIN citu.run USING (run_key)
WHERE run_key = %s AND user_key = %s AND expires_at > now() AND page.last_seq > %s
ORDER BY first_seq LIMIT %s
"""
_RENEW = """
WITH held AS (
    SELECT run_key FROM citu.run
    WHERE run_key = ANY (%s) AND worker_key = %s AND state = 'running' AND expires_at > now()
    ORDER BY run_key FOR UPDATE
), renewed AS (
    UPDATE citu.run SET
        lease_until = now() + %s * interval '1 second',
        expires_at = now() + %s * interval '1 second'
    FROM held WHERE run.run_key = held.run_key RETURNING run.run_key, is_cancelling
)
SELECT run_key FROM renewed WHERE is_cancelling
"""
_REQUEST_CANCEL = """
UPDATE citu.run SET is_cancelling = true
WHERE run_key = %s AND user_key = %s AND state = 'running' RETURNING 1
"""
_ABANDONED = f"""
SELECT {_RECORD}, true, {_RESUMED_BY} FROM citu.run
WHERE {_IS_ABANDONED} AND expires_at > now()
"""
# Of two answers at once, the second waits for the first and then finds the run resumed. Its SELECT
# still sees the question open, as it was when the statement began, so that the row is found and the
# result is `answered`.
_RESUME = """
WITH resumed AS (
    UPDATE citu.run SET
        state = 'running', worker_key = %s, worker_id = %s, answer = %s, is_cancelling = false,
        takeovers = 0,
        held_from = CASE state WHEN 'waiting' THEN last_seq ELSE held_from END,
        settled = CASE state WHEN 'waiting' THEN settled || interrupt_key ELSE settled END,
        lease_until = now() + %s * interval '1 second',
        expires_at = now() + %s * interval '1 second'
    WHERE run_key = %s AND user_key = %s AND expires_at > now() AND interrupt_key = %s
        AND (state = 'waiting' OR state = 'running' AND worker_key = %s AND answer = %s)
    RETURNING run_key
)
SELECT EXISTS (SELECT FROM resumed) FROM citu.run
WHERE run_key = %s AND user_key = %s AND expires_at > now()
    AND (interrupt_key = %s OR %s = ANY (settled))
"""
_TAKE_OVER = f"""
UPDATE citu.run SET
    worker_key = %s, worker_id = %s, held_from = last_seq, takeovers = takeovers + 1,
    lease_until = now() + %s * interval '1 second',
    expires_at = now() + %s * interval '1 second'
WHERE run_key = %s AND {_IS_ABANDONED} AND expires_at > now() RETURNING 1
"""
# What `citu.write` does with a turn, for one run that another than its worker ends (`ended`).
_SAY = """
, said AS (
    INSERT INTO citu.conversation AS old (
        conversation_key, user_key, conversation_id, title, created_at, updated_at,
        last_turn, forgotten, expires_at
    )
    SELECT %s, %s, %s, %s, now(), now(), 1, 0, now() + %s * interval '1 second' FROM ended
    ON CONFLICT (conversation_key) DO UPDATE SET
        title = CASE WHEN old.expires_at > now() THEN old.title ELSE excluded.title END,
        created_at = CASE
            WHEN old.expires_at > now() THEN old.created_at ELSE excluded.created_at
        END,
        updated_at = greatest(old.updated_at, excluded.updated_at),
        last_turn = old.last_turn + 1,
        forgotten = greatest(
            CASE WHEN old.expires_at > now() THEN old.forgotten ELSE old.last_turn END,
            old.last_turn + 1 - %s
        ),
        expires_at = greatest(old.expires_at, excluded.expires_at)
    RETURNING conversation_key, last_turn, forgotten
), gone AS (
    DELETE FROM citu.turn USING said
    WHERE turn.conversation_key = said.conversation_key AND number <= forgotten
), added AS (
    INSERT INTO citu.turn (conversation_key, number, data)
    SELECT conversation_key, last_turn, %s FROM said
)
"""
_ENDED = "SELECT FROM ended"
_END_WAITING = """
WITH ended AS (
    UPDATE citu.run SET
        state = %s, last_seq = %s, interrupt_key = NULL, waiting = NULL,
        settled = settled || interrupt_key, expires_at = now() + %s * interval '1 second'
    WHERE run_key = %s AND user_key = %s AND last_seq + 1 = %s
        AND state = 'waiting' AND expires_at > now()
    RETURNING run_key
), paged AS (
    INSERT INTO citu.page (run_key, first_seq, last_seq, data) SELECT run_key, %s, %s, %s FROM ended
    ON CONFLICT DO NOTHING
)
"""
_END_ABANDONED = f"""
WITH ended AS (
    UPDATE citu.run SET
        state = 'error', is_taken = true, last_seq = %s,
        interrupt_key = NULL, waiting = NULL, answer = NULL,
        expires_at = now() + %s * interval '1 second'
    WHERE run_key = %s AND last_seq + 1 = %s AND {_IS_ABANDONED} AND expires_at > now()
    RETURNING run_key
), paged AS (
    INSERT INTO citu.page (run_key, first_seq, last_seq, data) SELECT run_key, %s, %s, %s FROM ended
    ON CONFLICT DO NOTHING
)
"""
# A key that the same run reserves again is kept longer.
_RESERVE_KEY = """
INSERT INTO citu.claim AS old (claim_key, run_id, fingerprint, expires_at)
VALUES (%s, %s, %s, now() + %s * interval '1 second')
ON CONFLICT (claim_key) DO UPDATE SET
    run_id = excluded.run_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
WHERE old.expires_at <= now() OR old.run_id = excluded.run_id;
SELECT run_id, fingerprint FROM citu.claim WHERE claim_key = %s
"""
_PROLONG_KEYS = """
UPDATE citu.claim SET expires_at = now() + held.ttl_s * interval '1 second'
FROM unnest(%s, %s, %s) AS held (claim_key, run_id, ttl_s)
WHERE claim.claim_key = held.claim_key AND claim.run_id = held.run_id;
"""
_RELEASE_KEY = "DELETE FROM citu.claim WHERE claim_key = %s AND run_id = %s RETURNING 1"

# Removes a limited number of rows, so that no call takes long, and skips rows that other
# transactions have locked.
_REMOVE = (
    """
WITH gone AS (
    DELETE FROM citu.run WHERE run_key IN (
        SELECT run_key FROM citu.run WHERE expires_at <= now() LIMIT 1000 FOR UPDATE SKIP LOCKED
    )
    RETURNING run_key
)
DELETE FROM citu.page USING gone WHERE page.run_key = gone.run_key;
DELETE FROM citu.conversation WHERE conversation_key IN (
    SELECT conversation_key FROM citu.conversation WHERE expires_at <= now()
    LIMIT 1000 FOR UPDATE SKIP LOCKED
);
DELETE FROM citu.claim WHERE claim_key IN (
    SELECT claim_key FROM citu.claim WHERE expires_at <= now() LIMIT 1000 FOR UPDATE SKIP LOCKED
);
"""
    + REMOVE_ARTEFACTS
)
_REMOVE_EVERY_S = 5.0  # 1000 runs each time are 200 a second, more than a worker can start


class PostgresRuns:
    """Implements `store.Runs` in PostgreSQL."""

    def __init__(self, access: PostgresAccess, retention: Retention) -> None:
        self._access = access
        self._retention = retention
        self._removed_at = float("-inf")
        self._sweep = CheckpointSweep(access, idle_s=retention.run_ttl_s)

    async def write(self, writes: Sequence[RunWrite]) -> Mapping[str, Unkept]:
        unkept: dict[str, Unkept] = {}
        for batch in _batches(writes):
            unkept |= await self._write(batch)

        return unkept

    async def _write(self, writes: Sequence[RunWrite]) -> dict[str, Unkept]:
        """Keep writes of different runs."""
        by_key = {key(write.head.run_id): write for write in writes}
        stopped = [write for write in writes if write.state != "running"]
        statement = _WRITE if stopped else _WRITE_RUNNING
        parameters = [*self._limits(), *_write_columns(by_key)]
        held_keys = [self._held_key(write) for write in stopped if write.head.key]
        if held_keys:
            # In the same text, because PostgreSQL runs all statements of one text in one
            # transaction.
            statement = _PROLONG_KEYS + statement
            parameters = [*columns_of(held_keys, 3), *parameters]

        unkept: dict[str, Unkept] = {}
        for run_key, is_lost in await self._access.rows(statement, parameters):
            run_id = by_key[read_bytes(run_key)].head.run_id
            unkept[run_id] = "lost" if is_lost == "t" else "taken"

        return unkept

    def _limits(self) -> tuple[float, ...]:
        """Return the first parameters of `citu.write`."""
        retention = self._retention
        return (
            retention.lease_s,
            retention.run_ttl_s,
            retention.waiting_ttl_s,
            retention.conversation_ttl_s,
            retention.max_turns,
        )

    def _held_key(self, write: RunWrite) -> tuple[bytes, str, float]:
        """Return key, run id and seconds to keep of the record of a run's Idempotency-Key."""
        head, retention = write.head, self._retention
        ttl_s = retention.waiting_ttl_s if write.waiting else retention.run_ttl_s
        return (_idempotency_key(head.user_id, head.key or ""), to_text(head.run_id), ttl_s)

    async def find(self, user_id: str, run_id: str) -> RunRecord | None:
        rows = await self._access.rows(_FIND, (key(run_id), key(user_id)))
        return _record(rows[0]) if rows else None

    async def frames(
        self, user_id: str, run_id: str, after: int, limit: int
    ) -> tuple[EventFrame, ...]:
        rows = await self._access.rows(_FRAMES, (key(run_id), key(user_id), after, limit))
        later_frames: list[EventFrame] = []
        last_seq = after
        for (page,) in rows:
            for frame in unpack(read_bytes(page)):
                if frame.seq > last_seq:  # pages may overlap
                    later_frames.append(frame)
                    last_seq = frame.seq

        return tuple(later_frames[:limit])

    async def renew(self, run_ids: Collection[str], worker_id: str) -> Collection[str]:
        if not run_ids:
            return ()

        keys = {key(run_id): run_id for run_id in run_ids}
        retention = self._retention
        rows = await self._access.rows(
            _RENEW, (list(keys), key(worker_id), retention.lease_s, retention.run_ttl_s)
        )
        return {keys[read_bytes(row[0])] for row in rows}

    async def request_cancel(self, user_id: str, run_id: str) -> None:
        await self._access.rows(_REQUEST_CANCEL, (key(run_id), key(user_id)))

    async def resume(
        self, user_id: str, run_id: str, interrupt_id: str, answer: Any, worker_id: str
    ) -> Resumption:
        worker_key, answer_text = key(worker_id), to_text(answer)
        lease_s, ttl_s = self._retention.lease_s, self._retention.run_ttl_s
        new_values = (worker_key, to_text(worker_id), answer_text, lease_s, ttl_s)
        interrupt_key = key(interrupt_id)
        of_run = (key(run_id), key(user_id), interrupt_key)
        to_repeat = (worker_key, answer_text)  # the same answer again, by the same worker
        parameters = (*new_values, *of_run, *to_repeat, *of_run, interrupt_key)
        rows = await self._access.rows(_RESUME, parameters)
        if not rows:
            return "unknown"

        return "resumed" if rows[0][0] == "t" else "answered"

    async def take_over(self, run_id: str, worker_id: str) -> bool:
        retention = self._retention
        held_by = (key(worker_id), to_text(worker_id), retention.lease_s, retention.run_ttl_s)
        return bool(await self._access.rows(_TAKE_OVER, (*held_by, key(run_id))))

    async def end_waiting(
        self,
        head: RunHead,
        frame: EventFrame,
        state: FailedState = "cancelled",
        turn: Turn | None = None,
    ) -> bool:
        run_and_user = (key(head.run_id), key(head.user_id))
        ended = (state, frame.seq, self._retention.run_ttl_s, *run_and_user, frame.seq)
        return await self._end(_END_WAITING, ended, head, frame, turn)

    async def _end(
        self,
        statement: str,
        ended: tuple[Any, ...],
        head: RunHead,
        frame: EventFrame,
        turn: Turn | None,
    ) -> bool:
        """End a run with its last frame and the turn, in one statement.

        Args:
            ended: the parameters of `statement`, which may find that the run must not end.
        """
        page = (frame.seq, frame.seq, pack([frame]))
        if turn is None:
            return bool(await self._access.rows(statement + _ENDED, (*ended, *page)))

        _, user_key, *about, data = _turn(key(head.run_id), head, turn)
        conversation_key, conversation_id, title = about
        retention = self._retention
        conversation = (
            conversation_key,
            user_key,
            conversation_id,
            title,
            retention.conversation_ttl_s,
        )
        turn_values = (*conversation, retention.max_turns, data)
        return bool(
            await self._access.rows(statement + _SAY + _ENDED, (*ended, *page, *turn_values))
        )

    async def abandoned(self) -> tuple[RunRecord, ...]:
        """Return runs whose workers are gone; every 5 s also remove expired rows."""
        now = time.monotonic()
        is_due = now - self._removed_at >= _REMOVE_EVERY_S
        rows = await self._access.rows(_REMOVE + _ABANDONED if is_due else _ABANDONED)
        if is_due:
            self._removed_at = now
            await self._sweep.run()

        return tuple(map(_record, rows))

    async def end_abandoned(
        self, head: RunHead, frame: EventFrame, turn: Turn | None = None
    ) -> bool:
        ended = (frame.seq, self._retention.run_ttl_s, key(head.run_id), frame.seq)
        return await self._end(_END_ABANDONED, ended, head, frame, turn)

    async def reserve_key(
        self, user_id: str, key: str, wanted: IdempotencyRecord
    ) -> IdempotencyRecord:
        idempotency_key = _idempotency_key(user_id, key)
        run_id, fingerprint = to_text(wanted.run_id), to_text(wanted.fingerprint)
        rows = await self._access.rows(
            _RESERVE_KEY,
            (idempotency_key, run_id, fingerprint, self._retention.run_ttl_s, idempotency_key),
        )
        if not rows:  # it was freed between the two statements
            return await self.reserve_key(user_id, key, wanted)

        return IdempotencyRecord(*map(from_text, rows[0]))

    async def release_key(self, user_id: str, key: str, run_id: str) -> None:
        await self._access.rows(_RELEASE_KEY, (_idempotency_key(user_id, key), to_text(run_id)))


def _batches(writes: Sequence[RunWrite]) -> Iterator[Sequence[RunWrite]]:
    """Split the writes, in order, so that no batch has a run twice.

    A statement can change a row only once.
    """
    batch: dict[str, RunWrite] = {}
    for write in writes:
        if write.head.run_id in batch:
            yield tuple(batch.values())
            batch = {}

        batch[write.head.run_id] = write

    if batch:
        yield tuple(batch.values())


def _write_columns(writes: Mapping[bytes, RunWrite]) -> list[list[Any]]:
    """Return the columns of runs, of pages and of turns that `citu.write` takes."""
    runs, pages, turns = [], [], []
    for run_key, write in writes.items():
        runs.append(_run(run_key, write))
        if write.frames:
            pages.append(_page(run_key, write.frames))
        if write.end and write.end.turn:
            turns.append(_turn(run_key, write.head, write.end.turn))

    return [*columns_of(runs, 8), *columns_of(pages, 4), *columns_of(turns, 6)]


def _run(run_key: bytes, write: RunWrite) -> tuple[Any, ...]:
    head = write.head
    last_seq = write.frames[-1].seq if write.frames else 0
    interrupt_key = waiting = None
    if write.waiting:
        interrupt_key = key(write.waiting.interrupt_id)
        waiting = waiting_to_text(write.waiting)

    return (
        run_key,
        key(head.user_id),
        key(head.worker_id),
        head_to_text(head),
        write.state,
        last_seq,
        interrupt_key,
        waiting,
    )


def _page(run_key: bytes, frames: Sequence[EventFrame]) -> tuple[Any, ...]:
    return (run_key, frames[0].seq, frames[-1].seq, pack(frames))


def _turn(run_key: bytes, head: RunHead, turn: Turn) -> tuple[Any, ...]:
    conversation_key = key(head.user_id, head.conversation_id)
    conversation_id, title = to_text(head.conversation_id), to_text(title_of(turn))
    return (
        run_key,
        key(head.user_id),
        conversation_key,
        conversation_id,
        title,
        turn_to_text(turn),
    )


def _idempotency_key(user_id: str, name: str) -> bytes:
    return key(user_id, name)


def _record(row: Row) -> RunRecord:
    head, state, last_seq, is_abandoned, worker_id, waiting, answer, takeovers = row
    about = (head, state, int(last_seq), is_abandoned == "t")
    return record_from_texts(*about, worker_id, waiting, answer, int(takeovers))
