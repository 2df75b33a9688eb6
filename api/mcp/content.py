"""The seam between the protocol and what is offered over it: tools, resources, prompts."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.actor import Actor
from common.text import Lang

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Progress:
    """A step that a client may show while it waits."""

    message: str
    progress: float | None = None
    total: float | None = None


@dataclass(frozen=True)
class InputRequired:
    """The user has to answer before there is a result.

    Attributes:
        requests: what is asked, by a name under which the answer comes back.
        state: JSON that comes back with the answer; None: nothing has to be remembered.
    """

    requests: Mapping[str, Json]
    state: Json | None = None


@dataclass(frozen=True)
class Result:
    """The result of a call, as the protocol writes it."""

    body: Json


def failed_result(message: str, details: Json) -> Json:
    """Return the body of a result that failed, from which a model can learn.

    Args:
        details: what programs can act on.
    """
    return {
        "content": [{"type": "text", "text": message}],
        "isError": True,
        "_meta": {"citu/error": dict(details)},
    }


Step = Progress | InputRequired | Result
"""What a call gives: any number of steps of progress, then one of the others."""

Steps = AsyncGenerator[Step, None]


def holds_nothing() -> Callable[[], None]:
    """Stand in for `McpCaller.hold_slot` where no slot is needed."""
    return lambda: None


@dataclass(frozen=True)
class McpCaller:
    """The sender of a request.

    Attributes:
        lang: language of errors.
        is_credible: whether nobody else could ask in this user's name.
        address: the address of this service as the client calls it, without a path.
        is_watching: whether the client sees steps before the result.
        hold_slot: keeps the request's slot for questions until the function that it returns is
            called, for a run that may outlive the request; called once at most.
    """

    actor: Actor
    lang: Lang = "en"
    is_credible: bool = False
    address: str = ""
    is_watching: bool = False
    hold_slot: Callable[[], Callable[[], None]] = holds_nothing


@dataclass(frozen=True)
class McpCall:
    """A call of a tool, or a request for a prompt.

    Attributes:
        capabilities: what the client can do.
        responses: the user's answers by the names of `InputRequired.requests`; None: this is the
            first request of the call.
        state: that of the `InputRequired` which is answered; it has been checked.
    """

    name: str
    arguments: Json
    caller: McpCaller
    capabilities: Json = field(default_factory=dict)
    responses: Json | None = None
    state: Json | None = None


class McpContent(Protocol):
    """Tools, resources and prompts, as far as a caller may use them.

    Methods raise `McpError` for names that there are not for the caller; `CituError` of a tool is
    told to the model that called it.
    """

    async def tools(self, caller: McpCaller) -> Sequence[Json]:
        """Return the definitions of the tools."""

    def call(self, call: McpCall) -> Steps:
        """Run a tool, step by step."""

    async def resources(self, caller: McpCaller) -> Sequence[Json]:
        """Return what can be read at a fixed address."""

    async def templates(self, _caller: McpCaller, /) -> Sequence[Json]:
        """Return the patterns of addresses of what else can be read."""

    async def read(self, uri: str, caller: McpCaller) -> Sequence[Json]:
        """Return what is at an address."""

    async def prompts(self, caller: McpCaller) -> Sequence[Json]:
        """Return the prompts that the caller may use."""

    def prompt(self, call: McpCall) -> Steps:
        """Return the messages of a prompt."""

    async def completions(self, ref: Json, argument: Json, caller: McpCaller) -> Sequence[str]:
        """Return values for an argument of a prompt or an address, the likeliest first."""
