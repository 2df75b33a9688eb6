"""The messages between Citu and a model during one question with tools.

Endpoints refuse a conversation in which a call has no result, or a result no call. So a
`Transcript` holds only whole exchanges: a reply, and one result for each of its calls, in their
order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from llm import AnyMessage, Completion, Message, ToolMessage, tool_message

NOT_RUN = "This call was not run."
"""The result of a call before which the question ended or was interrupted."""


_SHORT = 1_000  # characters of a result, when the model found the conversation too long
_CUT = "(The rest of this result was left out, because the conversation became too long.)"


@dataclass(frozen=True)
class Exchange:
    """A reply of the model with the results of its calls.

    Attributes:
        said: what the user's side says to it; empty where the results say all.

    Raises:
        ValueError: the results are not those of the calls, one each, in their order.
    """

    reply: Completion
    results: tuple[ToolMessage, ...] = ()
    said: str = ""

    def __post_init__(self) -> None:
        calls = [call.id for call in self.reply.tool_calls]
        if calls != [result["tool_call_id"] for result in self.results]:
            raise ValueError(
                "An exchange needs one result for each call of the reply, in its order."
            )

    def shortened(self) -> "Exchange":
        """Return the exchange with long results cut."""
        return replace(self, results=tuple(map(_shortened, self.results)))

    @cached_property  # they are sent again with each later exchange
    def messages(self) -> tuple[AnyMessage, ...]:
        answered = (self.reply.message(), *self.results)
        if not self.said:
            return answered

        correction: Message = {"role": "user", "content": self.said}
        return (*answered, correction)


def _shortened(message: ToolMessage) -> ToolMessage:
    content = message["content"]
    if len(content) <= _SHORT:
        return message

    return {**message, "content": f"{content[:_SHORT]}\n{_CUT}"}


def complete_exchange(reply: Completion, results: Mapping[str, str]) -> Exchange:
    """Return the exchange of `reply`; calls without a result are answered by `NOT_RUN`.

    Args:
        results: by call id.
    """
    messages = [tool_message(call, results.get(call.id, NOT_RUN)) for call in reply.tool_calls]
    return Exchange(reply, tuple(messages))


@dataclass(frozen=True)
class Transcript:
    """The conversation with a model in one question.

    Attributes:
        first_messages: system message, earlier turns, the question.
        exchanges: since then.
    """

    first_messages: tuple[Message, ...]
    exchanges: tuple[Exchange, ...] = ()

    def with_exchange(self, exchange: Exchange) -> "Transcript":
        return replace(self, exchanges=(*self.exchanges, exchange))

    def shortened(self, first_messages: Sequence[Message]) -> "Transcript":
        """Return the transcript behind other first messages, with long results cut.

        It is for a model that found the conversation too long.
        """
        shortened = [exchange.shortened() for exchange in self.exchanges]
        return Transcript(tuple(first_messages), tuple(shortened))

    @property
    def messages(self) -> Sequence[AnyMessage]:
        """Return the messages in the order in which they are sent."""
        messages: list[AnyMessage] = list(self.first_messages)
        for exchange in self.exchanges:
            messages += exchange.messages

        return messages
