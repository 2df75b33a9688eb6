"""Questions that a `WorkflowHandler` answers, as a flow: the runner serves them like any other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from agent.extensions.points import WorkflowHandler
from agent.flows.flow import Durability, FlowAnswer, FlowFailure, StepDescription, StepLabel
from agent.flows.step_spans import with_step_spans
from agent.flows.stored_turns import turn_of
from agent.progress import Write
from agent.question import Question
from common.text import Text
from common.values import Turn, Usage

WORKFLOW = "workflow"
"""The name of the flow."""
_NODE = "run_workflow"
_REASON = Text("由固定流程回答", "Answered by a fixed workflow")
_LABEL = StepLabel(
    Text("执行固定流程", "Running a fixed workflow"),
    "📋",
    "workflow_running",
    "workflow_done",
    StepDescription(
        Text("正在执行固定流程", "Running a fixed workflow"), Text("执行中", "Running")
    ),
    lambda _: StepDescription(Text("固定流程已完成", "The workflow is done"), Text("完成", "Done")),
)


@dataclass(frozen=True)
class WorkflowContext:
    """The handler that answers the question."""

    handler: WorkflowHandler


class _Failed:
    """The handler of questions for which `claims` failed; it ends them in that error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def claims(self, question: Question) -> bool:  # noqa: ARG002 - the point's signature
        return True

    async def answer(
        self,
        question: Question,  # noqa: ARG002 - the point's signature
    ) -> Mapping[str, Any]:
        raise self._error


class WorkflowState(TypedDict, total=False):
    """The state of the graph; `found` is what the handler answered."""

    question: Question
    found: Mapping[str, Any]


async def run_workflow(state: WorkflowState, runtime: Runtime[WorkflowContext]) -> WorkflowState:
    """Let the handler answer.

    Raises:
        TypeError: the handler gives no answer.
    """
    handler = runtime.context.handler
    answer = await handler.answer(state["question"])
    if not isinstance(answer, Mapping) or not isinstance(answer.get("response"), str):
        raise TypeError(f"{type(handler).__name__} gave an answer without a response.")

    return {"found": answer}


@cache
def _graph() -> CompiledStateGraph[WorkflowState, WorkflowContext, WorkflowState, WorkflowState]:
    graph = StateGraph(WorkflowState, context_schema=WorkflowContext)
    graph.add_node(_NODE, run_workflow)
    graph.add_edge(START, _NODE)
    graph.add_edge(_NODE, END)
    return with_step_spans(graph.compile())


class WorkflowFlow:
    """Implements `Flow` for the questions that one of `handlers` claims.

    Args:
        routing_mode: the mode that answers name when the request names none; it has no effect here.
        deadline_s: seconds for one question.
    """

    name = WORKFLOW
    labels: Mapping[str, StepLabel] = {_NODE: _LABEL}
    last_node = _NODE
    durability: Durability | None = None
    most_steps = 1

    def __init__(
        self, handlers: Sequence[WorkflowHandler], *, routing_mode: str, deadline_s: float
    ) -> None:
        self._handlers = tuple(handlers)
        self._routing_mode = routing_mode
        self.deadline_s = deadline_s

    @property
    def graph(
        self,
    ) -> CompiledStateGraph[WorkflowState, WorkflowContext, WorkflowState, WorkflowState]:
        """Return the graph, compiled once for the process."""
        return _graph()

    def claims(self, question: Question) -> bool:
        """Tell whether a handler answers the question."""
        return self._handler(question) is not None

    def _handler(self, question: Question) -> WorkflowHandler | None:
        """Return the handler that claims the question.

        A handler whose `claims` fails counts as claiming it, so that nobody answers in its place.
        """
        for handler in self._handlers:
            try:
                if handler.claims(question):
                    return handler
            except Exception as exc:  # noqa: BLE001 - an extension may raise anything
                return _Failed(exc)

        return None

    def start(self, question: Question) -> WorkflowState:
        return {"question": question}

    def context(self, question: Question, write: Write) -> WorkflowContext:  # noqa: ARG002
        handler = self._handler(question)
        assert handler is not None, "only claimed questions come here"
        return WorkflowContext(handler)

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the steps, and the SQL of a report that was run."""
        found = cast(WorkflowState, state).get("found", {})
        summary: dict[str, Any] = {"execution_path": ["start"]}
        if "sql" in found:
            summary["sql"] = found["sql"]

        return summary

    def ending(self, state: Mapping[str, Any]) -> FlowAnswer | FlowFailure:
        """Return the answer, with the keys that every answer has."""
        workflow_state = cast(WorkflowState, state)
        question, found = workflow_state["question"], workflow_state["found"]
        kind = "DATABASE" if "query_result" in found else "CHAT"
        return FlowAnswer(
            {
                "response_type": kind,
                **found,
                "execution_path": ["start", _NODE],
                "classification_info": {
                    "question_type": kind,
                    "confidence": 1.0,
                    "method": "workflow",
                    "reason": _REASON.to(question.answer_lang),
                },
                "routing_mode_used": question.routing_mode or self._routing_mode,
                "routing_mode_source": "request" if question.routing_mode else "configuration",
                "sql_repair_applied": False,
                "warnings": list(found.get("warnings", ())),
                "usage": dict(vars(Usage())),
            }
        )

    def turn(
        self,
        question: Question,
        state: Mapping[str, Any],  # noqa: ARG002
        answer: FlowAnswer,
    ) -> Turn | None:
        """Return a turn for an answer with rows, so that the next question can be about them.

        The question only names what was run, so `understood` stays empty.
        """
        if "query_result" not in answer.body:
            return None

        return turn_of(question, answer.body, {})
