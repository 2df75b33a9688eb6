"""The extension points.

An extension is registered by its setting as `module:name`; `name` is called with a `Provided` and
gives the extension.

What an extension raises: a `CituError` is told to the user as it is. Anything else is a bug: before
something is done it stops the question (`internal_error`), so that no check is skipped; afterwards
it is logged and changes nothing.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from werkzeug.datastructures import Headers

from agent.question import Question
from agent.thinking import Skills
from common.actor import Actor
from common.audit import Occasion
from common.learning import Document
from common.meanings import Report
from common.ports import Database
from common.values import Turn
from llm import AnyMessage, ChatModel, Completion, OnToken, ToolOffer
from store import Store


class OpenDatabase(Protocol):
    """Opens a database as an actor may see it."""

    def __call__(self, actor: Actor, name: str | None = None) -> Database:
        """Return the database of that name; None: the default one.

        Raises:
            NotFound: there is none of that name for the actor.
        """


class ReportsOf(Protocol):
    """Gives the fixed reports of a database's semantic file, as it is now."""

    def __call__(self, name: str | None = None) -> Sequence[Report]:
        """Return the reports of the database of that name; None: of the default one."""


@dataclass(frozen=True)
class Provided:
    """The services that extensions are made from.

    Attributes:
        settings: an `app_config.Settings`.
        rules: the offline skills, which put rows into words.
        database_of: opens a database for its catalogue and for judging statements; a question's
            is `question.database`.
        open_database: opens the database of an occasion; its statements are audited.
        reports: gives the fixed reports of a database.
        open_model: opens another model; None when the settings it gets describe none.
    """

    settings: Any
    store: Store
    rules: Skills
    database_of: OpenDatabase
    open_database: Callable[[Occasion], Database]
    reports: ReportsOf
    open_model: Callable[[Any], ChatModel | None]


@dataclass(frozen=True)
class RequestHead:
    """The first part of a request, before its body.

    Attributes:
        headers: by names of any capitals.
        peer: the address that has connected, a proxy's where there is one; empty for Unix sockets.
    """

    headers: Headers
    peer: str | None


@runtime_checkable
class UserResolver(Protocol):
    """Tells the user of a request that carries neither an API key nor an access token.

    It is asked only about requests of the proxies that `USER_RESOLVER_PROXIES` names, in a thread,
    for every request and every message of a WebSocket.
    """

    def resolve(self, head: RequestHead) -> Actor | None:
        """Return the user with groups and attributes; None: nobody is signed in."""


@runtime_checkable
class WorkflowHandler(Protocol):
    """Answers certain questions itself, before any model; nobody else answers what it claims."""

    def claims(self, question: Question) -> bool:
        """Tell whether it answers the question; must be quick."""

    async def answer(self, question: Question) -> Mapping[str, Any]:
        """Return keys of the completed body: `response`, and with rows `sql` and `query_result`.

        See `docs/api.md`.
        """


@dataclass(frozen=True)
class EndedRun:
    """The end of a question.

    Attributes:
        error_type: the type of the error in which it ended; else None.
        flow: the name of the flow that answered.
    """

    error_type: str | None
    milliseconds: float
    flow: str = ""


HOOK_S = 1.0
"""Seconds that a result or an answer waits for a hook that is told of it."""


@runtime_checkable
class LifecycleHook(Protocol):
    """Is told of questions and of tools' calls, before and after.

    An error that it raises before stops the question or call.
    """

    async def before_question(self, question: Question) -> None:
        """Act before anything is done for the question."""

    async def after_question(self, question: Question, ended: EndedRun) -> None:
        """Act when the last event is about to be shown; the answer waits for it."""

    async def before_tool(
        self, question: Question, name: str, arguments: Mapping[str, Any]
    ) -> None:
        """Act before a tool runs, with valid arguments."""

    async def after_tool(self, question: Question, name: str, error_type: str | None) -> None:
        """Act after a tool ran or failed; `error_type` of a failure, else None."""


@dataclass(frozen=True)
class ModelRequest:
    """One call of the model; see `ChatModel.complete`."""

    messages: Sequence[AnyMessage]
    on_token: OnToken | None = None
    max_tokens: int | None = None
    offer: ToolOffer | None = None


AskModel = Callable[[ModelRequest], Awaitable[Completion]]
"""The model, or the next middleware before it; raises `LlmUnavailable`."""


@runtime_checkable
class LlmMiddleware(Protocol):
    """A layer between Citu and the model, which may change, repeat or answer requests."""

    async def __call__(self, request: ModelRequest, ask: AskModel) -> Completion:
        """Return the reply to `request`; `ask` passes a request on."""


@dataclass(frozen=True)
class FailedCall:
    """A tool's call that has failed.

    Attributes:
        arguments: as the tool was given them.
        said: what the model would be told.
        attempt: how often it has been made, this time included.
    """

    tool: str
    arguments: Mapping[str, Any]
    error_type: str
    said: str
    attempt: int
    question: Question


@dataclass(frozen=True)
class Recovery:
    """A way to go on after a call that has failed.

    Attributes:
        is_retried: the call is made again; it passes transforms, hooks, guard and audit anew.
        arguments: for the call that is made again; None: the same.
        pause_s: seconds before that.
        advice: what the model is told besides.
    """

    is_retried: bool = False
    arguments: Mapping[str, Any] | None = None
    pause_s: float = 0.0
    advice: str = ""


@runtime_checkable
class RecoveryStrategy(Protocol):
    """Decides what is done about tools' calls that have failed; refused ones are none."""

    async def recover(self, failed: FailedCall) -> Recovery | None:
        """Return what is done; None: another strategy decides, or the failure stays."""


@runtime_checkable
class AuditSink(Protocol):
    """Takes what the audit log has noted, to keep it elsewhere.

    It is called in a thread of its own, one entry after the other; it may wait and may raise.
    """

    def write(self, entry: Mapping[str, Any]) -> None:
        """Take one entry: the JSON object of a line of the audit log."""

    def close(self) -> None:
        """Give back what it holds open; another entry may come nevertheless."""


ResultKind = Literal["number", "chart", "table", "text", "draft"]
"""What an answer is: one figure, rows with a chart, rows alone, words, a transformation."""

Tone = Literal["neutral", "good", "attention", "bad"]


@dataclass(frozen=True)
class Card:
    """A card that the page, Vanna's component and texts show beside an answer, as plain text.

    Attributes:
        facts: labels with their values.
        share: from 0 to 1, drawn as a bar; None: there is none.
        link: an address, with https://, that the title leads to; empty: none.
    """

    title: str
    text: str = ""
    tone: Tone = "neutral"
    facts: Sequence[tuple[str, str]] = ()
    share: float | None = None
    link: str = ""


@runtime_checkable
class ResultRenderer(Protocol):
    """Shows answers of some kinds in a way of its own, beside the usual one.

    Attributes:
        kinds: the kinds of answers that it is asked about.
    """

    kinds: frozenset[ResultKind]

    def render(self, answer: Mapping[str, Any], question: Question) -> Sequence[Card]:
        """Return what is shown; nothing for answers that it has nothing to say of. Be quick.

        Args:
            answer: `data` of the answer, as docs/api.md has it.
        """


@runtime_checkable
class ConversationFilter(Protocol):
    """Decides what a question remembers of its conversation."""

    def __call__(self, question: Question, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        """Return the turns that are remembered, oldest first, as they are or shortened."""


@runtime_checkable
class ToolContextEnricher(Protocol):
    """Adds to what tools know of the question."""

    def __call__(self, question: Question) -> Mapping[str, str]:
        """Return `ToolContext.metadata`, which the audit log notes with calls and statements."""


@runtime_checkable
class LlmContextEnhancer(Protocol):
    """Adds texts to the prompt, as data beside the question, never as instructions."""

    async def __call__(self, question: str, actor: Actor) -> Sequence[Document]:
        """Return texts that may help, the most useful first; the prompt takes what fits."""


@runtime_checkable
class ObservabilityProvider(Protocol):
    """Measures what Citu does. Must not block or raise."""

    def span(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Return a context that lasts as long as what it measures.

        Args:
            name: `question`, `step`, `model_call`, `tool`, `statement`, `catalog_read` or
                `store_write`.
        """

    def metric(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        """Record one measurement; called on the hot path, so it must not block.

        Args:
            name: for a model call, `prompt_tokens` and `completion_tokens`; for a statement,
                `rows`; of a question, `step_seconds` when a step has ended, `node_seconds` of all
                steps of a node, and `questions` and `repairs` at its end; `waiting_runs`, 1 when a
                run begins to wait for its user, -1 when it no longer does; `feedback`, 1 for a
                rating.
        """


class Unobserved:
    """`ObservabilityProvider` that measures nothing."""

    def span(
        self,
        name: str,  # noqa: ARG002 - the port's
        attributes: Mapping[str, Any],  # noqa: ARG002 - the port's
    ) -> AbstractContextManager[None]:
        return _NOTHING

    def metric(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        """Do nothing with the measurement."""


_NOTHING = nullcontext()
UNOBSERVED = Unobserved()
