"""Logs each span and metric, for services without a system that collects them."""

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from agent.extensions.points import Provided
from agent.extensions.span_timing import timed

_log = logging.getLogger(__name__)


class SpanLog:
    """The `ObservabilityProvider` that writes to the log."""

    def span(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Log how long the span took, and whether it failed."""
        return timed(partial(_log_span, name, attributes))

    def metric(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        _log.info("metric", extra={"metric": name, "value": value, **_fields(attributes)})


def _log_span(name: str, attributes: Mapping[str, Any], seconds: float, outcome: str) -> None:
    milliseconds = round(seconds * 1000, 1)
    _log.info(
        "span",
        extra={"span": name, "outcome": outcome, "ms": milliseconds, **_fields(attributes)},
    )


def _fields(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes under names that a log record does not use itself."""
    return {f"of_{name}": value for name, value in attributes.items()}


def span_log(_provided: Provided) -> SpanLog:
    return SpanLog()
