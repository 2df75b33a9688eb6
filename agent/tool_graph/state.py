"""The state of the graph, typed as that of `agent.ask.state`: `Ask` begins it, nodes write `Update`, `State` is both.

The messages to the model are a `Transcript` of whole exchanges, and one reply whose calls are still being answered:
`reply`, with the `results` so far and the calls still `pending`. They live as long as the run.
"""

import operator
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from agent.tools.tool import ToolResult
from agent.tools.transcript import Transcript
from common.llm import Completion, ToolCall
from common.text import Lang, Text
from common.values import PlanEstimate


class Path(TypedDict):
    """`execution_path`: names of the steps done, in order."""

    execution_path: Annotated[list[str], operator.add]


class Ask(Path):
    """What a question starts with.

    Attributes:
        table, context_type: the caller's hints, see `common.inquiry.Inquiry`.
        wants_tokens: whether text is emitted while it is written.
    """

    question: str
    lang: Lang
    table: str | None
    context_type: str | None
    wants_tokens: bool


class Update(Path, total=False):
    """What nodes write.

    Attributes:
        transcript: what the model is sent at its next call.
        reply: the model's latest.
        offered: names of the tools that it was offered.
        pending: its calls without a result, in its order.
        results: what its other calls gave, by their ids, as the model is told.
        steps: what the latest node's calls gave; for showing.
        sql, plan: the latest statement that was accepted.
        text: the answer as the model wrote it.
        limit: the limit that ended the question.
        is_saved: whether the latest statement is kept as a candidate.
        answer: the terminal event's body without what the flow adds.
    """

    warnings: Annotated[list[str], operator.add]
    transcript: Transcript
    reply: Completion
    offered: frozenset[str]
    pending: tuple[ToolCall, ...]
    results: Mapping[str, str]
    steps: tuple[ToolResult, ...]
    sql: str
    plan: PlanEstimate
    text: str
    limit: Text
    is_saved: bool
    answer: dict[str, Any]


class State(Ask, Update):
    """Everything known about a question so far."""
