"""Runs Citu as operators do, by gunicorn with several workers, and looks at it from outside."""

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2

from benchmarks.worker_process import memory_mb
from tests.support.live import (
    ROOT,
    children,
    clean_environment,
    descriptor_count,
    eventually,
    free_port,
    thread_count,
)

_PATIENCE_S = 120.0


@dataclass(frozen=True)
class GunicornService:
    """A running service.

    Attributes:
        store_url: the URL of the database in which it keeps runs.
        folder: its `DATA_DIR`.
    """

    process: "subprocess.Popen[bytes]"
    port: int
    metrics_port: int
    store_url: str
    folder: Path

    def workers(self) -> list[int]:
        """Return the workers' process ids."""
        return children(self.process.pid)

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of a GET."""
        return _get(self.port, path)

    def metrics(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return _get(self.metrics_port, "/metrics")[1]

    def is_ready(self) -> bool:
        """Tell whether `/ready` says so."""
        with suppress(OSError, http.client.HTTPException):
            return self.get("/ready")[0] == http.HTTPStatus.OK
        return False

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement on the store."""
        connection = psycopg2.connect(self.store_url)
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall()
        finally:
            connection.close()

    def running(self) -> int:
        """Return how many runs are running, by the store."""
        return int(self.rows("SELECT count(*) FROM citu.run WHERE state = 'running'")[0][0])

    def held(self) -> "WorkerHoldings":
        """Return what all workers hold now."""
        workers = self.workers()
        connections = self.rows(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'citu'"
        )
        return WorkerHoldings(
            sum(memory_mb(pid) for pid in workers),
            sum(descriptor_count(pid) for pid in workers),
            sum(thread_count(pid) for pid in workers),
            int(connections[0][0]),
        )


@dataclass(frozen=True)
class WorkerHoldings:
    """What workers hold together: megabytes of memory, and numbers of the others."""

    memory_mb: float
    descriptors: int
    threads: int
    connections: int


@contextmanager
def gunicorn_service(
    folder: Path, settings: Mapping[str, str], *, workers: int, root: Path = ROOT
) -> Iterator[GunicornService]:
    """Run the service of the project in `root` until the context ends, from when it is ready.

    Args:
        settings: with `APP_DATABASE_URL`.
    """
    folder.mkdir(mode=0o755, exist_ok=True)
    port, metrics_port = free_port(), free_port()
    own = {"PORT": str(port), "METRICS_PORT": str(metrics_port), "DATA_DIR": str(folder)}
    words = [sys.executable, "-m", "gunicorn", "--preload", "--workers", str(workers)]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [*words, "unified_api:app"],
            cwd=root,
            env=clean_environment({**settings, **own}),
            stdout=log,
            stderr=log,
        )
    service = GunicornService(process, port, metrics_port, settings["APP_DATABASE_URL"], folder)
    try:
        eventually(lambda: len(service.workers()) == workers, _PATIENCE_S)
        eventually(service.is_ready, _PATIENCE_S)
        yield service
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, 15)
        process.wait(_PATIENCE_S)


def _get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()
