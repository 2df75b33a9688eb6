"""A `ChatModel` over any OpenAI-compatible endpoint: deadlines, further tries, and the dialects such endpoints speak.

Retrying is done here and not by the openai client, because a question has a deadline: the client would sleep through a
`Retry-After` of two minutes, try again what timed out, and give up on a body that broke off before its first token.
"""

import asyncio
import logging
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from common.llm.call_failures import MEANINGS, CallFailed, unavailable
from common.llm.chat_model import Completion, Message, OnToken
from common.llm.completion_stream import read_completion
from common.llm.providers import Endpoint

if TYPE_CHECKING:
    from common.llm.transport import Client

_log = logging.getLogger(__name__)

_MAX_IN_FLIGHT = 256
_BACK_OFF_S = 0.5  # pause before the second try; doubles with every further one
_PING_TIMEOUT_S = 5.0
_MAX_PAUSE_S = 10.0  # an endpoint that asks for a longer pause is not waited for
_TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")  # older and newer name of the same bound
# Parts of a request that some endpoints refuse with status 400, and how they name them. What is refused once is left
# out from then on. A refused plain call is streamed instead, a refused system message joins the user's.
_NEGOTIABLE = {
    **{name: re.compile(rf"\b{name}\b") for name in (*_TOKEN_LIMITS, "temperature", "stream_options", "stream")},
    "plain": re.compile(r"\bstream(ing)?\b", re.IGNORECASE),
    "system": re.compile(r"role.*\bsystem\b|\bsystem\b.*role", re.IGNORECASE | re.DOTALL),
}


class OpenAiChat:
    """One model at one endpoint.

    Args:
        timeout_s: seconds one call may take, further tries included, however slowly the reply drips in.
        max_retries: further tries after 429, 5xx and broken connections. A reply that timed out or whose first token
            has been given out is not tried again.
        max_tokens: longest reply, in tokens.
        max_in_flight: requests sent and not answered at any moment, per event loop; further calls wait for their turn
            within their `timeout_s`.
        back_off_s: seconds before the second try; the pause doubles with every further one.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        timeout_s: float,
        max_retries: int,
        max_tokens: int,
        max_in_flight: int = _MAX_IN_FLIGHT,
        back_off_s: float = _BACK_OFF_S,
    ) -> None:
        self.name = endpoint.model
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._max_tokens = max_tokens
        self._max_in_flight = max_in_flight
        self._back_off_s = back_off_s
        self._refused: frozenset[str] = frozenset()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()

    async def complete(
        self, messages: Sequence[Message], *, on_token: OnToken | None = None, max_tokens: int | None = None
    ) -> Completion:
        """See `ChatModel.complete`."""
        call = _Call(self.name, messages, _Tokens(on_token) if on_token else None, max_tokens or self._max_tokens)
        started = monotonic()
        with _translated():
            async with asyncio.timeout(self._timeout_s):
                completion = await self._try_repeatedly(call, started + self._timeout_s)
        _log.debug("model call", extra={"model": self.name, "ms": round((monotonic() - started) * 1000)})
        return completion

    async def warm(self) -> None:
        """See `ChatModel.warm`."""
        with _translated():
            await self._client_here()

    async def ping(self) -> None:
        """See `ChatModel.ping`."""
        with _translated():
            async with asyncio.timeout(min(self._timeout_s, _PING_TIMEOUT_S)):
                client = await self._client_here()
                await client.ping()

    async def aclose(self) -> None:
        """See `ChatModel.aclose`."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.aclose()

    async def _try_repeatedly(self, call: "_Call", deadline: float) -> Completion:
        for attempt in range(self._max_retries + 1):
            try:
                return await self._negotiate(call)
            except CallFailed as failure:
                pause = self._pause(attempt, failure)
                _log.warning("model call failed: %s", failure, extra={"model": self.name, "attempt": attempt + 1})
                is_last = attempt == self._max_retries or monotonic() + pause >= deadline
                if is_last or pause > _MAX_PAUSE_S or not MEANINGS[failure.kind].may_pass or call.has_spoken:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _pause(self, attempt: int, failure: CallFailed) -> float:
        if failure.retry_after_s is not None:
            return failure.retry_after_s
        jitter = 1 - random.random() / 4  # noqa: S311 - spreads clients, keeps no secret
        return min(self._back_off_s * 2.0**attempt * jitter, _MAX_PAUSE_S)

    async def _negotiate(self, call: "_Call") -> Completion:
        """One try; parameters the endpoint refuses by name are left out until it accepts, and that is remembered."""
        refused = self._refused
        while True:
            body = call.body(refused)
            try:
                completion = await self._send(body, call)
            except CallFailed as failure:
                named = _refused_part(failure, body)
                if named is None:
                    raise
                refused |= {named}
            else:
                self._refused |= refused
                return completion

    async def _send(self, body: dict[str, Any], call: "_Call") -> Completion:
        client = await self._client_here()
        async with client.send(body) as response:
            return await read_completion(response.chunks, response.content_type, call.tokens)

    async def _client_here(self) -> "Client":
        """The client of the running loop; a fork has a loop of its own and so gets a client of its own."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            open_client = await asyncio.to_thread(_load_transport)
            if loop not in self._clients:  # another call may have been faster
                self._clients[loop] = open_client(self._endpoint, self._timeout_s, self._max_in_flight)
        return self._clients[loop]


@contextmanager
def _translated() -> Iterator[None]:
    """Turns what fails inside into `LlmUnavailable`."""
    try:
        yield
    except TimeoutError as exc:
        raise unavailable(CallFailed("timeout")) from exc
    except CallFailed as exc:
        raise unavailable(exc) from exc


def _load_transport() -> "type[Client]":
    from common.llm.transport import Client  # the import costs over half a second, see there

    return Client


class _Tokens:
    """Passes tokens on and remembers that there were any."""

    def __init__(self, on_token: OnToken) -> None:
        self._on_token = on_token
        self.has_spoken = False

    def __call__(self, piece: str) -> None:
        self.has_spoken = True
        self._on_token(piece)


class _Call:
    """What one call asks for."""

    def __init__(self, model: str, messages: Sequence[Message], tokens: _Tokens | None, max_tokens: int) -> None:
        self._model = model
        self._messages = list(messages)
        self._max_tokens = max_tokens
        self.tokens = tokens

    @property
    def has_spoken(self) -> bool:
        """Whether tokens have been given out, so that a second try would repeat them."""
        return self.tokens is not None and self.tokens.has_spoken

    def body(self, refused: frozenset[str]) -> dict[str, Any]:
        """The request's parameters without the `refused` ones."""
        token_limit = next((name for name in _TOKEN_LIMITS if name not in refused), None)
        optional: dict[str, Any] = {"temperature": 0}
        if token_limit:
            optional[token_limit] = self._max_tokens
        if "plain" in refused or (self.tokens and "stream" not in refused):
            optional |= {"stream": True, "stream_options": {"include_usage": True}}
        return {
            "model": self._model,
            "messages": _without_system(self._messages) if "system" in refused else self._messages,
            **{name: value for name, value in optional.items() if name not in refused},
        }


def _without_system(messages: list[Message]) -> list[Message]:
    return [{"role": "user", "content": "\n\n".join(message["content"] for message in messages)}]


def _refused_part(failure: CallFailed, body: dict[str, Any]) -> str | None:
    if failure.kind != "request":
        return None
    sent = [name for name in _NEGOTIABLE if name in body]
    sent += [] if "stream" in body else ["plain"]
    sent += ["system"] if body["messages"][0]["role"] == "system" else []
    return next((name for name in sent if _NEGOTIABLE[name].search(failure.detail)), None)
