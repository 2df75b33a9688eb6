"""What Citu needs of a language model: messages in, one text out, tokens as they are written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypedDict

from common.values import Usage

OnToken = Callable[[str], None]
"""Takes pieces of the reply as they arrive; they concatenate to the reply's text."""


class Message(TypedDict):
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Completion:
    """One reply.

    Attributes:
        text: what the model wrote; empty only when it was filtered or stands in `reasoning` alone.
        finish_reason: `stop`; `length` when the reply is cut off, by the endpoint or by Citu's own bound;
            `content_filter` or `refusal` when it was withheld (`text` then is the refusal, if one was given); whatever
            else the endpoint says.
        reasoning: what it wrote beside the text, when there is no text: some endpoints take an answer for reasoning.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = "stop"
    reasoning: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether the text ends before the model was finished."""
        return self.finish_reason == "length"

    @property
    def is_withheld(self) -> bool:
        """Whether the model or its endpoint refused to answer."""
        return self.finish_reason in {"content_filter", "refusal"}


class ChatModel(Protocol):
    """A language model behind some endpoint. Safe to use from several tasks; every method may be cancelled."""

    name: str
    """What the endpoint calls the model."""

    async def complete(
        self, messages: Sequence[Message], *, on_token: OnToken | None = None, max_tokens: int | None = None
    ) -> Completion:
        """The model's reply; streamed when `on_token` is given. `max_tokens` bounds the reply, default: configured.

        Cancelling closes the connection, so that the endpoint stops as well.

        Raises:
            LlmUnavailable: no usable reply in time, further tries included. Tokens may have been given out before.
        """

    async def warm(self) -> None:
        """Does now what the first call would otherwise wait for (importing the client, building it); no request.

        Raises:
            LlmMisconfigured: the endpoint's address is malformed.
        """

    async def ping(self) -> None:
        """Returns when the endpoint answers; costs no tokens.

        Raises:
            LlmUnavailable: it does not answer within a few seconds, or refuses the key.
        """

    async def aclose(self) -> None:
        """Closes the connections that belong to the running event loop."""
