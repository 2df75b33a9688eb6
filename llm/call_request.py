"""The request for one call of a model, without the parts that its endpoint refuses.

Endpoints differ in the parameters they know. Everything is sent at first; what an endpoint refuses
by name is left out.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from common.special_tokens import PROMPT_TAGS, broken_up
from llm.call_assembly import CallAssembly
from llm.call_failures import CallFailed
from llm.chat_model import AnyMessage, OnToken
from llm.reply_limit import ReplyLimit
from llm.tool_calls import ToolDefinition, ToolOffer

_TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")  # older and newer name of the same bound
_PARAMETERS = (
    *_TOKEN_LIMITS,
    "temperature",
    "stream_options",
    "stream",
    "tool_choice",
    "parallel_tool_calls",
)
# Parts of a request that some endpoints refuse with status 400, and how they name them. `plain` is
# a reply that is not streamed, `system` a message of that role, `reasoning_content` the reasoning
# in messages that are sent back. Some endpoints stream, but no reply that may hold calls.
_NEGOTIABLE = {
    **{name: re.compile(rf"\b{name}\b") for name in _PARAMETERS},
    "plain": re.compile(r"\bstream(ing)?\b", re.IGNORECASE),
    "stream with tools": re.compile(r"\bstream(ing)?\b", re.IGNORECASE),
    "system": re.compile(r"\A(?=.*role).*\bsystem\b", re.IGNORECASE | re.DOTALL),
    "parallel_tool_calls": re.compile(r"\bparallel[_ ]tool[_ ]calls?\b", re.IGNORECASE),
    "reasoning_content": re.compile(r"\breasoning_content\b"),
}
_WRITTEN = ("content", "reasoning_content")  # texts of a message
# How endpoints say that a model can't call tools at all. An error in one tool names it by its
# place: `tools[0]`.
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
        self._messages = [_plain(message) for message in messages]
        self._max_tokens = max_tokens
        self._offer = offer
        self.tokens = tokens

    @property
    def has_spoken(self) -> bool:
        """Tell whether tokens have been given out, so that a second try would repeat them."""
        return self.tokens is not None and self.tokens.has_spoken

    def assembly(self) -> CallAssembly | None:
        """Return what collects the tool calls of one reply; None when no tools are offered."""
        if self._offer is None:
            return None
        taken = {call["id"] for call in _calls(self._messages)}
        return CallAssembly(self._offer.names, taken, most_chars=self.limit.quarters)

    @property
    def limit(self) -> ReplyLimit:
        return ReplyLimit.of_tokens(self._max_tokens)

    def body(self, refused: frozenset[str]) -> dict[str, Any]:
        """Return the body of the request without the parts in `refused`."""
        optional: dict[str, Any] = {"temperature": 0}
        token_limits = [name for name in _TOKEN_LIMITS if name not in refused]
        if token_limits:
            optional[token_limits[0]] = self._max_tokens
        if self._is_streamed(refused):
            optional |= {"stream": True, "stream_options": {"include_usage": True}}
        if self._offer:
            optional |= _tool_parameters(self._offer, refused)
        accepted = {name: value for name, value in optional.items() if name not in refused}
        messages = self._accepted_messages(refused)
        return {"model": self._model, "messages": messages, **accepted}

    def _is_streamed(self, refused: frozenset[str]) -> bool:
        if "plain" in refused:
            return True
        return self.tokens is not None and self._stream_part not in refused

    def refused_part(self, failure: CallFailed, body: Mapping[str, Any]) -> str | None:
        """Return the part of `body` that the endpoint has refused by name; None: something else.

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
        for name in self._negotiable_parts(body):
            if not _NEGOTIABLE[name].search(failure.detail):
                continue
            return _choice_part(body["tool_choice"]) if name == "tool_choice" else name
        return None

    def _negotiable_parts(self, body: Mapping[str, Any]) -> list[str]:
        """Return the names in `_NEGOTIABLE` of the parts that the body has."""
        messages = body["messages"]
        parts = [name for name in _PARAMETERS if name in body]
        if "stream" in parts:
            parts[parts.index("stream")] = self._stream_part
        else:
            parts.append("plain")
        if messages[0]["role"] == "system":
            parts.append("system")
        if any("reasoning_content" in message for message in messages):
            parts.append("reasoning_content")
        return parts

    def _accepted_messages(self, refused: frozenset[str]) -> Sequence[Mapping[str, Any]]:
        messages: Sequence[Mapping[str, Any]] = self._messages
        if "system" in refused:
            messages = _without_system(messages)
        if "reasoning_content" in refused:
            messages = [_without_reasoning(message) for message in messages]
        return messages


def _plain(message: AnyMessage) -> dict[str, Any]:
    """Return the message without models' control tokens, which any quoted text may hold."""
    plain: dict[str, Any] = dict(message)
    for key in _WRITTEN:
        if isinstance(plain.get(key), str):
            plain[key] = broken_up(plain[key], PROMPT_TAGS)
    if "tool_calls" in plain:
        plain["tool_calls"] = [_plain_call(call) for call in plain["tool_calls"]]
    return plain


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call["function"])
    function["arguments"] = broken_up(function["arguments"], PROMPT_TAGS)
    return {**call, "function": function}


def _calls(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [call for message in messages for call in message.get("tool_calls", ())]


def _tool_parameters(offer: ToolOffer, refused: frozenset[str]) -> dict[str, Any]:
    """Return the request's parameters for the tools; the protocol's defaults are left out."""
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
    """Return the part's name for a choice: endpoints that refuse one kind may take another."""
    kind = choice if isinstance(choice, str) else "name"
    return f"tool_choice {kind}"


def _without_reasoning(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: message[key] for key in message if key != "reasoning_content"}


def _without_system(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages with the system's texts at the beginning of the user's first message."""
    texts = [message["content"] for message in messages if message["role"] == "system"]
    others = [message for message in messages if message["role"] != "system"]
    for index, message in enumerate(others):
        if message["role"] == "user":
            text = "\n\n".join([*texts, message["content"]])
            return [*others[:index], {"role": "user", "content": text}, *others[index + 1 :]]
    return [{"role": "user", "content": "\n\n".join(texts)}, *others]
