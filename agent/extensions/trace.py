"""Adds the request's id to tool calls, so that what they cause elsewhere can be traced."""

from collections.abc import Mapping

from agent.extensions.points import Provided, ToolContextEnricher
from agent.question import Question
from common.logs import request_id


def trace_of(question: Question) -> Mapping[str, str]:  # noqa: ARG001 - the point's signature
    """Return the id of the request, which callers may choose
    (`X-Request-ID`).
    """
    return {"trace_id": request_id.get()}


def trace(_provided: Provided) -> ToolContextEnricher:
    return trace_of
