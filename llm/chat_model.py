"""The interface of language models: messages in; text, tool calls or both out.

Messages are spelled as the protocol of chat completions spells them, so they are sent as they are,
and being plain JSON they can be stored. `Completion.message` and `tool_message` make those of a
conversation with tools.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NotRequired, Protocol, TypedDict

from common.values import Usage
from llm.tool_calls import ToolCall, ToolOffer

OnToken = Callable[[str], None]
"""Takes pieces of the text as they arrive; they concatenate to the reply's text, unless that is
blank.
"""


class Message(TypedDict):
    """A message that is text alone."""

    role: Literal["system", "user", "assistant"]
    content: str


class CalledFunction(TypedDict):
    """The function of a `SentCall`; `arguments` is a JSON object as text."""

    name: str
    arguments: str


class SentCall(TypedDict):
    """A tool call as it is sent back to the endpoint that made it."""

    id: str
    type: Literal["function"]
    function: CalledFunction


class CallingMessage(TypedDict):
    """A model's message that calls tools.

    One `ToolMessage` for each call must follow before any other message.

    `reasoning_content` is there when the endpoint sent reasoning: some want it back, and those that
    don't are known after their first refusal.
    """

    role: Literal["assistant"]
    content: str | None
    tool_calls: list[SentCall]
    reasoning_content: NotRequired[str]


class ToolMessage(TypedDict):
    """A tool's answer to the call of that id."""

    role: Literal["tool"]
    tool_call_id: str
    content: str


AnyMessage = Message | CallingMessage | ToolMessage


def tool_message(call: ToolCall, content: str) -> ToolMessage:
    """Return the answer to a call; without text it says so, as endpoints refuse empty messages."""
    text = "(no output)"
    if content.strip():
        text = content

    return {"role": "tool", "tool_call_id": call.id, "content": text}


@dataclass(frozen=True)
class Completion:
    """One reply.

    Attributes:
        text: what the model wrote; empty only when it called tools, was filtered, or wrote into
            `reasoning` alone.
        finish_reason: `stop`; `tool_calls` when it ended with its calls; `length` when the reply is
            cut off, by the endpoint or by Citu's own bound; `content_filter` or `refusal` when it
            was withheld (`text` then is the refusal, if one was given); whatever else the endpoint
            says.
        reasoning: what it wrote beside the text, when there is no text (some endpoints take an
            answer for reasoning) or when there are calls (some endpoints want it back with them).
        tool_calls: the calls it asks for, in its order; only if tools were offered. Of a reply that
            is cut or withheld some may be missing.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = "stop"
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def is_cut(self) -> bool:
        """Tell whether the reply ends before the model was finished."""
        return self.finish_reason == "length"

    @property
    def is_withheld(self) -> bool:
        """Tell whether the model or its endpoint refused to answer."""
        return self.finish_reason in {"content_filter", "refusal"}

    def message(self) -> Message | CallingMessage:
        """Return this reply as a message of the conversation that goes on.

        Raises:
            ValueError: it has neither text nor calls, and endpoints refuse empty messages.
        """
        if not self.tool_calls:
            return self._text_message()

        calls = [_sent(call) for call in self.tool_calls]
        message: CallingMessage = {
            "role": "assistant",
            "content": self.text or None,
            "tool_calls": calls,
        }
        if self.reasoning:
            message["reasoning_content"] = self.reasoning

        return message

    def _text_message(self) -> Message:
        if not self.text.strip():
            raise ValueError("The reply has neither text nor tool calls.")

        return {"role": "assistant", "content": self.text}


def _sent(call: ToolCall) -> SentCall:
    name = call.spelled_name
    arguments = call.spelled_arguments
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


class ChatModel(Protocol):
    """A language model behind some endpoint.

    Several tasks may use it at once, and every method may be cancelled.
    """

    name: str
    """The model's name at its endpoint."""

    async def complete(
        self,
        messages: Sequence[AnyMessage],
        *,
        on_token: OnToken | None = None,
        max_tokens: int | None = None,
        offer: ToolOffer | None = None,
    ) -> Completion:
        """Return the model's reply to a conversation.

        Cancelling closes the connection, so that the endpoint stops as well.

        Args:
            on_token: given the text while it is written; without it the reply is asked for as a
                whole.
            max_tokens: the longest reply, in tokens; default: as configured.
            offer: the tools it may call; None: none, and what looks like a call is not read as one.

        Raises:
            LlmUnavailable: no usable reply in time, further tries included. Tokens may have been
                given out before.
        """

    async def warm(self) -> None:
        """Import and build the client now, so that the first call need not; send no request.

        Raises:
            LlmMisconfigured: the endpoint's address is malformed.
        """

    async def ping(self) -> None:
        """Return when the endpoint answers; that costs no tokens.

        Raises:
            LlmUnavailable: it does not answer within a few seconds, or refuses the key.
        """

    async def aclose(self) -> None:
        """Close the connections that belong to the running event loop."""


class WrappedModel:
    """A `ChatModel` that passes everything on to `inner`, for subclasses that change a part."""

    def __init__(self, inner: ChatModel) -> None:
        self.name = inner.name
        self._inner = inner

    async def complete(
        self,
        messages: Sequence[AnyMessage],
        *,
        on_token: OnToken | None = None,
        max_tokens: int | None = None,
        offer: ToolOffer | None = None,
    ) -> Completion:
        return await self._inner.complete(
            messages, on_token=on_token, max_tokens=max_tokens, offer=offer
        )

    async def warm(self) -> None:
        await self._inner.warm()

    async def ping(self) -> None:
        await self._inner.ping()

    async def aclose(self) -> None:
        """Close the connections of the model."""
        await self._inner.aclose()
