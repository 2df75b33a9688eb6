"""The tables of the PostgreSQL store, and how they come about: made, and brought up to date, by whoever connects first.

Keys are digests (`rendering.key`); `conversation_id`, `title`, `head` and turns are JSON, which holds any text. A
conversation's turns are numbered; those up to `forgotten` are gone, whether or not their rows still are. Rows past
`expires_at` are gone likewise, until they are removed.
"""

from psycopg2 import errors

from common.database.connection import Connection

_LOCK = 0x43697476  # advisory lock number, arbitrary but ours

# Each brings the tables from the version before it to its own; those that were released don't change.
_MIGRATIONS = (
    """
CREATE TABLE citu.conversation (
    conversation_key bytea PRIMARY KEY,  -- of user and conversation
    user_key bytea NOT NULL,
    conversation_id text NOT NULL,
    title text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,  -- whole milliseconds, as cursors have them
    last_turn bigint NOT NULL,
    forgotten bigint NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX ON citu.conversation (user_key, updated_at, conversation_key);
CREATE INDEX ON citu.conversation (expires_at);
CREATE TABLE citu.turn (
    conversation_key bytea NOT NULL REFERENCES citu.conversation ON DELETE CASCADE,
    number bigint NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (conversation_key, number)
);
CREATE TABLE citu.run (
    run_key bytea PRIMARY KEY,
    user_key bytea NOT NULL,
    worker_key bytea NOT NULL,
    head text NOT NULL,
    state text NOT NULL,
    last_seq integer NOT NULL,
    is_cancelling boolean NOT NULL DEFAULT false,
    is_taken boolean NOT NULL DEFAULT false,  -- ended by another than its worker
    lease_until timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 70);  -- no index holds what every write changes, so that rows are updated in place
CREATE INDEX ON citu.run (run_key) WHERE state = 'running';
CREATE TABLE citu.frame (
    run_key bytea NOT NULL,
    seq integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (run_key, seq)
);
CREATE TABLE citu.claim (
    claim_key bytea PRIMARY KEY,  -- of user and Idempotency-Key
    run_id text NOT NULL,
    fingerprint text NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX ON citu.claim (expires_at);
""",
)

# A role that may not create schemas can use one that was made for it.
_BEGIN = f"""
BEGIN;
SELECT pg_advisory_xact_lock({_LOCK});
DO $$ BEGIN IF to_regnamespace('citu') IS NULL THEN CREATE SCHEMA citu; END IF; END $$;
CREATE TABLE IF NOT EXISTS citu.version (version integer NOT NULL);
SELECT coalesce(max(version), 0) FROM citu.version
"""


async def ensure_schema(connection: Connection) -> None:
    """Makes the tables unless they are there; any number of processes at once."""
    if await _version(connection) >= len(_MIGRATIONS):
        return
    found = await connection.query(_BEGIN)
    missing = _MIGRATIONS[int(found.rows[0][0] or 0) :]
    if missing:
        version = f"DELETE FROM citu.version; INSERT INTO citu.version VALUES ({len(_MIGRATIONS)})"
        await connection.query(";".join((*missing, version)))
    await connection.query("COMMIT")


async def _version(connection: Connection) -> int:
    try:
        found = await connection.query("SELECT max(version) FROM citu.version")
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return 0
    return int(found.rows[0][0] or 0)
