"""Where the asked database is: the one that is configured, or the demo in the embedded server."""

import logging
import threading
from contextlib import closing
from pathlib import Path

import psycopg2

from common.database.demo.loader import ensure_demo
from common.database.embedded import EmbeddedServer, EmbeddedServerError
from common.database.failures import UNREACHABLE
from common.database.privileges import dangers_of, unfit
from common.errors import DatabaseUnavailable
from common.ports import UrlSource

_log = logging.getLogger(__name__)
_PROBE_TIMEOUT_S = 10


class EmbeddedDemo:
    """The demo database of the embedded server in `data_dir`; started by the first call, started again if it died.

    The server runs while this process, or any other user of the folder, does; a fork shares the hold.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._lock = threading.Lock()
        self._server: EmbeddedServer | None = None
        self._url = ""

    def __call__(self) -> str:
        """The URL of the demo for the role that can only read.

        Raises:
            DatabaseUnavailable: the server can't run now; the log says why.
        """
        try:
            return self.start()
        except EmbeddedServerError as exc:
            _log.error("the embedded server can't run: %s", exc)
            raise DatabaseUnavailable(UNREACHABLE) from exc

    def start(self) -> str:
        """As calling it, for those who can show a person the reason.

        Raises:
            EmbeddedServerError: the server can't run here; the message says why and what to do.
        """
        with self._lock:
            if self._server is None:
                server = EmbeddedServer.acquire(self._data_dir)
                self._url = _demo_of(server)
                self._server = server
            else:
                self._server.ensure_running()
            return self._url

    def release(self) -> None:
        """Gives the server up; the last user's release stops it."""
        with self._lock:
            if self._server is not None:
                self._server.release()
                self._server = None


def _demo_of(server: EmbeddedServer) -> str:
    try:
        return ensure_demo(server)
    except psycopg2.Error as exc:
        server.release()
        said = str(exc).strip().splitlines()[0] if str(exc).strip() else "no answer"
        raise EmbeddedServerError(f"The demo database can't be made ({said}): see the log in DATA_DIR.") from exc


def asked_database(database_url: str, data_dir: Path) -> UrlSource:
    """The configured database, or the demo when none is."""
    return (lambda: database_url) if database_url else EmbeddedDemo(data_dir)


class Unreachable(Exception):
    """The configured database can't be used; the message says why and what to do."""


def probe(url: str, *, require_read_only_role: bool = False) -> None:
    """Connects once, so that a wrong URL or an unfit role is said at the start and not at the first question.

    Raises:
        Unreachable: with what PostgreSQL's client library says, which names host and database and no password; or
            with what the role may do beyond reading, when it must not.
    """
    try:
        with closing(psycopg2.connect(url, connect_timeout=_PROBE_TIMEOUT_S, application_name="citu")) as connection:
            dangers = dangers_of(connection)
    except psycopg2.Error as exc:
        said = str(exc).strip().splitlines()[0] if str(exc).strip() else "no connection"
        raise Unreachable(f"DATABASE_URL does not lead to a database ({said}): check it, or leave it empty.") from exc
    if dangers and require_read_only_role:
        raise Unreachable(unfit(dangers).en)
