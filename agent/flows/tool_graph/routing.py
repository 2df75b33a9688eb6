"""Where the graph goes on after a node with several successors."""

from agent.flows.tool_graph.state import ToolGraphUpdate
from agent.flows.tool_graph.virtual_tools import EXECUTE, GENERATE, SCHEMA

NODE_OF = {SCHEMA: "get_schema", GENERATE: "generate_sql", EXECUTE: "execute_sql"}
"""Nodes of the virtual tools; `execute_tools` has all others."""

TOOLS = "execute_tools"
FINALIZE = "finalize"


def after_initialize(update: ToolGraphUpdate) -> str:
    """Go to the end when nothing may be used for the question."""
    return FINALIZE if "limit" in update else "memory_search"


def after_think(update: ToolGraphUpdate) -> str:
    """Return to the node of the next call, or to the end when there is an answer or a limit is
    reached.
    """
    if "limit" in update or "is_answered" in update:
        return FINALIZE

    return NODE_OF.get(update["pending"][0].name, TOOLS)


def after_tools(update: ToolGraphUpdate) -> str:
    """Go back to the model, or to the end at a limit."""
    return FINALIZE if "limit" in update else "think"
