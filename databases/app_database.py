"""Citu's own database in a PostgreSQL server that is Citu's: made by whoever needs it first.

It belongs to a role that may write there and nowhere else; the role that questions are asked with can't connect to it.
"""

from contextlib import closing

import psycopg2
from psycopg2 import sql

from databases.demo.loader import Server

DATABASE = "citu_app"
ROLE = "citu_app"

_LOCK = 0x43697477  # advisory lock number, arbitrary but ours


def ensure_app_database(server: Server, database: str = DATABASE) -> str:
    """Makes the database and its role unless they are there; returns its URL for that role. Safe to call at once.

    Raises:
        psycopg2.Error: the server went away, or its disk is full.
    """
    names = {"database": sql.Identifier(database), "role": sql.Identifier(ROLE)}
    with closing(psycopg2.connect(server.admin_url)) as admin, admin.cursor() as cursor:
        admin.autocommit = True
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])  # until the connection closes, however it does
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [ROLE])
        if cursor.fetchone() is None:
            cursor.execute(sql.SQL("CREATE ROLE {role} LOGIN").format(**names))
        attributes = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
        cursor.execute(sql.SQL(f"ALTER ROLE {{role}} {attributes}").format(**names))
        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [database])
        if cursor.fetchone() is None:
            template = "TEMPLATE template0 ENCODING 'UTF8'"
            cursor.execute(sql.SQL(f"CREATE DATABASE {{database}} OWNER {{role}} {template}").format(**names))
        cursor.execute(sql.SQL("REVOKE ALL ON DATABASE {database} FROM PUBLIC").format(**names))
    return server.url(database, ROLE)
