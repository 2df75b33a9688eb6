"""The role that Citu connects with: it can connect and SELECT, and PostgreSQL refuses it everything
else.
"""

from psycopg2 import sql

# psycopg2 names its class in lower case.
from psycopg2.extensions import connection as Connection  # noqa: N812

READER = "citu_reader"

# Functions that write although no statement does; by default every role may call them.
_WRITING_FUNCTIONS = (
    "lo_creat(integer)",
    "lo_create(oid)",
    "lo_from_bytea(oid, bytea)",
    "lo_open(oid, integer)",
    "lo_put(oid, bigint, bytea)",
    "lo_truncate(integer, integer)",
    "lo_truncate64(integer, bigint)",
    "lo_unlink(oid)",
    "lowrite(integer, bytea)",
    "pg_logical_emit_message(boolean, text, bytea, boolean)",
    "pg_logical_emit_message(boolean, text, text, boolean)",
    "pg_notify(text, text)",
)


def create_reader(admin: Connection) -> None:
    """Create the role in the server of `admin` (a superuser's connection) unless it exists; reset
    its settings.
    """
    with admin.cursor() as cursor:
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [READER])
        if cursor.fetchone() is None:
            cursor.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(READER)))

        for statement in (
            "ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS",
            "ALTER ROLE {} RESET ALL",  # a role may change its own settings; this undoes it
            "ALTER ROLE {} SET default_transaction_read_only = on",
        ):
            cursor.execute(sql.SQL(statement).format(sql.Identifier(READER)))


def grant_reading(admin: Connection) -> None:
    """Let the reader, and nobody else but owners, read every table of the database `admin` is
    connected to.
    """
    names = {"database": sql.Identifier(admin.info.dbname), "reader": sql.Identifier(READER)}
    with admin.cursor() as cursor:
        cursor.execute(sql.SQL("REVOKE ALL ON DATABASE {database} FROM PUBLIC").format(**names))
        cursor.execute(sql.SQL("GRANT CONNECT ON DATABASE {database} TO {reader}").format(**names))
        cursor.execute(
            "SELECT nspname FROM pg_namespace"
            " WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
        )
        for (schema,) in cursor.fetchall():
            for statement in (
                "REVOKE ALL ON SCHEMA {schema} FROM PUBLIC",
                "GRANT USAGE ON SCHEMA {schema} TO {reader}",
                "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {reader}",
            ):
                cursor.execute(sql.SQL(statement).format(schema=sql.Identifier(schema), **names))

        # Which of them exist depends on the server's version.
        cursor.execute(
            "SELECT name FROM unnest(%s) AS name WHERE to_regprocedure(name) IS NOT NULL",
            [list(_WRITING_FUNCTIONS)],
        )
        for (function,) in cursor.fetchall():
            cursor.execute(f"REVOKE EXECUTE ON FUNCTION pg_catalog.{function} FROM PUBLIC")
