"""Notes each request in the log and, where the service measures, in its metrics.

A stream is noted when it has ended: with its whole duration, and with how it ended.
"""

import logging
import time
from dataclasses import dataclass

from flask import Flask, Response, g, request

from api.access.callers import current_caller
from api.streaming import StreamEnd
from common import logs
from common.metrics import Metrics

_log = logging.getLogger("unified_api.access")

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER_METHOD = "_OTHER"
_NO_ROUTE = "none"


@dataclass(frozen=True)
class _Request:
    """A request as it is noted, kept until it has ended."""

    request_id: str
    method: str
    path: str
    route: str
    user_id: str | None
    started: float

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started


class AccessLog:
    """Notes requests; `metrics` is None where the service does not measure."""

    def __init__(self, metrics: Metrics | None) -> None:
        self._metrics = metrics

    def register(self, app: Flask) -> None:
        """Note every request of the app."""
        app.before_request(_begin)
        app.after_request(self._end)

    def _end(self, response: Response) -> Response:
        noted = _request_facts()
        stream: StreamEnd | None = g.get("stream_end")
        self._measure(noted, response.status_code)
        if stream is None:
            _write(noted, response.status_code)
            return response

        status = response.status_code
        self._count_open(1)
        response.call_on_close(lambda: self._end_stream(noted, status, stream))
        return response

    def _measure(self, noted: _Request, status: int) -> None:
        if self._metrics is None:
            return

        method = noted.method if noted.method in _METHODS else _OTHER_METHOD
        labels = {"route": noted.route, "method": method, "status": str(status)}
        self._metrics.observe("http_server_request_duration_seconds", noted.seconds, labels)

    def _end_stream(self, noted: _Request, status: int, stream: StreamEnd) -> None:
        self._count_open(-1)
        if self._metrics is not None:
            self._metrics.observe("citu_stream_duration_seconds", noted.seconds)

        _write(noted, status, stream.outcome)

    def _count_open(self, change: int) -> None:
        if self._metrics is not None:
            self._metrics.add("citu_streams_open", change)


def _begin() -> None:
    g.started = time.perf_counter()


def _request_facts() -> _Request:
    rule = request.url_rule
    return _Request(
        logs.request_id.get(),
        request.method,
        rule.rule if rule is not None else logs.shortened(request.path),
        rule.rule if rule is not None else _NO_ROUTE,
        current_caller().user_id,
        g.started,
    )


def _write(noted: _Request, status: int, ended: str | None = None) -> None:
    extra = {
        "method": noted.method,
        "path": noted.path,
        "status": status,
        "ms": round(noted.seconds * 1000, 1),
        "user_id": noted.user_id,
    }
    if ended is not None:
        extra["ended"] = ended

    _log.info("request", extra=extra)
