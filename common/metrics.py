"""The metrics of a service, measured by all its workers and read from any of them.

Each process writes into files of its own in one folder, which is mapped into memory, so that what
a killed worker has measured is kept. The library is imported only by services that measure.
"""

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.metric_table import METRICS, MetricSpec

if TYPE_CHECKING:
    from prometheus_client import Counter, Gauge, Histogram

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's own variable; forked workers inherit it
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# What a dead worker held open is gone with it.
_GAUGE_MODE = "livesum"
# How many runs wait depends on what dead workers have begun as well.
_GAUGE_MODES = {"citu_runs_waiting": "sum"}


class Metrics:
    """Takes measurements of the metrics in `METRICS`; any thread may call it.

    Attributes:
        folder: the folder of the files of all workers; it must exist.
    """

    def __init__(self, folder: Path) -> None:
        os.environ[_FOLDER] = str(folder)
        from prometheus_client import CollectorRegistry, values

        # It was chosen when the library was imported, which another library may have done before.
        values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]
        registry = CollectorRegistry()
        self.folder = folder
        self._of: dict[str, Any] = {}
        self._series_of: dict[tuple[Any, ...], Any] = {}
        for spec in METRICS:
            self._of[spec.name] = _make_metric(spec, registry)

    def add(self, name: str, amount: float = 1.0, labels: Mapping[str, str] | None = None) -> None:
        """Add to a counter or a gauge."""
        self._series(name, labels).inc(amount)

    def observe(self, name: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Take one value of a histogram."""
        self._series(name, labels).observe(value)

    def set(self, name: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Set this worker's part of a gauge."""
        self._series(name, labels).set(value)

    def _series(self, name: str, labels: Mapping[str, str] | None) -> Any:
        if labels is None:
            return self._of[name]

        # The library looks labels up slowly; there are few of them.
        key = name, *labels.items()
        series = self._series_of.get(key)
        if series is None:
            series = self._series_of[key] = self._of[name].labels(**labels)

        return series

    def text(self) -> bytes:
        """Return the metrics of all workers in the text format of Prometheus."""
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=str(self.folder))  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def _make_metric(spec: MetricSpec, registry: Any) -> "Counter | Gauge | Histogram":
    from prometheus_client import Counter, Gauge, Histogram

    if spec.kind == "counter":
        return Counter(spec.name, spec.meaning, spec.labels, registry=registry)
    if spec.kind == "histogram":
        return Histogram(
            spec.name, spec.meaning, spec.labels, registry=registry, buckets=spec.buckets
        )

    mode: Any = _GAUGE_MODES.get(spec.name, _GAUGE_MODE)
    return Gauge(spec.name, spec.meaning, spec.labels, registry=registry, multiprocess_mode=mode)


def begin_folder(data_path: Path) -> Path:
    """Make an empty folder for the service that this process begins, and return it.

    Several services may share `data_path`; the folders of those that have ended are deleted.
    """
    parent = data_path / "metrics"
    host = socket.gethostname()
    for left in parent.glob(f"{host}-*"):
        if not _is_running(left.name.rpartition("-")[2]):
            shutil.rmtree(left, ignore_errors=True)

    folder = parent / f"{host}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ[_FOLDER] = str(folder)
    return folder


def _is_running(process_id: str) -> bool:
    try:
        os.kill(int(process_id), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True

    return True


def open_metrics(data_path: Path) -> Metrics:
    """Return the metrics of the service that began this process, or of this process alone."""
    begun = os.environ.get(_FOLDER, "")
    folder = Path(begun)
    if begun and folder.is_dir():
        return Metrics(folder)

    return Metrics(begin_folder(data_path))


def forget_worker(process_id: int) -> None:
    """Drop what a worker that has ended held open; what it counted stays."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(process_id)  # type: ignore[no-untyped-call]
