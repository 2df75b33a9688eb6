"""Questions that a `WorkflowHandler` answers, as a flow: the runner serves them like any other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from agent.extensions.points import WorkflowHandler
from agent.flow import Answer, Described, Face, Failure, Question, Write
from agent.kept_turns import turn_of
from common.text import Text
from common.values import Turn, Usage

_NODE = "run_workflow"
_REASON = Text("由固定流程回答", "Answered by a fixed workflow")
_FACE = Face(
    Text("执行固定流程", "Running a fixed workflow"),
    "📋",
    "workflow_running",
    "workflow_done",
    Described(Text("正在执行固定流程", "Running a fixed workflow"), Text("执行中", "Running")),
    lambda _: Described(Text("固定流程已完成", "The workflow is done"), Text("完成", "Done")),
)


@dataclass(frozen=True)
class Context:
    """The handler that claimed the question."""

    handler: WorkflowHandler


class _Failed:
    """In place of a handler that failed to say whether it claims a question: ends the question in that error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def claims(self, question: Question) -> bool:  # noqa: ARG002 - the point's signature
        """This one question."""
        return True

    async def answer(self, question: Question) -> Mapping[str, Any]:  # noqa: ARG002 - the point's signature
        """Raises the error."""
        raise self._error


class State(TypedDict, total=False):
    """The state of the graph; `found` is what the handler answered."""

    question: Question
    found: Mapping[str, Any]


async def run_workflow(state: State, runtime: Runtime[Context]) -> State:
    """Has the handler answer.

    Raises:
        TypeError: what it gives is no answer.
    """
    found = await runtime.context.handler.answer(state["question"])
    if not isinstance(found, Mapping) or not isinstance(found.get("response"), str):
        raise TypeError(f"{type(runtime.context.handler).__name__} gave an answer without a response.")
    return {"found": found}


@cache
def _graph() -> CompiledStateGraph[State, Context, State, State]:
    graph = StateGraph(State, context_schema=Context)
    graph.add_node(_NODE, run_workflow)
    graph.add_edge(START, _NODE)
    graph.add_edge(_NODE, END)
    return graph.compile()


class WorkflowFlow:
    """Implements `Flow` for the questions that one of `handlers` claims.

    Args:
        routing_mode: the mode that answers name when the request names none; it has no effect here.
        deadline_s: seconds for one question.
    """

    name = "workflow"
    faces: Mapping[str, Face] = {_NODE: _FACE}
    last_node = _NODE
    most_steps = 1

    def __init__(self, handlers: Sequence[WorkflowHandler], *, routing_mode: str, deadline_s: float) -> None:
        self._handlers = tuple(handlers)
        self._routing_mode = routing_mode
        self.deadline_s = deadline_s

    @property
    def graph(self) -> CompiledStateGraph[State, Context, State, State]:
        """Compiled once for the process."""
        return _graph()

    def claims(self, question: Question) -> bool:
        """Whether a handler answers the question."""
        return self._handler(question) is not None

    def _handler(self, question: Question) -> WorkflowHandler | None:
        """The handler that claims the question. One that fails to say whether it does counts as claiming it, so that
        nobody answers in its place."""
        for handler in self._handlers:
            try:
                if handler.claims(question):
                    return handler
            except Exception as exc:  # noqa: BLE001 - an extension may raise anything
                return _Failed(exc)
        return None

    def start(self, question: Question) -> State:
        """See `Flow.start`."""
        return {"question": question}

    def context(self, question: Question, write: Write) -> Context:  # noqa: ARG002
        """See `Flow.context`."""
        handler = self._handler(question)
        assert handler is not None, "only claimed questions come here"
        return Context(handler)

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The steps, and the SQL of a report that was run."""
        found = cast(State, state).get("found", {})
        return {"execution_path": ["start"]} | ({"sql": found["sql"]} if "sql" in found else {})

    def ending(self, state: Mapping[str, Any]) -> Answer | Failure:
        """The answer, with the keys that every answer has."""
        question, found = cast(State, state)["question"], cast(State, state)["found"]
        kind = "DATABASE" if "query_result" in found else "CHAT"
        return Answer(
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

    def turn(self, question: Question, state: Mapping[str, Any], answer: Answer) -> Turn | None:  # noqa: ARG002
        """Rows belong to the conversation, so that the next question can be about them; other answers don't.

        The question only names what was run, so nobody is to read out of it what that was.
        """
        return turn_of(question, answer.body, {}) if "query_result" in answer.body else None
