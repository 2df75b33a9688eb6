"""A database of which each table's rows are spread over three others, as partitions of a hub."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import psycopg2
from psycopg2.extensions import cursor

from databases.demo.loader import DemoServer
from databases.demo.reader import grant_reading
from tests.support.hub_server import HubWorld, make_hub

NODES = 3

_TABLES = """
SELECT n.nspname, c.relname, (
    SELECT a.attname FROM pg_attribute a LEFT JOIN pg_index i
        ON i.indrelid = c.oid AND i.indisprimary AND a.attnum = i.indkey[0]
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY i.indrelid IS NULL, a.attnum LIMIT 1)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname !~ '^(pg_|information_schema|node)' ORDER BY 1, 2
"""
_VIEWS = """
SELECT c.relkind = 'm', c.oid::regclass::text, pg_get_viewdef(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('v', 'm') AND n.nspname !~ '^(pg_|information_schema|node)' ORDER BY c.oid
"""


def make_spread(server: DemoServer, ddl: str, servers: Sequence[DemoServer] = ()) -> HubWorld:
    """Make a hub whose tables have a third of their rows in each of three sources.

    Rows are told apart by a hash of the first column of the primary key.

    Args:
        servers: those of the sources; the hub's own if there are none.
    """
    nodes = {f"node{number}": f"{ddl};{_only(number)}" for number in range(NODES)}
    world = make_hub(server, nodes, ddl, servers)
    with closing(psycopg2.connect(world.admin_url)) as admin:
        admin.autocommit = True
        with admin.cursor() as hub:
            _spread(hub)
        grant_reading(admin)
        with admin.cursor() as hub:
            # Estimates of the sources take a round trip for each way to run a statement.
            for name in nodes:
                hub.execute(f"ALTER SERVER {name} OPTIONS (SET use_remote_estimate 'false')")
            hub.execute("ANALYZE")
    return world


def _only(number: int) -> str:
    """Return statements by which a source keeps only its own rows."""
    return f"""
DO $spread$ DECLARE one record; BEGIN
SET LOCAL session_replication_role = replica;
FOR one IN {_TABLES} LOOP
    EXECUTE format('CREATE TABLE citu_spread (LIKE %I.%I) PARTITION BY HASH (%I)',
        one.nspname, one.relname, one.attname);
    EXECUTE format('DELETE FROM %I.%I WHERE NOT satisfies_hash_partition('
        '''citu_spread''::regclass, {NODES}, {number}, %I)',
        one.nspname, one.relname, one.attname);
    DROP TABLE citu_spread;
END LOOP; END $spread$"""


def _spread(hub: cursor) -> None:
    """Let the rows of the tables of this database come from the sources."""
    hub.execute(_VIEWS)
    views = hub.fetchall()
    for is_stored, name, _ in views:
        kind = "MATERIALIZED VIEW" if is_stored else "VIEW"
        hub.execute(f"DROP {kind} IF EXISTS {name} CASCADE")

    hub.execute(_TABLES)
    for schema, table, key in hub.fetchall():
        for statement in _partitions(schema, table, key):
            hub.execute(statement)

    for is_stored, name, definition in views:
        kind = "MATERIALIZED VIEW" if is_stored else "VIEW"
        hub.execute(f"CREATE {kind} {name} AS {definition}")


def _partitions(schema: str, table: str, key: str) -> Iterator[str]:
    place = f'"{schema}"."{table}"'
    yield f'ALTER TABLE {place} RENAME TO "citu_before"'
    yield (
        f'CREATE TABLE {place} (LIKE "{schema}"."citu_before"'
        f' INCLUDING COMMENTS INCLUDING CONSTRAINTS) PARTITION BY HASH ("{key}")'
    )
    yield f'DROP TABLE "{schema}"."citu_before" CASCADE'
    for number in range(NODES):
        yield (
            f'CREATE FOREIGN TABLE "{schema}"."{table}_{number}" PARTITION OF {place}'
            f" FOR VALUES WITH (MODULUS {NODES}, REMAINDER {number}) SERVER node{number}"
            f" OPTIONS (schema_name '{schema}', table_name '{table}')"
        )
