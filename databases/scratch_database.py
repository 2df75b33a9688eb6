"""Creates the database in the embedded server in which drafted transformations are built and
tested.

Its role owns it and can connect nowhere else. What it can use up is bounded: connections, and the
files in which large sorts and joins are kept.
"""

import psycopg2
from psycopg2 import sql

from databases.demo.loader import DemoServer
from databases.owned_database import owned_database

DATABASE = "citu_scratch"
ROLE = "citu_scratch"

_LOCK = 0x43697478  # advisory lock number, arbitrary but ours
_TEMP_FILES = "1GB"  # of one session
# Databases of a new server, which it lets every role connect to.
_OPEN_TO_ALL = ("postgres", "template1")


def ensure_scratch_database(server: DemoServer, database: str = DATABASE) -> str:
    """Create the database and its role unless they exist; return its URL for that role.

    Several processes may call it at the same time.

    Raises:
        psycopg2.Error: the server went away, or its disk is full.
    """
    attributes = "NOINHERIT CONNECTION LIMIT 8"
    scratch = owned_database(server, database, ROLE, lock=_LOCK, attributes=attributes)
    with scratch as cursor:
        role = sql.Identifier(ROLE)
        # A role may change its own settings; this undoes it
        cursor.execute(sql.SQL("ALTER ROLE {} RESET ALL").format(role))
        limit = f"ALTER ROLE {{}} SET temp_file_limit = '{_TEMP_FILES}'"
        cursor.execute(sql.SQL(limit).format(role))
        _close_to_all(cursor)

    return server.url(database, ROLE)


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
