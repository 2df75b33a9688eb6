"""The graph: five nodes and their edges.

Compiled once for the process; the routing mode is state, so every mode runs this same graph. The
state is one channel of it: LangGraph looks at every channel several times in every step, and a
channel per key would double its work.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Protocol

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from agent.flows.ask.context import AskContext
from agent.flows.ask.nodes.agent_chat import agent_chat
from agent.flows.ask.nodes.agent_sql_execution import agent_sql_execution
from agent.flows.ask.nodes.agent_sql_generation import agent_sql_generation
from agent.flows.ask.nodes.classify_question import classify_question
from agent.flows.ask.nodes.format_response import format_response
from agent.flows.ask.routing import after_classification, after_sql_generation
from agent.flows.ask.state import AskInput, AskState, AskUpdate
from agent.flows.lean_graph import compiled_lean_graph
from agent.flows.single_channel import choosing_successor, single_channel_schema

Decide = Callable[[AskUpdate], str]


class AskNode(Protocol):
    """A step of the graph: reads the state and returns what it adds."""

    async def __call__(self, state: AskState, runtime: Runtime[AskContext]) -> AskUpdate:
        """Return what the step adds to the state."""


Graph = CompiledStateGraph[AskState, AskContext, AskInput, AskState]

_STATE = single_channel_schema(AskState)

LAST_NODE = "format_response"

NODES: Mapping[str, AskNode] = {
    "classify_question": classify_question,
    "agent_sql_generation": agent_sql_generation,
    "agent_sql_execution": agent_sql_execution,
    "agent_chat": agent_chat,
    LAST_NODE: format_response,
}

# Nodes with two successors: the function that decides, and the successor for each of its results.
DECISIONS: Mapping[str, tuple[Decide, Mapping[str, str]]] = {
    "classify_question": (
        after_classification,
        {"DATABASE": "agent_sql_generation", "CHAT": "agent_chat"},
    ),
    "agent_sql_generation": (
        after_sql_generation,
        {"continue_execution": "agent_sql_execution", "return_to_user": LAST_NODE},
    ),
}


def _successor(decide: Decide, targets: Mapping[str, str]) -> Decide:
    return lambda update: targets[decide(update)]


@cache
def compiled_graph() -> Graph:
    """Return the graph, ready to run."""
    graph: StateGraph[AskState, AskContext, AskInput, AskState] = StateGraph(
        _STATE, context_schema=AskContext
    )
    for name, node in NODES.items():
        if name in DECISIONS:
            decide, targets = DECISIONS[name]
            labels = {target: verdict for verdict, target in targets.items()}
            graph.add_node(
                name,
                choosing_successor(node, _successor(decide, targets)),
                input_schema=_STATE,
                destinations=labels,
            )
        else:
            graph.add_node(name, node, input_schema=_STATE)

    graph.add_edge(START, "classify_question")
    graph.add_edge("agent_sql_execution", LAST_NODE)
    graph.add_edge("agent_chat", LAST_NODE)
    graph.add_edge(LAST_NODE, END)
    return compiled_lean_graph(graph)
