"""A Redis of the tests' own, to stop, kill, freeze and start again; it keeps its data."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from tests.support.live import eventually, free_port

PROGRAM = "redis-server"
_START_TIMEOUT_S = 20.0


class RedisServer:
    """`redis-server` on one loopback port, with its data in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and return when it answers; at once if it runs."""
        if self._process is not None:
            return
        options = {"port": self._port, "bind": "127.0.0.1", "dir": self._folder, "save": ""}
        options |= {
            "appendonly": "yes",
            "appendfsync": "always",
        }  # by default a crash loses the latest writes
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self._process = subprocess.Popen(
            [PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        eventually(self._answers, _START_TIMEOUT_S)

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Send the signal and waits for its end; SIGKILL gives it no time to save."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_START_TIMEOUT_S)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """In this context its connections stay open and it does not answer."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    @contextmanager
    def severed(self) -> Iterator[None]:
        """While in this context writes wait; when it ends, once one does, all connections but ours
        are cut.
        """
        with redis.Redis.from_url(self.url) as client:
            client.execute_command("CLIENT PAUSE", 60_000, "WRITE")
            yield
            eventually(lambda: any("b" in found["flags"] for found in client.client_list()))
            client.execute_command("CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")
            client.execute_command("CLIENT UNPAUSE")

    def forget(self) -> None:
        """Delete all data, as a Redis without persistence does when it ends."""
        with redis.Redis.from_url(self.url) as client:
            client.flushall()


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """A running server; skips the test where there is no program for it."""
    if shutil.which(PROGRAM) is None:
        pytest.skip(f"there is no {PROGRAM} here, and no CITU_TEST_REDIS_URL")
    with tempfile.TemporaryDirectory(prefix="citu-redis-") as folder:
        server = RedisServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop(signal.SIGKILL)
