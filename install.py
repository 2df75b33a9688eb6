"""Makes `.venv`, or the environment that CITU_ENVIRONMENT names, and installs a requirements file
into it, unless that has been done; the Makefile uses it.

`python3 install.py requirements.txt` prints one line if there is work, else nothing. On failure it
prints one sentence, returns exit code 1 and leaves pip's output in a log. Several may run at once:
one installs, the others wait. It must run on a Python that is too old for Citu to say so, and so
uses nothing newer than Python 3.7.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent
# `make etl` names another one, because dbt's packages don't go with Citu's.
VENV = ROOT / os.environ.get("CITU_ENVIRONMENT", ".venv")
VENV_PYTHON = VENV / "bin" / "python"
LOG = VENV / "install.log"
LOCKS = ROOT / "locks"
WHEELHOUSE = ROOT / "wheelhouse"  # made by `make wheelhouse`, for machines without a network
UNLOCKED = "CITU_UNLOCKED"
OLDEST = (3, 11)

# Errors in pip's output when it can't reach the package index.
NO_CONNECTION = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError"
)
# An index that has other files than those that were tested, rebuilt ones for example.
OTHER_FILES = re.compile(r"DO NOT MATCH THE HASHES|Hashes are required")
# A folder of wheels that lacks one, or has it for another system.
NO_WHEEL = re.compile(r"No matching distribution found for (\S+)")


class InstallFailure(Exception):
    """The installation can't be done; the message says in one sentence what to do."""


def main(requirements: str) -> int:
    """Install the named file of this folder; return the exit code."""
    try:
        with locked():
            if not is_installed(requirements):
                install(requirements)
    except InstallFailure as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    except OSError as exc:
        sys.stderr.write(
            f"Citu can't be installed in {ROOT} ({exc.strerror}): make it writable, or copy it.\n"
        )
        return 1
    except KeyboardInterrupt:
        return 130

    return 0


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Allow one installation at a time; the lock on the folder ends with the process."""
    descriptor = os.open(str(ROOT), os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another installation to finish ...")
            fcntl.flock(descriptor, fcntl.LOCK_EX)

        yield
    finally:
        os.close(descriptor)


def say(line: str) -> None:
    """Print what takes time."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def stamp(requirements: str) -> Path:
    """Return the file that records what was last installed from the requirements file."""
    return VENV / f"installed-{requirements}"


def pip_arguments(requirements: str) -> list[str]:
    """Return what pip is told to install, and how.

    The lock file names every package with its hashes. Without it, packages that the requirements
    file doesn't name would be whatever the index has today, so that is only done when asked for.
    """
    if os.environ.get(UNLOCKED):
        return ["-r", str(ROOT / requirements)]

    lock = LOCKS / requirements
    if not lock.exists():
        raise InstallFailure(
            f"{lock} is missing: get it back, make it by 'make lock', or set {UNLOCKED}=1 to "
            "install unchecked packages."
        )

    return ["--require-hashes", "-r", str(lock)]


def contents(requirements: str) -> str:
    """Return the stamp's text: a digest of what pip is told to install."""
    options = pip_arguments(requirements)
    texts = [Path(options[-1]).read_bytes(), " ".join(options[:-1]).encode()]
    texts += [(ROOT / requirements).read_bytes()]
    return hashlib.sha256(b"".join(texts)).hexdigest()


def is_installed(requirements: str) -> bool:
    """Tell whether the environment works and has exactly these requirements installed."""
    path = stamp(requirements)
    if not path.exists() or path.read_text() != contents(requirements):
        return False

    return works()


def works() -> bool:
    """Tell whether the environment's Python runs and is new enough.

    Its base may have been removed, or the folder moved.
    """
    if not VENV_PYTHON.exists():
        return False

    check = f"import sys, pip; sys.exit(sys.version_info < {OLDEST})"
    return subprocess.call([str(VENV_PYTHON), "-c", check], stderr=subprocess.DEVNULL) == 0


def install(requirements: str) -> None:
    """Make the environment unless one works, then install with pip."""
    if not works():
        make_environment()

    origin = []
    if WHEELHOUSE.is_dir():
        origin = ["--no-index", "--find-links", str(WHEELHOUSE)]

    source = " from wheelhouse" if origin else ""
    say(f"Installing {requirements}{source} into {VENV.name}; the first time takes a minute ...")
    path = stamp(requirements)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()

    options = [
        "--disable-pip-version-check",
        "--no-input",
        "--retries",
        "2",
        "--progress-bar",
        "off",
    ]
    run_logged(
        [str(VENV_PYTHON), "-m", "pip", "install", *options, *origin, *pip_arguments(requirements)],
        explain_pip,
    )
    path.write_text(contents(requirements))


def make_environment() -> None:
    """Make the environment anew with the Python that runs this."""
    if sys.version_info < OLDEST:
        raise InstallFailure(
            "Citu needs Python {}.{} or newer, and this is {}.{}: install one and name it, for "
            "example 'make run PYTHON=python3.12'.".format(*(OLDEST + tuple(sys.version_info[:2])))
        )

    try:
        import ensurepip  # noqa: F401, PLC0415 - Debian ships Python without it
        import venv  # noqa: F401, PLC0415
    except ImportError:
        message = (
            "Python's venv module is missing: install it (Debian and Ubuntu: "
            "apt install python3-venv), then try again."
        )
        raise InstallFailure(message) from None

    shutil.rmtree(str(VENV), ignore_errors=True)
    VENV.mkdir(exist_ok=True)
    run_logged([sys.executable, "-m", "venv", "--clear", str(VENV)], explain_venv)


def run_logged(command: list[str], explain: Callable[[str], str]) -> None:
    """Run the command with its output in the log; `explain` makes a failure's message of it."""
    environment = dict(os.environ)
    if not environment.get("HOME"):  # without it pip would keep its cache in the root directory
        environment.update(HOME=str(VENV), PIP_NO_CACHE_DIR="1")

    result = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    VENV.mkdir(exist_ok=True)
    LOG.write_bytes(result.stdout)
    if result.returncode:
        raise InstallFailure(explain(result.stdout.decode("utf-8", "replace")))


def explain_pip(output: str) -> str:
    """Return the message for pip's output after it failed."""
    if NO_CONNECTION.search(output):
        return (
            "Citu's packages can't be downloaded, the package index is out of reach: connect to "
            "the network or set "
            f"PIP_INDEX_URL to a mirror, then try again (pip's output: {LOG})."
        )
    if OTHER_FILES.search(output):
        return (
            "The package index gave a file that is not the one that was tested, so nothing was "
            f"installed: use another index (PIP_INDEX_URL), or set {UNLOCKED}=1 if you trust this "
            f"one (pip's output: {LOG})."
        )

    missing = NO_WHEEL.search(output)
    if missing and WHEELHOUSE.is_dir():
        return (
            f"The folder {WHEELHOUSE.name} has no {missing[1]} for this system and Python: make it "
            f"by 'make wheelhouse' on a machine of this kind, or remove it (pip's output: {LOG})."
        )

    return f"Citu's packages can't be installed ({last_error(output)}); pip's output: {LOG}."


def explain_venv(output: str) -> str:
    """Return the message for a failed environment."""
    return f"The environment {VENV.name} can't be made ({last_error(output)}); the output: {LOG}."


def last_error(output: str) -> str:
    """Return the last line that looks like a reason."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        return "no output"

    errors = [line for line in lines if line.startswith(("ERROR", "Error"))]
    last = errors[-1] if errors else lines[-1]
    return last.rstrip(".")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
