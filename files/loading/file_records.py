"""What the workspace keeps of each file: beside the tables, changed in the same transactions."""

from typing import Any

import psycopg
from psycopg.types.json import Jsonb

SCHEMA = "citu_files"
_LOCK = 0x43697479  # advisory lock number, arbitrary but ours
_TABLES = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS {SCHEMA}.file (
    id text PRIMARY KEY,
    owner text NOT NULL,
    name text NOT NULL,
    groups text[] NOT NULL DEFAULT '{{}}',
    tables jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    version bigint NOT NULL DEFAULT 1
);
CREATE INDEX IF NOT EXISTS file_owner ON {SCHEMA}.file (owner);
CREATE TABLE IF NOT EXISTS {SCHEMA}.change (number bigint NOT NULL);
INSERT INTO {SCHEMA}.change SELECT 0 WHERE NOT EXISTS (SELECT FROM {SCHEMA}.change);
"""
_SAVE = f"""
INSERT INTO {SCHEMA}.file (id, owner, name, groups, tables) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, groups = excluded.groups,
    tables = excluded.tables, changed_at = clock_timestamp(), version = {SCHEMA}.file.version + 1
"""
COLUMNS = "id, owner, name, groups, tables, created_at, changed_at, version"
ALL = f"SELECT {COLUMNS} FROM {SCHEMA}.file ORDER BY created_at, id"
CHANGES = f"SELECT number FROM {SCHEMA}.change"

Connection = psycopg.Connection[tuple[Any, ...]]


def ensure_records(connection: Connection) -> None:
    """Make the tables of the records unless they exist; several processes may do so at once."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        connection.execute(_TABLES)


def save_record(
    connection: Connection,
    record: dict[str, Any],
    tables: list[dict[str, Any]],
) -> None:
    """Keep what a file is now, inside a transaction."""
    connection.execute(
        _SAVE,
        [record["id"], record["owner"], record["name"], list(record["groups"]), Jsonb(tables)],
    )
    note_change(connection)


def forget_record(connection: Connection, file_id: str) -> None:
    """Forget a file, inside a transaction."""
    connection.execute(f"DELETE FROM {SCHEMA}.file WHERE id = %s", [file_id])
    note_change(connection)


def note_change(connection: Connection) -> None:
    """Tell all processes that the tables are others now; last in a transaction, since it locks."""
    connection.execute(f"UPDATE {SCHEMA}.change SET number = number + 1")
