"""Proves that the role by which a hub reads a source can't write there.

A transaction that is READ ONLY in the hub is none in the source: reading a foreign table runs
whatever a view of the source calls. So the source's own role must be unable to write: by what it
is granted, and by transactions that are read-only from their first statement.
"""

from collections.abc import Sequence
from contextlib import closing

import psycopg2
from psycopg2 import sql

from common.text import Text
from databases.catalog.privileges import dangers_of
from databases.sources.hub_statements import create_foreign_table
from databases.sources.source_address import SourceAddress, SourceError
from postgres.connection_errors import first_line

_CONNECT_S = 5
_TIMEOUT_MS = 5000
_PROBE_TABLE = "citu_probe"
_READ_ONLY = "25006"
_WRITES = Text("它的事务不是只读的", "its transactions are not read-only")


def prove_read_only(name: str, address: SourceAddress) -> None:
    """Return when the role of a PostgreSQL source can't write.

    Raises:
        SourceError: it can, or the source can't be reached; with the statements to run.
    """
    try:
        with closing(psycopg2.connect(address.dsn, connect_timeout=_CONNECT_S)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(f"SET statement_timeout = {_TIMEOUT_MS}")

            dangers = [*dangers_of(connection)]
            if not _refuses_writes(connection):
                dangers.append(_WRITES)
    except psycopg2.Error as error:
        reason = first_line(error, "no answer")
        raise SourceError(
            f"无法读取 {name}：{reason}", f"{name} can't be read: {reason}"
        ) from error

    if dangers:
        raise _refusal(name, address, dangers)


def _refuses_writes(connection: psycopg2.extensions.connection) -> bool:
    with connection.cursor() as cursor:
        try:
            cursor.execute(f"BEGIN; CREATE TEMPORARY TABLE {_PROBE_TABLE} (n integer)")
        except psycopg2.Error as refusal:
            return refusal.pgcode == _READ_ONLY
        finally:
            cursor.execute("ROLLBACK")

    return False


def _refusal(name: str, address: SourceAddress, dangers: Sequence[Text]) -> SourceError:
    role = "citu_source"
    database = address.server["dbname"]
    statements = "\n".join(
        (
            f"  CREATE ROLE {role} LOGIN PASSWORD '…';",
            f"  ALTER ROLE {role} SET default_transaction_read_only = on;",
            f'  GRANT CONNECT ON DATABASE "{database}" TO {role};',
            "  REVOKE CREATE ON SCHEMA public FROM PUBLIC;",
            f"  GRANT USAGE ON SCHEMA public TO {role};",
            f"  GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role};",
        )
    )
    zh = "；".join(danger.zh for danger in dangers)
    en = "; ".join(danger.en for danger in dangers)
    return SourceError(
        f"不能用可以写入的角色读取 {name}：{zh}。\n在来源中这样建立只读角色：\n{statements}",
        f"{name} can't be read by a role that could write: {en}.\n"
        f"A role that can only read is made in the source by:\n{statements}",
    )


def prove_through_hub(
    hub: psycopg2.extensions.connection, name: str, schema: str, reader: str
) -> None:
    """Return when the hub's own connection to a PostgreSQL source, opened for the role that asks,
    is read-only and may write to nothing.

    It is a part of the open transaction, and leaves nothing behind in the hub.

    Raises:
        SourceError: it is not, or the source does not answer.
    """
    try:
        with hub.cursor() as cursor:
            cursor.execute(f"SAVEPOINT citu_look; SET LOCAL statement_timeout = {_TIMEOUT_MS}")
            _look_through(cursor, name, schema, reader)
            cursor.execute(sql.SQL(_SETTING).format(schema=sql.Identifier(schema)))
            setting = cursor.fetchone()
            cursor.execute(sql.SQL(_GRANTS).format(schema=sql.Identifier(schema)))
            grants = cursor.fetchall()
            cursor.execute("ROLLBACK TO SAVEPOINT citu_look")
    except psycopg2.Error as error:
        reason = first_line(error, "no answer")
        raise SourceError(
            f"无法通过枢纽读取 {name}：{reason}", f"{name} can't be read through the hub: {reason}"
        ) from error

    if setting != ("on",):
        raise SourceError(
            f"{name}：枢纽在那里的事务不是只读的。",
            f"{name}: the hub's transactions there are not read-only.",
        )
    if grants:
        tables = ", ".join(f"{schema}.{table}" for schema, table in grants)
        raise SourceError(
            f"{name}：枢纽在那里的角色可以写入 {tables}。",
            f"{name}: the role that the hub has there may write to {tables}.",
        )


# Views of the source that tell what its session may do
_SETTING = "SELECT setting FROM {schema}.citu_probe WHERE name = 'transaction_read_only'"
_GRANTS = """
SELECT DISTINCT table_schema, table_name FROM {schema}.citu_probe_grants
WHERE privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE') AND table_schema !~ '^pg_'
    AND table_schema <> 'information_schema'
LIMIT 5
"""
_VIEWS = (
    ("citu_probe", "name text, setting text", "pg_catalog", "pg_settings"),
    (
        "citu_probe_grants",
        "table_schema text, table_name text, privilege_type text",
        "information_schema",
        "role_table_grants",
    ),
)


def _look_through(cursor: psycopg2.extensions.cursor, name: str, schema: str, reader: str) -> None:
    """Make foreign tables for one transaction, and take the role of who asks."""
    for table, columns, remote_schema, remote in _VIEWS:
        options = {
            "schema_name": remote_schema,
            "table_name": remote,
            "use_remote_estimate": "false",
        }
        create_foreign_table(cursor, name, (schema, table), sql.SQL(columns), options)
        cursor.execute(
            sql.SQL("GRANT SELECT ON {} TO {}").format(
                sql.Identifier(schema, table), sql.Identifier(reader)
            )
        )

    cursor.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(reader)))
