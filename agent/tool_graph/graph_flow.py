"""The flow in which the model only says what it wants, and a graph decides what is done."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from agent.flow import Answer, Face, Question, Write
from agent.kept_turns import turn_of
from agent.tool_graph.context import GraphContext
from agent.tool_graph.faces import FACES
from agent.tool_graph.graph import Graph, compiled_graph, most_steps
from agent.tool_graph.nodes.memory_search import FLOW
from agent.tool_graph.routing import FINALIZE
from agent.tool_graph.state import Ask, State
from agent.tool_graph.virtual_tools import virtual_tools
from agent.tool_graph.workbench import Workbench
from agent.tools.answer import ROUTING
from agent.tools.context import ToolAgentContext
from agent.tools.limits import Limits
from agent.tools.run_sql import NAME as RUN_SQL
from common.values import Turn


class ToolGraphFlow:
    """Implements `Flow`.

    Args:
        new_context: makes the services for one question.
        samples: whether a model may be told stored values that it did not select.
        deadline_s: seconds for one question.
    """

    name = FLOW
    faces: Mapping[str, Face] = FACES
    last_node = FINALIZE

    def __init__(
        self,
        new_context: Callable[[Question, Write], ToolAgentContext],
        *,
        limits: Limits,
        samples: bool,
        deadline_s: float,
    ) -> None:
        self._new_context = new_context
        self._samples = samples
        self.most_steps = most_steps(limits)
        self.deadline_s = deadline_s

    @property
    def graph(self) -> Graph:
        """Compiled once for the process."""
        return compiled_graph()

    def start(self, question: Question) -> Ask:
        """See `Flow.start`."""
        return {"lang": question.answer_lang, "execution_path": ["start"]}

    def context(self, question: Question, write: Write) -> GraphContext:
        """See `Flow.context`."""
        given, workbench = self._new_context(question, write), Workbench()
        virtual = virtual_tools(given, workbench, samples=self._samples)
        return GraphContext(given, given.registry.changed(without={RUN_SQL}, more=virtual), workbench)

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The steps so far and, once there is one, the latest statement with its plan."""
        known = cast(State, state)
        summary: dict[str, Any] = {"execution_path": list(known["execution_path"]), "routing_mode": ROUTING}
        if "sql" in known:
            plan = known["plan"].shown()
            summary |= {"sql": known["sql"], **({"plan": plan} if plan else {})}
        return summary

    def ending(self, state: Mapping[str, Any]) -> Answer:
        """Always an answer: what fails for good is raised by its node."""
        return Answer(cast(State, state)["answer"])

    def turn(self, question: Question, state: Mapping[str, Any], answer: Answer) -> Turn:  # noqa: ARG002
        """See `Flow.turn`; what was called and found on the way is not kept."""
        return turn_of(question, answer.body, None)
