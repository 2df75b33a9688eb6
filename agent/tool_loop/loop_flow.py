"""The loop as a flow."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from agent.flow import Answer, Face, Failure, Question, Write
from agent.kept_turns import turn_of
from agent.tool_loop.faces import FACES
from agent.tool_loop.graph import LAST_NODE, Graph, compiled_graph
from agent.tool_loop.nodes import FLOW
from agent.tool_loop.state import Ask, State
from agent.tools.answer import ROUTING
from agent.tools.context import ToolAgentContext
from common.values import Turn


class LoopFlow:
    """Implements `Flow`.

    Args:
        new_context: makes the services for one question.
        model_calls: the most of one question.
        deadline_s: seconds for one question.
    """

    name = FLOW
    faces: Mapping[str, Face] = FACES
    last_node = LAST_NODE

    def __init__(
        self, new_context: Callable[[Question, Write], ToolAgentContext], *, model_calls: int, deadline_s: float
    ) -> None:
        self._new_context = new_context
        self.most_steps = 2 * model_calls + 4  # each call with its tools, one that a limit refuses, the first, the last
        self.deadline_s = deadline_s

    @property
    def graph(self) -> Graph:
        """Compiled once for the process."""
        return compiled_graph()

    def start(self, question: Question) -> Ask:
        """See `Flow.start`."""
        return {"lang": question.answer_lang, "execution_path": ["start"]}

    def context(self, question: Question, write: Write) -> ToolAgentContext:
        """See `Flow.context`."""
        return self._new_context(question, write)

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The steps so far and, once known, the last statement that found rows."""
        known = cast(State, state)
        summary: dict[str, Any] = {"execution_path": list(known["execution_path"]), "routing_mode": ROUTING}
        return summary | ({"sql": known["sql"]} if "sql" in known else {})

    def ending(self, state: Mapping[str, Any]) -> Answer | Failure:
        """Always an answer: what ends a question without one is raised."""
        return Answer(cast(State, state)["answer"])

    def turn(self, question: Question, state: Mapping[str, Any], answer: Answer) -> Turn:  # noqa: ARG002
        """See `Flow.turn`; what was called and found on the way is not kept."""
        return turn_of(question, answer.body, None)
