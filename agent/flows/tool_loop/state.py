"""The state of the graph; see `agent.flows.ask.state` for why it is three types.

It lives in memory as long as the run, so it may hold objects that no checkpoint could.
"""

import operator
from typing import Annotated, Any, TypedDict

from agent.tools.dialogue import Dialogue
from common.inquiry import Inquiry
from common.text import Lang, Text
from llm import Completion


class ToolLoopPath(TypedDict):
    """`execution_path`: names of steps done, in order."""

    execution_path: Annotated[list[str], operator.add]


class ToolLoopInput(ToolLoopPath):
    """The state that a question starts with."""

    lang: Lang


class ToolLoopUpdate(ToolLoopPath, total=False):
    """The keys that nodes write.

    Attributes:
        inquiry: the question with what is known of it.
        warnings: what the answer must say beside it.
        dialogue: between Citu and the model.
        reply: the model's latest.
        failures: how many calls of the latest reply gave nothing.
        sql: the last statement that found rows.
        limit: why the question ends before the model has answered.
        answer: the body of the answer.
    """

    inquiry: Inquiry
    dialogue: Dialogue
    reply: Completion
    failures: int
    sql: str
    limit: Text
    answer: dict[str, Any]
    warnings: Annotated[list[str], operator.add]


class ToolLoopState(ToolLoopInput, ToolLoopUpdate):
    """The state that nodes read."""
