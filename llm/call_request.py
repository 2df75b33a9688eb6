"""The request for one call of a model, without the parts that its endpoint refuses.

Endpoints differ in the parameters they know. Everything is sent at first; what an endpoint refuses
by name is left out.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
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


class TokenRelay:
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
        extra: further parameters that only some endpoints know.
    """

    def __init__(
        self,
        model: str,
        messages: Sequence[AnyMessage],
        tokens: TokenRelay | None,
        max_tokens: int,
        offer: ToolOffer | None = None,
        extra: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._model = model
        self._extra = extra
        self._messages = [_plain(message) for message in messages]
        self._max_tokens = max_tokens
        self._offer = offer
        self.tokens = tokens

    @property
    def has_spoken(self) -> bool:
        """Tell whether tokens have been given out, so that a second try would repeat them."""
        if self.tokens is None:
            return False

        return self.tokens.has_spoken

    def assembly(self) -> CallAssembly | None:
        """Return the collector of one reply's tool calls; None when no tools are offered."""
        if self._offer is None:
            return None

        earlier = _calls(self._messages)
        taken = {call["id"] for call in earlier}
        return CallAssembly(self._offer.names, taken, most_chars=self.limit.quarters)

    @property
    def limit(self) -> ReplyLimit:
        return ReplyLimit.of_tokens(self._max_tokens)

    def body(self, refused: frozenset[str]) -> dict[str, Any]:
        """Return the body of the request without the parts in `refused`."""
        parameters: dict[str, Any] = {"temperature": 0, **self._extra}
        token_limit = next((name for name in _TOKEN_LIMITS if name not in refused), None)
        if token_limit is not None:
            parameters[token_limit] = self._max_tokens
        if self._is_streamed(refused):
            parameters["stream"] = True
            parameters["stream_options"] = {"include_usage": True}

        if self._offer:
            parameters |= _tool_parameters(self._offer, refused)

        for name in refused:
            parameters.pop(name, None)

        messages = self._accepted_messages(refused)
        return {"model": self._model, "messages": messages, **parameters}

    def _is_streamed(self, refused: frozenset[str]) -> bool:
        if "plain" in refused:
            return True
        if self._stream_part in refused:
            return False

        return self.tokens is not None

    def refused_part(self, failure: CallFailed, body: Mapping[str, Any]) -> str | None:
        """Return the part of `body` that the endpoint has refused by name; None: something else.

        Raises:
            CallFailed: it has refused tools as such, which can't be left out.
        """
        if failure.kind not in ("request", "model"):
            return None
        if failure.kind == "request":
            named = self._named_part(failure, body)
            if named is not None:
                return named

        refuses_tools = _NO_TOOLS.search(failure.detail)
        if refuses_tools and self._offer:
            raise CallFailed("tools", status=failure.status) from failure

        return None

    @property
    def _stream_part(self) -> str:
        if self._offer:
            return "stream with tools"

        return "stream"

    def _named_part(self, failure: CallFailed, body: Mapping[str, Any]) -> str | None:
        for name in self._negotiable_parts(body):
            is_named = _NEGOTIABLE[name].search(failure.detail)
            if not is_named:
                continue
            if name == "tool_choice":
                return _choice_part(body["tool_choice"])

            return name

        for name in self._extra:
            is_named = re.search(rf"\b{re.escape(name)}\b", failure.detail)
            if name in body and is_named:
                return name

        return None

    def _negotiable_parts(self, body: Mapping[str, Any]) -> list[str]:
        """Return the names in `_NEGOTIABLE` of the parts that the body has."""
        parts = []
        for name in _PARAMETERS:
            if name in body:
                parts.append(self._stream_part if name == "stream" else name)

        if "stream" not in body:
            parts.append("plain")

        messages = body["messages"]
        if messages[0]["role"] == "system":
            parts.append("system")

        has_reasoning = any("reasoning_content" in message for message in messages)
        if has_reasoning:
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
        text = plain.get(key)
        if isinstance(text, str):
            plain[key] = broken_up(text, PROMPT_TAGS)

    if "tool_calls" in plain:
        calls = plain["tool_calls"]
        plain["tool_calls"] = [_plain_call(call) for call in calls]

    return plain


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call["function"])
    function["arguments"] = broken_up(function["arguments"], PROMPT_TAGS)
    return {**call, "function": function}


def _calls(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    calls = []
    for message in messages:
        calls.extend(message.get("tool_calls", ()))

    return calls


def _tool_parameters(offer: ToolOffer, refused: frozenset[str]) -> dict[str, Any]:
    """Return the request's parameters for the tools; the protocol's defaults are left out."""
    tools = [_tool(tool) for tool in offer.tools]
    parameters: dict[str, Any] = {"tools": tools}
    if not offer.parallel:
        parameters["parallel_tool_calls"] = False
    if offer.choice == "auto":
        return parameters

    choice: Any = offer.choice
    if choice in offer.names:
        choice = {"type": "function", "function": {"name": choice}}
    if _choice_part(choice) not in refused:
        parameters["tool_choice"] = choice

    return parameters


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _choice_part(choice: Any) -> str:
    """Return the part's name for a choice: endpoints that refuse one kind may take another."""
    kind = "name"
    if isinstance(choice, str):
        kind = choice

    return f"tool_choice {kind}"


def _without_reasoning(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(message)
    kept.pop("reasoning_content", None)
    return kept


def _without_system(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages with the system's texts at the beginning of the user's first message."""
    texts: list[str] = []
    others: list[Mapping[str, Any]] = []
    for message in messages:
        if message["role"] == "system":
            texts.append(message["content"])
        else:
            others.append(message)

    for index, message in enumerate(others):
        if message["role"] == "user":
            text = "\n\n".join([*texts, message["content"]])
            others[index] = {"role": "user", "content": text}
            return others

    text = "\n\n".join(texts)
    return [{"role": "user", "content": text}, *others]
