"""What the tools have in common by which a model hands its work in."""

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


def _read(value: Any) -> Any:
    """Return what JSON text says; anything else as it is."""
    if not isinstance(value, str):
        return value

    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not valid JSON") from error


JsonObject = Annotated[
    dict[str, Any],
    BeforeValidator(_read),
    WithJsonSchema({"type": "string", "description": "A JSON object, as text."}),
]
"""An object of any keys; endpoints with strict schemas take it as text alone."""

JsonRows = Annotated[
    list[dict[str, Any]],
    BeforeValidator(_read),
    WithJsonSchema({"type": "string", "description": "A JSON list of objects, as text."}),
]


def hand_in_tool(
    name: str,
    display_name: Text,
    description: str,
    arguments: type[A],
    take: Callable[[A], Awaitable[str]],
) -> Tool[A]:
    """Return a tool by which a role hands in.

    Args:
        take: takes what was handed in, and returns what the model is told; raises a `CituError` for
            what is wrong with it.
    """

    async def run(_context: ToolContext, given: A) -> ToolResult:
        return ToolResult(await take(given), ACCEPTED)

    return Tool(name, display_name, description, arguments, run, frozenset({EVERYONE}))


def wrong(said: str) -> InvalidRequest:
    """Return the error that tells the model what is wrong with what it handed in."""
    line = one_line(said, MOST_LINE)
    return InvalidRequest(Text(line, line))
