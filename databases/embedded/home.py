"""The home folder, account, locks and error of an embedded server."""

import errno
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USERS_LOCK = "users.lock"  # held shared by every user of the server
SUPERVISOR_LOCK = "supervisor.lock"  # held by the supervisor while it lives
OWN_SERVER = "set DATABASE_URL to a PostgreSQL server of your own"


class EmbeddedServerError(Exception):
    """The embedded server can't be used; the message says in one sentence why and what to do."""


@dataclass(frozen=True)
class Account:
    """The system user that the server runs as when Citu runs as root: PostgreSQL refuses to run as
    root.
    """

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class Home:
    """The folder with the server's data, locks and log, and who runs the server (None: the current
    user).
    """

    directory: Path
    account: Account | None

    @property
    def cluster(self) -> Path:
        """Return the server's own data directory (PGDATA)."""
        return self.directory / "cluster"

    @property
    def log(self) -> Path:
        """Return the path of the server's log."""
        return self.directory / "server.log"

    def give(self, path: Path) -> None:
        """Make the server's account the owner of the new `path`."""
        if self.account:
            os.chown(path, self.account.uid, self.account.gid)

    def share(self, path: Path) -> None:
        """Give `path`, which root created, to this folder's owner, who may later run Citu without
        root.
        """
        if os.geteuid() == 0:
            owner = self.directory.stat()
            os.chown(path, owner.st_uid, owner.st_gid)


def create_folder(directory: Path, mode: int) -> None:
    """Create the folder with this mode, whatever the umask; one that exists is left as it is."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        directory.mkdir()
        directory.chmod(mode)

    if not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))


def lock_file(home: Home, name: str) -> int:
    """Open a lock file, and create it when missing; programs that are started later don't inherit
    the descriptor.
    """
    path = home.directory / name
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    home.share(path)
    return descriptor


def try_lock(descriptor: int, mode: int) -> bool:
    """Take the lock (`fcntl.LOCK_SH` or `LOCK_EX`) without waiting; false when another process's
    lock prevents it.
    """
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False

    return True


def can_write(account: Account | None, directory: Path) -> bool:
    """Tell whether `account` can reach `directory` and keep files of its own in it."""
    try:
        probe = Path(tempfile.mkdtemp(prefix="probe-", dir=directory))
    except OSError:
        return False

    try:
        Home(directory, account).give(probe)
        return (
            run_as(
                account, ["/bin/sh", "-c", 'cd "$1" && : > file && rm file', "sh", str(probe)]
            ).returncode
            == 0
        )
    except OSError:
        return False
    finally:
        shutil.rmtree(probe, ignore_errors=True)


def run_as(
    account: Account | None, command: list[str], preexec_fn: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `command` as `account`; output is captured.

    Raises:
        OSError: the program is missing or doesn't run here, or the user can't be switched.
    """
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
        preexec_fn=preexec_fn,
        **surroundings(account),
    )


def surroundings(account: Account | None) -> dict[str, Any]:
    """Return arguments for `subprocess`: the user, a directory that all can enter, an environment
    without PostgreSQL's own variables.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PG", "LC_", "LANG"))
    }
    user = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    return {"cwd": "/", "env": environment | {"LC_ALL": "C"}, **user}
