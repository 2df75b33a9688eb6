"""The graph: four nodes, two of them in a circle. Compiled once for the process."""

from functools import cache

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.tool_loop.nodes import finalize, prepare, think, use_tools
from agent.tool_loop.state import Ask, State
from agent.tools.context import ToolAgentContext

LAST_NODE = "finalize"
Graph = CompiledStateGraph[State, ToolAgentContext, Ask, State]


def after_thinking(state: State) -> str:
    """Whether the model's calls are run, or the question ends."""
    return "calls" if "limit" not in state and state["reply"].tool_calls else "answer"


def after_tools(state: State) -> str:
    """Whether the model is asked again."""
    return "stop" if "limit" in state else "continue"


@cache
def compiled_graph() -> Graph:
    """The graph, ready to run."""
    graph = StateGraph(State, context_schema=ToolAgentContext, input_schema=Ask)
    graph.add_node("prepare", prepare)
    graph.add_node("think", think)
    graph.add_node("use_tools", use_tools)
    graph.add_node(LAST_NODE, finalize)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "think")
    graph.add_conditional_edges("think", after_thinking, {"calls": "use_tools", "answer": LAST_NODE})
    graph.add_conditional_edges("use_tools", after_tools, {"continue": "think", "stop": LAST_NODE})
    graph.add_edge(LAST_NODE, END)
    return graph.compile()
