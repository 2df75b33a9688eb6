"""What is sent for one call of a model, and which parts of it an endpoint refuses.

Endpoints differ in the parameters they know. Everything is sent at first; what an endpoint refuses by name is left out.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from common.llm.call_assembly import CallAssembly
from common.llm.call_failures import CallFailed
from common.llm.chat_model import AnyMessage, OnToken
from common.llm.tool_calls import ToolDefinition, ToolOffer

_TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")  # older and newer name of the same bound
_PARAMETERS = (*_TOKEN_LIMITS, "temperature", "stream_options", "stream", "tool_choice", "parallel_tool_calls")
# Parts of a request that some endpoints refuse with status 400, and how they name them. `plain` is a reply that is not
# streamed, `system` a message of that role, `reasoning_content` the reasoning in messages that are sent back. Some
# endpoints stream, but no reply that may hold calls.
_NEGOTIABLE = {
    **{name: re.compile(rf"\b{name}\b") for name in _PARAMETERS},
    "plain": re.compile(r"\bstream(ing)?\b", re.IGNORECASE),
    "stream with tools": re.compile(r"\bstream(ing)?\b", re.IGNORECASE),
    "system": re.compile(r"role.*\bsystem\b|\bsystem\b.*role", re.IGNORECASE | re.DOTALL),
    "parallel_tool_calls": re.compile(r"\bparallel[_ ]tool[_ ]calls?\b", re.IGNORECASE),
    "reasoning_content": re.compile(r"\breasoning_content\b"),
}
# How endpoints say that a model can't call tools at all. An error in one tool names it by its place: `tools[0]`.
_NO_TOOLS = re.compile(
    r"(?:not|n't|no endpoints found that) support(?: for)? (?:tool|function)"
    r"|\b(?:tool|function)[\w'\"` ]{0,20} (?:is|are) not (?:supported|available|enabled)"
    r"|(?:unsupported parameter|unrecognized request argument)[^.]{0,20}\btools\b(?!\[)"
    r"|enable-auto-tool-choice",
    re.IGNORECASE,
)


class GivenOut:
    """Passes tokens on and remembers that there were any."""

    def __init__(self, on_token: OnToken) -> None:
        self._on_token = on_token
        self.has_spoken = False

    def __call__(self, piece: str) -> None:
        """Gives out a piece of the text."""
        self.has_spoken = True
        self._on_token(piece)


class CallRequest:
    """One call of a model.

    Args:
        tokens: takes the text while it is written; None: the reply is wanted as a whole.
        max_tokens: the longest reply, in tokens.
        offer: the tools that the model may call.
    """

    def __init__(
        self,
        model: str,
        messages: Sequence[AnyMessage],
        tokens: GivenOut | None,
        max_tokens: int,
        offer: ToolOffer | None = None,
    ) -> None:
        self._model = model
        self._messages = list(messages)
        self._max_tokens = max_tokens
        self._offer = offer
        self.tokens = tokens

    @property
    def has_spoken(self) -> bool:
        """Whether tokens have been given out, so that a second try would repeat them."""
        return self.tokens is not None and self.tokens.has_spoken

    def assembly(self) -> CallAssembly | None:
        """Collects the tool calls of one reply; None when no tools are offered."""
        if self._offer is None:
            return None
        return CallAssembly(self._offer.names, {call["id"] for call in _calls(self._messages)})

    def body(self, refused: frozenset[str]) -> dict[str, Any]:
        """The request's parameters without the `refused` ones."""
        token_limit = next((name for name in _TOKEN_LIMITS if name not in refused), None)
        optional: dict[str, Any] = {"temperature": 0}
        if token_limit:
            optional[token_limit] = self._max_tokens
        if "plain" in refused or (self.tokens and self._stream_part not in refused):
            optional |= {"stream": True, "stream_options": {"include_usage": True}}
        if self._offer:
            optional |= _offered(self._offer, refused)
        return {
            "model": self._model,
            "messages": self._accepted_messages(refused),
            **{name: value for name, value in optional.items() if name not in refused},
        }

    def refused_part(self, failure: CallFailed, body: Mapping[str, Any]) -> str | None:
        """The part of `body` that the endpoint has refused by name; None: it has refused something else.

        Raises:
            CallFailed: it has refused tools as such, which can't be left out.
        """
        if failure.kind not in ("request", "model"):
            return None
        named = self._named_part(failure, body) if failure.kind == "request" else None
        if named is None and self._offer and _NO_TOOLS.search(failure.detail):
            raise CallFailed("tools", status=failure.status) from failure
        return named

    @property
    def _stream_part(self) -> str:
        return "stream with tools" if self._offer else "stream"

    def _named_part(self, failure: CallFailed, body: Mapping[str, Any]) -> str | None:
        sent = [self._stream_part if name == "stream" else name for name in _PARAMETERS if name in body]
        sent += [] if "stream" in body else ["plain"]
        sent += ["system"] if body["messages"][0]["role"] == "system" else []
        sent += ["reasoning_content"] if any("reasoning_content" in message for message in body["messages"]) else []
        named = next((name for name in sent if _NEGOTIABLE[name].search(failure.detail)), None)
        return _choice_part(body["tool_choice"]) if named == "tool_choice" else named

    def _accepted_messages(self, refused: frozenset[str]) -> Sequence[Mapping[str, Any]]:
        messages: Sequence[Mapping[str, Any]] = self._messages
        if "system" in refused:
            messages = _without_system(messages)
        if "reasoning_content" in refused:
            messages = [{key: message[key] for key in message if key != "reasoning_content"} for message in messages]
        return messages


def _calls(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [call for message in messages for call in message.get("tool_calls", ())]


def _offered(offer: ToolOffer, refused: frozenset[str]) -> dict[str, Any]:
    """The parameters of the tools, of which the defaults of the protocol are left out."""
    parameters: dict[str, Any] = {"tools": [_tool(tool) for tool in offer.tools]}
    if not offer.parallel:
        parameters["parallel_tool_calls"] = False
    if offer.choice in offer.names:
        parameters["tool_choice"] = {"type": "function", "function": {"name": offer.choice}}
    elif offer.choice != "auto":
        parameters["tool_choice"] = offer.choice
    if "tool_choice" in parameters and _choice_part(parameters["tool_choice"]) in refused:
        del parameters["tool_choice"]
    return parameters


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _choice_part(choice: Any) -> str:
    """What is remembered of a refused choice: endpoints that refuse one kind of choice may take another."""
    return f"tool_choice {choice if isinstance(choice, str) else 'name'}"


def _without_system(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The same with what the system says at the beginning of the first message of the user."""
    said = [message["content"] for message in messages if message["role"] == "system"]
    others = [message for message in messages if message["role"] != "system"]
    place = next((place for place, message in enumerate(others) if message["role"] == "user"), None)
    if place is None:
        return [{"role": "user", "content": "\n\n".join(said)}, *others]
    text = "\n\n".join([*said, others[place]["content"]])
    return [*others[:place], {"role": "user", "content": text}, *others[place + 1 :]]
