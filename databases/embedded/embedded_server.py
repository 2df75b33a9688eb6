"""An embedded PostgreSQL server: `EmbeddedServer.acquire(data_dir)` starts one with nothing to
install.

Any number of processes may use the same data directory. The first starts the server; it stops when
the last one ends, also by `kill -9`: `databases/embedded/supervisor.py` says how. The server
listens on a Unix socket only.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg2

from databases.embedded.cluster import POLL_S, SUPERUSER
from databases.embedded.home import (
    SUPERVISOR_LOCK,
    USERS_LOCK,
    EmbeddedServerError,
    Home,
    lock_file,
    try_lock,
)
from databases.embedded.libpq_environment import undoing_parameters
from databases.embedded.place import find_home
from databases.embedded.programs import find_programs
from databases.embedded.supervisor import PORT, READY, SOCKET_RECORD, START_TIMEOUT_S

__all__ = ["EmbeddedServer", "EmbeddedServerError"]

START_LOCK = "start.lock"
_STOP_TIMEOUT_S = 45.0
_ATTEMPTS = 3  # of starting: somebody may kill the new supervisor
_PROJECT = Path(__file__).resolve().parent.parent.parent

# PostgreSQL's messages while it starts or recovers: it will take connections in a moment.
_NOT_YET = ("starting up", "shutting down", "recovery")


class EmbeddedServer:
    """One user's hold on the server of a data directory; the server runs while anybody holds it.

    A fork of this process holds it too. Attributes:
        home: the folder with the server's data and log (for root it may be outside the data
        directory).
    """

    def __init__(self, home: Home, users_lock: int) -> None:
        self._home = home
        self._users_lock: int | None = users_lock
        self.home = home.directory

    @classmethod
    def acquire(cls, data_dir: Path) -> "EmbeddedServer":
        """Start the server of `data_dir` (created when missing) or join it; return when it
        answers.

        Raises:
            EmbeddedServerError: it can't run, or doesn't answer within a minute.
        """
        home = find_home(data_dir)
        with _exclusive(home):
            users_lock = lock_file(home, USERS_LOCK)
            server = cls(home, users_lock)
            try:
                # This waits for a server that is just being stopped.
                _take(users_lock, fcntl.LOCK_SH, home)
                server._start_unless_running()
            except BaseException:
                os.close(users_lock)
                raise

        return server

    @property
    def admin_url(self) -> str:
        """Return the superuser's URL of the database `postgres`."""
        return self.url("postgres", SUPERUSER)

    def url(self, dbname: str, user: str) -> str:
        """Return the URL of a database for one of its roles; no password is needed."""
        socket_dir = (self.home / SOCKET_RECORD).read_text().strip()
        user, dbname = quote(user, safe=""), quote(dbname, safe="")
        parameters = {"host": socket_dir, "port": str(PORT), **undoing_parameters()}
        return f"postgresql://{user}@/{dbname}?{urlencode(parameters, quote_via=quote, safe='')}"

    def ensure_running(self) -> None:
        """Start the server again if it died; its URLs stay the same. Costs little while it runs.

        Raises:
            EmbeddedServerError: it can't run, or was released.
        """
        if self._users_lock is None:
            raise EmbeddedServerError("The embedded server was released: acquire it again.")
        if _is_supervised(self._home) and self._answers():
            return

        with _exclusive(self._home):
            self._start_unless_running()

    def release(self) -> None:
        """Give up the server; the last user's release returns when it has stopped (at most 45 s).
        May be repeated.
        """
        if self._users_lock is None:
            return

        with _exclusive(self._home):
            os.close(self._users_lock)  # closed, not unlocked: a fork may still hold it
            self._users_lock = None
            if _has_users(self._home):
                return

            deadline = time.monotonic() + _STOP_TIMEOUT_S
            while _is_supervised(self._home) and time.monotonic() < deadline:
                time.sleep(POLL_S)

    def _start_unless_running(self) -> None:
        """Wait for a supervisor that is at work; start one if there is none. Call with the start
        lock held.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        attempts = 0
        while not (_is_supervised(self._home) and self._answers()):
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"The embedded PostgreSQL doesn't answer: see its log, {self._home.log}."
                )
            if _is_supervised(self._home):
                time.sleep(POLL_S)
                continue

            failure = _start_supervisor(self._home)
            attempts += 1
            if failure and attempts == _ATTEMPTS:
                raise EmbeddedServerError(failure)

    def _answers(self) -> bool:
        try:
            psycopg2.connect(self.admin_url, connect_timeout=5).close()
        except FileNotFoundError:  # no address on record yet
            return False
        except psycopg2.OperationalError as exc:
            # A server that refuses is running (all connections may be taken), unless it says that
            # it only starts.
            return "FATAL:" in str(exc) and not any(words in str(exc) for words in _NOT_YET)

        return True


def _start_supervisor(home: Home) -> str | None:
    """Return None when the server is ready, else the sentence that says why it isn't."""
    account = home.account
    arguments = [str(home.directory), str(find_programs(home))]
    arguments += [account.name, str(account.uid), str(account.gid)] if account else []
    result = subprocess.run(
        [sys.executable, "-E", "-s", "-S", "-m", "databases.embedded.supervisor", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
        cwd=_PROJECT,
        start_new_session=True,  # Ctrl-C in the terminal must end this process, not the server
    )
    # The last line counts: the interpreter may print warnings before it.
    last = result.stdout.strip().rpartition("\n")[2]
    if last == READY:
        return None

    return last or "The embedded PostgreSQL's supervisor was killed: try again."


# ------------------------------------------------------------------------------
# locks


@contextmanager
def _exclusive(home: Home) -> Iterator[None]:
    """Let one process at a time join, start or leave; raises `EmbeddedServerError` for what the
    system refuses.
    """
    try:
        descriptor = lock_file(home, START_LOCK)
        try:
            _take(descriptor, fcntl.LOCK_EX, home)
            yield
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise EmbeddedServerError(
            f"The data directory's folder {home.directory} can't be used ({exc.strerror}): "
            "start Citu as the user who owns it, or set another DATA_DIR."
        ) from exc


def _take(descriptor: int, mode: int, home: Home) -> None:
    """Wait for a lock up to a limit, because its holder may hang."""
    deadline = time.monotonic() + START_TIMEOUT_S + _STOP_TIMEOUT_S
    while not try_lock(descriptor, mode):
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"Another process keeps {home.directory} locked without end: end it, "
                "or set another DATA_DIR."
            )

        time.sleep(POLL_S)


def _is_supervised(home: Home) -> bool:
    return _is_locked(home, SUPERVISOR_LOCK, against=fcntl.LOCK_SH)


def _has_users(home: Home) -> bool:
    """Tell whether other users hold the server. Call with the start lock held.

    Only the supervisor waits for the exclusive lock, and it gets it when nobody is left.
    """
    nobody_at_all = not _is_locked(home, USERS_LOCK, against=fcntl.LOCK_EX)
    return not nobody_at_all and not _is_locked(home, USERS_LOCK, against=fcntl.LOCK_SH)


def _is_locked(home: Home, name: str, *, against: int) -> bool:
    """Tell whether somebody's lock on the file prevents a lock of the kind `against`."""
    with suppress(FileNotFoundError):
        descriptor = lock_file(home, name)
        try:
            return not try_lock(descriptor, against)
        finally:
            os.close(descriptor)

    return False
