"""All tools, and the one way to call them: permission, arguments, transforms, execution, audit."""

import asyncio
import logging
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from pydantic import ValidationError

from agent.extensions.points import (
    HOOK_S,
    UNOBSERVED,
    FailedCall,
    LifecycleHook,
    ObservabilityProvider,
    Recovery,
    RecoveryStrategy,
)
from agent.question import Question
from agent.tools.tool import (
    Arguments,
    Tool,
    ToolContext,
    ToolFindings,
    ToolResult,
    failed_result_of,
)
from common.actor import Actor
from common.audit import Audit, CallOutcome, Occasion
from common.errors import Cancelled, CituError, Forbidden, InternalError
from common.ports import Database
from common.text import Text
from knowledge.language.safe_text import one_line
from llm import InvalidArguments, ToolCall

A = TypeVar("A", bound=Arguments)
_log = logging.getLogger(__name__)

_UNKNOWN = "unknown_tool"
NOT_OFFERED = "not_offered"
"""The error type of a call that was not possible when it was made; the same call may be later."""

_INVALID = "invalid_arguments"
_REFUSALS = frozenset({_UNKNOWN, NOT_OFFERED, _INVALID, Forbidden.error_type})
_NOT_NOW = Text("现在不能使用这个工具", "This tool can't be called now")
_UNKNOWN_SUMMARY = Text("没有这个工具", "There is no such tool")
_INVALID_SUMMARY = Text("参数无效", "The arguments are not valid")
_BROKEN = Text("工具运行出错", "The tool failed")
_MOST_PROBLEMS = 5  # of the arguments, that the model is told
_MOST_LOCATION = 80  # characters of the name of an argument

_MOST_ATTEMPTS = 3  # of one call, whatever strategies say
_MOST_PAUSE_S = 5.0
_MOST_ADVICE = 500  # characters
# Nobody may get around a refusal by trying again.
_FINAL = frozenset({Forbidden.error_type, Cancelled.error_type})


@runtime_checkable
class ArgumentTransform(Protocol):
    """Changes the arguments of a call for the next transform, or refuses it."""

    async def __call__(
        self, tool: Tool[Any], arguments: Arguments, context: ToolContext, /
    ) -> Arguments:
        """Return the arguments, of the tool's own class. Raise `Forbidden` to refuse the call."""


@dataclass(frozen=True)
class Use:
    """The question that a call belongs to.

    Attributes:
        occasion: the question's occasion, with what enrichers add; the call's own has tool and call
            id as well.
        found: see `ToolContext`.
    """

    question: Question
    occasion: Occasion
    found: Mapping[str, ToolFindings] = field(default_factory=dict)


@dataclass(frozen=True)
class _PreparedCall:
    tool: Tool[Any]
    arguments: Arguments
    context: ToolContext


@dataclass
class _Outcome:
    """The end of a tool's run; until it is known, that of one that broke."""

    error_type: str | None = InternalError.error_type


class ToolRegistry:
    """The tools of a service.

    Args:
        open_database: gives the datasource for an occasion; its statements are audited.
        audit: takes note of every call, also of those that are refused.
        transforms: run on every call before its tool.
        hooks: are told of every call with valid arguments.
        strategies: are asked about every call that has failed.

    Raises:
        ValueError: two tools have one name.
    """

    def __init__(
        self,
        tools: Sequence[Tool[Any]],
        open_database: Callable[[Occasion], Database],
        audit: Audit,
        transforms: Sequence[ArgumentTransform] = (),
        *,
        hooks: Sequence[LifecycleHook] = (),
        strategies: Sequence[RecoveryStrategy] = (),
        observer: ObservabilityProvider = UNOBSERVED,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            raise ValueError("Two tools have the same name.")

        self._open_database = open_database
        self._audit = audit
        self._transforms = tuple(transforms)
        self._hooks = tuple(hooks)
        self._strategies = tuple(strategies)
        self._observer = observer

    def changed(
        self,
        *,
        without: Collection[str] = (),
        more: Sequence[Tool[Any]] = (),
        transforms: Sequence[ArgumentTransform] = (),
    ) -> "ToolRegistry":
        """Return a registry without some of the tools and with others, for a flow or a question.

        Args:
            transforms: run after those that there are.

        Raises:
            ValueError: as the class.
        """
        remaining = [tool for tool in self._tools.values() if tool.name not in without]
        return ToolRegistry(
            [*remaining, *more],
            self._open_database,
            self._audit,
            (*self._transforms, *transforms),
            hooks=self._hooks,
            strategies=self._strategies,
            observer=self._observer,
        )

    def find(self, name: str, actor: Actor) -> Tool[Any] | None:
        """Return the tool of that name; None if there is none or the actor may not call it."""
        tool = self._tools.get(name)
        if tool is None or not tool.is_allowed(actor.groups):
            return None

        return tool

    def groups(self, name: str) -> frozenset[str]:
        """Return who may call the tool of that name; nobody, if there is none.

        Tools of a flow that do the same take these groups.
        """
        tool = self._tools.get(name)
        return tool.groups if tool is not None else frozenset()

    def allowed(self, actor: Actor) -> tuple[Tool[Any], ...]:
        """Return the tools that the actor may call."""
        return tuple(tool for tool in self._tools.values() if tool.is_allowed(actor.groups))

    async def execute(
        self, call: ToolCall, use: Use, offered: Collection[str] | None = None
    ) -> ToolResult:
        """Return the result of the call; a failure is a result, too.

        A tool that does not exist and one that the actor may not call get the same answer.

        Args:
            offered: names of the tools that the model was offered; a call of another is not run.
                None: all.

        Raises:
            asyncio.CancelledError: the question was cancelled; the call is noted.
        """
        occasion = replace(use.occasion, tool=call.name, call_id=call.id)
        started = time.perf_counter()
        prepared = self._prepared(call, use, occasion, offered)
        if isinstance(prepared, ToolResult):
            self._note(call, occasion, started, prepared.error_type)
            return prepared

        for attempt in range(1, _MOST_ATTEMPTS + 1):
            result = await self._attempted(call, prepared, occasion, started)
            recovery = await self._recovery(prepared, result, attempt)
            if recovery is None:
                return result
            if recovery.advice:
                advice = one_line(recovery.advice, _MOST_ADVICE)
                result = replace(result, text=f"{result.text}\n{advice}")
            if not recovery.is_retried or attempt == _MOST_ATTEMPTS:
                return result

            await asyncio.sleep(min(max(recovery.pause_s, 0.0), _MOST_PAUSE_S))
            started = time.perf_counter()
            if recovery.arguments is not None:
                call = replace(call, arguments=recovery.arguments)
                again = parsed_arguments(prepared.tool, call)
                if isinstance(again, ToolResult):
                    _log.error("a recovery strategy gave arguments that are not valid")
                    return result

                prepared = replace(prepared, arguments=again)

        return result

    async def _attempted(
        self, call: ToolCall, prepared: "_PreparedCall", occasion: Occasion, started: float
    ) -> ToolResult:
        """Run the tool once, and note it."""
        tool, context = prepared.tool, prepared.context
        try:
            arguments = await self.transformed(tool, prepared.arguments, context)
            async with self._observed(tool, arguments, context) as outcome:
                result: ToolResult = await tool.run(context, arguments)
                outcome.error_type = result.error_type
        except CituError as error:
            result = failed_result_of(error)
        except asyncio.CancelledError:
            self._note(call, occasion, started, Cancelled.error_type)
            raise
        except Exception:  # noqa: BLE001 - the model must get a result for each of its calls
            run_id = context.question.run_id
            _log.exception("a tool failed", extra={"tool": tool.name, "run_id": run_id})
            result = _broken_tool()

        self._note(call, occasion, started, result.error_type)
        return result

    async def _recovery(
        self, prepared: "_PreparedCall", result: ToolResult, attempt: int
    ) -> Recovery | None:
        """Return what the first strategy that knows says about a failure."""
        if result.error_type is None or result.error_type in _FINAL:
            return None

        failure = FailedCall(
            prepared.tool.name,
            prepared.arguments.model_dump(),
            result.error_type,
            result.text,
            attempt,
            prepared.context.question,
        )
        for strategy in self._strategies:
            try:
                recovery = await strategy.recover(failure)
            except Exception:  # noqa: BLE001 - the failure stays what it is
                _log.exception("a recovery strategy failed", extra={"tool": failure.tool})
                continue

            if recovery is not None:
                return recovery

        return None

    async def transformed(self, tool: Tool[A], arguments: A, context: ToolContext) -> A:
        """Return the arguments as all transforms leave them.

        A tool that does a part of what `tool` does may call it for its own arguments.

        Raises:
            CituError: a transform refuses the call.
        """
        changed: Arguments = arguments
        for transform in self._transforms:
            changed = await transform(tool, changed, context)

        return cast(A, changed)

    def _prepared(
        self, call: ToolCall, use: Use, occasion: Occasion, offered: Collection[str] | None
    ) -> "_PreparedCall | ToolResult":
        """Return the call with its tool and arguments, or the result that refuses it."""
        tool = self.find(call.name, use.question.actor)
        if tool is None:
            return self._unknown_tool(use.question.actor)
        if offered is not None and call.name not in offered:
            return _not_now(call, offered)

        arguments = parsed_arguments(tool, call)
        if isinstance(arguments, ToolResult):
            return arguments

        database = self._open_database(occasion)
        context = ToolContext(use.question, call.id, database, use.found, occasion.metadata)
        return _PreparedCall(tool, arguments, context)

    @asynccontextmanager
    async def _observed(
        self, tool: Tool[Any], arguments: Arguments, context: ToolContext
    ) -> AsyncIterator["_Outcome"]:
        """Tell hooks before the tool runs in this context, where they may stop it, and after."""
        for hook in self._hooks:
            await hook.before_tool(context.question, tool.name, arguments.model_dump())

        outcome = _Outcome()
        try:
            with self._observer.span("tool", {"tool": tool.name, "call_id": context.call_id}):
                yield outcome
        except CituError as error:
            outcome.error_type = error.error_type
            raise
        except asyncio.CancelledError:
            outcome.error_type = Cancelled.error_type
            raise
        finally:
            await self._ended(context.question, tool.name, outcome.error_type)

    async def _ended(self, question: Question, name: str, error_type: str | None) -> None:
        """Tell hooks that the tool has run; an error or a slow hook changes nothing any more."""
        for hook in self._hooks:
            try:
                async with asyncio.timeout(HOOK_S):
                    await hook.after_tool(question, name, error_type)
            except Exception:  # noqa: BLE001 - the result is there
                _log.exception("a hook failed after a tool", extra={"tool": name})

    def note_refused(self, call: ToolCall, occasion: Occasion, error_type: str) -> None:
        """Note a call that is not run: it is one too many, or was made before.

        Args:
            occasion: the occasion of the question.
        """
        called = replace(occasion, tool=call.name, call_id=call.id)
        self._audit.record_call(called, _arguments(call), CallOutcome("refused", 0.0, error_type))

    def _unknown_tool(self, actor: Actor) -> ToolResult:
        names = _name_list(tool.name for tool in self.allowed(actor))
        return ToolResult(f"There is no such tool. Tools: {names}.", _UNKNOWN_SUMMARY, _UNKNOWN)

    def _note(
        self, call: ToolCall, occasion: Occasion, started: float, error_type: str | None
    ) -> None:
        milliseconds = round((time.perf_counter() - started) * 1000, 1)
        self._audit.record_call(
            occasion, _arguments(call), CallOutcome.of(error_type, milliseconds, _REFUSALS)
        )


def _arguments(call: ToolCall) -> Any:
    """Return the arguments as the model gave them."""
    if isinstance(call.arguments, InvalidArguments):
        return call.arguments.text

    return dict(call.arguments)


def _name_list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def parsed_arguments(tool: Tool[Any], call: ToolCall) -> Arguments | ToolResult:
    """Return the arguments as the tool takes them, or the result that says what is wrong."""
    if isinstance(call.arguments, InvalidArguments):
        return _invalid(call.arguments.problem)

    try:
        arguments: Arguments = tool.arguments.model_validate(call.arguments)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)[:_MOST_PROBLEMS]
        return _invalid(
            "; ".join(f"{_location(problem['loc'])}: {problem['msg']}" for problem in problems)
        )

    return arguments


def _location(loc: Sequence[int | str]) -> str:
    """Return where a problem is; unknown arguments' names are the model's own and may be long."""
    return one_line(".".join(map(str, loc)), _MOST_LOCATION) or "arguments"


def _not_now(call: ToolCall, offered: Collection[str]) -> ToolResult:
    name = one_line(call.name, _MOST_LOCATION)
    message = f"{name} can't be called now. Call one of: {_name_list(offered)}."
    return ToolResult(message, _NOT_NOW, NOT_OFFERED)


def _broken_tool() -> ToolResult:
    return ToolResult("internal_error: the tool failed.", _BROKEN, InternalError.error_type)


def _invalid(problem: str) -> ToolResult:
    return ToolResult(f"The arguments are not valid: {problem}", _INVALID_SUMMARY, _INVALID)
