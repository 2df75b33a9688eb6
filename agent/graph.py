"""The graph: five nodes and their edges.

Compiled once for the process; the routing mode is state, so every mode runs this same graph.
"""

from functools import cache

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.context import Context
from agent.nodes.agent_chat import agent_chat
from agent.nodes.agent_sql_execution import agent_sql_execution
from agent.nodes.agent_sql_generation import agent_sql_generation
from agent.nodes.classify_question import classify_question
from agent.nodes.format_response import format_response
from agent.routing import after_classification, after_sql_generation
from agent.state import Ask, State

Graph = CompiledStateGraph[State, Context, Ask, State]

NODES = {
    "classify_question": classify_question,
    "agent_sql_generation": agent_sql_generation,
    "agent_sql_execution": agent_sql_execution,
    "agent_chat": agent_chat,
    "format_response": format_response,
}


@cache
def compiled_graph() -> Graph:
    """The graph, ready to run."""
    graph = StateGraph(State, context_schema=Context, input_schema=Ask)
    for name, node in NODES.items():
        graph.add_node(name, node)
    graph.add_edge(START, "classify_question")
    graph.add_conditional_edges(
        "classify_question",
        after_classification,
        {"DATABASE": "agent_sql_generation", "CHAT": "agent_chat"},
    )
    graph.add_conditional_edges(
        "agent_sql_generation",
        after_sql_generation,
        {"continue_execution": "agent_sql_execution", "return_to_user": "format_response"},
    )
    graph.add_edge("agent_sql_execution", "format_response")
    graph.add_edge("agent_chat", "format_response")
    graph.add_edge("format_response", END)
    return graph.compile()
