"""The flow that drafts transformations and proves them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, cast
from zoneinfo import ZoneInfo

from langgraph.checkpoint.base import BaseCheckpointSaver

from agent.flows.etl.context import EtlContext, options_at
from agent.flows.etl.draft_answer import shown_tests, states_of_nodes
from agent.flows.etl.draft_making import further_step
from agent.flows.etl.graph import Graph, compiled_graph, most_steps
from agent.flows.etl.labels import LABELS
from agent.flows.etl.routing import FINALIZE
from agent.flows.etl.state import STATE_VERSION, EtlInput, EtlState, Json
from agent.flows.flow import Durability, FlowAnswer, StepLabel, graph_version
from agent.progress import Write
from agent.question import Question
from common.values import Turn

_ANSWER_CHARS = 16_000


class EtlFlow:
    """The flow that drafts, builds and tests a transformation.

    Args:
        new_context: makes the services for one request.
        checkpoints: keeps the state of runs, which go on when their worker dies.
        time_zone: in which today is, and periods are cut unless a request says otherwise.
        deadline_s: seconds of work until the answer or the next question to the user.
    """

    name = "etl"
    labels: Mapping[str, StepLabel] = LABELS
    last_node = FINALIZE
    most_steps = most_steps
    durability: Durability | None = Durability(STATE_VERSION)

    def __init__(
        self,
        new_context: Callable[[Question, Write], EtlContext],
        checkpoints: BaseCheckpointSaver[str],
        *,
        time_zone: str,
        deadline_s: float,
    ) -> None:
        self._new_context = new_context
        self._checkpoints = checkpoints
        self._time_zone = ZoneInfo(time_zone)
        self.deadline_s = deadline_s

    @cached_property
    def graph(self) -> Graph:
        """Compiled once for the process."""
        return compiled_graph(self._checkpoints)

    def start(self, question: Question) -> EtlInput:
        today = datetime.now(self._time_zone).date()
        return {
            "question": question.question,
            "lang": question.answer_lang,
            "given_intent": question.details.get("intent"),
            "options": options_at(question, today),
            "graph_version": graph_version(self),
            "execution_path": ["start"],
        }

    def context(self, question: Question, write: Write) -> EtlContext:
        return self._new_context(question, write)

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the steps so far and, once known, the plan's nodes and the tests in numbers."""
        etl_state = cast(EtlState, state)
        summary: dict[str, Any] = {"execution_path": list(etl_state["execution_path"])}
        if "plan" in etl_state:
            summary["plan"] = states_of_nodes(etl_state)
        if "tests" in etl_state:
            summary["tests"] = shown_tests(etl_state["tests"])
        if "attempts" in etl_state:
            summary["attempts"] = dict(etl_state["attempts"])

        return summary

    def ending(self, state: Mapping[str, Any]) -> FlowAnswer:
        """Return the answer; nodes raise the errors that end a request."""
        etl_state = cast(EtlState, state)
        body = etl_state["answer"]
        return FlowAnswer(
            {
                **body,
                "execution_path": etl_state["execution_path"],
                "warnings": etl_state.get("warnings", []),
            }
        )

    def turn(self, question: Question, state: Mapping[str, Any], answer: FlowAnswer) -> Turn:
        """Return the turn, with the intent and what was chosen as what was understood."""
        etl_state = cast(EtlState, state)
        intent = etl_state.get("analysis", {}).get("intent")
        return Turn(
            run_id=question.run_id,
            question=question.question,
            question_type="ETL",
            routing_mode=self.name,
            answer=answer.body["response"][:_ANSWER_CHARS],
            asked_at=question.asked_at,
            understood=self._understood(etl_state, intent) if intent else None,
        )

    def _understood(self, state: EtlState, intent: Json) -> dict[str, Any]:
        """Return what a follow-up goes on from."""
        decisions = state.get("decisions", [])
        if further_step(state) is not None:
            # Follow-ups would change the intent alone, and lose what comes behind it.
            return {"agent": self.name, "intent": None, "decisions": decisions}

        return {"agent": self.name, "intent": intent, "decisions": decisions}
