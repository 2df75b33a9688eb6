"""Keeps a statement that has just run as a candidate: nobody has said yet that it is right."""

from agent.tool_graph.context import GraphRuntime
from agent.tool_graph.state import State, Update


async def save_memory(state: State, runtime: GraphRuntime) -> Update:
    """Keeps it, unless it failed or nothing is learnt here."""
    return {"execution_path": ["save_memory"]}
