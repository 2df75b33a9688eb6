"""Makes the tools by which a model submits its work: `submit_analysis`, `submit_plan` and so on."""

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, WithJsonSchema

from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult
from common.errors import InvalidRequest
from common.text import Text
from knowledge.language.safe_text import one_line

ACCEPTED = Text("已采用", "Accepted")
MOST_LINE = 500  # characters of a sentence that a model writes

A = TypeVar("A", bound=Arguments)


def _parse_if_text(value: Any) -> Any:
    """Parse JSON text; return anything else as it is."""
    if not isinstance(value, str):
        return value

    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not valid JSON") from error


JsonObject = Annotated[
    dict[str, Any],
    BeforeValidator(_parse_if_text),
    WithJsonSchema({"type": "string", "description": "A JSON object, as text."}),
]
"""An object of any keys; endpoints with strict schemas take it as text alone."""

JsonRows = Annotated[
    list[dict[str, Any]],
    BeforeValidator(_parse_if_text),
    WithJsonSchema({"type": "string", "description": "A JSON list of objects, as text."}),
]


def submit_tool(
    name: str,
    display_name: Text,
    description: str,
    arguments: type[A],
    accept: Callable[[A], Awaitable[str]],
) -> Tool[A]:
    """Return a tool by which a role submits its work.

    Args:
        accept: keeps the submission, and returns the tool's reply to the model; raises a
            `CituError` for what is wrong with it.
    """

    async def run(_context: ToolContext, submission: A) -> ToolResult:
        return ToolResult(await accept(submission), ACCEPTED)

    return Tool(name, display_name, description, arguments, run, frozenset({EVERYONE}))


def invalid_submission(problem: str) -> InvalidRequest:
    """Return the error that tells the model what is wrong with its submission."""
    line = one_line(problem, MOST_LINE)
    return InvalidRequest(Text(line, line))
