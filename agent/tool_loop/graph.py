"""The graph: four nodes, two of them in a circle. Compiled once for the process."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Protocol

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from agent.tool_loop.nodes import finalize, prepare, think, use_tools
from agent.tool_loop.state import Ask, State, Update
from agent.tools.context import ToolAgentContext

LAST_NODE = "finalize"
Graph = CompiledStateGraph[State, ToolAgentContext, Ask, State]
Decide = Callable[[Update], str]


class Node(Protocol):
    """A step of the graph: reads the state and returns what it adds."""

    async def __call__(self, state: State, runtime: Runtime[ToolAgentContext]) -> Update:
        """What the step adds to the state."""


def after_thinking(update: Update) -> str:
    """Whether the model's calls are run, or the question ends."""
    return "calls" if "limit" not in update and update["reply"].tool_calls else "answer"


def after_tools(update: Update) -> str:
    """Whether the model is asked again."""
    return "stop" if "limit" in update else "continue"


def _deciding(node: Node, decide: Decide, targets: Mapping[str, str]) -> Callable[..., Awaitable[Command[str]]]:
    """`node` with the choice of its successor; conditional edges would take a thread for it each time."""

    async def deciding(state: State, runtime: Runtime[ToolAgentContext]) -> Command[str]:
        update = await node(state, runtime)
        return Command(update=update, goto=targets[decide(update)])

    return deciding


@cache
def compiled_graph() -> Graph:
    """The graph, ready to run."""
    graph = StateGraph(State, context_schema=ToolAgentContext, input_schema=Ask)
    graph.add_node("prepare", prepare)
    _add_deciding(graph, "think", think, after_thinking, {"calls": "use_tools", "answer": LAST_NODE})
    _add_deciding(graph, "use_tools", use_tools, after_tools, {"continue": "think", "stop": LAST_NODE})
    graph.add_node(LAST_NODE, finalize)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "think")
    graph.add_edge(LAST_NODE, END)
    return graph.compile()


def _add_deciding(
    graph: StateGraph[State, ToolAgentContext, Ask, State],
    name: str,
    node: Node,
    decide: Decide,
    targets: Mapping[str, str],
) -> None:
    labels = {target: verdict for verdict, target in targets.items()}
    graph.add_node(name, _deciding(node, decide, targets), destinations=labels)
