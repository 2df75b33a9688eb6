"""One question with tools: flows ask the model and call tools through it, within its limits.

It lives as long as the run and is kept nowhere: after a cut or a cancellation nothing of it can
come into a later question.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from agent.progress import ToolStep, Write
from agent.question import Question
from agent.thinking.llm.reasoning import visible_text
from agent.tools.registry import NOT_OFFERED, ToolRegistry, Use
from agent.tools.tool import ToolFindings, ToolResult, rows_event
from agent.tools.tool_limits import SpentBudget, ToolLimits
from agent.tools.transcript import Transcript
from common.audit import Occasion
from common.errors import LlmUnavailable
from common.text import Text
from common.values import Usage
from knowledge.language.safe_text import one_line
from llm import ChatModel, Completion, InvalidArguments, OnToken, ToolCall, ToolOffer
from llm.call_failures import CallFailed, is_unusable, unavailable

_MOST_SHOWN = 500  # characters of one argument that the user is shown
_MOST_ARGUMENTS = 20  # shown; tools take fewer, but models may make some up
_MOST_NAME = 80  # characters of a name that a model made up
_LIMIT = "limit_reached"
_SAME = "repeated"
_MOST_OF_TOOL = Text(
    "工具 {} 在一次提问中最多调用 {} 次。", "{} may be called {} times for one question."
)
_REPEATED = Text("与之前的调用相同，沿用其结果", "The same as an earlier call; its result stands")


class LimitReached(Exception):
    """The question has used as much as it may; `text` says of what."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


class ToolSession:
    """The state of one question in a flow with tools.

    Args:
        occasion: the occasion of the question, for the audit log.
        spent: what was used for the question before.
        clock: seconds, monotonic.

    Attributes:
        found: rows, by the ids of the calls that found them, oldest first.
        results: what each call gave that was not a repetition, by its id, oldest first.
        shown: charts, files and the like for the body of the answer; see `ToolResult`.
    """

    def __init__(
        self,
        question: Question,
        occasion: Occasion,
        model: ChatModel,
        limits: ToolLimits,
        *,
        spent: SpentBudget = SpentBudget(),  # noqa: B008 - it can't change
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.question = question
        self.occasion = occasion
        self.found: dict[str, ToolFindings] = {}
        self.results: dict[str, ToolResult] = {}
        self.shown: dict[str, Any] = {}
        self.spent = spent
        self._model = model
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self._first_calls: dict[str, str] = {}  # ids by what was called
        self._calls_of: Counter[str] = Counter()  # by the names of tools that limit them

    @property
    def usage(self) -> Usage:
        """Return the calls and tokens of the model so far."""
        return self.spent.usage

    @property
    def is_last_model_call(self) -> bool:
        """Tell whether the model may be called once more, and then never again."""
        return self.usage.llm_calls == self._limits.model_calls - 1

    def spend(self, usage: Usage) -> None:
        """Add calls of the model that were made elsewhere for this question."""
        self.spent = self.spent.with_model(usage)

    def limit_before_model(self) -> Text | None:
        """Return why the model may not be called again; None: it may."""
        return self.spent.before_model(self._limits, self._clock() - self._began)

    def limit_before_tool(self) -> Text | None:
        """Return why no further tool may be called; None: one may."""
        return self.spent.before_tool(self._limits, self._clock() - self._began)

    async def ask(
        self,
        transcript: Transcript,
        offer: ToolOffer | None = None,
        on_token: OnToken | None = None,
        restart: Callable[[], bool] = lambda: True,
    ) -> Completion:
        """Return the model's reply; an unusable one is asked for once more.

        Unusable is a reply that is empty, nothing but reasoning, or can't be read.

        Args:
            restart: called before the second reply; tells whether `on_token` can begin anew.

        Raises:
            LimitReached: the question may not call the model again.
            LlmUnavailable: the model can't be reached, or both replies were unusable.
        """
        try:
            return await self._usable(transcript, offer, on_token)
        except LlmUnavailable as error:
            if not (is_unusable(error) and restart()):
                raise

        return await self._usable(transcript, offer, on_token)

    async def _usable(
        self, transcript: Transcript, offer: ToolOffer | None, on_token: OnToken | None
    ) -> Completion:
        reply = await self._ask_once(transcript, offer, on_token)
        if reply.tool_calls or reply.is_withheld or visible_text(reply.text, reply.reasoning):
            return reply

        empty = CallFailed("empty")
        raise unavailable(empty) from empty

    async def _ask_once(
        self, transcript: Transcript, offer: ToolOffer | None, on_token: OnToken | None
    ) -> Completion:
        limit = self.limit_before_model()
        if limit is not None:
            raise LimitReached(limit)

        try:
            reply = await self._model.complete(transcript.messages, on_token=on_token, offer=offer)
        except LlmUnavailable:
            self.spend(Usage(1))
            raise

        self.spend(reply.usage)
        return reply

    async def call(
        self,
        call: ToolCall,
        registry: ToolRegistry,
        write: Write,
        offered: Collection[str],
        state: str = "",
    ) -> ToolResult:
        """Run the call and show it; refuse it when a limit is reached or it was made before.

        Args:
            offered: names of the tools that the model was offered.
            state: what the result depends on beside the arguments; calls that differ in it are not
                the same.
        """
        key = _key(call, state)
        refusal = self._refusal(call, key, registry)
        if refusal is not None:
            return refusal

        step = self._step(call, registry)
        write(step)
        began = self._clock()
        use = Use(self.question, self.occasion, self.found)
        result = await registry.execute(call, use, offered)
        self._keep(call.id, result, write)
        write(
            replace(
                step,
                status="failed" if result.error_type else "done",
                milliseconds=round((self._clock() - began) * 1000, 1),
                summary=result.summary,
            )
        )
        if result.error_type != NOT_OFFERED:  # what was not possible then may be now
            self._first_calls[key] = call.id

        return result

    def _refusal(self, call: ToolCall, key: str, registry: ToolRegistry) -> ToolResult | None:
        """Count the call; return the result of one that is not run."""
        limit = self.limit_before_tool()
        if limit is not None:
            return self._at_limit(call, registry, limit)

        self.spent = self.spent.with_tool()
        if key in self._first_calls:
            registry.note_refused(call, self.occasion, _SAME)
            return _pointed_at(self._first_calls[key])

        limit = self._limit_of_tool(call.name, registry)
        if limit is not None:
            return self._at_limit(call, registry, limit)

        return None

    def _step(self, call: ToolCall, registry: ToolRegistry) -> ToolStep:
        tool = registry.find(call.name, self.question.actor)
        name = call.name if tool else one_line(call.name, _MOST_NAME)
        display_name = tool.display_name if tool else Text(name, name)
        return ToolStep(call.id, name, display_name, _shown_arguments(call), "running")

    def leave_out(self, calls: Iterable[ToolCall], registry: ToolRegistry) -> None:
        """Note calls that a limit keeps from being run."""
        for call in calls:
            registry.note_refused(call, self.occasion, _LIMIT)

    def _at_limit(self, call: ToolCall, registry: ToolRegistry, limit: Text) -> ToolResult:
        self.leave_out([call], registry)
        return ToolResult(f"{_LIMIT}: {limit.en}", limit, _LIMIT)

    def _limit_of_tool(self, name: str, registry: ToolRegistry) -> Text | None:
        """Return why this tool may not be called again; else count the call and return None."""
        tool = registry.find(name, self.question.actor)
        if tool is None or tool.most_calls is None:
            return None
        if self._calls_of[name] >= tool.most_calls:
            return Text(
                _MOST_OF_TOOL.zh.format(name, tool.most_calls),
                _MOST_OF_TOOL.en.format(name, tool.most_calls),
            )

        self._calls_of[name] += 1
        return None

    def _keep(self, call_id: str, result: ToolResult, write: Write) -> None:
        self.results[call_id] = result
        for key, value in result.shown.items():
            if isinstance(value, list):
                value = [*self.shown.get(key, ()), *value]

            self.shown[key] = value

        if result.found is not None:
            self.found[call_id] = result.found
            write(rows_event(result.found))


def _key(call: ToolCall, state: str) -> str:
    return json.dumps([call.name, call.spelled_arguments, _text_of(call), state], sort_keys=True)


def _text_of(call: ToolCall) -> str:
    if isinstance(call.arguments, InvalidArguments):
        return call.arguments.text

    return ""


def _pointed_at(call_id: str) -> ToolResult:
    return ToolResult(
        f"This call is the same as {call_id}; use its result. It was not run again.", _REPEATED
    )


def _shown_arguments(call: ToolCall) -> Mapping[str, Any]:
    if isinstance(call.arguments, InvalidArguments):
        return {"text": _short(call.arguments.text)}

    first = islice(call.arguments.items(), _MOST_ARGUMENTS)
    return {one_line(name, _MOST_NAME): _short(value) for name, value in first}


def _short(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _MOST_SHOWN:
        return value

    return f"{text[:_MOST_SHOWN]}…"
