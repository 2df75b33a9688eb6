"""What is learnt in Redis: records on shelves. None of it ever expires."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from store import redis_keys
from store.records import Applied, KeptRecord, RecordChange, RecordLimits, RecordSet
from store.redis_access import RedisAccess, Script

# The names of a record, of a shelf and of its revision begin with the first three arguments.
_NAMES = "local record_name, shelf_name, revision_name = unpack(ARGV, 1, 3)\n"
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
local listed = redis.call('ZREVRANGE', shelf_name .. ARGV[4], 0, -1, 'WITHSCORES')
for i = 1, #listed, 2 do note(listed[i], listed[i + 1]) end
return {redis.call('GET', revision_name .. ARGV[4]) or '', found}
"""
)
_FIND = Script(_NAMES + _FOUND + "for i = 4, #ARGV do note(ARGV[i], 0) end return found")
_PAGE = Script(
    _NAMES
    + _FOUND
    + """
local shelf, highest, before, limit = shelf_name .. ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
local offset = 0
while #found < limit do
    local listed = redis.call('ZREVRANGEBYSCORE', shelf, highest, '-inf', 'WITHSCORES', 'LIMIT', offset, limit)
    if #listed == 0 then break end
    offset = offset + #listed / 2
    for i = 1, #listed, 2 do
        if #found < limit and (tonumber(listed[i + 1]) < tonumber(highest) or listed[i] < before) then
            note(listed[i], listed[i + 1])
        end
    end
end
return found
"""
)
# The arguments are three counts, and then so many changes and rooms of either kind. A change is a
# key, the text before, the text afterwards and the number of places; then come the places: shelves
# and positions. Texts that are empty stand for none. `record_sets` of a record holds the keys of its
# shelves, so that they can be found when it goes.
_APPLY = Script(
    _NAMES
    + """
local changes, mosts, latests = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local position, places, before, after, added = 7, {}, {}, {}, {}
local function take()
    position = position + 1
    return ARGV[position - 1]
end
local function shelves_of(key)
    return string.gmatch(redis.call('HGET', record_name .. key, 'shelves') or '', '%S+')
end
local function count(shelf, number) added[shelf] = (added[shelf] or 0) + number end
for i = 1, changes do
    local key = take()
    before[key], after[key], places[key] = take(), take(), {}
    for _ = 1, tonumber(take()) do
        local shelf = take()
        places[key][shelf] = take()
        count(shelf, 1)
    end
end
for key, text in pairs(before) do
    if (redis.call('HGET', record_name .. key, 'text') or '') ~= text then return 'changed' end
    for shelf in shelves_of(key) do count(shelf, -1) end
end
for _ = 1, mosts do
    local shelf, most = take(), tonumber(take())
    local new = added[shelf] or 0
    if new > 0 and redis.call('ZCARD', shelf_name .. shelf) + new > most then return 'full' end
end
local function remove(key)
    for shelf in shelves_of(key) do redis.call('ZREM', shelf_name .. shelf, key) end
end
for key, text in pairs(after) do
    remove(key)
    if text == '' then
        redis.call('DEL', record_name .. key)
    else
        local shelves = {}
        for shelf, at in pairs(places[key]) do
            redis.call('ZADD', shelf_name .. shelf, at, key)
            shelves[#shelves + 1] = shelf
        end
        redis.call('HSET', record_name .. key, 'text', text, 'shelves', table.concat(shelves, ' '))
    end
end
for _ = 1, latests do
    local shelf, latest = take(), tonumber(take())
    for _, key in ipairs(redis.call('ZRANGE', shelf_name .. shelf, 0, -latest - 1)) do
        remove(key)
        redis.call('DEL', record_name .. key)
    end
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
for shelf in pairs(added) do
    local known = tonumber(redis.call('GET', revision_name .. shelf) or 0)
    redis.call('SET', revision_name .. shelf, string.format('%d', math.max(now, known + 1)))
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
_PREFIXES = (redis_keys.learned(""), redis_keys.shelf(""), redis_keys.shelf_revision(""))
_APPLIED: Mapping[bytes, Applied] = {b"done": "done", b"changed": "changed", b"full": "full"}


class RedisRecords:
    """Implements `store.records.RecordRepository`."""

    def __init__(self, access: RedisAccess) -> None:
        self._access = access

    async def revisions(self, record_sets: Sequence[bytes]) -> tuple[str, ...]:
        found = await self._access.reply(
            ("MGET", *(redis_keys.shelf_revision(record_set.hex()) for record_set in record_sets))
        )
        return tuple(revision.decode() if revision else "" for revision in found)

    async def read(self, record_sets: Sequence[bytes]) -> tuple[RecordSet, ...]:
        commands = [_READ.command([], *_PREFIXES, record_set.hex()) for record_set in record_sets]
        replies = await self._access.replies(commands)
        return tuple(
            RecordSet(revision.decode(), tuple(map(_found, records)))
            for revision, records in replies
        )

    async def find(self, keys: Sequence[bytes]) -> Mapping[bytes, KeptRecord]:
        found = await self._access.reply(
            _FIND.command([], *_PREFIXES, *(key.hex() for key in keys))
        )
        return {record.key: record for record in map(_found, found)}

    async def page(
        self, record_sets: Collection[bytes], limit: int, before: tuple[int, bytes]
    ) -> tuple[KeptRecord, ...]:
        position, key = before
        asked = [
            _PAGE.command([], *_PREFIXES, record_set.hex(), position, key.hex(), limit)
            for record_set in record_sets
        ]
        replies = await self._access.replies(asked)
        found = [_found(values) for values in chain.from_iterable(replies)]
        found.sort(key=lambda record: (record.position, record.key), reverse=True)
        return tuple(found[:limit])

    async def apply(self, changes: Sequence[RecordChange], room: RecordLimits) -> Applied:
        arguments: list[Any] = [len(changes), len(room.most), len(room.latest)]
        for change in changes:
            after = change.after
            arguments += [change.key.hex(), change.before or "", after.text if after else ""]
            places = after.places if after else {}
            arguments.append(len(places))
            for record_set, position in places.items():
                arguments += [record_set.hex(), position]
        for record_sets in (room.most, room.latest):
            for record_set, count in record_sets.items():
                arguments += [record_set.hex(), count]
        return _APPLIED[await self._access.reply(_APPLY.command([], *_PREFIXES, *arguments))]

    async def count_use(self, keys: Collection[bytes]) -> None:
        await self._access.reply(_COUNT_USE.command([], *_PREFIXES, *(key.hex() for key in keys)))


def _found(values: list[Any]) -> KeptRecord:
    key, text, uses, position = values
    return KeptRecord(bytes.fromhex(key.decode()), text.decode(), int(uses), int(float(position)))
