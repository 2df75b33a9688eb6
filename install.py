"""Makes `.venv` and installs a requirements file into it, unless that has been done; the Makefile uses it.

`python3 install.py requirements.txt` prints one line if there is work, else nothing. On failure it prints one sentence,
returns exit code 1 and leaves pip's output in a log. Several may run at once: one installs, the others wait.
It must run on a Python that is too old for Citu to say so, and so uses nothing newer than Python 3.7.
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
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
LOG = VENV / "install.log"
OLDEST = (3, 11)

# Errors in pip's output when it can't reach the package index.
NO_CONNECTION = re.compile(r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError")


class Failure(Exception):
    """The installation can't be done; the message says in one sentence what to do."""


def main(requirements: str) -> int:
    """Installs the named file of this folder; returns the exit code."""
    try:
        with locked():
            if not is_installed(requirements):
                install(requirements)
    except Failure as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    except OSError as exc:
        sys.stderr.write(f"Citu can't be installed in {ROOT} ({exc.strerror}): make it writable, or copy it.\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Allows one installation at a time; locks the folder itself, so that the lock ends with the process."""
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
    """Prints what takes time."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def stamp(requirements: str) -> Path:
    """The file that records what was last installed from the requirements file."""
    return VENV / f"installed-{requirements}"


def contents(requirements: str) -> str:
    """What the stamp must hold: a digest of the file and of those it includes."""
    text = (ROOT / requirements).read_bytes()
    included = [contents(name.decode()) for name in re.findall(rb"^-r +(\S+)", text, re.MULTILINE)]
    return hashlib.sha256(text + "".join(included).encode()).hexdigest()


def is_installed(requirements: str) -> bool:
    """Whether the environment works and has exactly these requirements installed."""
    path = stamp(requirements)
    return path.exists() and path.read_text() == contents(requirements) and works()


def works() -> bool:
    """Whether the environment's Python runs and is new enough. Its base may have been removed, or the folder moved."""
    if not VENV_PYTHON.exists():
        return False
    check = f"import sys, pip; sys.exit(sys.version_info < {OLDEST})"
    return subprocess.call([str(VENV_PYTHON), "-c", check], stderr=subprocess.DEVNULL) == 0


def install(requirements: str) -> None:
    """Makes the environment unless one works, then installs with pip."""
    if not works():
        make_environment()
    say(f"Installing {requirements} into .venv; the first time takes about a minute ...")
    path = stamp(requirements)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    options = ["--disable-pip-version-check", "--no-input", "--retries", "2", "--progress-bar", "off"]
    run_logged([str(VENV_PYTHON), "-m", "pip", "install", *options, "-r", str(ROOT / requirements)], explain_pip)
    path.write_text(contents(requirements))


def make_environment() -> None:
    """Makes .venv anew with the Python that runs this."""
    if sys.version_info < OLDEST:
        raise Failure(
            "Citu needs Python {}.{} or newer, and this is {}.{}: install one and name it, for example "
            "'make run PYTHON=python3.12'.".format(*(OLDEST + tuple(sys.version_info[:2])))
        )
    try:
        import ensurepip  # noqa: F401, PLC0415 - Debian ships Python without it
        import venv  # noqa: F401, PLC0415
    except ImportError:
        message = (
            "Python's venv module is missing: install it (Debian and Ubuntu: apt install python3-venv), then try again."
        )
        raise Failure(message) from None
    shutil.rmtree(str(VENV), ignore_errors=True)
    VENV.mkdir(exist_ok=True)
    run_logged([sys.executable, "-m", "venv", "--clear", str(VENV)], explain_venv)


def run_logged(command: list[str], explain: Callable[[str], str]) -> None:
    """Runs the command with its output in the log; if it fails, `explain` makes the message from that output."""
    environment = dict(os.environ)
    if not environment.get("HOME"):  # without it pip would keep its cache in the root directory
        environment.update(HOME=str(VENV), PIP_NO_CACHE_DIR="1")
    result = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    VENV.mkdir(exist_ok=True)
    LOG.write_bytes(result.stdout)
    if result.returncode:
        raise Failure(explain(result.stdout.decode("utf-8", "replace")))


def explain_pip(output: str) -> str:
    """Why pip failed."""
    if NO_CONNECTION.search(output):
        return (
            "Citu's packages can't be downloaded, the package index is out of reach: connect to the network or set "
            f"PIP_INDEX_URL to a mirror, then try again (pip's output: {LOG})."
        )
    return f"Citu's packages can't be installed ({last_error(output)}); pip's output: {LOG}."


def explain_venv(output: str) -> str:
    """Why the environment could not be made."""
    return f"The environment .venv can't be made ({last_error(output)}); the output: {LOG}."


def last_error(output: str) -> str:
    """The last line that looks like a reason."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR", "Error"))]
    return (errors or lines or ["no output"])[-1].rstrip(".")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
