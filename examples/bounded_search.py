"""A transform of tools' arguments: searches of tables list no more than five.

ARGUMENT_TRANSFORMS=examples.bounded_search:bounded_search
"""

from typing import Any

from agent.extensions.points import Provided
from agent.tools.registry import ArgumentTransform
from agent.tools.tool import Arguments, Tool, ToolContext

_MOST = 5


async def _bounded(tool: Tool[Any], arguments: Arguments, _context: ToolContext) -> Arguments:
    if tool.name != "search_schema":
        return arguments

    limit = getattr(arguments, "limit", None) or _MOST
    return arguments.model_copy(update={"limit": min(limit, _MOST)})


def bounded_search(_provided: Provided) -> ArgumentTransform:
    """Return the transform; `ARGUMENT_TRANSFORMS` names this function."""
    return _bounded
