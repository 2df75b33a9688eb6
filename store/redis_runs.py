"""Runs in Redis.

Every run waits for `write`, so it is one round trip for all runs, with a script for each. A Redis
that has lost its data needs no repair: the next write of a run makes the run known again.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

from common.values import Turn
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
    redis_keys,
)
from store.record_json import (
    from_text,
    head_to_text,
    record_from_texts,
    title_of,
    to_text,
    turn_to_text,
    waiting_to_text,
)
from store.redis_access import Command, RedisAccess, Script

_NOW = "local time = redis.call('TIME')\nlocal now = time[1] * 1000000 + time[2]\n"
# Adds a turn to its conversation, and begins the conversation if need be.
_SAY = f"""
local function say(keys, conversation_key, id, title, turn, max_turns, ttl)
    local conversation, turns, conversations = unpack(keys)
    if redis.call('EXISTS', conversation) == 0 then
        redis.call('DEL', turns)
        redis.call('HSET', conversation, 'id', id, 'title', title, 'created', now, 'last', 0)
    end
    local updated = math.max(now, tonumber(redis.call('HGET', conversation, 'updated') or 0))
    redis.call('HSET', conversation, 'updated', string.format('%d', updated))
    redis.call('HINCRBY', conversation, 'last', 1)
    redis.call('RPUSH', turns, turn)
    redis.call('LTRIM', turns, -max_turns, -1)
    redis.call('ZADD', conversations, updated, conversation_key)
    redis.call('ZREMRANGEBYSCORE', conversations, '-inf', now - ttl * 1000)
    for _, name in ipairs(keys) do redis.call('PEXPIRE', name, ttl) end
    local artefacts = '{redis_keys.conversation_artefacts("")}' .. conversation_key
    local names = '{redis_keys.artefact("")}'
    redis.call('PEXPIRE', artefacts, ttl)
    for _, run in ipairs(redis.call('SMEMBERS', artefacts)) do
        redis.call('PEXPIRE', names .. run, ttl)
    end
end
"""
_IS_ABANDONED = """
local function is_abandoned(key)
    local lease = redis.call('ZSCORE', KEYS[1], key)
    return not lease or tonumber(lease) <= now
end
"""

# Returns 1 when the run is no longer the writer's, 2 when frames before the new ones are lost, else
# 0. It is also 0 when nothing is kept because a worker repeats what it wrote before it lost the run
# (`held_from`), or repeats writes of a run that it ended itself. XADD fails for a frame that is
# there already, which is ignored.
_WRITE = Script(
    _NOW
    + _SAY
    + """
local leases, run, frames, conversation, turns, conversations = unpack(KEYS)
local key, head, user, worker, state = unpack(ARGV, 1, 5)
local ttl, lease, interrupt, waiting, frame_count = unpack(ARGV, 6, 10)
local known_state, known_seq, is_taken, known_worker, held_from, is_settled = unpack(redis.call(
    'HMGET', run, 'state', 'last_seq', 'taken', 'worker', 'held_from', 'settled:' .. interrupt))
local last_seq = tonumber(known_seq or 0)
if known_state then
    local newest = 0
    if tonumber(frame_count) > 0 then newest = tonumber(ARGV[9 + 2 * frame_count]) end
    local is_end = state ~= 'running' and state ~= 'waiting'
    if is_taken then return 1 end
    if known_worker ~= worker then
        return (is_end or newest > tonumber(held_from or 0)) and 1 or 0
    end
    if known_state == 'waiting' then return (is_end or newest > last_seq) and 1 or 0 end
    if known_state ~= 'running' or is_settled then return 0 end
end
if tonumber(frame_count) > 0 and tonumber(ARGV[11]) > last_seq + 1 then return 2 end
for i = 11, 10 + 2 * frame_count, 2 do
    if tonumber(ARGV[i]) > last_seq then
        redis.pcall('XADD', frames, ARGV[i] .. '-0', 'data', ARGV[i + 1])
        last_seq = tonumber(ARGV[i])
    end
end
if not known_state then redis.call('HSET', run, 'head', head, 'user', user, 'worker', worker) end
redis.call('HSET', run, 'state', state, 'last_seq', last_seq)
if state ~= 'running' then redis.call('HDEL', run, 'interrupt', 'waiting', 'answer') end
if state == 'waiting' then redis.call('HSET', run, 'interrupt', interrupt, 'waiting', waiting) end
redis.call('PEXPIRE', run, ttl)
redis.call('PEXPIRE', frames, ttl)
if state == 'running' then
    redis.call('ZADD', leases, now + lease * 1000, key)
else
    redis.call('ZREM', leases, key)
end
if conversation then
    say({conversation, turns, conversations}, unpack(ARGV, 11 + 2 * frame_count))
end
return 0
"""
)
_FIND = Script(
    _NOW
    + _IS_ABANDONED
    + """
local user, head, state, last_seq, worker_id, waiting, answer, takeovers = unpack(redis.call(
    'HMGET', KEYS[2], 'user', 'head', 'state', 'last_seq', 'worker_id', 'waiting', 'answer',
    'takeovers'))
if user ~= ARGV[2] then return false end
local is_lost = state == 'running' and is_abandoned(ARGV[1])
return {head, state, last_seq, is_lost and 1 or 0, worker_id, waiting, answer, takeovers}
"""
)
_RENEW = Script(
    _NOW
    + """
local cancelling = {}
for i = 4, #ARGV do
    local run, frames = KEYS[2 * i - 6], KEYS[2 * i - 5]
    local known = redis.call('HMGET', run, 'state', 'worker', 'cancelling')
    if known[1] == 'running' and known[2] == ARGV[1] then
        redis.call('ZADD', KEYS[1], now + ARGV[2] * 1000, ARGV[i])
        redis.call('PEXPIRE', run, ARGV[3])
        redis.call('PEXPIRE', frames, ARGV[3])
        if known[3] then cancelling[#cancelling + 1] = ARGV[i] end
    end
end
return cancelling
"""
)
_REQUEST_CANCEL = Script("""
local known = redis.call('HMGET', KEYS[1], 'user', 'state')
if known[1] == ARGV[1] and known[2] == 'running' then
    redis.call('HSET', KEYS[1], 'cancelling', 1)
end
""")
_RESUME = Script(
    _NOW
    + """
local leases, run, frames = unpack(KEYS)
local key, user, interrupt, answer, worker, worker_id, lease, run_ttl = unpack(ARGV)
local known = redis.call('HMGET', run, 'user', 'state', 'interrupt', 'worker', 'answer', 'last_seq')
if known[1] ~= user then return 'unknown' end
if known[3] ~= interrupt then
    return redis.call('HEXISTS', run, 'settled:' .. interrupt) == 1 and 'answered' or 'unknown'
end
if known[2] == 'waiting' then
    redis.call('HSET', run, 'state', 'running', 'answer', answer, 'worker', worker,
        'worker_id', worker_id, 'held_from', known[6], 'settled:' .. interrupt, 1)
    redis.call('HDEL', run, 'cancelling', 'takeovers')
elseif known[4] ~= worker or known[5] ~= answer then
    return 'answered'
end
redis.call('PEXPIRE', run, run_ttl)
redis.call('PEXPIRE', frames, run_ttl)
redis.call('ZADD', leases, now + lease * 1000, key)
return 'resumed'
"""
)
_TAKE_OVER = Script(
    _NOW
    + _IS_ABANDONED
    + """
local leases, run, frames = unpack(KEYS)
local key, worker, worker_id, lease, run_ttl = unpack(ARGV)
local known = redis.call('HMGET', run, 'state', 'last_seq')
if known[1] ~= 'running' or not is_abandoned(key) then return 0 end
redis.call('HSET', run, 'worker', worker, 'worker_id', worker_id, 'held_from', known[2])
redis.call('HINCRBY', run, 'takeovers', 1)
redis.call('PEXPIRE', run, run_ttl)
redis.call('PEXPIRE', frames, run_ttl)
redis.call('ZADD', leases, now + lease * 1000, key)
return 1
"""
)
_END_WAITING = Script(
    _NOW
    + _SAY
    + """
local run, frames, conversation, turns, conversations = unpack(KEYS)
local user, state, seq, data, run_ttl = unpack(ARGV)
local known = redis.call('HMGET', run, 'user', 'state', 'last_seq', 'interrupt')
if known[1] ~= user or known[2] ~= 'waiting' then return 0 end
if tonumber(known[3]) + 1 ~= tonumber(seq) then return 0 end
redis.pcall('XADD', frames, seq .. '-0', 'data', data)
redis.call('HSET', run, 'state', state, 'last_seq', seq, 'settled:' .. known[4], 1)
redis.call('HDEL', run, 'interrupt', 'waiting')
redis.call('PEXPIRE', run, run_ttl)
redis.call('PEXPIRE', frames, run_ttl)
if conversation then say({conversation, turns, conversations}, unpack(ARGV, 6)) end
return 1
"""
)
_ABANDONED = Script(
    _NOW
    + """
local abandoned = {}
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do
    local head, state, last_seq, worker_id, waiting, answer, takeovers = unpack(redis.call(
        'HMGET', ARGV[1] .. key, 'head', 'state', 'last_seq', 'worker_id', 'waiting', 'answer',
        'takeovers'))
    if state == 'running' then
        abandoned[#abandoned + 1] = {
            head, state, last_seq, 1, worker_id, waiting, answer, takeovers}
    else
        redis.call('ZREM', KEYS[1], key)
    end
end
return abandoned
"""
)
_END_ABANDONED = Script(
    _NOW
    + _SAY
    + _IS_ABANDONED
    + """
local _, run, frames, conversation, turns, conversations = unpack(KEYS)
local key, seq, data, run_ttl = unpack(ARGV)
local known = redis.call('HMGET', run, 'state', 'last_seq')
if known[1] ~= 'running' or not is_abandoned(key) then return 0 end
if tonumber(known[2]) + 1 ~= tonumber(seq) then return 0 end
redis.pcall('XADD', frames, seq .. '-0', 'data', data)
redis.call('HSET', run, 'state', 'error', 'last_seq', seq, 'taken', 1)
redis.call('HDEL', run, 'interrupt', 'waiting', 'answer')
redis.call('PEXPIRE', run, run_ttl)
redis.call('PEXPIRE', frames, run_ttl)
redis.call('ZREM', KEYS[1], key)
if conversation then say({conversation, turns, conversations}, unpack(ARGV, 5)) end
return 1
"""
)
# A key that the same run reserves again is kept longer.
_RESERVE_KEY = Script("""
local known = redis.call('HMGET', KEYS[1], 'run_id', 'fingerprint')
if known[1] and known[1] ~= ARGV[1] then return known end
redis.call('HSET', KEYS[1], 'run_id', ARGV[1], 'fingerprint', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {ARGV[1], ARGV[2]}
""")
_KEEP_KEY = Script("""
if redis.call('HGET', KEYS[1], 'run_id') == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
""")
_RELEASE_KEY = Script(
    "if redis.call('HGET', KEYS[1], 'run_id') == ARGV[1] then redis.call('DEL', KEYS[1]) end"
)
_RESUMPTIONS: Mapping[bytes, Resumption] = {each.encode(): each for each in get_args(Resumption)}
_UNKEPT: Mapping[int, Unkept] = {1: "taken", 2: "lost"}
_LAST_SEQ = 2**62  # larger than any frame's `seq`, and valid as a stream id


class RedisRuns:
    """Implements `store.Runs` in Redis."""

    def __init__(self, access: RedisAccess, retention: Retention) -> None:
        self._access = access
        self._max_turns = retention.max_turns
        self._conversation_ttl = redis_keys.milliseconds(retention.conversation_ttl_s)
        self._run_ttl = redis_keys.milliseconds(retention.run_ttl_s)
        self._waiting_ttl = redis_keys.milliseconds(retention.waiting_ttl_s)
        self._lease = redis_keys.milliseconds(retention.lease_s)

    async def write(self, writes: Sequence[RunWrite]) -> Mapping[str, Unkept]:
        if not writes:
            return {}

        stopped = [write for write in writes if write.state != "running"]
        held_keys = [self._keep_key(write) for write in stopped if write.head.key]
        # Keys first: when the connection breaks in between, a run that is kept has its key.
        replies = await self._access.replies([*held_keys, *map(self._write, writes)])
        outcomes = replies[len(held_keys) :]
        unkept: dict[str, Unkept] = {}
        for write, outcome in zip(writes, outcomes, strict=True):
            if outcome:
                unkept[write.head.run_id] = _UNKEPT[outcome]

        return unkept

    def _write(self, write: RunWrite) -> Command:
        head = write.head
        digest, user = redis_keys.digest(head.run_id), redis_keys.digest(head.user_id)
        ttl, interrupt, waiting = self._run_ttl, "", ""
        if write.waiting:
            ttl = self._waiting_ttl
            interrupt = redis_keys.digest(write.waiting.interrupt_id)
            waiting = waiting_to_text(write.waiting)

        arguments: list[Any] = [
            digest,
            head_to_text(head),
            user,
            redis_keys.digest(head.worker_id),
            write.state,
            ttl,
            self._lease,
            interrupt,
            waiting,
            len(write.frames),
        ]
        for frame in write.frames:
            arguments += [frame.seq, frame.data]

        turn_keys, turn_arguments = self._saying(head, write.end.turn if write.end else None)
        return _WRITE.command([*_run_keys(digest), *turn_keys], *arguments, *turn_arguments)

    def _saying(self, head: RunHead, turn: Turn | None) -> tuple[list[str], list[Any]]:
        """Return keys and arguments that add the turn to its conversation; none without one."""
        if turn is None:
            return [], []

        conversation = redis_keys.digest(head.user_id, head.conversation_id)
        keys = [
            redis_keys.conversation(conversation),
            redis_keys.turns(conversation),
            redis_keys.conversations(redis_keys.digest(head.user_id)),
        ]
        arguments = [
            conversation,
            to_text(head.conversation_id),
            to_text(title_of(turn)),
            turn_to_text(turn),
            self._max_turns,
            self._conversation_ttl,
        ]
        return keys, arguments

    def _keep_key(self, write: RunWrite) -> Command:
        """Keep a run's Idempotency-Key as long as the run."""
        head = write.head
        ttl = self._waiting_ttl if write.waiting else self._run_ttl
        return _KEEP_KEY.command(
            [redis_keys.idempotency_key(head.user_id, head.key or "")], to_text(head.run_id), ttl
        )

    async def find(self, user_id: str, run_id: str) -> RunRecord | None:
        digest = redis_keys.digest(run_id)
        keys = [redis_keys.LEASES, redis_keys.run(digest)]
        reply = await self._access.reply(_FIND.command(keys, digest, redis_keys.digest(user_id)))
        return _record(reply) if reply else None

    async def frames(
        self, user_id: str, run_id: str, after: int, limit: int
    ) -> tuple[EventFrame, ...]:
        digest = redis_keys.digest(run_id)
        first = f"{min(max(after, 0), _LAST_SEQ) + 1}-0"
        owner, entries = await self._access.replies(
            [
                ("HGET", redis_keys.run(digest), "user"),
                ("XRANGE", redis_keys.frames(digest), first, "+", "COUNT", limit),
            ]
        )
        if owner is None or owner.decode() != redis_keys.digest(user_id):
            return ()

        return tuple(
            EventFrame(int(entry.partition(b"-")[0]), fields[b"data"]) for entry, fields in entries
        )

    async def renew(self, run_ids: Collection[str], worker_id: str) -> Collection[str]:
        if not run_ids:
            return ()

        digests = {redis_keys.digest(run_id): run_id for run_id in run_ids}
        keys = [redis_keys.LEASES]
        for digest in digests:
            keys += [redis_keys.run(digest), redis_keys.frames(digest)]

        command = _RENEW.command(
            keys, redis_keys.digest(worker_id), self._lease, self._run_ttl, *digests
        )
        return {digests[digest.decode()] for digest in await self._access.reply(command)}

    async def request_cancel(self, user_id: str, run_id: str) -> None:
        keys = [redis_keys.run(redis_keys.digest(run_id))]
        await self._access.reply(_REQUEST_CANCEL.command(keys, redis_keys.digest(user_id)))

    async def resume(
        self, user_id: str, run_id: str, interrupt_id: str, answer: Any, worker_id: str
    ) -> Resumption:
        digest, worker = redis_keys.digest(run_id), redis_keys.digest(worker_id)
        asked = (digest, redis_keys.digest(user_id), redis_keys.digest(interrupt_id))
        held_by = (worker, to_text(worker_id), self._lease, self._run_ttl)
        command = _RESUME.command(_run_keys(digest), *asked, to_text(answer), *held_by)
        return _RESUMPTIONS[await self._access.reply(command)]

    async def take_over(self, run_id: str, worker_id: str) -> bool:
        digest, worker = redis_keys.digest(run_id), redis_keys.digest(worker_id)
        held_by = (worker, to_text(worker_id), self._lease, self._run_ttl)
        return bool(
            await self._access.reply(_TAKE_OVER.command(_run_keys(digest), digest, *held_by))
        )

    async def end_waiting(
        self,
        head: RunHead,
        frame: EventFrame,
        state: FailedState = "cancelled",
        turn: Turn | None = None,
    ) -> bool:
        _, *keys = _run_keys(redis_keys.digest(head.run_id))
        arguments = (redis_keys.digest(head.user_id), state, frame.seq, frame.data, self._run_ttl)
        turn_keys, turn_arguments = self._saying(head, turn)
        command = _END_WAITING.command([*keys, *turn_keys], *arguments, *turn_arguments)
        return bool(await self._access.reply(command))

    async def abandoned(self) -> tuple[RunRecord, ...]:
        command = _ABANDONED.command([redis_keys.LEASES], redis_keys.run(""))
        return tuple(map(_record, await self._access.reply(command)))

    async def end_abandoned(
        self, head: RunHead, frame: EventFrame, turn: Turn | None = None
    ) -> bool:
        digest = redis_keys.digest(head.run_id)
        turn_keys, turn_arguments = self._saying(head, turn)
        arguments = (digest, frame.seq, frame.data, self._run_ttl, *turn_arguments)
        command = _END_ABANDONED.command([*_run_keys(digest), *turn_keys], *arguments)
        return bool(await self._access.reply(command))

    async def reserve_key(
        self, user_id: str, key: str, wanted: IdempotencyRecord
    ) -> IdempotencyRecord:
        arguments = (to_text(wanted.run_id), to_text(wanted.fingerprint), self._run_ttl)
        command = _RESERVE_KEY.command([redis_keys.idempotency_key(user_id, key)], *arguments)
        return IdempotencyRecord(*map(from_text, await self._access.reply(command)))

    async def release_key(self, user_id: str, key: str, run_id: str) -> None:
        name = redis_keys.idempotency_key(user_id, key)
        await self._access.reply(_RELEASE_KEY.command([name], to_text(run_id)))


def _run_keys(digest: str) -> list[str]:
    return [redis_keys.LEASES, redis_keys.run(digest), redis_keys.frames(digest)]


def _record(values: list[Any]) -> RunRecord:
    head, state, last_seq, is_abandoned, worker_id, waiting, answer, takeovers = values
    about = (head, state.decode(), int(last_seq), bool(is_abandoned))
    return record_from_texts(*about, worker_id, waiting, answer, int(takeovers or 0))
