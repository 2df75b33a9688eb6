"""The graph: ten nodes and their edges, with the store's checkpoints."""

from collections.abc import Callable, Mapping
from typing import Protocol

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.flows.etl.context import EtlContext, EtlRuntime
from agent.flows.etl.nodes.analyst_agent import analyst_agent
from agent.flows.etl.nodes.architect_agent import architect_agent
from agent.flows.etl.nodes.clarify import clarify
from agent.flows.etl.nodes.developer_agent import developer_agent
from agent.flows.etl.nodes.feedback_handler import feedback_handler
from agent.flows.etl.nodes.knowledge_agent import knowledge_agent
from agent.flows.etl.nodes.learning_handler import learning_handler
from agent.flows.etl.nodes.present_draft import finalize
from agent.flows.etl.nodes.reviewer_agent import reviewer_agent
from agent.flows.etl.nodes.tester_agent import tester_agent
from agent.flows.etl.routing import (
    CLARIFY,
    FEEDBACK,
    FINALIZE,
    after_analysis,
    after_feedback,
    after_review,
    after_tests,
)
from agent.flows.etl.state import (
    MOST_CLARIFICATIONS,
    MOST_MODIFICATIONS,
    MOST_REPAIRS,
    MOST_REWORKS,
    EtlInput,
    EtlState,
    EtlUpdate,
)
from agent.flows.step_spans import with_step_spans


class EtlGraphNode(Protocol):
    """A role of the graph: reads the state and returns what it adds."""

    async def __call__(self, state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
        """Return what the step adds to the state."""


Graph = CompiledStateGraph[EtlState, EtlContext, EtlInput, EtlState]

NODES: Mapping[str, EtlGraphNode] = {
    "knowledge_agent": knowledge_agent,
    "analyst_agent": analyst_agent,
    CLARIFY: clarify,
    "architect_agent": architect_agent,
    "reviewer_agent": reviewer_agent,
    "developer_agent": developer_agent,
    "tester_agent": tester_agent,
    FEEDBACK: feedback_handler,
    "learning_handler": learning_handler,
    FINALIZE: finalize,
}

EDGES = (
    (START, "knowledge_agent"),
    ("knowledge_agent", "analyst_agent"),
    (CLARIFY, "analyst_agent"),
    ("architect_agent", "reviewer_agent"),
    ("developer_agent", "tester_agent"),
    ("learning_handler", FINALIZE),
    (FINALIZE, END),
)

# Nodes with several successors: the function that decides, and the successor for each decision.
DECISIONS: Mapping[str, tuple[Callable[[EtlState], str], dict[str, str]]] = {
    "analyst_agent": (
        after_analysis,
        {"clarify": CLARIFY, "impossible": FINALIZE, "ready": "architect_agent"},
    ),
    "reviewer_agent": (
        after_review,
        {"rework": "architect_agent", "failed": FINALIZE, "passed": "developer_agent"},
    ),
    "tester_agent": (
        after_tests,
        {"repair": "developer_agent", "done": FEEDBACK, "finished": FINALIZE},
    ),
    FEEDBACK: (after_feedback, {"modified": "tester_agent", "rated": "learning_handler"}),
}

_MOST_NODES = 100  # of a plan: each has its repairs
most_steps = (
    len(NODES)
    + 2 * (MOST_CLARIFICATIONS + MOST_REWORKS + MOST_MODIFICATIONS)
    + 2 * MOST_REPAIRS * _MOST_NODES
)


def compiled_graph(checkpoints: BaseCheckpointSaver[str]) -> Graph:
    """Return the graph, ready to run."""
    graph: StateGraph[EtlState, EtlContext, EtlInput, EtlState] = StateGraph(
        EtlState, context_schema=EtlContext, input_schema=EtlInput, output_schema=EtlState
    )
    for name, node in NODES.items():
        graph.add_node(name, node)

    for name, (decide, successors) in DECISIONS.items():
        graph.add_conditional_edges(name, decide, successors)  # type: ignore[arg-type]

    for start, end in EDGES:
        graph.add_edge(start, end)

    return with_step_spans(graph.compile(checkpointer=checkpoints))
