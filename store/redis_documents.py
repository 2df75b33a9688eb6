"""Keeps shared documents in Redis."""

from store import redis_keys
from store.redis_access import RedisAccess, Script
from store.shared_documents import SharedDocument

_WRITE = Script("""
if (redis.call('HGET', KEYS[1], 'revision') or '0') ~= ARGV[2] then
    return 0
end
redis.call('HSET', KEYS[1], 'revision', ARGV[2] + 1, 'text', ARGV[1])
return 1
""")


class RedisDocuments:
    """Implements `store.shared_documents.SharedDocuments` in Redis."""

    def __init__(self, access: RedisAccess) -> None:
        self._access = access

    async def read(self, name: str) -> SharedDocument | None:
        command = ("HMGET", redis_keys.document(name), "revision", "text")
        revision, text = await self._access.reply(command)
        if revision is None:
            return None

        return SharedDocument(int(revision), text.decode())

    async def write(self, name: str, text: str, revision: int) -> bool:
        command = _WRITE.command([redis_keys.document(name)], text, str(revision))
        return bool(await self._access.reply(command))
