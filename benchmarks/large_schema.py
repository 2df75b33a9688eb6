"""Measures a database of thousands of tables: the first answer after a cold start, later ones,
memory, and waits.

It makes a database with tables of about ten columns (`synthetic_schema`) and asks without a model.
Citu runs as `python unified_api.py`. The first questions come at once, while Citu still reads the
catalogue; then come questions of several kinds, one after the other. Meanwhile `/health` is asked
again and again: its slowest answer shows how long other requests have to wait.

At last another service asks two databases: four callers ask one of forty tables from the first
second until a question about the other is answered. What they wait longest is compared for another
of thousands of tables and one of forty.
"""

import http.client
import json
import shutil
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.synthetic_schema import database_of as synthetic_database
from benchmarks.worker_process import memory_mb
from tests.support.live import children, serving_afresh

QUESTIONS = (
    "How many crm customers are there?",
    "status of hr_employee",
    "各城市的仓库数量",
    "top 5 sales order by amount",
    "lastest invoise by citty",
    "你好",
    "name",
)
_CLIENTS = 4
_NAME = "large_schema"
_FEW_TABLES = 40
_DATABASES = """
databases:
  near: {{url: "{near}", default: true}}
  other: {{url: "{other}"}}
"""


@dataclass(frozen=True)
class LargeSchemaResults:
    """The findings; times in seconds.

    Attributes:
        first_s: from the start of the service until all of the first clients have an answer.
        later_s: the median question afterwards, and the slowest.
        waited_s: the slowest answer of `/health` while the first questions waited.
        beside_s: the slowest answer about a database of forty tables from a cold start on, beside
            another of as many tables, and beside the large one.
        memory_mb: most memory of the worker and of a process that makes its index, together.
    """

    tables: int
    first_s: float
    later_s: tuple[float, float]
    waited_s: float
    beside_s: tuple[float, float]
    memory_mb: float

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        median, slowest = self.later_s
        beside_few, beside_many = self.beside_s
        return [
            f"{self.tables} tables: {_CLIENTS} first answers {self.first_s:.1f} s after a cold "
            "start (bar 20);"
            f" meanwhile /health took at most {self.waited_s * 1000:.0f} ms (bar 250)",
            f"later answers: median {median * 1000:.0f} ms, "
            f"slowest {slowest * 1000:.0f} ms (bar 100);"
            f" memory {self.memory_mb:.0f} MB in all (bar 600)",
            f"callers of another database waited {beside_many:.2f} s at most, and "
            f"{beside_few:.2f} s beside one of {_FEW_TABLES} tables (bar: 0.5 s longer)",
        ]


def run(data_dir: Path, *, tables: int = 10_000, rounds: int = 5) -> LargeSchemaResults:
    """Measure a database of `tables` tables."""
    with (
        synthetic_database(data_dir, _NAME, tables) as url,
        synthetic_database(data_dir, f"{_NAME}_few", _FEW_TABLES) as few,
        synthetic_database(data_dir, f"{_NAME}_near", _FEW_TABLES) as near,
        ThreadPoolExecutor(_CLIENTS) as clients,
    ):
        shutil.rmtree(data_dir / "index", ignore_errors=True)
        started = time.perf_counter()
        with (
            serving_afresh(
                data_dir / "large_schema.log", DATABASE_URL=url, DATA_DIR=str(data_dir)
            ) as citu,
            _weighed(citu.worker()) as memory,
        ):
            with _watched(citu.port) as waits:
                list(clients.map(lambda question: _ask(citu.port, question), QUESTIONS[:_CLIENTS]))
                first_s = time.perf_counter() - started
            for question in QUESTIONS:
                _ask(citu.port, question)
            later = [_ask(citu.port, question) for _ in range(rounds) for question in QUESTIONS]
        beside = tuple(_longest_beside(data_dir, near, other) for other in (few, url))
    return LargeSchemaResults(
        tables,
        first_s,
        (statistics.median(later), max(later)),
        max(waits, default=0.0),
        (beside[0], beside[1]),
        max(memory),
    )


def _longest_beside(data_dir: Path, near: str, other: str) -> float:
    """Return the seconds of the slowest answer about `near` until `other` has given one."""
    shutil.rmtree(data_dir / "index", ignore_errors=True)
    file = data_dir / "large_schema.yaml"
    file.write_text(_DATABASES.format(near=near, other=other))
    log = data_dir / "large_schema.log"
    with (
        serving_afresh(log, DATABASES_FILE=str(file), DATA_DIR=str(data_dir)) as citu,
        ThreadPoolExecutor(_CLIENTS + 1) as clients,
    ):
        last = clients.submit(_ask, citu.port, QUESTIONS[0], "other")

        def asked() -> float:
            waits = [_ask(citu.port, QUESTIONS[0], "near")]
            while not last.done():
                waits.append(_ask(citu.port, QUESTIONS[0], "near"))
            return max(waits)

        callers = [clients.submit(asked) for _ in range(_CLIENTS)]
        last.result()
        return max(caller.result() for caller in callers)


def _ask(port: int, question: str, database: str | None = None) -> float:
    """Return seconds until the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    with closing(connection):
        asked = (
            {"question": question}
            if database is None
            else {"question": question, "database": database}
        )
        body = json.dumps(asked).encode()
        started = time.perf_counter()
        connection.request("POST", "/api/v0/ask_agent", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        assert response.status == 200, answer
        return time.perf_counter() - started


@contextmanager
def _weighed(worker: int) -> Iterator[list[float]]:
    """Give the most memory of the worker and its processes together, looked at often."""
    most = [0.0]
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.05):
            most[0] = max(most[0], memory_mb(worker) + sum(map(memory_mb, children(worker))))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        is_over.set()
        watcher.join()


@contextmanager
def _watched(port: int) -> Iterator[list[float]]:
    """Ask `/health` again and again; give the seconds of each answer."""
    waits: list[float] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.02):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            with closing(connection):
                started = time.perf_counter()
                connection.request("GET", "/health")
                connection.getresponse().read()
                waits.append(time.perf_counter() - started)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield waits
    finally:
        is_over.set()
        watcher.join()
