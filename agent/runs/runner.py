"""The agent: one question in, events out.

`process_question_stream` is the only path; `process_question` drains it. It never raises and ends in exactly one
terminal event, whatever the graph does: this file holds the one blanket catch of the project.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, cast

from langgraph.types import StreamMode

from agent.ask.context import Context
from agent.ask.faces import STEPS, Described, Step, running_message
from agent.ask.graph import LAST_NODE, compiled_graph
from agent.ask.state import Ask, State, Update, merge
from agent.runs.events import Event
from common.actor import NOBODY, Actor
from common.envelope import error_data
from common.errors import (
    CANCELLED_TEXT,
    ENDING_TEXT,
    INTERNAL_ERROR_TEXT,
    Cancelled,
    CituError,
    InternalError,
    QueryTimeout,
    ServiceEnding,
)
from common.logs import request_id
from common.runtime import is_ending
from common.text import Lang, Text, language_of
from common.values import Usage

_log = logging.getLogger(__name__)

_DONE = Text("处理完成", "Done")
_WRITING = Text("正在输出", "Writing")
_TOO_LONG = Text(
    "处理时间超过上限，请缩小查询范围后重试。",
    "The request took longer than allowed; narrow the question and try again.",
)


def new_conversation_id() -> str:
    """`citu_` + UTC yyyymmddHHMMSS + milliseconds + a random tail."""
    now = datetime.now(UTC)
    return f"citu_{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03d}{secrets.token_hex(4)}"


def new_run_id() -> str:
    """`run_` + 96 random bits."""
    return f"run_{secrets.token_hex(12)}"


@dataclass(frozen=True)
class Question:
    """One question as a caller asks it.

    Attributes:
        actor: who asks.
        continues: whether the conversation may have earlier turns.
        notices: what the answer must say about the request itself.
        lang: language of the answer; None follows the question.
        routing_mode: None takes the configured one.
        stream_tokens: whether text is emitted while it is written.
    """

    question: str
    conversation_id: str = field(default_factory=new_conversation_id)
    run_id: str = field(default_factory=new_run_id)
    actor: Actor = NOBODY
    lang: Lang | None = None
    routing_mode: str | None = None
    context_type: str | None = None
    table: str | None = None
    stream_tokens: bool = True
    continues: bool = False
    notices: tuple[Text, ...] = ()

    @property
    def owner(self) -> str:
        """Whose the conversation and the run are."""
        return self.actor.owner


class CituLangGraphAgent:
    """Answers questions by the graph.

    Args:
        new_context: makes one question's services.
        routing_mode: the mode of questions that name none.
        request_timeout_s: seconds for one question, from its first event to its last.
    """

    def __init__(
        self, new_context: Callable[[Question], Context], *, routing_mode: str, request_timeout_s: float
    ) -> None:
        self._new_context = new_context
        self._routing_mode = routing_mode
        self._request_timeout_s = request_timeout_s

    async def process_question(self, question: Question) -> Event:
        """The terminal event of the question; never raises."""
        async for event in self.process_question_stream(question):
            last = event
        return last

    async def process_question_stream(self, question: Question) -> AsyncGenerator[Event, None]:
        """Events while the question is answered; never raises, ends in exactly one terminal event.

        Cancelling the consuming task stops the model call and the SQL; the terminal event then says `cancelled`.
        """
        run = _Run(question, self._ask(question))
        error: CituError | None = None
        try:
            async with (
                asyncio.timeout(self._request_timeout_s),
                aclosing(run.events(self._new_context(question))) as events,
            ):
                async for event in events:
                    yield event
        except TimeoutError:
            error = QueryTimeout(_TOO_LONG)
        except asyncio.CancelledError:
            error = ServiceEnding(ENDING_TEXT) if is_ending() else Cancelled(CANCELLED_TEXT)
        except CituError as exc:
            error = exc
        except Exception:  # noqa: BLE001 - the one blanket catch: a client must always get its terminal event
            _log.exception("unexpected failure", extra={"run_id": question.run_id, "node": run.node})
            error = InternalError(INTERNAL_ERROR_TEXT)
        if error is not None and not run.is_over:
            yield run.failed(error)

    def _ask(self, question: Question) -> Ask:
        return {
            "question": question.question,
            "lang": question.lang or language_of(question.question),
            "routing_mode": question.routing_mode or self._routing_mode,
            "routing_mode_source": "request" if question.routing_mode else "configuration",
            "table": question.table,
            "context_type": question.context_type,
            "wants_tokens": question.stream_tokens,
            "execution_path": ["start"],
        }


class _Run:
    """One question on its way through the graph: its state so far, and the events made from it."""

    def __init__(self, question: Question, ask: Ask) -> None:
        self._question = question
        self._ask = ask
        self._state = cast(State, ask)  # every key that Update adds is optional
        self._lang = ask["lang"]
        self._current_step = "start"
        self._timings_ms: dict[str, float] = {}
        self._started = self._node_started = time.perf_counter()
        self.node: str | None = None
        self.is_over = False

    async def events(self, context: Context) -> AsyncGenerator[Event, None]:
        """Progress and tokens while the graph runs, and the terminal event as soon as its last node is done.

        Raises what nodes raise. After the terminal event the graph only clears up.
        """
        # Without "custom", which only tokens need, LangGraph runs a node in this task and not in two of its own.
        modes: list[StreamMode] = ["tasks", "custom"] if self._ask["wants_tokens"] else ["tasks"]
        parts = compiled_graph().astream(self._ask, context=context, stream_mode=modes, version="v2")
        async for part in parts:
            if part["type"] == "custom":
                yield self._token(cast(str, part["data"]))
            else:
                task = cast(dict[str, Any], part["data"])
                yield self._task(task)
                if task["name"] == LAST_NODE and "result" in task and task["error"] is None:
                    self.is_over = True
                    yield self._terminal()

    def _terminal(self) -> Event:
        error = self._state.get("error")
        return self.failed(error) if error is not None else self._completed()

    def failed(self, error: CituError) -> Event:
        """The last event of a question that ends in `error`."""
        data = {
            **error_data(error, self._lang),
            "node": self._failed_node(error),
            **self._ids(),
            "request_id": request_id.get(),
            "state_summary": _summary(self._state, self._current_step),
            "timestamp": _timestamp(time.time()),
        }
        return Event("error", error.title.to(self._lang), lambda: data, error.code)

    def _task(self, task: dict[str, Any]) -> Event:
        """A node's start has `input`; its end has `result`, and `error` when it raised."""
        step = STEPS[task["name"]]
        if "input" in task:
            self.node, self._node_started = task["name"], time.perf_counter()
            self._current_step = step.running
            return self._progress(step, "running", lambda: step.while_running)
        self._timings_ms[task["name"]] = _milliseconds_since(self._node_started)
        error, update = task["error"], cast(Update, task["result"])
        if error is not None:
            return self._progress(step, "failed", lambda: _failure(error))
        self._state = merge(self._state, update)
        self._current_step = step.done
        failed = "error" in update or update.get("sql_generation_success") is False
        return self._progress(step, "failed" if failed else "done", lambda: step.describe(update))

    def _progress(
        self, step: Step, status: Literal["running", "done", "failed"], describe: Callable[[], Described]
    ) -> Event:
        # Held fast now: the run goes on before anybody looks.
        node, state, current_step, now = self.node, self._state, self._current_step, time.time()

        def content() -> dict[str, Any]:
            said = describe()
            return {
                "node": node,
                "status": status,
                "display_name": step.display_name.to(self._lang),
                "icon": step.icon,
                "details": said.details.to(self._lang),
                "sub_status": said.sub_status.to(self._lang),
                **self._ids(),
                "timestamp": _timestamp(now),
                "state_summary": _summary(state, current_step),
            }

        return Event("progress", running_message(step, self._lang), content)

    def _token(self, text: str) -> Event:
        data = {"node": self.node, "text": text, **self._ids()}
        return Event("token", _WRITING.to(self._lang), lambda: data)

    def _completed(self) -> Event:
        found = self._state["classification"]
        data = {
            **self._state["answer"],
            **self._ids(),
            "execution_path": self._state["execution_path"],
            "classification_info": {
                "question_type": found.question_type,
                "confidence": found.confidence,
                "method": found.method,
                "reason": found.reason,
            },
            "routing_mode_used": self._state["routing_mode"],
            "routing_mode_source": self._state["routing_mode_source"],
            "sql_repair_applied": self._state.get("sql_repair_applied", False),
            "warnings": list(dict.fromkeys([*self._notices(), *self._state.get("warnings", [])])),
            "usage": dict(vars(self._state.get("usage", Usage()))),
            "timings_ms": {**self._timings_ms, "total": _milliseconds_since(self._started)},
            "timestamp": _timestamp(time.time()),
        }
        return Event("completed", _DONE.to(self._lang), lambda: data)

    def _notices(self) -> list[str]:
        return [notice.to(self._lang) for notice in self._question.notices]

    def _failed_node(self, error: CituError) -> str | None:
        # A rejected statement travels through format_response; the step that failed is the one before it.
        if self._state.get("error") is not error:
            return self.node
        return "agent_sql_execution" if self._state["sql_generation_success"] else "agent_sql_generation"

    def _ids(self) -> dict[str, str]:
        return {"conversation_id": self._question.conversation_id, "run_id": self._question.run_id}


def _summary(state: State, current_step: str) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "current_step": current_step,
        "execution_path": list(state["execution_path"]),
        "routing_mode": state["routing_mode"],
    }
    if "sql" in state:
        summary["sql"] = state["sql"]
    if "plan" in state:
        summary["plan"] = dict(vars(state["plan"]))
    if "error" in state:
        summary["validation_error_type"] = state["error"].error_type
    return summary


def _failure(error: BaseException) -> Described:
    if isinstance(error, CituError):
        return Described(error.title, error.text)
    return Described(InternalError.title, INTERNAL_ERROR_TEXT)


def _milliseconds_since(start: float) -> float:
    return round((time.perf_counter() - start) * 1000, 1)


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
