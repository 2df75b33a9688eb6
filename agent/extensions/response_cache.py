"""Gives a reply again when the same messages come again within a while.

Whatever a reply may depend on stands in the messages: the question, the tables and values that the
caller may see, earlier turns, the day. So two requests with equal messages come from callers who
may know the same.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from agent.extensions.points import AskModel, ModelRequest, Provided
from common.values import Usage
from llm import Completion


class ResponseCache:
    """`LlmMiddleware`. Replies that call tools are not kept, and none that is cut or withheld.

    Args:
        size: most replies kept; the one that was longest not asked for goes first.
        ttl_s: seconds a reply is kept.
        clock: seconds, monotonic.
    """

    def __init__(
        self, size: int, ttl_s: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._size = size
        self._ttl_s = ttl_s
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, Completion]] = OrderedDict()

    async def __call__(self, request: ModelRequest, ask: AskModel) -> Completion:
        """Return the reply from before, at no cost, or the model's."""
        key = _digest(request)
        cached = self._find(key)
        if cached is not None:
            if request.on_token is not None and cached.text:
                request.on_token(cached.text)

            return cached

        reply = await ask(request)
        is_whole = reply.finish_reason == "stop" and bool(reply.text.strip())
        if is_whole and not reply.tool_calls:
            self._keep(key, replace(reply, usage=Usage()))

        return reply

    def _find(self, key: bytes) -> Completion | None:
        if key not in self._kept:
            return None

        expires_at, reply = self._kept[key]
        if self._clock() >= expires_at:
            return None

        self._kept.move_to_end(key)
        return reply

    def _keep(self, key: bytes, reply: Completion) -> None:
        self._kept[key] = (self._clock() + self._ttl_s, reply)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)


def _digest(request: ModelRequest) -> bytes:
    offer = request.offer
    offered: list[Any] | None = None
    if offer:
        tools = [[tool.name, tool.description, tool.parameters] for tool in offer.tools]
        offered = [offer.choice, offer.parallel, tools]

    content = json.dumps([request.messages, request.max_tokens, offered], sort_keys=True)
    return blake2b(content.encode(), digest_size=24).digest()


def response_cache(provided: Provided) -> ResponseCache | None:
    """Return the extension, unless `LLM_CACHE_SIZE` is 0."""
    settings: Any = provided.settings
    if settings.llm_cache_size:
        return ResponseCache(settings.llm_cache_size, settings.llm_cache_ttl_s)

    return None
