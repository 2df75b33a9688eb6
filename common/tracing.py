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
    from opentelemetry.trace import Span, SpanKind

    from common.span_recorder import SpanRecorder

TRACE_HEADERS = ("traceparent", "tracestate")

_is_on = False


class Tracing:
    """Starts the spans of this process.

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
        self._recorder: SpanRecorder | None = None

    def start_span(
        self,
        name: str,
        kind: "SpanKind",
        attributes: Mapping[str, str],
        context: "Context | None" = None,
    ) -> "Span":
        """Start a span within that of the context; None: of the current one.

        Whether spans are kept is decided for the outermost one of a trace, by OTEL_TRACES_SAMPLER.
        """
        recorder = self._recorder or self._recorder_of_process()
        return recorder.start_span(name, kind, attributes, context)

    def _recorder_of_process(self) -> "SpanRecorder":
        """Return this process's recorder, made with its first span."""
        with self._lock:
            if self._recorder is None:
                from common.span_recorder import SpanRecorder

                self._recorder = SpanRecorder(_resource(), self._make_exporter())

            return self._recorder


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
    """Return the context of the trace that a request's headers continue.

    Args:
        headers: those in `TRACE_HEADERS` that it has.
    """
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract(headers)
