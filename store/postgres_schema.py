"""Brings the tables of the PostgreSQL store up to date.

`migrations/` holds numbered SQL files. The first process that connects applies those that its
database does not have yet, in order. A file that was released must not change.
"""

from dataclasses import dataclass
from pathlib import Path

from psycopg2 import errors

from postgres.connection import Connection

_LOCK = 0x43697476  # advisory lock number, arbitrary but ours


@dataclass(frozen=True)
class Migration:
    """A file of `migrations/`, by the number that its name begins with."""

    number: int
    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    def sql(self) -> str:
        return self.path.read_text("utf-8")


def _migrations() -> tuple[Migration, ...]:
    paths = sorted((Path(__file__).parent / "migrations").glob("*.sql"))
    return tuple(Migration(int(path.name.partition("_")[0]), path) for path in paths)


MIGRATIONS = _migrations()
LATEST = MIGRATIONS[-1].number

# `citu.version` has a row for each migration. One that was made before migrations were files has a
# single row with the last number, and gets the columns that say more when the next one is applied.
# The schema is created only if it is missing, because the role may lack the right to create one.
_BEGIN = f"""
BEGIN;
SELECT pg_advisory_xact_lock({_LOCK});
DO $$ BEGIN IF to_regnamespace('citu') IS NULL THEN CREATE SCHEMA citu; END IF; END $$;
CREATE TABLE IF NOT EXISTS citu.version (version integer NOT NULL);
ALTER TABLE citu.version
    ADD COLUMN IF NOT EXISTS name text,
    ADD COLUMN IF NOT EXISTS applied_at timestamptz;
"""
_VERSION = "SELECT coalesce(max(version), 0) FROM citu.version"
_RECORD = "INSERT INTO citu.version (version, name, applied_at) VALUES (%s, %s, now())"


async def ensure_schema(connection: Connection) -> None:
    """Create or migrate the tables if needed; any number of processes may do so at once."""
    if await _version(connection) >= LATEST:
        return

    # Whoever gets the lock first applies the migrations; the others then find them applied.
    results = await connection.query(_BEGIN + _VERSION)
    version = int(results.rows[0][0] or 0)
    for migration in MIGRATIONS:
        if migration.number > version:
            await connection.query(migration.sql())
            await connection.query(_RECORD, (migration.number, migration.name))

    await connection.query("COMMIT")


async def _version(connection: Connection) -> int:
    """Return the number of the last migration that was applied; 0 for none."""
    try:
        rows = await connection.query(_VERSION)
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return 0

    return int(rows.rows[0][0] or 0)
