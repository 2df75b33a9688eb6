"""Spans of what a service does, sent to where OpenTelemetry's own variables say.

The library is imported only where traces are on. Each process makes its exporter with its first
span, because an exporter's thread does not survive a fork.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from common.after_fork import restart_after_fork

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

_is_on = False


class Tracing:
    """Gives the tracer of this process.

    Args:
        make_exporter: called once in each process; None: sends by OTLP over HTTP.

    Raises:
        ImportError: requirements-telemetry.txt is not installed.
    """

    def __init__(self, make_exporter: "Callable[[], SpanExporter] | None" = None) -> None:
        global _is_on
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        self._make_exporter = make_exporter or OTLPSpanExporter
        self.start_anew()
        restart_after_fork(self)
        _is_on = True

    def start_anew(self) -> None:
        """Forget the exporter of the parent process, whose thread this one hasn't."""
        self._lock = threading.Lock()
        self._tracer: Tracer | None = None

    @property
    def tracer(self) -> "Tracer":
        """Return the tracer of this process, made at its first use."""
        with self._lock:
            if self._tracer is None:
                self._tracer = self._made()

            return self._tracer

    def _made(self) -> "Tracer":
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider(resource=_resource())
        provider.add_span_processor(BatchSpanProcessor(self._make_exporter()))
        return provider.get_tracer("citu")


def _resource() -> "Resource":
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
    return Resource({"service.name": "citu"}).merge(OTELResourceDetector().detect())


def outgoing_headers() -> dict[str, str]:
    """Return the headers by which a called service continues the trace; none without traces."""
    if not _is_on:
        return {}

    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return headers


def incoming_context(headers: Mapping[str, str]) -> "Context":
    """Return the context of the trace that a request's headers continue."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    known = {name.lower(): value for name, value in headers.items()}
    return TraceContextTextMapPropagator().extract(known)
