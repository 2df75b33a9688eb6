"""Records the spans of one process.

Imports OpenTelemetry, so it is imported only where traces are on.
"""

import time
from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    get_current_span,
)
from opentelemetry.util.types import AnyValue

_SCOPE = "citu"
_UNSET = Status()


class SpanRecorder:
    """Starts spans, and sends those that have ended in batches."""

    def __init__(self, resource: Resource, exporter: SpanExporter) -> None:
        self._processor = BatchSpanProcessor(exporter)
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer(_SCOPE)
        self._scope = InstrumentationScope(_SCOPE)
        self._longest_value = SpanLimits().max_span_attribute_length

    def start_span(
        self, name: str, kind: SpanKind, attributes: Mapping[str, str], context: Context | None
    ) -> Span:
        """Start a span within that of the context; None: of the current one."""
        parent = get_current_span(context).get_span_context()
        if not parent.is_valid or parent.is_remote:
            return self._tracer.start_span(name, context, kind, attributes)

        if not parent.trace_flags.sampled:
            return NonRecordingSpan(parent)

        own = SpanContext(
            parent.trace_id,
            self._provider.id_generator.generate_span_id(),
            is_remote=False,
            trace_flags=parent.trace_flags,
            trace_state=parent.trace_state,
        )
        return _InnerSpan(self, own, parent, name, kind, attributes)

    def send(self, span: "_InnerSpan", end_ns: int) -> None:
        """Queue a span that has ended for the next batch."""
        self._processor.on_end(
            ReadableSpan(
                span.name,
                span.get_span_context(),
                span.parent,
                self._provider.resource,
                self._shortened(span.attributes),
                kind=span.kind,
                status=span.status,
                start_time=span.start_ns,
                end_time=end_ns,
                instrumentation_scope=self._scope,
            )
        )

    def _shortened(self, attributes: dict[str, AnyValue]) -> dict[str, AnyValue]:
        longest = self._longest_value
        if longest is None:
            return attributes

        return {
            name: value[:longest] if isinstance(value, str) else value
            for name, value in attributes.items()
        }


class _InnerSpan(NonRecordingSpan):
    """A span within one of this process.

    The library's own makes containers with locks for events and links, which are not used here, and
    is copied when it ends. That takes six times as long, for ten spans of each answer.
    """

    def __init__(
        self,
        recorder: SpanRecorder,
        context: SpanContext,
        parent: SpanContext,
        name: str,
        kind: SpanKind,
        attributes: Mapping[str, str],
    ) -> None:
        super().__init__(context)
        self._recorder = recorder
        self.parent = parent
        self.name = name
        self.kind = kind
        self.attributes: dict[str, AnyValue] = dict(attributes)
        self.status = _UNSET
        self.start_ns = time.time_ns()

    def is_recording(self) -> bool:
        return True

    def set_attribute(self, key: str, value: AnyValue) -> None:
        self.attributes[key] = value

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        self.status = status if isinstance(status, Status) else Status(status, description)

    def end(self, end_time: int | None = None) -> None:
        self._recorder.send(self, end_time or time.time_ns())
