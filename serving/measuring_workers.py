"""Begins and ends the measuring of workers, from their master process."""

import socket
from pathlib import Path
from typing import Any, Protocol

from common.metrics import begin_folder, forget_worker
from serving.listen_address import listen
from serving.metrics_port import MetricsPort


class MeasuringSettings(Protocol):
    """The settings that measuring needs, with the names and units of `app_config`."""

    @property
    def is_measured(self) -> bool: ...
    @property
    def data_path(self) -> Path: ...
    @property
    def metrics_host(self) -> str: ...
    @property
    def metrics_port(self) -> int: ...


# Opened by the master process, and inherited by its workers, also by those after a reload.
_listening: socket.socket | None = None


def begin_measuring(settings: MeasuringSettings) -> None:
    """Clear what an earlier start measured, and serve new measurements on `METRICS_PORT` if set.

    Called once, in the master process. A service that does not measure does nothing.

    Raises:
        PortUnavailable: the service can't listen on `METRICS_PORT`.
    """
    global _listening
    if not settings.is_measured:
        return

    begin_folder(settings.data_path)
    if settings.metrics_port:
        names = ("METRICS_HOST", "METRICS_PORT")
        _listening = listen(settings.metrics_host, settings.metrics_port, names)


def begin_worker(worker: Any) -> None:
    """Answer on `METRICS_PORT` in this worker, if there is one."""
    metrics = worker.wsgi.extensions["citu"].metrics
    if _listening is not None and metrics is not None:
        MetricsPort(_listening, metrics).start()


def end_worker(_arbiter: object, worker: Any) -> None:
    """Drop what a worker held open; called in the master process when one has ended."""
    forget_worker(worker.pid)
