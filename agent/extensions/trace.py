"""Names the request in which a tool is called, so that what the call causes elsewhere can be found again."""

from collections.abc import Mapping

from agent.extensions.points import Provided, ToolContextEnricher
from agent.flow import Question
from common.logs import request_id


def trace_of(question: Question) -> Mapping[str, str]:  # noqa: ARG001 - the point's signature
    """`ToolContextEnricher`: the id of the request, which callers may choose (`X-Request-ID`)."""
    return {"trace_id": request_id.get()}


def trace(_provided: Provided) -> ToolContextEnricher:
    """The extension."""
    return trace_of
