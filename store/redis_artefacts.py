"""Artefacts in Redis. `RedisConversations` deletes those of conversations that go, and
`RedisRuns.write` keeps those on of conversations that go on.
"""

from store import Retention, StoredArtefact, redis_keys
from store.redis_access import RedisAccess, Script

_KEEP = Script("""
local time = redis.call('TIME')
local artefact, owned, said = unpack(KEYS)
local run, user, data, preview, most, ttl, names = unpack(ARGV)
local owner = redis.call('HGET', artefact, 'user')
if owner and owner ~= user then return 0 end
redis.call('HSET', artefact, 'user', user, 'data', data, 'preview', preview)
redis.call('ZADD', owned, time[1] * 1000000 + time[2], run)
redis.call('SADD', said, run)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ttl) end
for _, oldest in ipairs(redis.call('ZRANGE', owned, 0, -most - 1)) do
    redis.call('DEL', names .. oldest)
    redis.call('ZREM', owned, oldest)
end
return 1
""")


class RedisArtefacts:
    """Implements `store.Artefacts` in Redis."""

    def __init__(self, access: RedisAccess, retention: Retention) -> None:
        self._access = access
        kept_s = max(retention.conversation_ttl_s, retention.waiting_ttl_s, retention.run_ttl_s)
        self._ttl = redis_keys.milliseconds(kept_s)
        self._most = retention.own_artefacts

    async def keep(
        self, user_id: str, conversation_id: str, run_id: str, artefact: StoredArtefact
    ) -> None:
        run, user = redis_keys.digest(run_id), redis_keys.digest(user_id)
        conversation = redis_keys.digest(user_id, conversation_id)
        keys = [
            redis_keys.artefact(run),
            redis_keys.artefacts(user),
            redis_keys.conversation_artefacts(conversation),
        ]
        names = redis_keys.artefact("")
        await self._access.reply(
            _KEEP.command(
                keys, run, user, artefact.data, artefact.preview, self._most, self._ttl, names
            )
        )

    async def find(self, user_id: str, run_id: str) -> StoredArtefact | None:
        artefact = redis_keys.artefact(redis_keys.digest(run_id))
        command = ("HMGET", artefact, "user", "data", "preview")
        owner, data, preview = await self._access.reply(command)
        if owner is None or owner.decode() != redis_keys.digest(user_id):
            return None

        return StoredArtefact(bytes(data), bytes(preview))
