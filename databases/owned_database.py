"""Creates a database of Citu's own in the embedded server, with a role that owns it and can connect
to no other that is closed to it.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg2
from psycopg2 import sql

from databases.demo.loader import DemoServer

_ATTRIBUTES = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"


@contextmanager
def owned_database(
    server: DemoServer, database: str, role: str, *, lock: int, attributes: str = ""
) -> Iterator[psycopg2.extensions.cursor]:
    """Create the database and its role unless they exist, and give a superuser's cursor for more.

    Several processes may do so at the same time: one after the other passes.

    Args:
        lock: number of the advisory lock, which is held until the block ends.
        attributes: the attributes of the role, beside those that every such role has.

    Raises:
        psycopg2.Error: the server went away, or its disk is full.
    """
    names = {"database": sql.Identifier(database), "role": sql.Identifier(role)}
    with closing(psycopg2.connect(server.admin_url)) as admin, admin.cursor() as cursor:
        admin.autocommit = True
        # Released when the connection closes
        cursor.execute("SELECT pg_advisory_lock(%s)", [lock])
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [role])
        if cursor.fetchone() is None:
            cursor.execute(sql.SQL("CREATE ROLE {role} LOGIN").format(**names))

        statement = f"ALTER ROLE {{role}} {_ATTRIBUTES} {attributes}"
        cursor.execute(sql.SQL(statement).format(**names))
        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [database])
        if cursor.fetchone() is None:
            template = "TEMPLATE template0 ENCODING 'UTF8'"
            cursor.execute(
                sql.SQL(f"CREATE DATABASE {{database}} OWNER {{role}} {template}").format(**names)
            )

        cursor.execute(sql.SQL("REVOKE ALL ON DATABASE {database} FROM PUBLIC").format(**names))
        yield cursor
