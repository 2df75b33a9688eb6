"""The process that owns an embedded PostgreSQL server.

Many processes may use a server, and each can be killed at any moment, so none of them can be
responsible for stopping it.
Every user holds a shared lock on `users.lock`; the kernel releases it however the user ends. The
supervisor is the parent of `postgres` and waits for the exclusive lock on that file; then it stops
`postgres` and ends. If `postgres` dies, the supervisor ends too, and users start a new one. If the
supervisor is killed, the kernel tells `postgres` to shut down (Linux); elsewhere the next
supervisor does.

Run as `python -m databases.embedded.supervisor HOME PROGRAMS [NAME UID GID]`, in a session of its
own. Detaches, prints `ready`, or one sentence that says what went wrong, and closes its output.
"""

import collections
import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from databases.embedded.cluster import (
    ENDINGS,
    POLL_S,
    end_leftovers,
    preexec_to_die_with_parent,
    prepare,
    telling_line,
)
from databases.embedded.home import (
    SUPERVISOR_LOCK,
    USERS_LOCK,
    Account,
    EmbeddedServerError,
    Home,
    can_write,
    lock_file,
    surroundings,
    try_lock,
)

READY = "ready"
PORT = 5432  # only names the socket; nothing listens on TCP
SOCKET_RECORD = "socket"
START_TIMEOUT_S = 60.0

_SOCKET_PREFIX = "citu-"
_SOCKET_PATH_BYTES = 103  # what every platform's sun_path holds, without its final NUL
# The address space of one process of the server: 96 MB that it begins with, its shared buffers
# among them, and 256 MB for what statements take. A request beyond that fails as an ordinary error
# (53200).
_ADDRESS_SPACE_BYTES = (96 + 256) * 1024 * 1024
_LOG_BYTES = 4 * 1024 * 1024  # the log is at most two files of this size

# Given on the command line, so that clusters made by an earlier version of Citu run with these
# values too.
_SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    # There are no replicas, so bulk loads into new tables need not be logged row by row.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    # The machine does other work, so use no helper processes, and no shared memory that containers
    # limit.
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "io_method": "sync",
    "jit": "off",
    "log_checkpoints": "off",
    # Keeps the SQL of questions, and values in it, out of the log
    "log_min_error_statement": "panic",
}


class BoundedLog:
    """The server's log: keeps what `postgres` writes in at most two files, and its last lines in
    memory.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._path = home.log
        self.last_lines: collections.deque[str] = collections.deque(maxlen=20)

    def copy(self, source: IO[bytes]) -> None:
        """Append the lines of `source` until it ends. A full disk loses lines; it must not make
        the server wait.
        """
        for line in source:
            self.last_lines.append(line.decode(errors="replace"))
            with suppress(OSError):
                self._append(line)

    def _append(self, line: bytes) -> None:
        is_new = not self._path.exists()
        if not is_new and self._path.stat().st_size + len(line) > _LOG_BYTES:
            self._path.replace(self._path.with_suffix(".log.1"))
            is_new = True

        with self._path.open("ab") as file:
            file.write(line)

        if is_new:
            self._home.share(self._path)


class Supervisor:
    """Starts `postgres`, and stops it when no process uses it any more."""

    def __init__(self, home: Home, programs: Path) -> None:
        self._home = home
        self._programs = programs
        self._log = BoundedLog(home)
        self._record = home.directory / SOCKET_RECORD
        self._ended = threading.Event()
        self._unused = threading.Event()

    def run(self) -> None:
        """Start the server, report on standard output, and return when the server has ended.

        Raises:
            EmbeddedServerError: it can't start.
        """
        if not try_lock(lock_file(self._home, SUPERVISOR_LOCK), fcntl.LOCK_EX):
            _report(READY)  # another supervisor runs; the user will see whether its server answers
            return

        end_leftovers(self._home.cluster)
        prepare(self._home, self._programs)
        is_known = self._record.exists()
        socket_dir = _socket_dir(self._home)
        try:
            postgres = self._start(socket_dir)
        except EmbeddedServerError:
            if not is_known:
                self._remove(socket_dir)

            raise

        _report(READY)
        threading.Thread(target=self._stop_when_unused, args=[postgres], daemon=True).start()
        postgres.wait()
        self._ended.set()
        if self._unused.is_set():
            self._remove(socket_dir)

    def _remove(self, socket_dir: Path) -> None:
        self._record.unlink(missing_ok=True)
        shutil.rmtree(socket_dir, ignore_errors=True)

    def _start(self, socket_dir: Path) -> subprocess.Popen[bytes]:
        settings = _SETTINGS | {"unix_socket_directories": f'"{socket_dir}"'}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        postgres = subprocess.Popen(
            [str(self._programs / "postgres"), "-D", str(self._home.cluster), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=_child(),
            **surroundings(self._home.account),
        )
        assert postgres.stderr
        signal.signal(signal.SIGTERM, lambda *_: postgres.send_signal(signal.SIGINT))
        copying = threading.Thread(target=self._log.copy, args=[postgres.stderr], daemon=True)
        copying.start()
        if not self._is_ready(postgres):
            postgres.kill()
            postgres.wait()
            copying.join(timeout=5)
            why = telling_line(list(self._log.last_lines))
            raise EmbeddedServerError(
                f"The embedded PostgreSQL didn't start ({why}): see its log, {self._home.log}."
            )

        return postgres

    def _is_ready(self, postgres: subprocess.Popen[bytes]) -> bool:
        """Wait for what `postgres` writes into its pid file when it accepts connections."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while postgres.poll() is None and time.monotonic() < deadline:
            if self._has_reported(postgres.pid):
                return True

            time.sleep(POLL_S)

        return False

    def _has_reported(self, pid: int) -> bool:
        """Tell whether the pid file says that the process is ready."""
        try:
            lines = (self._home.cluster / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False

        if len(lines) < 8:
            return False

        return lines[0] == str(pid) and lines[7].strip() == "ready"

    def _stop_when_unused(self, postgres: subprocess.Popen[bytes]) -> None:
        # Keep the lock until this process ends: users who come meanwhile wait, then start the next
        # server.
        fcntl.flock(lock_file(self._home, USERS_LOCK), fcntl.LOCK_EX)
        self._unused.set()
        for ending, patience_s in ENDINGS:
            postgres.send_signal(ending)
            if self._ended.wait(patience_s):
                return


# ------------------------------------------------------------------------------
# socket


def _socket_dir(home: Home) -> Path:
    """Return a private folder with a short path for the socket; the recorded one if it exists, so
    that URLs stay valid.
    """
    record = home.directory / SOCKET_RECORD
    with suppress(OSError):
        recorded = Path(record.read_text().strip())
        if recorded.name.startswith(_SOCKET_PREFIX) and _is_usable(recorded, home):
            # An ended server left these. PostgreSQL would believe the lock file if another process
            # has its pid now.
            for left in recorded.glob(".s.PGSQL.*"):
                left.unlink()

            return recorded

    directory = _new_socket_dir(home)
    draft = record.with_suffix(".new")
    draft.write_text(f"{directory}\n")
    home.share(draft)
    draft.replace(record)
    return directory


def _is_usable(directory: Path, home: Home) -> bool:
    """Tell whether the folder belongs to the server's account alone; a missing one is created."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
        home.give(directory)

    status = directory.lstat()
    owner = home.account.uid if home.account else os.geteuid()
    return status.st_mode == 0o040700 and status.st_uid == owner


def _new_socket_dir(home: Home) -> Path:
    # The folder that is made there is private.
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):  # noqa: S108
        if not can_write(home.account, Path(parent)):
            continue

        directory = Path(tempfile.mkdtemp(prefix=_SOCKET_PREFIX, dir=parent))
        if len(os.fsencode(directory / f".s.PGSQL.{PORT}")) <= _SOCKET_PATH_BYTES:
            home.give(directory)
            return directory

        directory.rmdir()

    raise EmbeddedServerError(
        "No temporary folder is writable for PostgreSQL's socket: "
        "set TMPDIR to one with a short path."
    )


# ------------------------------------------------------------------------------
# process


def _report(message: str) -> None:
    """Send `message` to the process that started this one, and close the output that it reads."""
    with suppress(BrokenPipeError):
        os.write(1, message.encode())

    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)

    os.close(nothing)


def _child() -> Callable[[], None]:
    """Return a function that the forked server runs first: it bounds the memory of its
    processes.
    """
    tie_to_parent = preexec_to_die_with_parent(signal.SIGINT)

    def arrange() -> None:
        if tie_to_parent is not None:
            tie_to_parent()
            resource.setrlimit(
                resource.RLIMIT_AS,
                (_ADDRESS_SPACE_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]),
            )

    return arrange


def main(arguments: list[str]) -> None:
    """Detach and supervise, with the arguments as in the module's docstring."""
    directory, programs, *account = arguments
    home = Home(
        Path(directory), Account(account[0], int(account[1]), int(account[2])) if account else None
    )
    if os.fork():
        os._exit(0)

    os.chdir("/")
    os.umask(0o077)
    try:
        Supervisor(home, Path(programs)).run()
    except EmbeddedServerError as exc:
        _report(str(exc))
    except OSError as exc:
        _report(f"The embedded PostgreSQL can't start in {directory}: {exc}.")


if __name__ == "__main__":
    main(sys.argv[1:])
