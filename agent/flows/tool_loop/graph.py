"""The graph: four nodes, two of them in a circle. Compiled once for the process."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Protocol

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from agent.flows.lean_graph import compiled_lean_graph
from agent.flows.single_channel import choosing_successor, single_channel_schema
from agent.flows.tool_loop.nodes import finalize, prepare, think, use_tools
from agent.flows.tool_loop.state import ToolLoopInput, ToolLoopState, ToolLoopUpdate
from agent.tools.tool_context import ToolAgentContext

LAST_NODE = "finalize"
Graph = CompiledStateGraph[ToolLoopState, ToolAgentContext, ToolLoopInput, ToolLoopState]
Decide = Callable[[ToolLoopUpdate], str]

_STATE = single_channel_schema(ToolLoopState)


class ToolLoopNode(Protocol):
    """A step of the graph: reads the state and returns what it adds."""

    async def __call__(
        self, state: ToolLoopState, runtime: Runtime[ToolAgentContext]
    ) -> ToolLoopUpdate:
        """Return what the step adds to the state."""


def after_thinking(update: ToolLoopUpdate) -> str:
    """Go to the model's calls, or to the end."""
    if "limit" not in update and update["reply"].tool_calls:
        return "use_tools"

    return LAST_NODE


def after_tools(update: ToolLoopUpdate) -> str:
    """Go back to the model, or to the end at a limit."""
    return LAST_NODE if "limit" in update else "think"


@cache
def compiled_graph() -> Graph:
    """Return the graph, ready to run."""
    graph: StateGraph[ToolLoopState, ToolAgentContext, ToolLoopInput, ToolLoopState] = StateGraph(
        _STATE, context_schema=ToolAgentContext
    )
    graph.add_node("prepare", prepare, input_schema=_STATE)
    for name, node, decide, labels in _DECIDING:
        graph.add_node(
            name, choosing_successor(node, decide), input_schema=_STATE, destinations=dict(labels)
        )

    graph.add_node(LAST_NODE, finalize, input_schema=_STATE)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "think")
    graph.add_edge(LAST_NODE, END)
    return compiled_lean_graph(graph)


# Nodes with two successors: the function that decides, and when each is taken.
_DECIDING: tuple[tuple[str, ToolLoopNode, Decide, Mapping[str, str]], ...] = (
    ("think", think, after_thinking, {"use_tools": "calls", LAST_NODE: "answer"}),
    ("use_tools", use_tools, after_tools, {"think": "continue", LAST_NODE: "stop"}),
)
