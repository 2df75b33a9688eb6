"""Traces a service: takes the spans and measurements of the extension point as OpenTelemetry's.

All names of OpenTelemetry's conventions stand in the tables here. Those of `gen_ai` still change
between its versions; those of `db` are stable. No span holds a question, a prompt, rows or a key.
Imports OpenTelemetry, so it is imported only where traces are on.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import (
    Span,
    SpanKind,
    StatusCode,
    get_current_span,
    set_span_in_context,
)

from common.errors import CituError
from common.tracing import Tracing


@dataclass(frozen=True)
class _SpanForm:
    """How a span of the extension point is told.

    Attributes:
        title: its name, with attributes in braces.
        names: names of attributes, by those of the extension point; others are left out.
        fixed: attributes that are always the same.
        is_call: another service does the work.
        is_shared: it is done for many questions together, and so begins a trace of its own.
    """

    title: str
    names: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    is_call: bool = False
    is_shared: bool = False


_SPANS = {
    "question": _SpanForm("run {agent}", {"agent": "gen_ai.agent.name", "run_id": "citu.run_id"}),
    "step": _SpanForm("{node}"),
    "model_call": _SpanForm(
        "chat {model}",
        {"model": "gen_ai.request.model"},
        {"gen_ai.operation.name": "chat"},
        is_call=True,
    ),
    "statement": _SpanForm(
        "{act}",
        {"act": "db.operation.name", "statement": "db.query.text"},
        {"db.system.name": "postgresql"},
        is_call=True,
    ),
    "tool": _SpanForm(
        "execute_tool {tool}",
        {"tool": "gen_ai.tool.name", "call_id": "gen_ai.tool.call.id"},
        {"gen_ai.operation.name": "execute_tool"},
    ),
    "catalog_read": _SpanForm("catalog read", is_call=True, is_shared=True),
    "store_write": _SpanForm("store write", is_call=True, is_shared=True),
}
_PROVIDER = "gen_ai.provider.name"
# Measurements that belong to the span in which they are taken.
_VALUES = {
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "rows": "db.response.returned_rows",
}


class TraceObserver:
    """The `ObservabilityProvider` that makes spans.

    Args:
        provider: the provider of the model, such as `openai`; empty where there is no model.
    """

    def __init__(self, tracing: Tracing, provider: str) -> None:
        self._tracing = tracing
        self._provider = provider

    def span(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Make a span that lasts as long as the context."""
        form = _SPANS.get(name)
        if form is None:
            return nullcontext()

        return self._span(form, attributes)

    def _span(self, form: _SpanForm, attributes: Mapping[str, Any]) -> AbstractContextManager[None]:
        span_attributes = dict(form.fixed)
        for name, told_as in form.names.items():
            if name in attributes:
                span_attributes[told_as] = str(attributes[name])

        if "gen_ai.request.model" in span_attributes:
            span_attributes[_PROVIDER] = self._provider

        return _CurrentSpan(self._tracing, form, form.title.format_map(attributes), span_attributes)

    def metric(
        self,
        name: str,
        value: float,
        attributes: Mapping[str, Any],  # noqa: ARG002 - the port's
    ) -> None:
        if name in _VALUES:
            get_current_span().set_attribute(_VALUES[name], value)


class _CurrentSpan:
    """A context that is a span.

    The library's own is several contexts within each other, which cost as much as the span.
    """

    def __init__(
        self, tracing: Tracing, form: _SpanForm, title: str, attributes: Mapping[str, str]
    ) -> None:
        self._tracing = tracing
        self._form = form
        self._title = title
        self._attributes = attributes

    def __enter__(self) -> None:
        self._span = self._tracing.start_span(
            self._title,
            SpanKind.CLIENT if self._form.is_call else SpanKind.INTERNAL,
            self._attributes,
            Context() if self._form.is_shared else None,
        )
        self._token = attach(set_span_in_context(self._span))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        detach(self._token)
        if error is not None:
            _note_failure(self._span, error)

        self._span.end()


def _note_failure(span: Span, error: BaseException) -> None:
    # Its name alone: what was raised may quote the question or a value.
    name = error.error_type if isinstance(error, CituError) else type(error).__name__
    span.set_attribute("error.type", name)
    span.set_status(StatusCode.ERROR)
