"""Runs a flow: one question in, events out.

`Runner.answer` never raises and ends in exactly one last event, whatever the graph does: an answer,
an error, or a question to the user; the run goes on when they answer. It catches every exception,
because a client must always get its last event.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command, Interrupt, StreamMode

from agent.budgets.daily_budget import DailyBudget, open_budget
from agent.database_choice import DatabaseDoubt
from agent.extensions.answer_cards import with_cards
from agent.extensions.points import (
    HOOK_S,
    UNOBSERVED,
    EndedRun,
    LifecycleHook,
    ObservabilityProvider,
    ResultRenderer,
)
from agent.flows.flow import (
    Flow,
    FlowFailure,
    StepDescription,
    checkpointer_of,
    graph_version,
)
from agent.flows.step_spans import steps_spanned_by
from agent.flows.stored_turns import failed_turn
from agent.flows.workflow_flow import WorkflowFlow
from agent.progress import StepResult, ToolCallStatus, ToolStep
from agent.question import Question
from agent.runs.events import Event
from agent.runs.pauses import Beginning, Pause, Resumption, mark_of
from common import timestamps
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
    StateLost,
)
from common.logs import request_id
from common.runtime import is_ending
from common.text import Text
from common.values import Usage

_log = logging.getLogger(__name__)

_MODES: Sequence[StreamMode] = ("tasks", "values")
_WHOLE = "__root__"  # LangGraph's name for a state that is one channel
_DONE = Text("处理完成", "Done")
_WRITING = Text("正在输出", "Writing")
_FOUND = Text("中间结果", "Rows on the way")
_WHICH_DATABASE = "database"  # stands for a graph's interrupt where none has begun
_WAITING = Text("等待您的回答", "Waiting for your answer")
_TOO_LONG = Text(
    "处理时间超过上限，请缩小查询范围后重试。",
    "The request took longer than allowed; narrow the question and try again.",
)


ChooseDatabase = Callable[[Question], Awaitable[Question | DatabaseDoubt]]
"""Gives the question with the database that it is about, or what has to be asked about that."""


async def as_it_is(question: Question) -> Question | DatabaseDoubt:
    """Return the question, where there is but one database."""
    return question


Show = Callable[[Event], None]
"""Takes each event when it happens; called on the event loop."""


class Runner:
    """Answers questions by flows.

    Args:
        flows: by name, as requests give it.
        default: the name of the flow for requests that name none.
        workflow: answers the questions that it claims, whatever flow they name.
        hooks: are told when a question begins and ends.
        choose: decides which database a question is about.
        budget: what models may cost; None: as much as they do.
        callbacks: are told of each graph's run and of its nodes.
        renderers: add cards to answers.
    """

    def __init__(
        self,
        flows: Mapping[str, Flow],
        default: str,
        *,
        workflow: WorkflowFlow | None = None,
        hooks: Sequence[LifecycleHook] = (),
        observer: ObservabilityProvider = UNOBSERVED,
        choose: ChooseDatabase = as_it_is,
        budget: DailyBudget | None = None,
        callbacks: Sequence[BaseCallbackHandler] = (),
        renderers: Sequence[ResultRenderer] = (),
    ) -> None:
        self._flows = flows
        self._default = default
        self._workflow = workflow
        self._hooks = tuple(hooks)
        self._observer = observer
        self._choose = choose
        self._budget = budget
        self._callbacks = tuple(callbacks)
        self._renderers = tuple(renderers)

    def keeps_state(self, question: Question) -> bool:
        """Tell whether the question's graph keeps its state in the store while it runs."""
        return checkpointer_of(self._flow_of(question)) is not None

    def beginning_of(self, question: Question) -> Beginning | None:
        """Return what is kept of the question if its run outlives its worker, else None."""
        flow = self._flow_of(question)
        if flow.durability is None:
            return None

        return Beginning(replace(question, agent=flow.name), graph_version(flow))

    def agent_of(self, question: Question) -> str:
        """Return the name of the flow that answers the question."""
        return self._flow_of(question).name

    def knows(self, flow: str) -> bool:
        """Tell whether there is a flow of that name."""
        return flow in self._flows

    def can_go_on(self, flow: str, version: str | None) -> bool:
        """Tell whether there is a flow of that name, whose graph goes on where `version` stopped.

        Args:
            version: None of runs that an older version of the service began.
        """
        known_flow = self._flows.get(flow)
        if known_flow is None:
            return False
        if version is None or version == graph_version(known_flow):
            return True

        return known_flow.durability is not None and version in known_flow.durability.fitting

    def _flow_of(self, question: Question) -> Flow:
        if self._workflow is not None and self._workflow.claims(question):
            return self._workflow

        return self._flows[question.agent or self._default]

    async def answer(
        self, question: Question, show: Show, resumed: Resumption | Beginning | None = None
    ) -> None:
        """Show events while the question is answered; never raise, end in exactly one last event.

        The last event is shown as soon as the last node is done, before the graph cleans up.
        Cancelling the task stops the model call and the SQL; the last event then says `cancelled`.

        Args:
            resumed: the answer with which a waiting run goes on, or the beginning of a run whose
                worker died before it asked anything; None for a new run.
        """

        async def end(event: Event) -> None:
            if event.type == "completed" and self._renderers:
                content = with_cards(event.content, self._renderers, question)
                event = replace(event, content=content)

            try:
                self._measure(run)
                if event.is_terminal:
                    await self._ended(run, question, event)
            finally:
                show(event)

            # Let the loop render the frames, then send them.
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        flow = self._flow_of(question)
        timings_ms: Mapping[str, float] = {}
        is_new = resumed is None
        if isinstance(resumed, Resumption):
            timings_ms = resumed.pause.timings_ms
            resumed, question = _with_database(resumed, question, flow)

        run = _Run(flow, question, show, end, timings_ms, self._observer)
        error: CituError | None = None
        try:
            async with asyncio.timeout(flow.deadline_s):
                await self._begin(question, is_new=is_new)
                chosen = await self._choose(question)
                if isinstance(chosen, DatabaseDoubt):
                    await end(run.asked_for_database(chosen))
                    return

                if chosen is not question:
                    question = chosen
                    flow = self._flow_of(question)
                    run = _Run(flow, question, show, end, timings_ms, self._observer)

                await self._observed(run, question, resumed)
        # A client must always get its last event.
        except (asyncio.CancelledError, Exception) as exc:  # noqa: BLE001
            error = _shown_error(exc, question.run_id, run.node)

        if error is not None and not run.is_over:
            await end(run.failed(error, run.node))

    async def _observed(
        self, run: "_Run", question: Question, resumed: Resumption | Beginning | None
    ) -> None:
        """Run the flow within a span, and each of its steps."""
        observer, flow = self._observer, run.flow_name
        if observer is UNOBSERVED:
            await run.go(resumed, self._callbacks)
            return

        def step(node: str) -> AbstractContextManager[None]:
            return observer.span("step", {"agent": flow, "node": node})

        about = {"agent": flow, "run_id": question.run_id}
        with observer.span("question", about), steps_spanned_by(step):
            await run.go(resumed, self._callbacks)

    def _measure(self, run: "_Run") -> None:
        """Report how long each step took."""
        for node, milliseconds in run.steps_ms.items():
            about = {"agent": run.flow_name, "node": node}
            self._observer.metric("node_seconds", milliseconds / 1000, about)

    async def _begin(self, question: Question, *, is_new: bool) -> None:
        """Let the budget, and hooks where it is new, stop a question before anything is done."""
        if self._budget is not None:
            await self._budget.begin(question)
        if is_new:
            for hook in self._hooks:
                await hook.before_question(question)

    async def _ended(self, run: "_Run", question: Question, event: Event) -> None:
        """Tell hooks that the question has ended; their errors change nothing any more."""
        if not self._hooks:
            return

        error_type = event.data.get("error_type") if event.type == "error" else None
        ended = EndedRun(error_type, run.milliseconds, run.flow_name)
        for hook in self._hooks:
            try:
                async with asyncio.timeout(HOOK_S):
                    await hook.after_question(question, ended)
            except Exception:  # noqa: BLE001 - the answer is there
                _log.exception(
                    "a hook failed after the question", extra={"run_id": question.run_id}
                )


@dataclass(frozen=True)
class _Finished:
    """A node that is done. It is shown when the graph's state includes its update."""

    name: str
    update: Mapping[str, Any]


class _Run:
    """One question in a graph: keeps the graph's latest state and makes events from it."""

    def __init__(
        self,
        flow: Flow,
        question: Question,
        show: Show,
        end: Callable[[Event], Awaitable[None]],
        timings_ms: Mapping[str, float],
        observer: ObservabilityProvider,
    ) -> None:
        """Take the flow's first state and the ways to show what happens.

        Args:
            end: shows the last event.
            timings_ms: how long its nodes took before the run waited for the user.
        """
        self._flow = flow
        self._observer = observer
        self._question = question
        self._show = show
        self._end = end
        self._state: Mapping[str, Any] = flow.start(question)
        self._lang = question.answer_lang
        self._current_step = "start"
        self._earlier_ms = timings_ms
        self._timings_ms: dict[str, float] = {}
        self._askers: dict[str, str] = {}  # nodes by the ids of their interrupts
        self._started = self._node_started = time.perf_counter()
        self._finished: list[_Finished] = []
        self.node: str | None = None
        self.is_over = False

    async def go(
        self,
        resumed: Resumption | Beginning | None,
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> None:
        """Run the graph, showing its progress and the last event; raise what nodes raise."""
        config, begin = await self._beginning(resumed)
        if callbacks:
            config["callbacks"] = list(callbacks)

        interrupts: tuple[Interrupt, ...] = ()
        parts = self._flow.graph.astream(
            begin,
            config,
            context=self._flow.context(self._question, self._write),
            stream_mode=_MODES,
            version="v2",
            # "sync": the interrupt must be kept before the client hears of the question.
            durability="sync" if checkpointer_of(self._flow) is not None else None,
        )
        async for part in parts:
            if part["type"] == "values":
                self._state = cast(Mapping[str, Any], part["data"])
                interrupts = interrupts or part["interrupts"]
                await self._steps_done()
            elif (progress := self._task(cast(dict[str, Any], part["data"]))) is not None:
                self._show(progress)

        if not self.is_over:
            self.is_over = True
            # Without an interrupt, the graph had ended before: its worker died before it could send
            # the last event.
            await self._end(
                await self._asked(interrupts[0], resumed, config)
                if interrupts
                else self._terminal()
            )

    async def _beginning(
        self, resumed: Resumption | Beginning | None
    ) -> tuple[RunnableConfig, Any]:
        """Return the graph's configuration and input.

        The input is the question, an answer, or None to go on from its checkpoint.
        """
        saver = checkpointer_of(self._flow)
        # LangGraph counts a step more than there are nodes.
        config: RunnableConfig = {"recursion_limit": self._flow.most_steps + 1}
        if saver is None:
            return config, self._state

        config["configurable"] = {"thread_id": self._question.run_id}
        if resumed is None:
            return config, self._state
        if isinstance(resumed, Beginning):
            has_begun = await self._has_begun(saver, config)
            return config, None if has_begun else self._state

        mark = await mark_of(saver, config)
        if not mark:
            raise StateLost  # with the answers that the user gave before
        if resumed.pause.mark == mark:
            return config, Command(resume={resumed.pause.graph_interrupt: resumed.answer})

        # The graph has the answer already: another worker gave it before it died.
        return config, None

    async def _has_begun(self, saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> bool:
        """Tell whether there is a checkpoint to go on from; delete what is left of a broken one.

        There is none if its worker died before the first node began.
        """
        try:
            return await saver.aget_tuple(config) is not None
        except StateLost:
            # Its user has answered nothing yet, so the question begins it anew.
            await saver.adelete_thread(self._question.run_id)
            return False

    @property
    def flow_name(self) -> str:
        """Return the flow that answers."""
        return self._flow.name

    @property
    def steps_ms(self) -> Mapping[str, float]:
        """Return the milliseconds of each step since the question, or the user's answer, came."""
        return self._timings_ms

    @property
    def milliseconds(self) -> float:
        """Return the milliseconds since the question, or the user's answer, came."""
        return _milliseconds_since(self._started)

    async def _steps_done(self) -> None:
        """Show the nodes whose updates the state has now, and the run's end after the last node."""
        finished, self._finished = self._finished, []
        for node in finished:
            label = self._flow.labels[node.name]
            self._current_step = label.done
            status: Literal["failed", "done"] = (
                "failed" if label.has_failed(node.update) else "done"
            )
            self._show(self._progress(node.name, status, partial(label.describe, node.update)))
            if node.name == self._flow.last_node:
                self.is_over = True
                await self._end(self._terminal())

    def _terminal(self) -> Event:
        ending = self._flow.ending(self._state)
        if isinstance(ending, FlowFailure):
            return self.failed(ending.error, ending.node)

        body = ending.body
        notices = [notice.to(self._lang) for notice in self._question.notices]
        data = {
            **body,
            **self._ids(),
            "agent": self._flow.name,
            "warnings": list(dict.fromkeys([*notices, *body.get("warnings", ())])),
            **self._database(),
            **self._usage(body),
            "timings_ms": self._all_timings(),
            "timestamp": timestamps.now(),
        }
        turn = self._flow.turn(self._question, self._state, ending)
        if turn is not None:
            turn = replace(turn, database=self._question.database)

        return Event("completed", _DONE.to(self._lang), lambda: data, turn=turn)

    def _all_timings(self) -> dict[str, float]:
        """Return milliseconds per node and in total; a node that asked the user counts twice."""
        now = {**self._timings_ms, "total": _milliseconds_since(self._started)}
        names = dict.fromkeys([*self._earlier_ms, *now])
        del names["total"]
        return {
            name: round(self._earlier_ms.get(name, 0.0) + now.get(name, 0.0), 1)
            for name in [*names, "total"]
        }

    def failed(self, error: CituError, node: str | None) -> Event:
        """Return the last event of a question that ends in `error`."""
        data = {
            **error_data(error, self._lang),
            "node": node,
            **self._ids(),
            "request_id": request_id.get(),
            "state_summary": {
                "current_step": self._current_step,
                **self._flow.summary(self._state),
            },
            **self._database(),
            "timestamp": timestamps.now(),
        }
        question, message = self._question, error.title.to(self._lang)
        turn = failed_turn(question.run_id, question.question, question.asked_at, message, data)
        turn = replace(turn, database=question.database)
        return Event("error", message, lambda: data, error.code, turn=turn)

    async def _asked(
        self, asked: Interrupt, resumed: Resumption | Beginning | None, config: RunnableConfig
    ) -> Event:
        """Return the last event of a run that waits for the user."""
        saver = checkpointer_of(self._flow)
        assert saver is not None, "only a graph with a checkpointer can be interrupted"
        answers = resumed.pause.answers + 1 if isinstance(resumed, Resumption) else 0
        question = replace(self._question, agent=self._flow.name)
        pause = Pause(
            question,
            asked.id,
            answers,
            await mark_of(saver, config),
            self._all_timings(),
            graph_version(self._flow),
        )
        data = {
            **asked.value,
            "interrupt_id": pause.interrupt_id,
            "node": self._askers.get(asked.id, self.node),
            **self._ids(),
            "timestamp": timestamps.now(),
            "state_summary": {
                "current_step": self._current_step,
                **self._flow.summary(self._state),
            },
        }
        return Event("question", _WAITING.to(self._lang), lambda: data, pause=pause)

    def asked_for_database(self, doubt: DatabaseDoubt) -> Event:
        """Return the last event of a run that waits to hear which database is meant."""
        question = replace(self._question, agent=self._flow.name, choice_usage=doubt.usage)
        pause = Pause(
            question, _WHICH_DATABASE, 0, "", self._all_timings(), graph_version(self._flow)
        )
        data = {
            "kind": "database",
            "prompt": doubt.prompt.to(self._lang),
            "choices": list(doubt.names),
            "interrupt_id": pause.interrupt_id,
            "node": None,
            **self._ids(),
            "timestamp": timestamps.now(),
            "state_summary": {
                "current_step": self._current_step,
                **self._flow.summary(self._state),
            },
        }
        return Event("question", _WAITING.to(self._lang), lambda: data, pause=pause)

    def _task(self, task: dict[str, Any]) -> Event | None:
        """Take LangGraph's note of a node and return the event for it, if it has one now.

        A node's start has `input`; its end has `result`, and `error` when it raised.
        """
        name = task["name"]
        label = self._flow.labels[name]
        if "input" in task:
            self.node, self._node_started = name, time.perf_counter()
            self._current_step = label.running
            return self._progress(name, "running", lambda: label.while_running)

        lasted_ms = _milliseconds_since(self._node_started)
        self._timings_ms[name] = self._timings_ms.get(name, 0.0) + lasted_ms
        about = {"agent": self._flow.name, "node": name}
        self._observer.metric("step_seconds", lasted_ms / 1000, about)
        if (error := task["error"]) is not None:
            return self._progress(name, "failed", lambda: _failure(error))

        for asked in task["interrupts"]:
            self._askers[asked["id"]] = name

        if not task["interrupts"]:
            result = task["result"]
            self._finished.append(_Finished(name, result.get(_WHOLE, result)))

        return None

    def _progress(
        self,
        node: str,
        status: ToolCallStatus,
        describe: Callable[[], StepDescription],
    ) -> Event:
        # Copy these now: the run goes on before `content` is called.
        label = self._flow.labels[node]
        state = self._state
        current_step = self._current_step
        now = timestamps.now()

        def content() -> dict[str, Any]:
            description = describe()
            return {
                "node": node,
                "status": status,
                "display_name": label.display_name.to(self._lang),
                "icon": label.icon,
                "details": description.details.to(self._lang),
                "sub_status": description.sub_status.to(self._lang),
                **self._ids(),
                "timestamp": now,
                "state_summary": {"current_step": current_step, **self._flow.summary(state)},
            }

        message = Text(
            f"正在执行: {label.display_name.zh}", f"In progress: {label.display_name.en}"
        )
        return Event("progress", message.to(self._lang), content)

    def _write(self, written: str | ToolStep | StepResult) -> None:
        """Show what a node writes while it runs."""
        if not self.is_over:
            self._show(self._event_of(written))

    def _event_of(self, written: str | ToolStep | StepResult) -> Event:
        if isinstance(written, ToolStep):
            return self._tool(written)
        if isinstance(written, StepResult):
            return self._result(written)

        data = {"node": self.node, "text": written, **self._ids()}
        return Event("token", _WRITING.to(self._lang), lambda: data)

    def _tool(self, step: ToolStep) -> Event:
        data = {
            "node": self.node,
            "call_id": step.call_id,
            "name": step.name,
            "display_name": step.display_name.to(self._lang),
            "arguments": dict(step.arguments),
            "status": step.status,
            "ms": step.milliseconds,
            "summary": step.summary.to(self._lang) if step.summary else None,
            **self._ids(),
            "timestamp": timestamps.now(),
        }
        message = Text(f"工具: {step.display_name.zh}", f"Tool: {step.display_name.en}")
        return Event("tool", message.to(self._lang), lambda: data)

    def _result(self, result: StepResult) -> Event:
        data = {
            "node": self.node,
            "call_id": result.call_id,
            "sql": result.sql,
            **result.shown,
            **self._ids(),
            "timestamp": timestamps.now(),
        }
        return Event("result", _FOUND.to(self._lang), lambda: data)

    def _usage(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the use of the model, with what the choice of the database took and what is left
        of the user's budget.
        """
        if "usage" not in body:
            return {}

        usage = asdict(Usage(**body["usage"]) + self._question.choice_usage)
        budget = open_budget()
        left = budget.left() if budget is not None else None
        if left is not None:
            usage["budget"] = left

        return {"usage": usage}

    def _database(self) -> dict[str, Any]:
        """Return which database was asked and why; nothing where there is but one."""
        question = self._question
        if question.database_choice is None:
            return {}

        return {"database": {"name": question.database, "source": question.database_choice}}

    def _ids(self) -> dict[str, str]:
        return {"conversation_id": self._question.conversation_id, "run_id": self._question.run_id}


def _with_database(
    resumed: Resumption, question: Question, flow: Flow
) -> tuple[Resumption | Beginning, Question]:
    """Return how the run goes on, and its question with the database if the user was asked for it.

    The graph had not begun when that was asked; it has if another worker died after the answer.
    """
    if resumed.pause.graph_interrupt != _WHICH_DATABASE:
        return resumed, question

    question = replace(resumed.question, database=resumed.answer, database_choice="user")
    return Beginning(question, graph_version(flow)), question


def _shown_error(exc: BaseException, run_id: str, node: str | None) -> CituError:
    """Return the error that the user is told; log the exception when it is a bug."""
    if isinstance(exc, TimeoutError):
        return QueryTimeout(_TOO_LONG)
    if isinstance(exc, asyncio.CancelledError):
        if is_ending():
            return ServiceEnding(ENDING_TEXT)

        return Cancelled(CANCELLED_TEXT)

    if isinstance(exc, CituError):
        return exc

    _log.error("unexpected failure", exc_info=exc, extra={"run_id": run_id, "node": node})
    return InternalError(INTERNAL_ERROR_TEXT)


def _failure(error: BaseException) -> StepDescription:
    if isinstance(error, CituError):
        return StepDescription(error.title, error.text)

    return StepDescription(InternalError.title, INTERNAL_ERROR_TEXT)


def _milliseconds_since(start: float) -> float:
    return round((time.perf_counter() - start) * 1000, 1)
