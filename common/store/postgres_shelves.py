"""What is learnt in PostgreSQL: records on shelves (`postgres_learned_schema`)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from common.store.postgres_access import PostgresAccess, Row
from common.store.shelves import Applied, Change, Found, Room, Shelf

_REVISIONS = "SELECT shelf, revision FROM citu.shelf WHERE shelf = ANY (%s)"
# One statement, so that the records and the revision are of the same moment.
_READ = """
SELECT shelf.shelf, revision, record_key, data, uses, position
FROM citu.shelf LEFT JOIN (citu.place JOIN citu.learned USING (record_key)) ON place.shelf = shelf.shelf
WHERE shelf.shelf = ANY (%s) ORDER BY position DESC, record_key DESC
"""
_FIND = "SELECT record_key, data, uses FROM citu.learned WHERE record_key = ANY (%s)"
_PAGE = """
SELECT record_key, data, uses, position FROM unnest(%s) AS wanted (shelf), LATERAL (
    SELECT record_key, position FROM citu.place WHERE place.shelf = wanted.shelf AND (position, record_key) < (%s, %s)
    ORDER BY position DESC, record_key DESC LIMIT %s
) AS next JOIN citu.learned USING (record_key)
ORDER BY position DESC, record_key DESC LIMIT %s
"""
_LEARN = f"SELECT citu.learn({', '.join(['%s'] * 10)})"
# A record that is just being changed is not waited for: a use that isn't counted does no harm.
_COUNT_USE = """
SET LOCAL synchronous_commit = off;
UPDATE citu.learned SET uses = uses + 1 WHERE record_key IN (
    SELECT record_key FROM citu.learned WHERE record_key = ANY (%s) ORDER BY record_key FOR UPDATE SKIP LOCKED
) RETURNING 1
"""
_APPLIED: Mapping[str, Applied] = {"done": "done", "changed": "changed", "full": "full"}


class PostgresShelves:
    """Implements `common.store.shelves.Shelves`."""

    def __init__(self, access: PostgresAccess) -> None:
        self._access = access

    async def revisions(self, shelves: Sequence[bytes]) -> tuple[str, ...]:
        """The revision of each shelf."""
        rows = await self._access.rows(_REVISIONS, (list(shelves),))
        found = {_bytes(shelf): revision or "" for shelf, revision in rows}
        return tuple(found.get(shelf, "") for shelf in shelves)

    async def read(self, shelves: Sequence[bytes]) -> tuple[Shelf, ...]:
        """Each shelf with its records."""
        revisions: dict[bytes, str] = {}
        records: dict[bytes, list[Found]] = {shelf: [] for shelf in shelves}
        for shelf, revision, *record in await self._access.rows(_READ, (list(shelves),)):
            revisions[_bytes(shelf)] = revision or ""
            if record[0] is not None:
                records[_bytes(shelf)].append(_found(tuple(record)))
        return tuple(Shelf(revisions.get(shelf, ""), tuple(records[shelf])) for shelf in shelves)

    async def find(self, keys: Sequence[bytes]) -> Mapping[bytes, Found]:
        """The records of these keys."""
        found = [_found((*row, "0")) for row in await self._access.rows(_FIND, (list(keys),))]
        return {record.key: record for record in found}

    async def page(self, shelves: Collection[bytes], limit: int, before: tuple[int, bytes]) -> tuple[Found, ...]:
        """The records that stand next."""
        return tuple(map(_found, await self._access.rows(_PAGE, (list(shelves), *before, limit, limit))))

    async def apply(self, changes: Sequence[Change], room: Room) -> Applied:
        """Makes all changes, or none."""
        records = [change.after for change in changes if change.after is not None]
        places = [(record.key, shelf, position) for record in records for shelf, position in record.places.items()]
        texts = [(change.key, change.before, change.after.text if change.after else None) for change in changes]
        columns = (*_columns(3, texts), *_columns(3, places))
        rooms = (*_columns(2, room.most.items()), *_columns(2, room.latest.items()))
        rows = await self._access.rows(_LEARN, (*columns, *rooms))
        return _APPLIED[rows[0][0] or ""]

    async def count_use(self, keys: Collection[bytes]) -> None:
        """Adds one use to each."""
        await self._access.rows(_COUNT_USE, (list(keys),))


def _columns(count: int, rows: Any) -> list[list[Any]]:
    """Rows as one list per column, as `unnest` takes them."""
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
    return columns or [[] for _ in range(count)]


def _bytes(text: str | None) -> bytes:
    """Reads PostgreSQL's text form of a `bytea`."""
    return bytes.fromhex((text or "")[2:])


def _found(row: Row) -> Found:
    record_key, data, uses, position = row
    return Found(_bytes(record_key), data or "", int(uses or 0), int(position or 0))
