"""Creates Citu's own database in the embedded server; the first process that needs it does so.

It belongs to a role that may write there and nowhere else. The role that questions are asked with
can't connect to it.
"""

from contextlib import closing

import psycopg2
from psycopg2 import sql

from databases.demo.loader import DemoServer

DATABASE = "citu_app"
ROLE = "citu_app"

_LOCK = 0x43697477  # advisory lock number, arbitrary but ours


def ensure_app_database(server: DemoServer, database: str = DATABASE) -> str:
    """Create the database and its role unless they exist; return its URL for that role.

    Several processes may call it at the same time.

    Raises:
        psycopg2.Error: the server went away, or its disk is full.
    """
    names = {"database": sql.Identifier(database), "role": sql.Identifier(ROLE)}
    with closing(psycopg2.connect(server.admin_url)) as admin, admin.cursor() as cursor:
        admin.autocommit = True
        cursor.execute(
            "SELECT pg_advisory_lock(%s)", [_LOCK]
        )  # released when the connection closes
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [ROLE])
        if cursor.fetchone() is None:
            cursor.execute(sql.SQL("CREATE ROLE {role} LOGIN").format(**names))
        attributes = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
        cursor.execute(sql.SQL(f"ALTER ROLE {{role}} {attributes}").format(**names))
        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [database])
        if cursor.fetchone() is None:
            template = "TEMPLATE template0 ENCODING 'UTF8'"
            cursor.execute(
                sql.SQL(f"CREATE DATABASE {{database}} OWNER {{role}} {template}").format(**names)
            )
        cursor.execute(sql.SQL("REVOKE ALL ON DATABASE {database} FROM PUBLIC").format(**names))
    return server.url(database, ROLE)
