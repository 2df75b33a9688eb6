"""The state of the graph, typed as that of `agent.flows.ask.state`.

`ToolGraphInput` begins it, nodes write `ToolGraphUpdate`, `ToolGraphState` is both.

What was said to the model is a `Dialogue` of whole exchanges, and one reply whose calls are still
being answered: `reply`, with the `results` so far and the calls still `pending`. All of it lives as
long as the run.
"""

import operator
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from agent.tools.dialogue import Dialogue
from agent.tools.tool import ToolResult
from common.inquiry import Inquiry
from common.text import Lang, Text
from common.values import PlanEstimate
from llm import Completion, ToolCall


class ToolGraphPath(TypedDict):
    """`execution_path`: names of the steps done, in order."""

    execution_path: Annotated[list[str], operator.add]


class ToolGraphInput(ToolGraphPath):
    """The state that a question starts with."""

    lang: Lang


class ToolGraphUpdate(ToolGraphPath, total=False):
    """The keys that nodes write.

    Attributes:
        inquiry: the question with what is known of it.
        warnings: what the answer must say beside it.
        dialogue: between Citu and the model, up to the latest reply.
        reply: the model's latest.
        offered: names of the tools that it was offered.
        pending: its calls without a result, in its order.
        results: what its other calls gave, by their ids, as the model is told.
        steps: what the latest node's calls gave; for showing.
        sql, plan: the latest statement that was accepted.
        is_kept: whether the latest statement is kept as a candidate.
        is_answered: whether the dialogue holds the answer.
        limit: why the question ends before the model has answered.
        answer: the body of the answer.
    """

    inquiry: Inquiry
    warnings: Annotated[list[str], operator.add]
    dialogue: Dialogue
    reply: Completion
    offered: frozenset[str]
    pending: tuple[ToolCall, ...]
    results: Mapping[str, str]
    steps: tuple[ToolResult, ...]
    sql: str
    plan: PlanEstimate
    is_kept: bool
    is_answered: bool
    limit: Text
    answer: dict[str, Any]


class ToolGraphState(ToolGraphInput, ToolGraphUpdate):
    """The state that nodes read."""
