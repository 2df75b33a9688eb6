"""What a flow is: a graph that answers questions, the labels of its nodes, and its result.

The runner (`agent.runs`) serves any flow and knows no node's name. A new one is a folder beside
`agent/flows/ask/` with an implementation of `Flow`, and a line in `FLOWS` of `agent.bootstrap`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt

from agent.progress import Write
from agent.question import Question
from common.errors import CituError
from common.text import Text
from common.values import Turn

_VERSION_CHARS = 16


@dataclass(frozen=True)
class StepDescription:
    """The description of a step for the user at one moment."""

    details: Text
    sub_status: Text


def _never(_update: Mapping[str, Any]) -> bool:
    return False


@dataclass(frozen=True)
class StepLabel:
    """A node as users see it.

    Attributes:
        running, done: `state_summary.current_step` while it runs and afterwards.
        while_running: its description before it has a result.
        describe: describes its result; takes the update that the node returned.
        has_failed: whether that result is shown as a failure.
    """

    display_name: Text
    icon: str
    running: str
    done: str
    while_running: StepDescription
    describe: Callable[[Any], StepDescription]
    has_failed: Callable[[Any], bool] = _never


@dataclass(frozen=True)
class FlowAnswer:
    """The run is completed.

    Attributes:
        body: the terminal event's data without ids and times, which the runner adds.
    """

    body: Mapping[str, Any]


@dataclass(frozen=True)
class FlowFailure:
    """The run ends in an error that its graph found; `node` is the step that failed."""

    error: CituError
    node: str


@dataclass(frozen=True)
class Durability:
    """Says that runs of a flow outlive their workers; its graph needs a checkpointer.

    Each node may run again when its worker dies meanwhile, so it must be safe to run twice.

    Attributes:
        state_version: number of the state's schema; a state that older checkpoints don't fit needs
            a new one.
        fitting: versions of earlier graphs whose checkpoints this graph can go on from, see
            `graph_version`.
    """

    state_version: int
    fitting: frozenset[str] = frozenset()


class Flow(Protocol):
    """One way of answering questions; each process makes one.

    Attributes:
        name: what requests call it.
        labels: how each node of the graph is shown.
        last_node: the node that every path through the graph ends in; when it is done, the run is
            over.
        most_steps: nodes that one run may pass, each time counted; LangGraph's recursion limit.
        deadline_s: seconds of work until the answer or the next question to the user; each answer
            of the user starts them again.
        durability: None ends a run with its worker, unless it works on an answer of its user.
    """

    name: str
    labels: Mapping[str, StepLabel]
    last_node: str
    most_steps: int
    deadline_s: float
    durability: Durability | None

    @property
    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return the compiled graph; only one with a checkpointer can call `ask_user`."""

    def start(self, question: Question) -> Mapping[str, Any]:
        """Return the graph's input."""

    def context(self, question: Question, write: Write) -> Any:
        """Return the services for one question, which LangGraph hands to the nodes.

        Args:
            write: shows what nodes write while they run.
        """

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `state_summary` shows beside `current_step`.

        The JSON values must not change when the state does.
        """

    def ending(self, state: Mapping[str, Any]) -> FlowAnswer | FlowFailure:
        """Return the answer or the failure that the state after the last node holds."""

    def turn(self, question: Question, state: Mapping[str, Any], answer: FlowAnswer) -> Turn | None:
        """Return the turn that the run adds to its conversation; None adds nothing."""


def checkpointer_of(flow: Flow) -> BaseCheckpointSaver[Any] | None:
    """Return the checkpointer of the flow's graph; None when it has none."""
    saver = flow.graph.checkpointer
    return saver if isinstance(saver, BaseCheckpointSaver) else None


def graph_version(flow: Flow) -> str:
    """Return a digest of the graph's nodes and edges and of its state's version.

    Runs go on only in a graph of the version that they stopped in.
    """
    state_version = flow.durability.state_version if flow.durability is not None else 0
    return _digest_of(flow.graph, state_version)


@lru_cache(maxsize=64)
def _digest_of(graph: CompiledStateGraph[Any, Any, Any, Any], state_version: int) -> str:
    drawing = graph.get_graph()
    edges = sorted((edge.source, edge.target) for edge in drawing.edges)
    described = json.dumps([sorted(drawing.nodes), edges, state_version])
    return hashlib.sha256(described.encode()).hexdigest()[:_VERSION_CHARS]


@dataclass(frozen=True)
class UserQuestion:
    """A question that a node puts to the user.

    Attributes:
        kind: how clients show the question: `choice`, `text`, `confirm`, or a name of the flow's
            own.
        choices: the allowed answers; the answer is one of them, unchanged.
        schema: JSON Schema of the answer, used when there are no choices. With neither, any text is
            an answer.
        details: what the question's event shows beside it.
    """

    kind: str
    prompt: str
    choices: Sequence[str] = ()
    schema: Mapping[str, Any] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def ask_user(question: UserQuestion) -> Any:
    """Ask the user and return the answer; only nodes of a graph with a checkpointer can call it.

    The first call interrupts the run. When the answer comes, LangGraph runs the node again from its
    start, and this call returns the answer. So the node's code before this call must be safe to run
    twice.
    """
    payload = {**question.details, "kind": question.kind, "prompt": question.prompt}
    if question.choices:
        payload["choices"] = list(question.choices)
    if question.schema is not None:
        payload["schema"] = dict(question.schema)

    return interrupt(payload)
