"""A collector of traces, over a real socket, that speaks OpenTelemetry's protocol."""

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class CollectedSpan:
    """A span as it was sent; ids in hexadecimal."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    failed: bool


class TraceCollector(ThreadingHTTPServer):
    """Takes spans until its context ends."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Export)
        self.spans: list[CollectedSpan] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> "TraceCollector":
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.shutdown()
        self.server_close()

    def of_trace(self, trace_id: str) -> dict[str, CollectedSpan]:
        """Return the spans of a trace by name."""
        return {span.name: span for span in tuple(self.spans) if span.trace_id == trace_id}


class _Export(BaseHTTPRequestHandler):
    server: TraceCollector

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.server.spans.extend(map(_collected, scope.spans))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


def _collected(span: Any) -> CollectedSpan:
    attributes = {}
    for attribute in span.attributes:
        kind = attribute.value.WhichOneof("value")
        attributes[attribute.key] = getattr(attribute.value, kind)
    return CollectedSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        attributes,
        span.status.code == 2,
    )
