"""What a run that waits for the user needs to go on, on whichever worker the answer comes to."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from agent.flow import Question
from common.actor import Actor
from common.text import Text

_RESUME = "__resume__"  # the channel in which LangGraph keeps an answer


@dataclass(frozen=True)
class Pause:
    """Where a run stands that has asked the user.

    Attributes:
        graph_interrupt: LangGraph's id of the interrupt.
        answers: how many answers the run got before.
        mark: the position of its graph, see `mark_of`.
        timings_ms: how long its nodes have worked so far, and `total`; waiting does not count.
    """

    question: Question
    graph_interrupt: str
    answers: int
    mark: str
    timings_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def interrupt_id(self) -> str:
        """The id that clients use. The number keeps questions apart, whatever ids LangGraph gives those of one node."""
        return f"{self.graph_interrupt}-{self.answers + 1}"

    def to_json(self) -> dict[str, Any]:
        """As the store keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any], actor: Actor) -> "Pause":
        """Reads what `to_json` gave. `actor` is who answers: their rights may differ from those of who asked.

        The run may have waited through an upgrade: what an older version did not write has its default, and what this
        one does not know is left out.
        """
        names = {each.name for each in fields(Question)}
        asked = {name: value for name, value in kept["question"].items() if name in names} | {"actor": actor}
        asked["notices"] = tuple(Text(*notice) for notice in asked.get("notices", ()))
        timings_ms = kept.get("timings_ms", {})
        return cls(Question(**asked), kept["graph_interrupt"], kept["answers"], kept["mark"], timings_ms)


@dataclass(frozen=True)
class GivenAnswer:
    """The user's answer, and who gave it, so that a worker that adopts the run goes on for the same actor."""

    value: Any
    actor: Actor

    def to_json(self) -> dict[str, Any]:
        """As the store keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "GivenAnswer":
        """Reads what `to_json` gave."""
        actor = kept["actor"]
        vouched = actor.get("is_vouched_for", False)  # an older version did not say
        return cls(kept["value"], Actor(actor["user_id"], tuple(actor["groups"]), actor["acts_for_others"], vouched))


@dataclass(frozen=True)
class Resumption:
    """The user's answer, and where its run stands."""

    pause: Pause
    answer: Any

    @classmethod
    def of(cls, asked: Mapping[str, Any], given: GivenAnswer) -> "Resumption":
        """The pause that `Pause.to_json` gave, with its answer."""
        return cls(Pause.from_json(asked, given.actor), given.value)


async def mark_of(saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> str:
    """Where a graph stands: the id of its latest checkpoint, and the number of answers it has taken there.

    As long as the mark is the same as when the run began to wait, the graph does not have the answer yet.
    """
    found = await saver.aget_tuple(config)
    if found is None:
        return ""
    answers = [value for _, channel, value in found.pending_writes or () if channel == _RESUME]
    return f"{found.checkpoint['id']}:{sum(len(value) if isinstance(value, list) else 1 for value in answers)}"
