"""Citu as operators run it: `unified_api.py` in a process of its own, on a real port.

Tests look at it from outside only; Linux's /proc tells what a process holds.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import psycopg2
from psycopg2 import extensions
from psycopg2.extensions import make_dsn, parse_dsn

from tests.support.forking import Fork
from tests.support.openai_server import OpenAiServer

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 120
# How long SQL and model calls may go on after they are stopped: far less than without that, and
# enough for a busy machine.
GONE_S = 30.0
STORE_TIMEOUT_S = "20"  # on a busy machine the two seconds of the product may be too few
_POLL_S = 0.02
_PROGRAM = "unified_api.py"
T = TypeVar("T")
Process: TypeAlias = "subprocess.Popen[str] | Fork"


@dataclass(frozen=True)
class Citu:
    """A running service. `process` is gunicorn's master, whose children, mostly one, answer
    requests.
    """

    process: "Process"
    port: int
    log: Path
    banner: tuple[str, ...]

    def worker(self) -> int:
        """Return the process id of the worker, waited for while there is none."""
        return eventually(lambda: next(iter(children(self.process.pid)), None), START_TIMEOUT_S)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the master alone, as a service manager does."""
        self.process.send_signal(number)


@contextmanager
def serving(
    log: Path, *, model: OpenAiServer | None = None, program: str = _PROGRAM, **environment: str
) -> Iterator[Citu]:
    """Run `python unified_api.py`, or another program; yield when its banner is complete, and
    end it by SIGINT.
    """
    port = environment.setdefault("PORT", str(free_port()))
    with _running(Fork, [program], log, environment | _model_settings(model)) as process:
        yield Citu(process, int(port), log, _banner(process))


@contextmanager
def serving_afresh(log: Path, **environment: str) -> Iterator[Citu]:
    """Like `serving`, in a new Python process, not a fork."""
    port = environment.setdefault("PORT", str(free_port()))
    with _running(_afresh, [_PROGRAM], log, environment) as process:
        yield Citu(process, int(port), log, _banner(process))


@contextmanager
def serving_by_gunicorn(
    configuration: Path,
    log: Path,
    *,
    model: OpenAiServer | None = None,
    workers: str = "",
    **environment: str,
) -> Iterator[Citu]:
    """`gunicorn -c configuration unified_api:app` from when it answers; `workers`: how many, if not
    as configured.
    """
    port = environment.setdefault("PORT", str(free_port()))
    count = ["-w", workers] if workers else []
    words = ["-m", "gunicorn", "-c", str(configuration), *count, "unified_api:app"]
    with _running(Fork, words, log, environment | _model_settings(model)) as process:
        eventually(lambda: _listens(int(port)), START_TIMEOUT_S)
        yield Citu(process, int(port), log, ())


# Like `gunicorn.conf.py`, with two places and shorter time limits.
_IMPATIENT = """
import os
from serving.worker import Worker, gunicorn_options
class Impatient(Worker):
    head_s = HEAD_S
    body_s = BODY_S
    stall_s = STALL_S
    margin_s = MARGIN_S
question_s = float(os.environ.get("REQUEST_TIMEOUT_S", "180"))
options = gunicorn_options(2, question_s=question_s, drain_s=DRAIN_S)
globals().update(options | {"worker_class": Impatient})
bind = "127.0.0.1:" + os.environ["PORT"]
"""


def impatient(
    folder: Path,
    *,
    head_s: float = 5.0,
    body_s: float = 10.0,
    stall_s: float = 1.0,
    margin_s: float = 2.0,
    drain_s: float = 0.5,
) -> Path:
    """Return a configuration file for `serving_by_gunicorn`.

    Clients may take `head_s` and `body_s` to send a request, stall for `stall_s` and take
    `margin_s` longer than a question may, and questions outlive SIGTERM by `drain_s`.
    """
    path = folder / "impatient.conf.py"
    text = _IMPATIENT
    limits = {"HEAD_S": head_s, "BODY_S": body_s, "STALL_S": stall_s}
    limits |= {"MARGIN_S": margin_s, "DRAIN_S": drain_s}
    for name, seconds in limits.items():
        text = text.replace(name, str(seconds))
    path.write_text(text)
    return path


def _model_settings(model: OpenAiServer | None) -> dict[str, str]:
    if model is None:
        return {}
    return {"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "scripted"}


@contextmanager
def _running(
    begin: Callable[[list[str], Path, dict[str, str], IO[str]], Process],
    words: list[str],
    log: Path,
    environment: dict[str, str],
) -> Iterator[Process]:
    with log.open("a") as errors:
        process = begin(words, ROOT, clean_environment(environment), errors)
    assert process.stdout is not None
    with process.stdout:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            process.wait(60)


def _afresh(
    words: list[str], cwd: Path, env: dict[str, str], stderr: IO[str]
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=cwd,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def clean_environment(changes: dict[str, str]) -> dict[str, str]:
    """Return the environment without keys of real models, on a free port, patient, without
    dbt, which takes seconds of the processor for each draft, and `changes`.
    """
    inherited = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
    defaults = {"DATABASE_URL": "", "PORT": str(free_port())}
    defaults |= {"STORE_TIMEOUT_S": STORE_TIMEOUT_S, "ETL_DBT": "none"}
    return {**inherited, **defaults, **changes}


def free_port() -> int:
    """Return a TCP port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _banner(process: Process) -> tuple[str, ...]:
    assert process.stdout is not None
    timer = threading.Timer(START_TIMEOUT_S, process.kill)
    timer.start()
    try:
        return tuple(process.stdout.readline() for _ in range(3))
    finally:
        timer.cancel()


def eventually(look: Callable[[], T | None], timeout_s: float = 60.0) -> T:
    """Poll `look` until its result is true and return it; for states of other processes, which
    send no events.
    """
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(_POLL_S)
    return found


def children(pid: int) -> list[int]:
    """Return the living children of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def is_alive(pid: int) -> bool:
    """Tell whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def thread_count(pid: int) -> int:
    """Return how many threads a process has."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def descriptor_count(pid: int) -> int:
    """Return how many files and sockets a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


# Views that keep a statement running: without end, and until the test opens the gate.
GAUGES = """
CREATE TABLE gauge (n integer, name text);
INSERT INTO gauge SELECT i, 'gauge ' || i FROM generate_series(1, 3) AS i;
CREATE VIEW endless AS SELECT n FROM gauge, pg_sleep(600);
CREATE VIEW gated AS SELECT n FROM gauge WHERE pg_advisory_xact_lock_shared(7) IS NOT NULL;
"""


class Watch:
    """A superuser's look at one database, and the gate of `GAUGES`."""

    def __init__(self, admin_url: str, database_url: str) -> None:
        self._admin_url = make_dsn(admin_url, dbname=parse_dsn(database_url)["dbname"])
        self._connection: extensions.connection | None = None

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of one statement; a lost connection is opened again by the next call."""
        if self._connection is None or self._connection.closed:
            self._connection = psycopg2.connect(self._admin_url)
            self._connection.autocommit = True
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def running(self, word: str) -> list[int]:
        """Process ids of Citu's statements that run now and contain `word`, those that are only
        planned left out.
        """
        rows = self.query(
            "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND application_name = 'citu' "
            f"AND datname = current_database() AND query LIKE '%{word}%' "
            "AND query NOT LIKE '%EXPLAIN%'"
        )
        return [pid for (pid,) in rows]

    def connections(self) -> int:
        """Return how many connections Citu has open."""
        sql = (
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'citu' "
            "AND datname = current_database()"
        )
        return len(self.query(sql))

    def close_gate(self) -> None:
        """Let statements that read `gated` wait from now on."""
        self.query("SELECT pg_advisory_lock(7)")

    def open_gate(self) -> None:
        """Let them go on."""
        self.query("SELECT pg_advisory_unlock_all()")

    def close(self) -> None:
        """End the connection, which opens the gate."""
        if self._connection is not None:
            self._connection.close()
