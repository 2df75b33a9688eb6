"""What a flow is: a graph that answers questions, how its nodes are shown, and what its end means.

The runner (`agent.runs`) serves any flow and knows no node's name. A new one is a folder beside `agent/ask/` with an
implementation of `Flow`, and a line in `FLOWS` of `agent.bootstrap`.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt

from common import timestamps
from common.actor import NOBODY, Actor
from common.errors import CituError
from common.text import Lang, Text, language_of
from common.values import Turn


def new_conversation_id() -> str:
    """`citu_` + UTC yyyymmddHHMMSS + milliseconds + a random tail."""
    now = datetime.now(UTC)
    return f"citu_{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03d}{secrets.token_hex(4)}"


def new_run_id() -> str:
    """`run_` + 96 random bits."""
    return f"run_{secrets.token_hex(12)}"


@dataclass(frozen=True)
class Question:
    """One question as a caller asks it.

    Attributes:
        agent: name of the flow that answers it; None takes the configured one.
        actor: who asks.
        asked_at: ISO 8601, UTC, milliseconds.
        continues: whether the conversation may have earlier turns.
        is_credible: whether nobody else could ask in this user's name; else nothing is learnt from the question.
        notices: what the answer must say about the request itself.
        lang: language of the answer; None follows the question.
        routing_mode: None takes the configured one.
        stream_tokens: whether text is emitted while it is written.
    """

    question: str
    agent: str | None = None
    conversation_id: str = field(default_factory=new_conversation_id)
    run_id: str = field(default_factory=new_run_id)
    actor: Actor = NOBODY
    asked_at: str = field(default_factory=timestamps.now)
    lang: Lang | None = None
    routing_mode: str | None = None
    context_type: str | None = None
    table: str | None = None
    stream_tokens: bool = True
    continues: bool = False
    is_credible: bool = False
    notices: tuple[Text, ...] = ()

    @property
    def owner(self) -> str:
        """Whose the conversation and the run are."""
        return self.actor.owner

    @property
    def answer_lang(self) -> Lang:
        """The language of everything the run says."""
        return self.lang or language_of(self.question)


Recall = Callable[[], Awaitable[tuple[Turn, ...]]]
"""Gives the latest turns of a question's conversation, oldest first; raises `StoreUnavailable`."""


async def nothing_before() -> tuple[Turn, ...]:
    """The `Recall` of a new conversation."""
    return ()


@dataclass(frozen=True)
class Described:
    """How a step is described to the user at one moment."""

    details: Text
    sub_status: Text


def _never(_update: Mapping[str, Any]) -> bool:
    return False


@dataclass(frozen=True)
class Face:
    """A node as users see it.

    Attributes:
        running, done: `state_summary.current_step` while it runs and afterwards.
        while_running: what it says before it has a result.
        describe: what it says of its result; takes the update that the node returned.
        has_failed: whether that result is shown as a failure.
    """

    display_name: Text
    icon: str
    running: str
    done: str
    while_running: Described
    describe: Callable[[Any], Described]
    has_failed: Callable[[Any], bool] = _never


@dataclass(frozen=True)
class ToolStep:
    """A tool's call as users see it; nodes write it when the call begins and when it ends.

    Attributes:
        call_id: unique within the run.
        name: the tool's, as models call it.
        arguments: JSON values as the model gave them, long ones shortened.
        milliseconds: how long it took; None while it runs.
        summary: what came of it, in one line; None while it runs.
    """

    call_id: str
    name: str
    display_name: Text
    arguments: Mapping[str, Any]
    status: Literal["running", "done", "failed"]
    milliseconds: float | None = None
    summary: Text | None = None


@dataclass(frozen=True)
class StepResult:
    """Rows that a step found on the way to the answer.

    Attributes:
        call_id: of the call that found them.
        shown: `query_result`, and `chart` where one fits; see `agent.answers.shown_result`.
    """

    call_id: str
    sql: str
    shown: Mapping[str, Any]


Write = Callable[[str | ToolStep | StepResult], None]
"""Shows something at once to the user while a node runs: a piece of the answer's text, a tool's call, rows.

Not LangGraph's stream writer: with that, LangGraph runs each node in two more tasks.
"""


def shown_to_nobody(_written: str | ToolStep | StepResult) -> None:
    """The `Write` where nobody watches."""


@dataclass(frozen=True)
class Answer:
    """The run is completed; `body` is the terminal event's data without ids and times, which the runner adds."""

    body: Mapping[str, Any]


@dataclass(frozen=True)
class Failure:
    """The run ends in an error that its graph found; `node` is the step that failed."""

    error: CituError
    node: str


class Flow(Protocol):
    """One way of answering questions; each process makes one.

    Attributes:
        name: what requests call it.
        faces: how each node of the graph is shown.
        last_node: the node that every path through the graph ends in; when it is done, the run is over.
        most_steps: nodes that one run may pass, each time counted; LangGraph's recursion limit.
        deadline_s: seconds of work until the answer or the next question to the user; each answer begins them anew.
    """

    name: str
    faces: Mapping[str, Face]
    last_node: str
    most_steps: int
    deadline_s: float

    @property
    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The compiled graph; only one with a checkpointer can ask the user something (see `ask_user`)."""

    def start(self, question: Question) -> Mapping[str, Any]:
        """The graph's input."""

    def context(self, question: Question, write: Write) -> Any:
        """The services for one question, which LangGraph hands to the nodes beside the state.

        Args:
            write: shows what nodes write while they run.
        """

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """What `state_summary` shows beside `current_step`: JSON values that do not change with the state later."""

    def ending(self, state: Mapping[str, Any]) -> Answer | Failure:
        """Whether the state after the last node is an answer or a failure."""

    def turn(self, question: Question, state: Mapping[str, Any], answer: Answer) -> Turn | None:
        """The turn that the run adds to its conversation; None adds nothing."""


def checkpointer_of(flow: Flow) -> BaseCheckpointSaver[Any] | None:
    """The checkpointer of the flow's graph; None when it has none."""
    saver = flow.graph.checkpointer
    return saver if isinstance(saver, BaseCheckpointSaver) else None


@dataclass(frozen=True)
class UserQuestion:
    """What a node asks the user.

    Attributes:
        kind: how clients show the question: `choice`, `text`, `confirm`, or a name of the flow's own.
        choices: the allowed answers; the answer is one of them, unchanged.
        schema: JSON Schema of the answer, used when there are no choices. With neither, any text is an answer.
    """

    kind: str
    prompt: str
    choices: Sequence[str] = ()
    schema: Mapping[str, Any] | None = None


def ask_user(question: UserQuestion) -> Any:
    """Asks the user and returns the answer; only nodes of a graph with a checkpointer can call it.

    The first call interrupts the run. When the answer comes, LangGraph runs the node again from its start, and this
    call returns the answer. So the node's code before this call must be safe to run twice.
    """
    shown: dict[str, Any] = {"kind": question.kind, "prompt": question.prompt}
    if question.choices:
        shown["choices"] = list(question.choices)
    if question.schema is not None:
        shown["schema"] = dict(question.schema)
    return interrupt(shown)
