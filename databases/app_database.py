"""Creates Citu's own database in the embedded server when a process first needs it.

It belongs to a role that may write there and nowhere else. The role that questions are asked with
can't connect to it.
"""

from databases.demo.loader import DemoServer
from databases.owned_database import owned_database

DATABASE = "citu_app"
ROLE = "citu_app"

_LOCK = 0x43697477  # number of an advisory lock, which nothing else uses


def ensure_app_database(server: DemoServer, database: str = DATABASE) -> str:
    """Create the database and its role unless they exist; return its URL for that role.

    Several processes may call it at the same time.

    Raises:
        psycopg2.Error: the server went away, or its disk is full.
    """
    with owned_database(server, database, ROLE, lock=_LOCK):
        pass

    return server.url(database, ROLE)
