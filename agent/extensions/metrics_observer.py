"""Measures a service: takes the spans and measurements of the extension point as metrics."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent.extensions.points import ObservabilityProvider
from agent.extensions.span_timing import timed
from common.audit import Audit, CallOutcome, Occasion, StatementOutcome
from common.metrics import Metrics


@dataclass(frozen=True)
class _Recorded:
    """The metric that a span or a measurement belongs to.

    Attributes:
        labels: names of its labels, by the names of the attributes that give them; a span has
            `outcome` and `provider` besides its own.
        fixed: labels that are always the same.
    """

    metric: str
    labels: Mapping[str, str]
    fixed: Mapping[str, str]


_SPANS = {
    "model_call": _Recorded(
        "gen_ai_client_operation_duration_seconds",
        {"model": "model", "provider": "provider"},
        {"operation": "chat"},
    ),
    "statement": _Recorded("db_client_operation_duration_seconds", {"act": "operation"}, {}),
    "catalog_read": _Recorded("citu_catalog_read_duration_seconds", {"outcome": "outcome"}, {}),
    "store_write": _Recorded("citu_store_write_duration_seconds", {"outcome": "outcome"}, {}),
}
_COUNTS = {
    "questions": _Recorded(
        "citu_questions_total",
        {"agent": "agent", "outcome": "outcome", "error_type": "error_type"},
        {},
    ),
    "waiting_runs": _Recorded("citu_runs_waiting", {}, {}),
    "repairs": _Recorded("citu_repairs_total", {"outcome": "outcome"}, {}),
    "feedback": _Recorded("citu_feedback_total", {"verdict": "verdict"}, {}),
    "prompt_tokens": _Recorded("citu_model_tokens_total", {}, {"direction": "input"}),
    "completion_tokens": _Recorded("citu_model_tokens_total", {}, {"direction": "output"}),
}
_VALUES = {
    "node_seconds": _Recorded("citu_node_duration_seconds", {"agent": "agent", "node": "node"}, {}),
}


class MetricsObserver:
    """The `ObservabilityProvider` that measures the metrics of the service.

    Args:
        provider: the provider of the model, such as `openai`; empty where there is no model.
    """

    def __init__(self, metrics: Metrics, provider: str) -> None:
        self._metrics = metrics
        self._provider = provider

    def span(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Measure how long the context lasts."""
        recorded = _SPANS.get(name)
        if recorded is None:
            return nullcontext()

        return timed(partial(self._observe_span, recorded, attributes))

    def _observe_span(
        self, recorded: _Recorded, attributes: Mapping[str, Any], seconds: float, outcome: str
    ) -> None:
        all_attributes = {**attributes, "outcome": outcome, "provider": self._provider}
        self._metrics.observe(recorded.metric, seconds, _labels(recorded, all_attributes))

    def metric(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        counted = _COUNTS.get(name)
        if counted is not None:
            self._metrics.add(counted.metric, value, _labels(counted, attributes) or None)

        observed = _VALUES.get(name)
        if observed is not None:
            self._metrics.observe(observed.metric, value, _labels(observed, attributes))


def _labels(recorded: _Recorded, attributes: Mapping[str, Any]) -> dict[str, str]:
    labels = dict(recorded.fixed)
    for attribute, label in recorded.labels.items():
        labels[label] = str(attributes[attribute])

    return labels


class MeasuredAudit:
    """Implements `common.audit.Audit` around `inner`: counts what its lines say."""

    def __init__(self, inner: Audit, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics

    def record(self, occasion: Occasion, sql: str, outcome: StatementOutcome) -> None:
        """Count the statement and record it."""
        # First counted: a worker may be killed between the two, and waits for its turn only after
        # it has written.
        if outcome.verdict == "refused":
            labels = {"error_type": outcome.error_type or ""}
            self._metrics.add("citu_guard_refusals_total", labels=labels)

        if outcome.verdict == "executed" and outcome.rows is not None:
            self._metrics.observe("citu_sql_rows", outcome.rows)

        self._inner.record(occasion, sql, outcome)

    def record_call(self, occasion: Occasion, arguments: Any, outcome: CallOutcome) -> None:
        self._inner.record_call(occasion, arguments, outcome)


class SeveralObservers:
    """The `ObservabilityProvider` that passes everything on to several."""

    def __init__(self, *observers: ObservabilityProvider) -> None:
        self._observers = observers

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Any]) -> Iterator[None]:
        """Enter the spans of all, the first one first."""
        with ExitStack() as spans:
            for observer in self._observers:
                spans.enter_context(observer.span(name, attributes))

            yield

    def metric(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        for observer in self._observers:
            observer.metric(name, value, attributes)
