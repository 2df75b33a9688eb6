"""Conversations in Redis. `RedisRuns.write` adds their turns."""

from typing import Any

from common.values import Turn
from store import Conversation, ConversationPage, TurnPage, redis_keys
from store.record_json import (
    FAILED,
    from_text,
    parse_place_cursor,
    parse_turn_cursor,
    place_cursor,
    timestamp,
    to_text,
    turn_from_text,
)
from store.redis_access import RedisAccess, Script

# A user's set may name conversations that have expired; the script removes those it meets.
_PAGE = Script("""
local conversations = KEYS[1]
local latest, before, limit, names, turns = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local found, offset = {}, 0
while #found < limit do
    local listed = redis.call(
        'ZREVRANGEBYSCORE', conversations, latest, '-inf', 'WITHSCORES', 'LIMIT', offset, limit)
    if #listed == 0 then break end
    for i = 1, #listed, 2 do
        local key = listed[i]
        local kept = redis.call('HMGET', names .. key, 'id', 'title', 'created', 'updated')
        if not kept[1] then
            redis.call('ZREM', conversations, key)
        else
            offset = offset + 1
            if (listed[i + 1] ~= latest or key < before) and #found < limit then
                local id, title, created, updated = unpack(kept)
                local count = redis.call('LLEN', turns .. key)
                found[#found + 1] = {id, title, created, updated, count, key}
            end
        end
    end
end
return found
""")
# The last answered turns, the latest first.
_RECENT = Script("""
local turns, limit, failed = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local found, stop = {}, redis.call('LLEN', turns) - 1
while stop >= 0 and #found < limit do
    local start = math.max(0, stop - limit + 1)
    local read = redis.call('LRANGE', turns, start, stop)
    for i = #read, 1, -1 do
        local has_failed = string.sub(read[i], 1, #failed) == failed
        if not has_failed and #found < limit then found[#found + 1] = read[i] end
    end
    stop = start - 1
end
return found
""")
_TURNS = Script("""
local kept = redis.call('HMGET', KEYS[1], 'id', 'title', 'created', 'updated', 'last')
if not kept[1] then return false end
local count = redis.call('LLEN', KEYS[2])
local first = tonumber(kept[5]) - count + 1
local stop = count - 1
if ARGV[1] ~= '' then stop = math.min(stop, tonumber(ARGV[1]) - first - 1) end
local start = math.max(0, stop - tonumber(ARGV[2]) + 1)
local turns = {}
if stop >= 0 then turns = redis.call('LRANGE', KEYS[2], start, stop) end
local following = ''
if start > 0 and stop >= 0 then following = string.format('%d', first + start) end
return {kept[1], kept[2], kept[3], kept[4], count, turns, following}
""")
_RENAME = Script("""
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'title', ARGV[1])
return 1
""")
# Artefacts go with their conversation, also when it has no turn yet.
_FORGET_ARTEFACTS = f"""
local function forget_artefacts(conversation_key)
    local artefacts = '{redis_keys.conversation_artefacts("")}' .. conversation_key
    local names = '{redis_keys.artefact("")}'
    for _, run in ipairs(redis.call('SMEMBERS', artefacts)) do redis.call('DEL', names .. run) end
    redis.call('DEL', artefacts)
end
"""
_CLEAR = Script(
    _FORGET_ARTEFACTS
    + """
forget_artefacts(ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('DEL', KEYS[2])
return 1
"""
)
_DELETE = Script(
    _FORGET_ARTEFACTS
    + """
forget_artefacts(ARGV[1])
redis.call('DEL', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
return redis.call('DEL', KEYS[1])
"""
)
_DELETE_ALL = Script("""
local count = 0
for _, key in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    count = count + redis.call('DEL', ARGV[1] .. key)
    redis.call('DEL', ARGV[2] .. key)
end
for _, run in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do redis.call('DEL', ARGV[3] .. run) end
redis.call('DEL', KEYS[1], KEYS[2])
return count
""")
_LATEST = ("+inf", "")


class RedisConversations:
    """Implements `store.Conversations` in Redis."""

    def __init__(self, access: RedisAccess) -> None:
        self._access = access

    async def recent(self, user_id: str, conversation_id: str, limit: int) -> tuple[Turn, ...]:
        turns = redis_keys.turns(redis_keys.digest(user_id, conversation_id))
        reply = await self._access.reply(_RECENT.command([turns], limit, FAILED))
        return tuple(map(turn_from_text, reversed(reply)))

    async def page(self, user_id: str, limit: int, cursor: str | None = None) -> ConversationPage:
        latest, before = _LATEST
        if cursor is not None:
            updated_us, conversation_key = parse_place_cursor(cursor)
            latest, before = str(updated_us), conversation_key.hex()

        keys = [redis_keys.conversations(redis_keys.digest(user_id))]
        names, turns = redis_keys.conversation(""), redis_keys.turns("")
        reply = await self._access.reply(
            _PAGE.command(keys, latest, before, limit + 1, names, turns)
        )
        listed = tuple(map(_conversation, reply[:limit]))
        if len(reply) <= limit:
            return ConversationPage(listed, None)

        *_, updated, _, last = reply[limit - 1]
        return ConversationPage(listed, place_cursor(int(updated), bytes.fromhex(last.decode())))

    async def turns(
        self, user_id: str, conversation_id: str, limit: int, cursor: str | None = None
    ) -> TurnPage | None:
        before = "" if cursor is None else parse_turn_cursor(cursor)
        reply = await self._access.reply(
            _TURNS.command(_keys(user_id, conversation_id), before, limit)
        )
        if reply is None:
            return None

        turns, following = reply[5:]
        return TurnPage(
            _conversation(reply), tuple(map(turn_from_text, turns)), following.decode() or None
        )

    async def rename(self, user_id: str, conversation_id: str, title: str) -> bool:
        command = _RENAME.command(_keys(user_id, conversation_id), to_text(title))
        return bool(await self._access.reply(command))

    async def clear(self, user_id: str, conversation_id: str) -> bool:
        digest = redis_keys.digest(user_id, conversation_id)
        command = _CLEAR.command(_keys(user_id, conversation_id), digest)
        return bool(await self._access.reply(command))

    async def delete(self, user_id: str, conversation_id: str) -> bool:
        conversations = redis_keys.conversations(redis_keys.digest(user_id))
        keys = [*_keys(user_id, conversation_id), conversations]
        command = _DELETE.command(keys, redis_keys.digest(user_id, conversation_id))
        return bool(await self._access.reply(command))

    async def delete_all(self, user_id: str) -> int:
        user = redis_keys.digest(user_id)
        keys = [redis_keys.conversations(user), redis_keys.artefacts(user)]
        names = (redis_keys.conversation(""), redis_keys.turns(""), redis_keys.artefact(""))
        command = _DELETE_ALL.command(keys, *names)
        return int(await self._access.reply(command))


def _keys(user_id: str, conversation_id: str) -> list[str]:
    digest = redis_keys.digest(user_id, conversation_id)
    return [redis_keys.conversation(digest), redis_keys.turns(digest)]


def _conversation(values: list[Any]) -> Conversation:
    conversation_id, title, created, updated, count = values[:5]
    return Conversation(
        conversation_id=from_text(conversation_id),
        title=from_text(title),
        created_at=timestamp(int(created)),
        updated_at=timestamp(int(updated)),
        turn_count=int(count),
    )
