"""Keeps learned records in PostgreSQL (`migrations/005_learned_records.sql`)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from store.postgres_access import PostgresAccess
from store.postgres_values import columns_of, read_bytes
from store.records import Applied, RecordChange, RecordLimits, RecordSet, StoredRecord

_REVISIONS = "SELECT shelf, revision FROM citu.shelf WHERE shelf = ANY (%s)"
# One statement, so that the records and the revision are of the same moment.
_READ = """
SELECT shelf.shelf, revision, record_key, data, uses, position
FROM citu.shelf
LEFT JOIN (citu.place JOIN citu.learned USING (record_key)) ON place.shelf = shelf.shelf
WHERE shelf.shelf = ANY (%s) ORDER BY position DESC, record_key DESC
"""
_FIND = "SELECT record_key, data, uses FROM citu.learned WHERE record_key = ANY (%s)"
_PAGE = """
SELECT record_key, data, uses, position FROM unnest(%s) AS wanted (shelf), LATERAL (
    SELECT record_key, position FROM citu.place
    WHERE place.shelf = wanted.shelf AND (position, record_key) < (%s, %s)
    ORDER BY position DESC, record_key DESC LIMIT %s
) AS next JOIN citu.learned USING (record_key)
ORDER BY position DESC, record_key DESC LIMIT %s
"""
_LEARN = f"SELECT citu.learn({', '.join(['%s'] * 10)})"
# A record that is just being changed is not waited for: a use that isn't counted does no harm.
_COUNT_USE = """
SET LOCAL synchronous_commit = off;
WITH counted AS (
    SELECT record_key, count(*) AS times FROM unnest(%s::bytea[]) AS used (record_key) GROUP BY 1
), locked AS (
    SELECT record_key FROM citu.learned WHERE record_key IN (SELECT record_key FROM counted)
    ORDER BY record_key FOR UPDATE
)
UPDATE citu.learned AS known SET uses = known.uses + counted.times
FROM counted JOIN locked USING (record_key) WHERE known.record_key = counted.record_key
RETURNING 1
"""
_APPLIED: Mapping[str, Applied] = {"done": "done", "changed": "changed", "full": "full"}


class PostgresRecords:
    """Implements `RecordRepository` in PostgreSQL."""

    def __init__(self, access: PostgresAccess) -> None:
        self._access = access

    async def revisions(self, record_sets: Sequence[bytes]) -> tuple[str, ...]:
        rows = await self._access.rows(_REVISIONS, (list(record_sets),))
        revision_by_set = {read_bytes(record_set): revision for record_set, revision in rows}
        return tuple(revision_by_set.get(record_set, "") for record_set in record_sets)

    async def read(self, record_sets: Sequence[bytes]) -> tuple[RecordSet, ...]:
        revisions: dict[bytes, str] = {}
        records: dict[bytes, list[StoredRecord]] = {record_set: [] for record_set in record_sets}
        rows = await self._access.rows(_READ, (list(record_sets),))
        for set_key, revision, *record in rows:
            record_set = read_bytes(set_key)
            revisions[record_set] = revision
            if record[0] is not None:  # the set is not empty
                records[record_set].append(_record_of(record))

        return tuple(
            RecordSet(revisions.get(each, ""), tuple(records[each])) for each in record_sets
        )

    async def find(self, keys: Sequence[bytes]) -> Mapping[bytes, StoredRecord]:
        rows = await self._access.rows(_FIND, (list(keys),))
        records = [_record_of([*row, "0"]) for row in rows]
        return {record.key: record for record in records}

    async def page(
        self, record_sets: Collection[bytes], limit: int, before: tuple[int, bytes]
    ) -> tuple[StoredRecord, ...]:
        parameters = (list(record_sets), *before, limit, limit)
        return tuple(map(_record_of, await self._access.rows(_PAGE, parameters)))

    async def apply(self, changes: Sequence[RecordChange], limits: RecordLimits) -> Applied:
        texts: list[tuple[bytes, str | None, str | None]] = []
        positions: list[tuple[bytes, bytes, int]] = []
        for change in changes:
            after = change.after
            if after is None:
                texts.append((change.key, change.before, None))
                continue

            texts.append((change.key, change.before, after.text))
            for record_set, position in after.positions.items():
                positions.append((after.key, record_set, position))

        columns = (
            *columns_of(texts, 3),
            *columns_of(positions, 3),
            *columns_of(limits.most.items(), 2),
            *columns_of(limits.latest.items(), 2),
        )
        ((applied,),) = await self._access.rows(_LEARN, columns)
        return _APPLIED[applied]

    async def count_use(self, keys: Collection[bytes]) -> None:
        await self._access.rows(_COUNT_USE, (list(keys),))


def _record_of(row: Sequence[Any]) -> StoredRecord:
    record_key, data, uses, position = row
    return StoredRecord(read_bytes(record_key), data, int(uses), int(position))
