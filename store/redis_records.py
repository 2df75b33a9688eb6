"""Keeps learned records in Redis; they never expire."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from store import redis_keys
from store.records import Applied, RecordChange, RecordLimits, RecordSet, StoredRecord
from store.redis_access import RedisAccess, Script

# The first three arguments are prefixes: of the names of records, of record sets and of their
# revisions.
_NAMES = "local record_name, set_name, revision_name = unpack(ARGV, 1, 3)\n"
_FOUND = """
local found = {}
local function note(key, position)
    local kept = redis.call('HMGET', record_name .. key, 'text', 'uses')
    if kept[1] then found[#found + 1] = {key, kept[1], kept[2] or 0, position} end
end
"""
_READ = Script(
    _NAMES
    + _FOUND
    + """
local listed = redis.call('ZREVRANGE', set_name .. ARGV[4], 0, -1, 'WITHSCORES')
for i = 1, #listed, 2 do note(listed[i], listed[i + 1]) end
return {redis.call('GET', revision_name .. ARGV[4]) or '', found}
"""
)
_FIND = Script(_NAMES + _FOUND + "for i = 4, #ARGV do note(ARGV[i], 0) end return found")
_PAGE = Script(
    _NAMES
    + _FOUND
    + """
local set, highest, before, limit = set_name .. ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
local offset = 0
while #found < limit do
    local listed = redis.call(
        'ZREVRANGEBYSCORE', set, highest, '-inf', 'WITHSCORES', 'LIMIT', offset, limit)
    if #listed == 0 then break end
    offset = offset + #listed / 2
    for i = 1, #listed, 2 do
        local is_lower = tonumber(listed[i + 1]) < tonumber(highest)
        if #found < limit and (is_lower or listed[i] < before) then
            note(listed[i], listed[i + 1])
        end
    end
end
return found
"""
)
# The other arguments are three counts, then the changes, then the limits of either kind. A change
# is a key, the text before, the text after, the number of its record sets, and each of them with
# the record's position in it. An empty text stands for none. A record's field `shelves` holds the
# keys of its record sets, so that it can be removed from them.
_APPLY = Script(
    _NAMES
    + """
local changes, mosts, latests = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local cursor, positions, before, after, added = 7, {}, {}, {}, {}
local function take()
    cursor = cursor + 1
    return ARGV[cursor - 1]
end
local function sets_of(key)
    return string.gmatch(redis.call('HGET', record_name .. key, 'shelves') or '', '%S+')
end
local function count(set, number) added[set] = (added[set] or 0) + number end
for i = 1, changes do
    local key = take()
    before[key], after[key], positions[key] = take(), take(), {}
    for _ = 1, tonumber(take()) do
        local set = take()
        positions[key][set] = take()
        count(set, 1)
    end
end
for key, text in pairs(before) do
    if (redis.call('HGET', record_name .. key, 'text') or '') ~= text then return 'changed' end
    for set in sets_of(key) do count(set, -1) end
end
for _ = 1, mosts do
    local set, most = take(), tonumber(take())
    local new = added[set] or 0
    if new > 0 and redis.call('ZCARD', set_name .. set) + new > most then return 'full' end
end
local function remove(key)
    for set in sets_of(key) do redis.call('ZREM', set_name .. set, key) end
end
for key, text in pairs(after) do
    remove(key)
    if text == '' then
        redis.call('DEL', record_name .. key)
    else
        local sets = {}
        for set, at in pairs(positions[key]) do
            redis.call('ZADD', set_name .. set, at, key)
            sets[#sets + 1] = set
        end
        redis.call('HSET', record_name .. key, 'text', text, 'shelves', table.concat(sets, ' '))
    end
end
for _ = 1, latests do
    local set, latest = take(), tonumber(take())
    for _, key in ipairs(redis.call('ZRANGE', set_name .. set, 0, -latest - 1)) do
        remove(key)
        redis.call('DEL', record_name .. key)
    end
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
for set in pairs(added) do
    local known = tonumber(redis.call('GET', revision_name .. set) or 0)
    redis.call('SET', revision_name .. set, string.format('%d', math.max(now, known + 1)))
end
return 'done'
"""
)
_COUNT_USE = Script(
    _NAMES
    + """
for i = 4, #ARGV do
    local record = record_name .. ARGV[i]
    if redis.call('EXISTS', record) == 1 then redis.call('HINCRBY', record, 'uses', 1) end
end
"""
)
_PREFIXES = (redis_keys.learned(""), redis_keys.record_set(""), redis_keys.record_set_revision(""))
_APPLIED: Mapping[bytes, Applied] = {b"done": "done", b"changed": "changed", b"full": "full"}


class RedisRecords:
    """Implements `RecordRepository` in Redis."""

    def __init__(self, access: RedisAccess) -> None:
        self._access = access

    async def revisions(self, record_sets: Sequence[bytes]) -> tuple[str, ...]:
        names = [redis_keys.record_set_revision(each.hex()) for each in record_sets]
        reply = await self._access.reply(("MGET", *names))
        return tuple(revision.decode() if revision else "" for revision in reply)

    async def read(self, record_sets: Sequence[bytes]) -> tuple[RecordSet, ...]:
        commands = [_READ.command([], *_PREFIXES, record_set.hex()) for record_set in record_sets]
        replies = await self._access.replies(commands)
        return tuple(
            RecordSet(revision.decode(), tuple(map(_record_of, records)))
            for revision, records in replies
        )

    async def find(self, keys: Sequence[bytes]) -> Mapping[bytes, StoredRecord]:
        reply = await self._access.reply(
            _FIND.command([], *_PREFIXES, *(key.hex() for key in keys))
        )
        return {record.key: record for record in map(_record_of, reply)}

    async def page(
        self, record_sets: Collection[bytes], limit: int, before: tuple[int, bytes]
    ) -> tuple[StoredRecord, ...]:
        position, key = before
        asked = [
            _PAGE.command([], *_PREFIXES, record_set.hex(), position, key.hex(), limit)
            for record_set in record_sets
        ]
        replies = await self._access.replies(asked)
        records = [_record_of(values) for values in chain.from_iterable(replies)]
        records.sort(key=lambda record: (record.position, record.key), reverse=True)
        return tuple(records[:limit])

    async def apply(self, changes: Sequence[RecordChange], limits: RecordLimits) -> Applied:
        arguments: list[Any] = [len(changes), len(limits.most), len(limits.latest)]
        for change in changes:
            arguments += [change.key.hex(), change.before or ""]
            if change.after is None:
                arguments += ["", 0]
                continue

            arguments += [change.after.text, len(change.after.positions)]
            for record_set, position in change.after.positions.items():
                arguments += [record_set.hex(), position]

        for record_set, count in chain(limits.most.items(), limits.latest.items()):
            arguments += [record_set.hex(), count]

        return _APPLIED[await self._access.reply(_APPLY.command([], *_PREFIXES, *arguments))]

    async def count_use(self, keys: Collection[bytes]) -> None:
        await self._access.reply(_COUNT_USE.command([], *_PREFIXES, *(key.hex() for key in keys)))


def _record_of(values: list[Any]) -> StoredRecord:
    key, text, uses, position = values
    return StoredRecord(bytes.fromhex(key.decode()), text.decode(), int(uses), int(float(position)))
