"""Hosts on one machine: network namespaces that are joined by a bridge, so that each can lose its
network without noticing.

Everything is in a network of its own (`in_own_network`), which ends with its processes: nothing of
the machine's own network is changed. Needs Linux and the rights of root.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_BRIDGE = "bridge"
_SUBNET = "10.77.0"
CENTRE = f"{_SUBNET}.1"  # where proxy, store, model and clients are
_TOOLS = ("unshare", "nsenter", "ip")
_ROOT = Path(__file__).resolve().parents[1]
_END_S = 60.0


def missing(*programs: str) -> str:
    """Return why there can be no hosts here; empty when there can."""
    for program in (*_TOOLS, *programs):
        if shutil.which(program) is None:
            return f"there is no {program} here"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    return tried.stderr.strip()


def in_own_network(module: str, *arguments: str) -> None:
    """Run `python -m module` in a network where nobody else is."""
    command = ["unshare", "--net", sys.executable, "-m", module, *arguments]
    subprocess.run(command, cwd=_ROOT, check=True)


def join_hosts() -> None:
    """Make the bridge to which hosts are joined; once in each network."""
    _ip("link", "set", "lo", "up")
    _ip("link", "add", _BRIDGE, "type", "bridge")
    _ip("addr", "add", f"{CENTRE}/24", "dev", _BRIDGE)
    _ip("link", "set", _BRIDGE, "up")


class BenchHost:
    """A host with its own address, on which one program runs at a time.

    Args:
        number: from 2 on.
    """

    def __init__(self, number: int, keeper: int) -> None:
        self.address = f"{_SUBNET}.{number}"
        self._cable = f"cable{number}"
        self._enter = ["nsenter", "--target", str(keeper), "--net"]
        self._process: subprocess.Popen[bytes] | None = None
        inner = f"host{number}"
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", inner)
        _ip("link", "set", inner, "netns", str(keeper))
        _ip("link", "set", self._cable, "up", "master", _BRIDGE)
        for words in (
            ["link", "set", "lo", "up"],
            ["addr", "add", f"{self.address}/24", "dev", inner],
            ["link", "set", inner, "up"],
        ):
            subprocess.run([*self._enter, "ip", *words], check=True)

    def start(self, command: Sequence[str], environment: dict[str, str], log: IO[bytes]) -> None:
        """Start a program there."""
        self._process = subprocess.Popen(
            [*self._enter, *command],
            cwd=_ROOT,
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Return the process id of the program."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """Ask the program to end, as a service manager does, and wait until it has."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_END_S)
            self._process = None

    def kill(self) -> None:
        """End all processes of the program at once, and give them no time for anything."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_END_S)
            self._process = None

    def suspend(self) -> None:
        """Stop all processes of the program where they are; the host still takes connections."""
        os.killpg(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let the stopped processes go on."""
        os.killpg(self.pid, signal.SIGCONT)

    def pull_cable(self) -> None:
        """Lose whatever is sent to the host or by it; its connections stay open."""
        _ip("link", "set", self._cable, "nomaster")

    def plug_cable(self) -> None:
        """Connect the host again; what was sent meanwhile may still arrive."""
        _ip("link", "set", self._cable, "master", _BRIDGE)


@contextmanager
def host(number: int) -> Iterator[BenchHost]:
    """Yield a host; what runs on it is killed at the end."""
    keeper = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    try:
        _await_namespace(keeper.pid)
        made = BenchHost(number, keeper.pid)
        try:
            yield made
        finally:
            made.kill()
    finally:
        keeper.kill()
        keeper.wait()


def _await_namespace(pid: int) -> None:
    own = Path("/proc/self/ns/net").readlink()
    while Path(f"/proc/{pid}/ns/net").readlink() == own:
        os.sched_yield()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
