"""Creates the database in the embedded server in which drafted transformations are built and
tested.

Its role owns it and can connect nowhere else. What it can use up is bounded: connections, and the
files in which large sorts and joins are kept.
"""

from contextlib import closing

import psycopg2
from psycopg2 import sql

from databases.demo.loader import DemoServer

DATABASE = "citu_scratch"
ROLE = "citu_scratch"

_LOCK = 0x43697478  # advisory lock number, arbitrary but ours
_ATTRIBUTES = (
    "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION NOBYPASSRLS "
    "CONNECTION LIMIT 8"
)
_TEMP_FILES = "1GB"  # of one session
# Databases of a new server, which it lets every role connect to.
_OPEN_TO_ALL = ("postgres", "template1")


def ensure_scratch_database(server: DemoServer, database: str = DATABASE) -> str:
    """Create the database and its role unless they exist; return its URL for that role.

    Several processes may call it at the same time.

    Raises:
        psycopg2.Error: the server went away, or its disk is full.
    """
    names = {"database": sql.Identifier(database), "role": sql.Identifier(ROLE)}
    with closing(psycopg2.connect(server.admin_url)) as admin, admin.cursor() as cursor:
        admin.autocommit = True
        # Released when the connection closes
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        _ensure_role(cursor, names)
        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [database])
        if cursor.fetchone() is None:
            template = "TEMPLATE template0 ENCODING 'UTF8'"
            cursor.execute(
                sql.SQL(f"CREATE DATABASE {{database}} OWNER {{role}} {template}").format(**names)
            )
        cursor.execute(sql.SQL("REVOKE ALL ON DATABASE {database} FROM PUBLIC").format(**names))
        _close_to_all(cursor)
    return server.url(database, ROLE)


def _ensure_role(cursor: psycopg2.extensions.cursor, names: dict[str, sql.Identifier]) -> None:
    cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [ROLE])
    if cursor.fetchone() is None:
        cursor.execute(sql.SQL("CREATE ROLE {role} LOGIN").format(**names))
    for statement in (
        f"ALTER ROLE {{role}} {_ATTRIBUTES}",
        "ALTER ROLE {role} RESET ALL",  # a role may change its own settings; this undoes it
        f"ALTER ROLE {{role}} SET temp_file_limit = '{_TEMP_FILES}'",
    ):
        cursor.execute(sql.SQL(statement).format(**names))


def _close_to_all(cursor: psycopg2.extensions.cursor) -> None:
    """Take from roles that were not given it the right to connect to databases of a new server."""
    cursor.execute(
        "SELECT datname FROM pg_database WHERE datname = ANY(%s) "
        "AND has_database_privilege(%s, oid, 'CONNECT')",
        [list(_OPEN_TO_ALL), ROLE],
    )
    for (name,) in cursor.fetchall():
        cursor.execute(
            sql.SQL("REVOKE CONNECT, TEMPORARY ON DATABASE {} FROM PUBLIC").format(
                sql.Identifier(name)
            )
        )
