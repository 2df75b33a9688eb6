"""Keeps shared documents in PostgreSQL."""

from store.postgres_access import PostgresAccess
from store.shared_documents import SharedDocument

_READ = "SELECT revision, data FROM citu.shared_document WHERE name = %s"
_ADD = """
INSERT INTO citu.shared_document (name, revision, data) VALUES (%s, 1, %s)
ON CONFLICT DO NOTHING RETURNING 1
"""
_REPLACE = """
UPDATE citu.shared_document SET data = %s, revision = revision + 1
WHERE name = %s AND revision = %s RETURNING 1
"""


class PostgresDocuments:
    """Implements `store.shared_documents.SharedDocuments` in PostgreSQL."""

    def __init__(self, access: PostgresAccess) -> None:
        self._access = access

    async def read(self, name: str) -> SharedDocument | None:
        for revision, text in await self._access.rows(_READ, (name,)):
            return SharedDocument(int(revision), text)

        return None

    async def write(self, name: str, text: str, revision: int) -> bool:
        if revision == 0:
            return bool(await self._access.rows(_ADD, (name, text)))

        return bool(await self._access.rows(_REPLACE, (text, name, revision)))
