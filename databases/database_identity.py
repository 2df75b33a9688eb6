"""Which database of which server a URL leads to, whatever the URL looks like."""

from contextlib import closing
from dataclasses import dataclass

import psycopg2

_IDENTITY = """
SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()), oid,
    pg_catalog.pg_has_role(current_user, datdba, 'USAGE')
FROM pg_catalog.pg_database
WHERE datname = pg_catalog.current_database()
"""


@dataclass(frozen=True)
class DatabaseIdentity:
    """A database: the number that its server's data was given when it was made, and its OID."""

    system_identifier: int
    database_oid: int


def identify(url: str) -> tuple[DatabaseIdentity, bool]:
    """Connect, and return the database's identity and whether the role of the URL owns it.

    Raises:
        psycopg2.Error: there is no answer, or the role may not read it.
    """
    connecting = psycopg2.connect(url, connect_timeout=10, application_name="citu")
    with closing(connecting) as connection, connection.cursor() as cursor:
        cursor.execute(_IDENTITY)
        row = cursor.fetchone()

    assert row is not None, "a connection is to a database"
    return DatabaseIdentity(int(row[0]), int(row[1])), bool(row[2])
