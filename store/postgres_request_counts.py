"""Counts requests in PostgreSQL: one row for each caller and limit, by the database's clock."""

from store.postgres_access import PostgresAccess
from store.record_json import key

# The window in which it is now, and how far it has passed.
_NOW = "extract(epoch FROM clock_timestamp())::float8 / %s"
_HIT = f"""
SET LOCAL synchronous_commit = off;
WITH now AS MATERIALIZED (
    SELECT floor(at)::bigint AS number, at - floor(at) AS passed FROM (SELECT {_NOW} AS at) AS time
)
INSERT INTO citu.request_count AS old (count_key, window_number, hits, hits_before, expires_at)
SELECT %s, number, 1, 0, now() + %s * interval '1 second' FROM now
ON CONFLICT (count_key) DO UPDATE SET
    window_number = excluded.window_number,
    hits = CASE old.window_number WHEN excluded.window_number THEN old.hits + 1 ELSE 1 END,
    hits_before = CASE old.window_number
        WHEN excluded.window_number THEN old.hits_before
        WHEN excluded.window_number - 1 THEN old.hits ELSE 0 END,
    expires_at = excluded.expires_at
WHERE CASE old.window_number
    WHEN excluded.window_number
        THEN old.hits + old.hits_before * (1 - (SELECT passed FROM now)) + 1 <= %s
    WHEN excluded.window_number - 1 THEN old.hits * (1 - (SELECT passed FROM now)) + 1 <= %s
    ELSE true END
RETURNING 1
"""
_STATE = f"""
SELECT window_number, hits, hits_before, {_NOW} FROM citu.request_count WHERE count_key = %s
"""
_FORGET = "DELETE FROM citu.request_count WHERE expires_at < now()"
_FORGET_EACH = 1000  # requests of this process, so that rows of callers who left don't pile up


class PostgresRequestCounts:
    """Implements `store.request_counts.RequestCounts` in PostgreSQL."""

    def __init__(self, access: PostgresAccess) -> None:
        self._access = access
        self._counted = 0

    async def hit(self, caller: str, most: int, window_s: int) -> float:
        self._counted += 1
        if self._counted % _FORGET_EACH == 0:
            await self._access.rows(_FORGET)

        count_key = key(caller, str(most), str(window_s))
        given = (window_s, count_key, 2 * window_s, most, most)
        if await self._access.rows(_HIT, given):
            return 0.0

        for row in await self._access.rows(_STATE, (window_s, count_key)):
            number, hits, before, now = (float(value) for value in row)
            return max(0.001, window_s * windows_until_room(number, hits, before, now, most))

        return 0.0


def windows_until_room(number: float, hits: float, before: float, now: float, most: int) -> float:
    """Return after how many windows another request fits, if none comes meanwhile."""
    if hits + 1 <= most and before > 0:
        fits_at = number + 1 - (most - hits - 1) / before
    else:
        # Not before the next window, in which the hits of this one count less and less.
        fits_at = number + 2 - (most - 1) / hits

    return fits_at - now
