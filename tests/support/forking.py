"""Starts Citu's programs as forks of a process that has done their imports, which take most of the
time of a start.

A fork is a process with its own session, environment, output and signals. Tests about starting run
`python …` itself.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

# Tests also use it to run functions in other processes, which find their imports done.
context = multiprocessing.get_context("forkserver")
# The last ones are what a service imports only when it first needs it: half a second of processor
# time in every fork.
context.set_forkserver_preload(
    ["tests.support.forking", "gunicorn.app.wsgiapp", "unified_api"]
    + ["llm.transport", "openai.resources.chat.completions", "aiohttp", "httpcore2"]
    + ["store.psycopg_saver", "jsonschema.validators", "jsonschema_specifications"]
    + ["tests.support.forked_memory"]
)


def begin_imports() -> None:
    """Start the process that forks come from; it does its imports while others go on."""
    forkserver.ensure_running()


class Fork:
    """The part of `subprocess.Popen` that the tests use; the command is `python` followed by
    `words`.
    """

    def __init__(self, words: list[str], cwd: Path, env: dict[str, str], stderr: IO[str]) -> None:
        self.words = words
        said, stdout = context.Pipe(duplex=False)
        with stdout, Connection(os.dup(stderr.fileno()), readable=False) as errors:
            self._process = context.Process(
                target=_begin, args=(words, str(cwd), env, stdout, errors)
            )
            self._process.start()
        self.stdout = os.fdopen(os.dup(said.fileno()), encoding="utf-8")
        said.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Return None while it runs; negative: the signal that ended it."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """Return how it ended."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.words, timeout)
        return self.returncode

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


def _begin(
    words: list[str], cwd: str, env: dict[str, str], stdout: Connection, stderr: Connection
) -> None:
    """In the fork: become the program, `python` followed by `words`."""
    os.setsid()
    os.chdir(cwd)
    for connection, descriptor in ((stdout, 1), (stderr, 2)):
        os.dup2(connection.fileno(), descriptor)
        connection.close()
    os.environ.clear()
    os.environ.update(env)
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
