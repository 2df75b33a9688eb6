"""The flow in which the model asks for the next step, and a graph decides what is done."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from agent.flows.flow import Durability, FlowAnswer, StepLabel
from agent.flows.stored_turns import turn_of
from agent.flows.tool_graph.context import ToolGraphContext
from agent.flows.tool_graph.graph import Graph, compiled_graph, most_steps
from agent.flows.tool_graph.labels import LABELS
from agent.flows.tool_graph.nodes import FLOW
from agent.flows.tool_graph.routing import FINALIZE
from agent.flows.tool_graph.scratchpad import Scratchpad
from agent.flows.tool_graph.state import ToolGraphInput, ToolGraphState
from agent.flows.tool_graph.virtual_tools import virtual_tools
from agent.progress import Write
from agent.question import Question
from agent.tools.answer import ROUTING
from agent.tools.run_sql import NAME as RUN_SQL
from agent.tools.tool_context import ToolAgentContext
from agent.tools.tool_limits import ToolLimits
from common.values import Turn


class ToolGraphFlow:
    """The flow in which a model takes prescribed steps with tools.

    Args:
        new_context: makes the services for one question.
        samples: whether a model may be told stored values that it did not select.
        deadline_s: seconds for one question.
    """

    name = FLOW
    labels: Mapping[str, StepLabel] = LABELS
    last_node = FINALIZE
    durability: Durability | None = None

    def __init__(
        self,
        new_context: Callable[[Question, Write], ToolAgentContext],
        *,
        limits: ToolLimits,
        samples: bool,
        deadline_s: float,
    ) -> None:
        self._new_context = new_context
        self._samples = samples
        self.most_steps = most_steps(limits)
        self.deadline_s = deadline_s

    @property
    def graph(self) -> Graph:
        """Return the graph, compiled once for the process."""
        return compiled_graph()

    def start(self, question: Question) -> ToolGraphInput:
        return {"lang": question.answer_lang, "execution_path": ["start"]}

    def context(self, question: Question, write: Write) -> ToolGraphContext:
        agent_context = self._new_context(question, write)
        scratchpad = Scratchpad()
        own_tools = virtual_tools(agent_context, scratchpad, samples=self._samples)
        return ToolGraphContext(
            agent_context,
            agent_context.registry.changed(without={RUN_SQL}, more=own_tools),
            scratchpad,
        )

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the steps so far and, once there is one, the latest statement with its plan."""
        tool_state = cast(ToolGraphState, state)
        summary: dict[str, Any] = {
            "execution_path": list(tool_state["execution_path"]),
            "routing_mode": ROUTING,
        }
        if "sql" in tool_state:
            summary["sql"] = tool_state["sql"]
            plan = tool_state["plan"].shown()
            if plan:
                summary["plan"] = plan

        return summary

    def ending(self, state: Mapping[str, Any]) -> FlowAnswer:
        """Return the answer; nodes raise the errors that end a question."""
        return FlowAnswer(cast(ToolGraphState, state)["answer"])

    def turn(
        self,
        question: Question,
        state: Mapping[str, Any],  # noqa: ARG002
        answer: FlowAnswer,
    ) -> Turn:
        """Return the turn without what was called and found on the way."""
        return turn_of(question, answer.body, None)
