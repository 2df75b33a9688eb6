"""Measures once a second what has no beginning and end: the event loop's lag, and connections."""

import asyncio
from collections.abc import Callable

from common.metrics import Metrics
from postgres.pool import ConnectionCounts

_EVERY_S = 1.0


class WorkerSampler:
    """Samples the worker whose event loop it is started on.

    Args:
        connections: counts those to the datasources.
    """

    def __init__(self, metrics: Metrics, connections: Callable[[], ConnectionCounts]) -> None:
        self._metrics = metrics
        self._connections = connections
        self._sampling: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to sample; call it on the event loop."""
        self._sampling = asyncio.create_task(self._sample())

    def stop(self) -> None:
        """End sampling; `start` begins again."""
        if self._sampling is not None:
            self._sampling.cancel()
            self._sampling = None

    async def _sample(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._count_connections()
            due = loop.time() + _EVERY_S
            await asyncio.sleep(_EVERY_S)
            lag_s = max(0.0, loop.time() - due)
            self._metrics.observe("citu_event_loop_lag_seconds", lag_s)

    def _count_connections(self) -> None:
        counts = self._connections()
        name = "db_client_connection_count"
        self._metrics.set(name, counts.used, {"state": "used"})
        self._metrics.set(name, counts.idle, {"state": "idle"})
        self._metrics.set("db_client_connection_pending_requests", counts.awaited)
