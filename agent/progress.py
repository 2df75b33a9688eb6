"""What nodes and tools show the user while a question is answered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from common.text import Text

ToolCallStatus = Literal["running", "done", "failed"]


@dataclass(frozen=True)
class ToolStep:
    """A tool's call as users see it; nodes write it when the call begins and when it ends.

    Attributes:
        call_id: unique within the run.
        name: the tool's, as models call it.
        arguments: JSON values as the model gave them, long ones shortened.
        milliseconds: how long it took; None while it runs.
        summary: what came of it, in one line; None while it runs.
    """

    call_id: str
    name: str
    display_name: Text
    arguments: Mapping[str, Any]
    status: ToolCallStatus
    milliseconds: float | None = None
    summary: Text | None = None


@dataclass(frozen=True)
class StepResult:
    """Rows that a step found on the way to the answer.

    Attributes:
        call_id: the id of the call that found them.
        shown: `query_result`, and `chart` where one fits; see `agent.answers.shown_result`.
    """

    call_id: str
    sql: str
    shown: Mapping[str, Any]


Write = Callable[[str | ToolStep | StepResult], None]
"""Shows the user a piece of the answer's text, a tool's call or rows while a node runs.

This is not LangGraph's stream writer: with that, LangGraph runs each node in two more tasks.
"""


def shown_to_nobody(_written: str | ToolStep | StepResult) -> None:
    """Drop what is written: the `Write` where nobody watches."""
