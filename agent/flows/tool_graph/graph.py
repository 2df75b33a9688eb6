"""The graph: nine nodes and their edges.

The model says what it wants next by calling tools; the edges decide what happens. Compiled once for
the process.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Protocol

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.flows.lean_graph import compiled_lean_graph
from agent.flows.single_channel import choosing_successor, single_channel_schema
from agent.flows.tool_graph.context import GraphRuntime, ToolGraphContext
from agent.flows.tool_graph.nodes import (
    execute_sql,
    execute_tools,
    finalize,
    generate_sql,
    get_schema,
    initialize,
    memory_search,
    save_memory,
    think,
)
from agent.flows.tool_graph.routing import (
    FINALIZE,
    TOOLS,
    after_initialize,
    after_think,
    after_tools,
)
from agent.flows.tool_graph.state import ToolGraphInput, ToolGraphState, ToolGraphUpdate
from agent.tools.tool_limits import ToolLimits

Decide = Callable[[ToolGraphUpdate], str]


class ToolGraphNode(Protocol):
    """A step of the graph: reads the state and returns what it adds."""

    async def __call__(self, state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
        """Return what the step adds to the state."""


Graph = CompiledStateGraph[ToolGraphState, ToolGraphContext, ToolGraphInput, ToolGraphState]

_STATE = single_channel_schema(ToolGraphState)

NODES: Mapping[str, ToolGraphNode] = {
    "initialize": initialize,
    "memory_search": memory_search,
    "think": think,
    "get_schema": get_schema,
    "generate_sql": generate_sql,
    "execute_sql": execute_sql,
    "save_memory": save_memory,
    TOOLS: execute_tools,
    FINALIZE: finalize,
}

EDGES = (
    (START, "initialize"),
    ("memory_search", "think"),
    ("get_schema", "think"),
    ("generate_sql", "think"),
    ("execute_sql", "save_memory"),
    ("save_memory", "think"),
    (FINALIZE, END),
)

# Nodes with several successors: the function that decides, and when each is taken.
DECISIONS: Mapping[str, tuple[Decide, Mapping[str, str]]] = {
    "initialize": (after_initialize, {"memory_search": "continue", FINALIZE: "stop"}),
    "think": (
        after_think,
        {
            "get_schema": "query_schema_metadata",
            "generate_sql": "generate_sql",
            "execute_sql": "execute_current_sql",
            TOOLS: "tools",
            FINALIZE: "done",
        },
    ),
    TOOLS: (after_tools, {"think": "continue", FINALIZE: "stop"}),
}

_AROUND = 3  # nodes that each question passes once: initialize, memory_search, finalize
_PER_CALL = 3  # nodes at most for one call: execute_sql, save_memory, and think, which goes on


def most_steps(limits: ToolLimits) -> int:
    """Return the most nodes of a question; at each limit, `think` runs once more and ends it."""
    return _AROUND + limits.model_calls + 1 + _PER_CALL * (limits.tool_calls + 1)


@cache
def compiled_graph() -> Graph:
    """Return the graph, ready to run."""
    graph: StateGraph[ToolGraphState, ToolGraphContext, ToolGraphInput, ToolGraphState] = (
        StateGraph(_STATE, context_schema=ToolGraphContext)
    )
    for name, node in NODES.items():
        if name in DECISIONS:
            decide, labels = DECISIONS[name]
            graph.add_node(
                name,
                choosing_successor(node, decide),
                input_schema=_STATE,
                destinations=dict(labels),
            )
        else:
            graph.add_node(name, node, input_schema=_STATE)

    for start, end in EDGES:
        graph.add_edge(start, end)

    return compiled_lean_graph(graph)
