"""All tools, and the one way to call them: permission, arguments, transforms, execution, audit."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from agent.extensions.points import HOOK_S, UNOBSERVED, LifecycleHook, ObservabilityProvider
from agent.flow import Question
from agent.tools.tool import Arguments, Found, Tool, ToolContext, ToolResult, failed
from common.actor import Actor
from common.audit import Audit, CallOutcome, Occasion
from common.errors import Cancelled, CituError, Forbidden, InternalError
from common.llm import InvalidArguments, ToolCall
from common.ports import Database
from common.text import Text
from knowledge.safe_text import one_line

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
_MOST_PLACE = 80  # characters of the name of an argument

Transform = Callable[[Tool[Any], Arguments, ToolContext], Awaitable[Arguments]]
"""Changes the arguments of a call, or raises `Forbidden` to refuse it; the next transform gets what this one gave."""


@dataclass(frozen=True)
class Use:
    """What a call is made for.

    Attributes:
        occasion: of the question, with what enrichers add; the call's own has tool and call id as well.
        found: see `ToolContext`.
    """

    question: Question
    occasion: Occasion
    found: Mapping[str, Found] = field(default_factory=dict)


class ToolRegistry:
    """The tools of a service.

    Args:
        open_database: gives the asked database for an occasion; its statements are audited.
        audit: takes note of every call, also of those that are refused.
        transforms: run on every call before its tool.
        hooks: are told of every call with valid arguments.

    Raises:
        ValueError: two tools have one name.
    """

    def __init__(
        self,
        tools: Sequence[Tool[Any]],
        open_database: Callable[[Occasion], Database],
        audit: Audit,
        transforms: Sequence[Transform] = (),
        *,
        hooks: Sequence[LifecycleHook] = (),
        observer: ObservabilityProvider = UNOBSERVED,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            raise ValueError("Two tools have the same name.")
        self._open_database = open_database
        self._audit = audit
        self._transforms = tuple(transforms)
        self._hooks = tuple(hooks)
        self._observer = observer

    def changed(
        self,
        *,
        without: Collection[str] = (),
        more: Sequence[Tool[Any]] = (),
        transforms: Sequence[Transform] = (),
    ) -> "ToolRegistry":
        """A registry without some of the tools and with others, for one flow or one question.

        Args:
            transforms: run after those that there are.

        Raises:
            ValueError: as the class.
        """
        kept = [tool for tool in self._tools.values() if tool.name not in without]
        return ToolRegistry(
            [*kept, *more],
            self._open_database,
            self._audit,
            (*self._transforms, *transforms),
            hooks=self._hooks,
            observer=self._observer,
        )

    def find(self, name: str, actor: Actor) -> Tool[Any] | None:
        """The tool of that name; None if there is none or the actor may not call it."""
        tool = self._tools.get(name)
        return tool if tool is not None and tool.is_allowed(actor.groups) else None

    def groups(self, name: str) -> frozenset[str]:
        """Who may call the tool of that name; nobody, if there is none. Tools of a flow that do the same take these."""
        tool = self._tools.get(name)
        return tool.groups if tool is not None else frozenset()

    def allowed(self, actor: Actor) -> tuple[Tool[Any], ...]:
        """The tools that the actor may call."""
        return tuple(tool for tool in self._tools.values() if tool.is_allowed(actor.groups))

    async def execute(self, call: ToolCall, use: Use, offered: Collection[str] | None = None) -> ToolResult:
        """What the call gives; a failure is a result, too.

        A tool that does not exist and one that the actor may not call get the same answer.

        Args:
            offered: names of the tools that the model was offered; a call of another is not run. None: all.

        Raises:
            asyncio.CancelledError: the question was cancelled; the call is noted.
        """
        occasion = replace(use.occasion, tool=call.name, call_id=call.id)
        started = time.perf_counter()
        try:
            result = await self._answered(call, use, occasion, offered)
        except asyncio.CancelledError:
            self._note(call, occasion, started, "cancelled")
            raise
        self._note(call, occasion, started, result.error_type)
        return result

    async def transformed(self, tool: Tool[A], arguments: A, context: ToolContext) -> A:
        """The arguments as all transforms leave them; for tools that do a part of what another one does, as that one.

        Raises:
            CituError: a transform refuses the call.
        """
        changed: Arguments = arguments
        for transform in self._transforms:
            changed = await transform(tool, changed, context)
        return cast(A, changed)

    async def _answered(
        self, call: ToolCall, use: Use, occasion: Occasion, offered: Collection[str] | None
    ) -> ToolResult:
        tool = self.find(call.name, use.question.actor)
        if tool is None:
            return self._unknown(use.question.actor)
        if offered is not None and call.name not in offered:
            return _not_now(call, offered)
        arguments = parsed_arguments(tool, call)
        if isinstance(arguments, ToolResult):
            return arguments
        context = ToolContext(use.question, call.id, self._open_database(occasion), use.found, occasion.metadata)
        try:
            return await self._run(tool, context, await self.transformed(tool, arguments, context))
        except CituError as error:
            return failed(error)
        except Exception:  # noqa: BLE001 - the model must get a result for each of its calls
            _log.exception("a tool failed", extra={"tool": tool.name, "run_id": use.question.run_id})
            return ToolResult("internal_error: the tool failed.", _BROKEN, InternalError.error_type)

    async def _run(self, tool: Tool[Any], context: ToolContext, arguments: Arguments) -> ToolResult:
        """Runs the tool; hooks are told before, and may stop it, and after."""
        for hook in self._hooks:
            await hook.before_tool(context.question, tool.name, arguments.model_dump())
        error_type: str | None = InternalError.error_type
        try:
            with self._observer.span("tool", {"tool": tool.name, "call_id": context.call_id}):
                result: ToolResult = await tool.run(context, arguments)
            error_type = result.error_type
        except CituError as error:
            error_type = error.error_type
            raise
        except asyncio.CancelledError:
            error_type = Cancelled.error_type
            raise
        finally:
            await self._ended(context.question, tool.name, error_type)
        return result

    async def _ended(self, question: Question, name: str, error_type: str | None) -> None:
        """Tells hooks that the tool has run; what they raise changes nothing any more, and they are not waited for."""
        for hook in self._hooks:
            try:
                async with asyncio.timeout(HOOK_S):
                    await hook.after_tool(question, name, error_type)
            except Exception:  # noqa: BLE001 - the result is there
                _log.exception("a hook failed after a tool", extra={"tool": name})

    def note_refused(self, call: ToolCall, occasion: Occasion, error_type: str) -> None:
        """Notes a call that is not run, whatever it calls: it is one too many, or was made before.

        Args:
            occasion: of the question.
        """
        called = replace(occasion, tool=call.name, call_id=call.id)
        self._audit.record_call(called, _arguments(call), CallOutcome("refused", 0.0, error_type))

    def _unknown(self, actor: Actor) -> ToolResult:
        names = _listed(tool.name for tool in self.allowed(actor))
        return ToolResult(f"There is no such tool. Tools: {names}.", _UNKNOWN_SUMMARY, _UNKNOWN)

    def _note(self, call: ToolCall, occasion: Occasion, started: float, error_type: str | None) -> None:
        milliseconds = round((time.perf_counter() - started) * 1000, 1)
        self._audit.record_call(occasion, _arguments(call), CallOutcome.of(error_type, milliseconds, _REFUSALS))


def _arguments(call: ToolCall) -> Any:
    """As the model gave them."""
    return call.arguments.text if isinstance(call.arguments, InvalidArguments) else dict(call.arguments)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def parsed_arguments(tool: Tool[Any], call: ToolCall) -> Arguments | ToolResult:
    """The arguments of the call as the tool takes them, or the result that tells the model what is wrong with them."""
    if isinstance(call.arguments, InvalidArguments):
        return _invalid(call.arguments.problem)
    try:
        arguments: Arguments = tool.arguments.model_validate(call.arguments)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)[:_MOST_PROBLEMS]
        return _invalid("; ".join(f"{_place(one['loc'])}: {one['msg']}" for one in problems))
    return arguments


def _place(loc: Sequence[int | str]) -> str:
    """Where a problem is; names of unknown arguments are the model's own and may be long."""
    return one_line(".".join(map(str, loc)), _MOST_PLACE) or "arguments"


def _not_now(call: ToolCall, offered: Collection[str]) -> ToolResult:
    said = f"{one_line(call.name, _MOST_PLACE)} can't be called now. Call one of: {_listed(offered)}."
    return ToolResult(said, _NOT_NOW, NOT_OFFERED)


def _invalid(problem: str) -> ToolResult:
    return ToolResult(f"The arguments are not valid: {problem}", _INVALID_SUMMARY, _INVALID)
