"""Makes a span of each request, which continues the trace that its headers name."""

from typing import Any

from flask import Flask, Response, g, request

from common import logs
from common.tracing import TRACE_HEADERS, Tracing, incoming_context

_NO_ROUTE = "none"
_FAILED = 500  # from this status on, the service is at fault


class RequestTracing:
    """Makes spans of requests; one of a stream lasts until the stream has ended."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    def register(self, app: Flask) -> None:
        """Trace every request of the app."""
        app.before_request(self._begin)
        app.after_request(self._end)
        app.teardown_request(_leave)

    def _begin(self) -> None:
        from opentelemetry.context import attach
        from opentelemetry.trace import SpanKind, set_span_in_context

        rule = request.url_rule
        route = rule.rule if rule is not None else _NO_ROUTE
        attributes = {
            "http.request.method": request.method,
            "http.route": route,
            "citu.request_id": logs.request_id.get(),
        }
        g.span = self._tracing.start_span(
            f"{request.method} {route}",
            SpanKind.SERVER,
            attributes,
            incoming_context(_trace_headers()),
        )
        # What the request starts on the event loop inherits the context.
        g.span_token = attach(set_span_in_context(g.span))

    def _end(self, response: Response) -> Response:
        from opentelemetry.trace import StatusCode

        span: Any = g.get("span")
        if span is None:
            return response

        span.set_attribute("http.response.status_code", response.status_code)
        if response.status_code >= _FAILED:
            span.set_status(StatusCode.ERROR)

        response.call_on_close(span.end)
        return response


def _trace_headers() -> dict[str, str]:
    headers = request.headers
    return {name: headers[name] for name in TRACE_HEADERS if name in headers}


def _leave(_error: BaseException | None) -> None:
    """Take the request's context from the thread, which serves other requests next."""
    from opentelemetry.context import detach

    token = g.pop("span_token", None)
    if token is not None:
        detach(token)
