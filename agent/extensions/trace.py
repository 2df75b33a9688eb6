"""Tells tools who asks, and in which request, so that what they cause elsewhere can be found again."""

from collections.abc import Mapping

from agent.extensions.points import Provided, ToolContextEnricher
from agent.flow import Question
from common.logs import request_id


def trace_of(question: Question) -> Mapping[str, str]:
    """`ToolContextEnricher`: ids of user, run, conversation and request."""
    return {
        "user_id": question.owner,
        "run_id": question.run_id,
        "conversation_id": question.conversation_id,
        "request_id": request_id.get(),
    }


def trace(_provided: Provided) -> ToolContextEnricher:
    """The extension."""
    return trace_of
