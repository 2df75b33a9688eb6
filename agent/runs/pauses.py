"""What is kept of a run so that any worker can go on with it: where it waits, how it was begun."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from agent.question import Question
from common.actor import Actor, attributes_of
from common.text import Text
from common.values import Usage

_RESUME = "__resume__"  # the channel in which LangGraph keeps an answer


@dataclass(frozen=True)
class Pause:
    """The position of a run that has asked the user.

    Attributes:
        graph_interrupt: LangGraph's id of the interrupt.
        answers: how many answers the run got before.
        mark: the position of its graph, see `mark_of`.
        timings_ms: how long its nodes have worked so far, and `total`; waiting does not count.
        graph_version: the version of the graph that stopped; None: an older version kept the pause.
    """

    question: Question
    graph_interrupt: str
    answers: int
    mark: str
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    graph_version: str | None = None

    @property
    def interrupt_id(self) -> str:
        """Return the id that clients use; its number tells apart questions with the same LangGraph
        id.
        """
        return f"{self.graph_interrupt}-{self.answers + 1}"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value, for the store."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], actor: Actor) -> "Pause":
        """Read what `to_json` gave.

        Args:
            actor: who answers; their rights may differ from those of who asked.

        The run may have waited through an upgrade: what an older version did not write has its
        default, and what this one does not know is left out.
        """
        return cls(
            question=_question(stored["question"], actor),
            graph_interrupt=stored["graph_interrupt"],
            answers=stored["answers"],
            mark=stored["mark"],
            timings_ms=stored.get("timings_ms", {}),
            graph_version=stored.get("graph_version"),
        )


@dataclass(frozen=True)
class GivenAnswer:
    """The user's answer, and who gave it: a worker that takes over goes on for the same actor."""

    value: Any
    actor: Actor

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value, for the store."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "GivenAnswer":
        """Read what `to_json` gave."""
        return cls(stored["value"], _actor(stored["actor"]))


@dataclass(frozen=True)
class Resumption:
    """The user's answer, and the position of its run."""

    pause: Pause
    answer: Any

    @classmethod
    def of(cls, pause: Mapping[str, Any], answer: GivenAnswer) -> "Resumption":
        """Return the pause that `Pause.to_json` gave, with its answer."""
        return cls(Pause.from_json(pause, answer.actor), answer.value)

    @property
    def question(self) -> Question:
        """Return the question, with the rights of the user who answered the question back."""
        return self.pause.question


@dataclass(frozen=True)
class Beginning:
    """The question that a run was begun with: from it another worker goes on with the run.

    Attributes:
        question: names its flow.
        graph_version: the version of the graph that was begun.
    """

    question: Question
    graph_version: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value, for the store."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Beginning":
        """Read what `to_json` gave; the run goes on with the rights that it was begun with."""
        stored_question = stored["question"]
        return cls(
            _question(stored_question, _actor(stored_question["actor"])), stored["graph_version"]
        )


def _question(stored: Mapping[str, Any], actor: Actor) -> Question:
    """Read a question, of which another version may have written more or less than there is."""
    field_names = {field.name for field in fields(Question)}
    values = {name: value for name, value in stored.items() if name in field_names}
    values["actor"] = actor
    values["choice_usage"] = Usage(**values.get("choice_usage", {}))
    values["notices"] = tuple(Text(*notice) for notice in values.get("notices", ()))
    return Question(**values)


def _actor(stored: Mapping[str, Any]) -> Actor:
    vouched = stored.get("is_vouched_for", False)  # an older version did not say
    attributes = dict(stored.get("attributes", ()))
    return Actor(
        stored["user_id"],
        tuple(stored["groups"]),
        stored["acts_for_others"],
        vouched,
        attributes_of(attributes),
    )


async def mark_of(saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> str:
    """Return the position of a graph: its latest checkpoint's id and the answers it took there.

    As long as the mark is the same as when the run began to wait, the graph does not have the
    answer yet.
    """
    checkpoint = await saver.aget_tuple(config)
    if checkpoint is None:
        return ""

    answers = 0
    for _, channel, value in checkpoint.pending_writes or ():
        if channel == _RESUME:
            answers += len(value) if isinstance(value, list) else 1

    return f"{checkpoint.checkpoint['id']}:{answers}"
