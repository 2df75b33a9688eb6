"""Logs each span and metric, for services without a system that collects them."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agent.extensions.points import Provided

_log = logging.getLogger(__name__)


class SpanLog:
    """The `ObservabilityProvider` that writes to the log."""

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Any]) -> Iterator[None]:
        """Log how long the span took, and whether it failed."""
        started = time.perf_counter()
        outcome = "failed"
        try:
            yield
            outcome = "done"
        finally:
            milliseconds = round((time.perf_counter() - started) * 1000, 1)
            _log.info(
                "span",
                extra={"span": name, "outcome": outcome, "ms": milliseconds, **_fields(attributes)},
            )

    def metric(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        _log.info("metric", extra={"metric": name, "value": value, **_fields(attributes)})


def _fields(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes under names that a log record does not use itself."""
    return {f"of_{name}": value for name, value in attributes.items()}


def span_log(_provided: Provided) -> SpanLog:
    return SpanLog()
