"""Starts Citu's programs as forks of a process that has done their imports, which take most of the
time of a start.

A fork is a process with its own session, environment, output and signals. Tests about starting run
`python …` itself. All processes of one run of the tests share the process that is forked.
"""

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

_ROOT = Path(__file__).resolve().parents[2]
_ADDRESS = "forks.socket"
_MOST_WAITING = 100  # connections


def begin_imports() -> None:
    """Start the process that forks come from; it does its imports while others go on."""
    _server()


@cache
def _server() -> tuple[socket.socket, "subprocess.Popen[bytes] | None"]:
    """Return a connection, which keeps the process running while this one runs, and the process if
    it was started here.
    """
    address = Path(os.environ["CITU_TEST_FOLDER"]) / _ADDRESS
    with address.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with suppress(FileNotFoundError, ConnectionRefusedError):
            return _connected(address), None
        address.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(address))
            listener.listen(_MOST_WAITING)
            descriptor = listener.fileno()
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.fork_server", str(descriptor)],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[descriptor],
                start_new_session=True,
            )
        return _connected(address), process


def _connected(address: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(str(address))
    except OSError:
        connection.close()
        raise
    return connection


class Fork:
    """The part of `subprocess.Popen` that the tests use; the command is `python` followed by
    `words`.
    """

    def __init__(self, words: list[str], cwd: Path, env: dict[str, str], stderr: IO[str]) -> None:
        self.words = words
        keeper, _ = _server()
        self._connection = _connected(Path(keeper.getpeername()))
        self._lock = threading.Lock()
        self._returncode: int | None = None
        said, stdout = os.pipe()
        self.stdout = os.fdopen(said, encoding="utf-8")
        request = json.dumps({"words": words, "cwd": str(cwd), "env": env}).encode()
        try:
            socket.send_fds(self._connection, [request], [stdout, stderr.fileno()])
        finally:
            os.close(stdout)
        self.pid = int(self._connection.recv(100))

    @property
    def returncode(self) -> int | None:
        """Return None while it runs; negative: the signal that ended it."""
        return self._ended(0)

    def _ended(self, timeout: float) -> int | None:
        with self._lock:
            if self._returncode is None:
                poll = select.poll()
                poll.register(self._connection, select.POLLIN)
                if poll.poll(timeout * 1000):
                    self._returncode = int(self._connection.recv(100))
                    self._connection.close()
            return self._returncode

    def wait(self, timeout: float) -> int:
        """Return how it ended."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.words, timeout)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send the signal, unless the process has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_forked(
    words: list[str], cwd: Path, env: dict[str, str], timeout: float
) -> "subprocess.CompletedProcess[str]":
    """Run as `subprocess.run` does, with captured output."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        process = Fork(words, cwd, env, errors)
        with process.stdout:
            try:
                process.wait(timeout)
            finally:
                process.kill()
            said = process.stdout.read()
        errors.seek(0)
        return subprocess.CompletedProcess(words, process.wait(timeout), said, errors.read())
