"""Forks Python programs from one process that has done their imports, for all processes of a run.

`python -m tests.support.fork_server DESCRIPTOR` takes connections from a listening socket. Each
connection may ask for one program, as JSON with its words, folder and environment beside two
descriptors, its standard output and error. It is told the program's process id, and when that has
ended, how. The server ends when nobody is connected any more.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

# What the programs run, and then what a service imports only when it first needs it: half a second
# of processor time in every fork.
_IMPORTED = (
    *("gunicorn.app.wsgiapp", "unified_api"),
    *("llm.transport", "openai.resources.chat.completions", "aiohttp", "httpcore2"),
    *("store.psycopg_saver", "jsonschema.validators", "jsonschema_specifications"),
    "tests.support.forked_memory",
)
_MOST_BYTES = 1_000_000  # of a request


@dataclass(frozen=True)
class _Program:
    """What a fork is to become: `python` followed by `words`."""

    words: list[str]
    cwd: str
    env: dict[str, str]
    outputs: list[int]


class _ForkServer:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._clients: set[socket.socket] = set()
        self._askers: dict[int, tuple[int, socket.socket]] = {}

    def serve(self) -> _Program | None:
        """Return None when all clients have gone; in a fork, what it is to become."""
        self._accept()
        while self._clients or self._askers:
            for key, _ in self._selector.select():
                program = self._attend(key.fileobj)
                if program is not None:
                    return program
        return None

    def _attend(self, ready: Any) -> _Program | None:
        if ready is self._listener:
            self._accept()
        elif ready in self._clients:
            return self._listen_to(ready)
        else:
            self._report(ready)
        return None

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        self._clients.add(client)
        self._selector.register(client, selectors.EVENT_READ)

    def _listen_to(self, client: socket.socket) -> _Program | None:
        message, outputs, _, _ = socket.recv_fds(client, _MOST_BYTES, 2)
        if not message:
            self._clients.remove(client)
            self._selector.unregister(client)
            client.close()
            self._end_programs_of(client)
            return None
        pid = os.fork()
        if pid == 0:
            self._close_all()
            return _Program(**json.loads(message), outputs=outputs)
        for output in outputs:
            os.close(output)
        ending = os.pidfd_open(pid)
        self._askers[ending] = (pid, client)
        self._selector.register(ending, selectors.EVENT_READ)
        with suppress(OSError):
            client.send(str(pid).encode())
        return None

    def _end_programs_of(self, client: socket.socket) -> None:
        """End what a client has left running: it leaves before the end only when it was killed."""
        for pid, asker in self._askers.values():
            if asker is client:
                os.kill(pid, signal.SIGTERM)

    def _report(self, ending: int) -> None:
        pid, client = self._askers.pop(ending)
        self._selector.unregister(ending)
        os.close(ending)
        _, status = os.waitpid(pid, 0)
        with suppress(OSError):  # nobody need be there any more
            client.send(str(os.waitstatus_to_exitcode(status)).encode())

    def _close_all(self) -> None:
        """Close in a fork what is the server's."""
        self._selector.close()
        self._listener.close()
        for client in self._clients:
            client.close()
        for ending in self._askers:
            os.close(ending)


def _become(program: _Program) -> int:
    """Run the program and return its exit code."""
    os.setsid()
    os.chdir(program.cwd)
    for output, descriptor in zip(program.outputs, (1, 2), strict=True):
        os.dup2(output, descriptor)
        os.close(output)
    os.environ.clear()
    os.environ.update(program.env)
    first, *arguments = program.words
    try:
        if first == "-m":
            sys.argv = arguments
            runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = program.words
            runpy.run_path(first, run_name="__main__")
    except SystemExit as ended:
        return _code_of(ended)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1
    return 0


def _code_of(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    print(ended.code, file=sys.stderr)
    return 1


def main() -> int:
    for name in _IMPORTED:
        importlib.import_module(name)
    # Else every fork's collector would go through all that was imported, and copy its memory.
    gc.collect()
    gc.freeze()
    program = _ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()
    if program is None:
        return 0
    code = 1

    def leave() -> None:
        """End without taking down all that was imported; called when all threads have ended."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)
    code = _become(program)
    return code


if __name__ == "__main__":
    sys.exit(main())
