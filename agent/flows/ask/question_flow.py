"""The question flow: one question, one query, one answer."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from agent.flows.ask.context import AskContext
from agent.flows.ask.graph import LAST_NODE, NODES, Graph, compiled_graph
from agent.flows.ask.labels import LABELS
from agent.flows.ask.state import AskInput, AskState
from agent.flows.flow import Durability, FlowAnswer, FlowFailure, StepLabel
from agent.flows.stored_turns import turn_of
from agent.progress import Write
from agent.question import Question
from common.values import Turn, Usage


class QuestionFlow:
    """The flow that answers by one query, or talks.

    Args:
        new_context: makes the services for one question.
        routing_mode: the mode for requests that name none.
        deadline_s: seconds for one question.
    """

    name = "ask"
    labels: Mapping[str, StepLabel] = LABELS
    last_node = LAST_NODE
    durability: Durability | None = None
    most_steps = len(NODES)

    def __init__(
        self,
        new_context: Callable[[Question, Write], AskContext],
        *,
        routing_mode: str,
        deadline_s: float,
    ) -> None:
        self._new_context = new_context
        self._routing_mode = routing_mode
        self.deadline_s = deadline_s

    @property
    def graph(self) -> Graph:
        """Return the graph, compiled once for the process."""
        return compiled_graph()

    def start(self, question: Question) -> AskInput:
        return {
            "question": question.question,
            "lang": question.answer_lang,
            "routing_mode": question.routing_mode or self._routing_mode,
            "routing_mode_source": "request" if question.routing_mode else "configuration",
            "table": question.table,
            "context_type": question.context_type,
            "wants_tokens": question.stream_tokens,
            "execution_path": ["start"],
        }

    def context(self, question: Question, write: Write) -> AskContext:
        return self._new_context(question, write)

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the steps so far and, once known, the SQL, its plan and why it is refused."""
        ask_state = cast(AskState, state)
        summary: dict[str, Any] = {
            "execution_path": list(ask_state["execution_path"]),
            "routing_mode": ask_state["routing_mode"],
        }
        if "sql" in ask_state:
            summary["sql"] = ask_state["sql"]

        plan = ask_state["plan"].shown() if "plan" in ask_state else None
        if plan is not None:
            summary["plan"] = plan
        if "error" in ask_state:
            summary["validation_error_type"] = ask_state["error"].error_type

        return summary | _details(ask_state)

    def ending(self, state: Mapping[str, Any]) -> FlowAnswer | FlowFailure:
        """Return the answer, or the error of SQL that may not run."""
        ask_state = cast(AskState, state)
        if "error" in ask_state:
            is_proven = ask_state["sql_generation_success"]
            node = "agent_sql_execution" if is_proven else "agent_sql_generation"
            return FlowFailure(ask_state["error"], node)

        classification = ask_state["classification"]
        return FlowAnswer(
            {
                **ask_state["answer"],
                "execution_path": ask_state["execution_path"],
                "classification_info": {
                    "question_type": classification.question_type,
                    "confidence": classification.confidence,
                    "method": classification.method,
                    "reason": classification.reason,
                },
                "routing_mode_used": ask_state["routing_mode"],
                "routing_mode_source": ask_state["routing_mode_source"],
                "sql_repair_applied": ask_state.get("sql_repair_applied", False),
                "warnings": ask_state.get("warnings", []),
                "usage": dict(vars(ask_state.get("usage") or Usage())),
                **_details(ask_state),
            }
        )

    def turn(self, question: Question, state: Mapping[str, Any], answer: FlowAnswer) -> Turn:
        return turn_of(question, answer.body, cast(AskState, state).get("understood"))


def _details(state: AskState) -> dict[str, Any]:
    """Return how the SQL was made: by whom, from which example, by which parts of prompts."""
    details: dict[str, Any] = {}
    if "generation_method" in state:
        details["generation_method"] = state["generation_method"]
    if used := state.get("reused"):
        details["example"] = {"example_id": used.example.example_id, "trust": used.example.trust}
    if parts := state.get("prompt_parts"):
        details["prompt_parts"] = parts

    return details
