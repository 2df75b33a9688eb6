"""Artefacts in PostgreSQL. `PostgresConversations` deletes those of conversations that go."""

from store import Retention, StoredArtefact
from store.postgres_access import PostgresAccess
from store.postgres_values import read_bytes
from store.record_json import key

_KEEP = """
INSERT INTO citu.artefact AS old
    (run_key, user_key, conversation_key, data, preview, kept_at, expires_at)
VALUES (%s, %s, %s, %s, %s, now(), now() + %s * interval '1 second')
ON CONFLICT (run_key) DO UPDATE SET
    data = excluded.data, preview = excluded.preview, kept_at = excluded.kept_at,
    expires_at = excluded.expires_at
WHERE old.user_key = excluded.user_key;
DELETE FROM citu.artefact WHERE run_key IN
    (SELECT run_key FROM citu.artefact WHERE user_key = %s ORDER BY kept_at DESC, run_key OFFSET %s)
RETURNING 1
"""
_FIND = """
SELECT data, preview FROM citu.artefact LEFT JOIN citu.conversation USING (conversation_key)
WHERE run_key = %s AND artefact.user_key = %s
    AND (artefact.expires_at > now() OR conversation.expires_at > now())
"""
# Those of conversations that go on are kept on; a limited number of the others is removed.
REMOVE_ARTEFACTS = """
UPDATE citu.artefact SET expires_at = conversation.expires_at FROM citu.conversation
WHERE artefact.conversation_key = conversation.conversation_key
    AND artefact.expires_at <= now() AND conversation.expires_at > now();
DELETE FROM citu.artefact WHERE run_key IN
    (SELECT run_key FROM citu.artefact WHERE expires_at <= now() LIMIT 100 FOR UPDATE SKIP LOCKED);
"""


class PostgresArtefacts:
    """Implements `store.Artefacts` in PostgreSQL."""

    def __init__(self, access: PostgresAccess, retention: Retention) -> None:
        self._access = access
        self._first_s = max(retention.waiting_ttl_s, retention.run_ttl_s)
        self._most = retention.own_artefacts

    async def keep(
        self, user_id: str, conversation_id: str, run_id: str, artefact: StoredArtefact
    ) -> None:
        user_key = key(user_id)
        ids = (key(run_id), user_key, key(user_id, conversation_id))
        kept = (artefact.data, artefact.preview, self._first_s)
        await self._access.rows(_KEEP, (*ids, *kept, user_key, self._most))

    async def find(self, user_id: str, run_id: str) -> StoredArtefact | None:
        rows = await self._access.rows(_FIND, (key(run_id), key(user_id)))
        if not rows:
            return None

        data, preview = (read_bytes(value) for value in rows[0])
        return StoredArtefact(data, preview)
