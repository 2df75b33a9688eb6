"""Last step: makes the answer's body from what was said and found."""

from agent.tool_graph.context import GraphRuntime
from agent.tool_graph.state import State, Update


async def finalize(state: State, runtime: GraphRuntime) -> Update:
    """Writes `answer` into the state."""
    return {"execution_path": ["finalize"]}
