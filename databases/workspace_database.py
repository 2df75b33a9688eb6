"""Creates the database in the embedded server in which the tables of people's files are kept.

Its role owns it and may write there alone; questions are asked with another one, which may only
read what it was granted.
"""

from psycopg2 import sql

from databases.demo.loader import DemoServer
from databases.owned_database import owned_database

DATABASE = "citu_files"
ROLE = "citu_files"
FILES_READER = "citu_files_reader"

_LOCK = 0x43697480  # advisory lock number, arbitrary but ours
_READS_ONLY = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT"


def ensure_workspace(server: DemoServer, database: str = DATABASE) -> str:
    """Create the database and its roles unless they exist; return the URL for its owner.

    Several processes may call it at the same time.

    Raises:
        psycopg2.Error: the server went away, or its disk is full.
    """
    with owned_database(server, database, ROLE, lock=_LOCK) as cursor:
        names = {"reader": sql.Identifier(FILES_READER), "database": sql.Identifier(database)}
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [FILES_READER])
        if cursor.fetchone() is None:
            cursor.execute(sql.SQL("CREATE ROLE {reader} LOGIN").format(**names))

        cursor.execute(sql.SQL(f"ALTER ROLE {{reader}} {_READS_ONLY}").format(**names))
        cursor.execute(
            sql.SQL("ALTER ROLE {reader} SET default_transaction_read_only = on").format(**names)
        )
        cursor.execute(sql.SQL("GRANT CONNECT ON DATABASE {database} TO {reader}").format(**names))

    return server.url(database, ROLE)


def ensure_workspace_reader(server: DemoServer, database: str = DATABASE) -> str:
    """Do as `ensure_workspace`; return the URL for the role that may only read."""
    ensure_workspace(server, database)
    return server.url(database, FILES_READER)
