"""Vectors of texts, kept in the store's PostgreSQL where it has pgvector.

They only spare asking for them again, so that whatever goes wrong here is no failure: there are
just none.
"""

import json
import logging
from array import array
from collections.abc import Mapping, Sequence

from common.errors import StoreUnavailable
from store.postgres_access import PostgresAccess

_log = logging.getLogger(__name__)

_AT_ONCE = 200  # vectors of one statement
_UNUSED_DAYS = 90  # after which a vector is forgotten
# Creates what is missing if the role may; without the extension, or the right, nothing happens and
# no type is found.
_ENSURE = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
        CREATE EXTENSION IF NOT EXISTS vector;
    END IF;
EXCEPTION WHEN OTHERS THEN NULL; END $$;
DO $$ DECLARE type text := (
    SELECT format('%I.vector', nspname)
    FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
    WHERE extname = 'vector');
BEGIN
    IF type IS NOT NULL THEN
        EXECUTE format('CREATE TABLE IF NOT EXISTS citu.text_vector (
            vector_key bytea PRIMARY KEY,
            vector %s NOT NULL,
            used_on date NOT NULL DEFAULT current_date
        )', type);
    END IF;
EXCEPTION WHEN OTHERS THEN NULL; END $$;
SELECT to_regclass('citu.text_vector') IS NOT NULL
"""
_READ = """
UPDATE citu.text_vector SET used_on = current_date
WHERE vector_key = ANY (%s) AND used_on < current_date;
SELECT encode(vector_key, 'hex'), vector::text FROM citu.text_vector WHERE vector_key = ANY (%s)
"""
_WRITE = f"""
DELETE FROM citu.text_vector WHERE used_on < current_date - {_UNUSED_DAYS};
INSERT INTO citu.text_vector (vector_key, vector)
SELECT new.key, new.vector::{{type}} FROM unnest(%s, %s) AS new (key, vector)
ON CONFLICT DO NOTHING
"""
_TYPE = """
SELECT format_type(atttypid, NULL) FROM pg_attribute
WHERE attrelid = 'citu.text_vector'::regclass AND attname = 'vector'
"""


class PostgresVectors:
    """Implements `store.vectors.VectorRepository`; keeps nothing where there is no pgvector. Raises
    nothing.
    """

    def __init__(self, access: PostgresAccess) -> None:
        self._access = access
        self._type = ""  # how it is written; empty until it is known to be there

    async def read(self, keys: Sequence[bytes]) -> Mapping[bytes, "array[float]"]:
        vectors: dict[bytes, array[float]] = {}
        try:
            if not await self._is_there():
                return {}

            for start in range(0, len(keys), _AT_ONCE):
                some = list(keys[start : start + _AT_ONCE])
                rows = await self._access.rows(_READ, (some, some))
                vectors |= {bytes.fromhex(key): array("f", json.loads(text)) for key, text in rows}
        except StoreUnavailable:
            _log.info("kept vectors can't be read")

        return vectors

    async def write(self, vectors: Mapping[bytes, "array[float]"]) -> None:
        texts = [f"[{','.join(map(repr, vector))}]" for vector in vectors.values()]
        try:
            if await self._is_there():
                await self._access.rows(_WRITE.format(type=self._type), (list(vectors), texts))
        except StoreUnavailable:
            _log.info("vectors can't be kept")

    async def _is_there(self) -> bool:
        if self._type:
            return True

        ((is_there,),) = await self._access.rows(_ENSURE)
        if is_there != "t":
            return False

        ((self._type,),) = await self._access.rows(_TYPE)
        return True
