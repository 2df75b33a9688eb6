"""The files and processes of one PostgreSQL cluster: creates it, and clears what a killed server
left behind.

Only the supervisor calls this, while its lock keeps others off the cluster.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from databases.embedded.home import OWN_SERVER, EmbeddedServerError, Home, run_as

SUPERUSER = "postgres"
POLL_S = 0.01
# Signals that stop a server, tried in turn, and the seconds each may take: fast, immediate, by
# force.
ENDINGS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))

_PR_SET_PDEATHSIG = 1
_TELLING = re.compile("FATAL:|PANIC:|error|could not")
_UNFINISHED = "cluster.new-"
_INITDB = (
    *("--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
    *("--auth=trust", "--wal-segsize=4"),  # MB; with the default, an empty cluster takes 16
)


def prepare(home: Home, programs: Path) -> None:
    """Create the cluster if there is none, in a sibling folder that is renamed when it is
    complete.

    Raises:
        EmbeddedServerError: it can't be created, or the one that exists is of another version of
            PostgreSQL.
    """
    major = _major_version(home, programs)
    if home.cluster.exists():
        _check_version(home.cluster, major)
        return

    for abandoned in home.directory.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(abandoned, ignore_errors=True)

    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=home.directory))
    home.give(unfinished)
    command = [str(programs / "initdb"), *_INITDB, f"--username={SUPERUSER}", "-D", str(unfinished)]
    result = run_as(home.account, command, preexec_to_die_with_parent(signal.SIGKILL))
    if result.returncode:
        why = telling_line(result.stdout.splitlines())
        raise EmbeddedServerError(
            f"PostgreSQL's data can't be created in {home.directory} ({why}): set another DATA_DIR."
        )

    # Trusts every local connection, because only the owner can enter the socket's folder (mode
    # 0700).
    (unfinished / "pg_hba.conf").write_text("local all all trust\n")
    unfinished.rename(home.cluster)


def _major_version(home: Home, programs: Path) -> str:
    try:
        result = run_as(home.account, [str(programs / "postgres"), "--version"])
        failure = telling_line(result.stdout.splitlines()) if result.returncode else ""
    except OSError as exc:
        failure = str(exc)

    if failure:
        raise EmbeddedServerError(
            f"The embedded PostgreSQL doesn't run on this machine ({failure}): {OWN_SERVER}."
        )

    return result.stdout.split()[2].split(".")[0]


def _check_version(cluster: Path, major: str) -> None:
    try:
        made_by = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        message = (
            f"{cluster} is not a PostgreSQL data directory: move it away, or set another DATA_DIR."
        )
        raise EmbeddedServerError(message) from None

    if made_by != major:
        raise EmbeddedServerError(
            f"The data in {cluster} was made by PostgreSQL {made_by}, and this Citu runs PostgreSQL"
            f" {major}: set another DATA_DIR, or remove that folder if its data is not needed."
        )


def telling_line(lines: list[str]) -> str:
    """Return the line of a program's output that says what went wrong."""
    written = list(filter(None, map(str.strip, lines)))
    if not written:
        return "it said nothing"

    telling = list(filter(_TELLING.search, written))
    last = (telling or written)[-1]
    return last.rstrip(".")


def preexec_to_die_with_parent(death_signal: signal.Signals) -> Callable[[], None] | None:
    """Return a `preexec_fn` by which a child gets `death_signal` when this process dies.

    None where there is no such thing, outside Linux.
    """
    if not sys.platform.startswith("linux"):
        return None

    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def ask_kernel_for_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:  # the parent died before the kernel was told
            os._exit(1)

    return ask_kernel_for_signal


# ------------------------------------------------------------------------------
# leftovers


def end_leftovers(cluster: Path) -> None:
    """End the processes of an earlier server on this cluster whose supervisor was killed.

    PostgreSQL removes a stale pid file itself, unless another process now has the pid in it.

    Raises:
        EmbeddedServerError: some process of the earlier server can't be ended.
    """
    for ending, patience_s in ENDINGS:
        if not _end(cluster, ending, patience_s):
            break
    else:
        raise EmbeddedServerError(
            f"An earlier server on {cluster} doesn't stop: end its 'postgres' processes by hand."
        )

    pid = _recorded_pid(cluster)
    if pid is not None and _exists(pid):
        (cluster / "postmaster.pid").unlink(missing_ok=True)


def _end(cluster: Path, ending: signal.Signals, patience_s: float) -> bool:
    """Send the signal to the remaining processes and wait up to `patience_s`; true when one still
    runs.
    """
    deadline = time.monotonic() + patience_s
    leftovers = list(_processes_on(cluster))
    for pid in leftovers:
        with suppress(ProcessLookupError):
            os.kill(pid, ending)

    while leftovers and time.monotonic() < deadline:
        time.sleep(POLL_S)
        leftovers = list(_processes_on(cluster))

    return bool(leftovers)


def _processes_on(cluster: Path) -> Iterator[int]:
    """Yield ids of the PostgreSQL processes on `cluster`; without /proc only the main process."""
    running = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    recorded = _recorded_pid(cluster)
    if recorded and not running:  # there is no /proc here
        running.append(recorded)

    for pid in running:
        if _works_on(pid, cluster):
            yield pid


def _works_on(pid: int, cluster: Path) -> bool:
    process = Path(f"/proc/{pid}")
    try:
        # The link says "postgres (deleted)" if the program was replaced since.
        is_postgres = (process / "exe").readlink().name.startswith("postgres")
        return is_postgres and (process / "cwd").samefile(cluster)
    except OSError:  # gone, another user's, or no /proc here
        return f"/postgres -D {cluster} -c " in _command_line(pid)


def _command_line(pid: int) -> str:
    """Return the words of the command, with spaces between; empty when there is no such process."""
    if Path("/proc/self").exists():
        with suppress(OSError):
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")

        return ""

    command = ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _recorded_pid(cluster: Path) -> int | None:
    try:
        return int((cluster / "postmaster.pid").read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True

    return True
