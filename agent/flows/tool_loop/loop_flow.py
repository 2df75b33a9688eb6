"""The loop as a flow."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from agent.flows.flow import Durability, FlowAnswer, FlowFailure, StepLabel
from agent.flows.stored_turns import turn_of
from agent.flows.tool_loop.graph import LAST_NODE, Graph, compiled_graph
from agent.flows.tool_loop.labels import LABELS
from agent.flows.tool_loop.nodes import FLOW
from agent.flows.tool_loop.state import ToolLoopInput, ToolLoopState
from agent.progress import Write
from agent.question import Question
from agent.tools.answer import ROUTING
from agent.tools.tool_context import ToolAgentContext
from common.values import Turn


class LoopFlow:
    """The flow in which a model calls tools until it answers.

    Args:
        new_context: makes the services for one question.
        model_calls: the most of one question.
        deadline_s: seconds for one question.
    """

    name = FLOW
    labels: Mapping[str, StepLabel] = LABELS
    last_node = LAST_NODE
    durability: Durability | None = None

    def __init__(
        self,
        new_context: Callable[[Question, Write], ToolAgentContext],
        *,
        model_calls: int,
        deadline_s: float,
    ) -> None:
        self._new_context = new_context
        # Each call with its tools, one that a limit refuses, the first and the last node.
        self.most_steps = 2 * model_calls + 4
        self.deadline_s = deadline_s

    @property
    def graph(self) -> Graph:
        """Return the graph, compiled once for the process."""
        return compiled_graph()

    def start(self, question: Question) -> ToolLoopInput:
        return {"lang": question.answer_lang, "execution_path": ["start"]}

    def context(self, question: Question, write: Write) -> ToolAgentContext:
        return self._new_context(question, write)

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the steps so far and, once known, the last statement that found rows."""
        loop_state = cast(ToolLoopState, state)
        summary: dict[str, Any] = {
            "execution_path": list(loop_state["execution_path"]),
            "routing_mode": ROUTING,
        }
        if "sql" in loop_state:
            summary["sql"] = loop_state["sql"]

        return summary

    def ending(self, state: Mapping[str, Any]) -> FlowAnswer | FlowFailure:
        """Return the answer; nodes raise the errors that end a question."""
        return FlowAnswer(cast(ToolLoopState, state)["answer"])

    def turn(
        self,
        question: Question,
        state: Mapping[str, Any],  # noqa: ARG002
        answer: FlowAnswer,
    ) -> Turn:
        """Return the turn without what was called and found on the way."""
        return turn_of(question, answer.body, None)
