"""A `ChatModel` over any OpenAI-compatible endpoint, with time limits and further tries.

Further tries are made here and not by the openai client, because a question has a deadline: the
client would wait for a `Retry-After` of two minutes, try again what timed out, and give up on a
body that broke off before its first token.
"""

import asyncio
import logging
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from common.fair_slots import FairSlots
from llm.call_failures import MEANINGS, CallFailed, unavailable
from llm.call_request import CallRequest, TokenRelay
from llm.chat_model import AnyMessage, Completion, OnToken
from llm.completion_stream import read_completion
from llm.providers import Endpoint
from llm.tool_calls import ToolOffer

if TYPE_CHECKING:
    from llm.transport import LlmClient

_log = logging.getLogger(__name__)

_MAX_IN_FLIGHT = 256
_BACK_OFF_S = 0.5  # pause before the second try; doubled for every further one
_PING_TIMEOUT_S = 5.0
_MAX_PAUSE_S = 10.0  # if an endpoint asks for a longer pause, the call fails instead


class OpenAiChat:
    """One model at one endpoint.

    Args:
        timeout_s: seconds one call may take, from waiting for its turn to the last byte of the last
            try.
        max_retries: further tries after 429, 5xx and broken connections. There is none after a
            timeout, and none once a token has been given out, because it would be given out again.
        max_tokens: longest reply, in tokens.
        max_in_flight: requests sent and not answered at any moment, per event loop; further calls
            wait for their turn within their `timeout_s`.
        share: the part of these that one caller may have.
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
        share: float = 1.0,
        back_off_s: float = _BACK_OFF_S,
    ) -> None:
        self.name = endpoint.model
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._max_tokens = max_tokens
        self._max_in_flight = max_in_flight
        self._share = share
        self._back_off_s = back_off_s
        self._refused: frozenset[str] = frozenset()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, LlmClient] = WeakKeyDictionary()

    async def complete(
        self,
        messages: Sequence[AnyMessage],
        *,
        on_token: OnToken | None = None,
        max_tokens: int | None = None,
        offer: ToolOffer | None = None,
    ) -> Completion:
        tokens = None
        if on_token:
            tokens = TokenRelay(on_token)

        most = max_tokens or self._max_tokens
        call = CallRequest(self.name, messages, tokens, most, offer, self._endpoint.thinking)
        with _translated():
            await self._client_here()  # loading it is no part of the endpoint's time
            started = monotonic()
            async with asyncio.timeout(self._timeout_s):
                completion = await self._try_repeatedly(call, started + self._timeout_s)

        _log.debug(
            "model call", extra={"model": self.name, "ms": round((monotonic() - started) * 1000)}
        )
        return completion

    async def warm(self) -> None:
        with _translated():
            await self._client_here()

    async def ping(self) -> None:
        with _translated():
            client = await self._client_here()
            async with asyncio.timeout(min(self._timeout_s, _PING_TIMEOUT_S)):
                await client.ping()

    async def model_names(self) -> tuple[str, ...]:
        """Return the names of the endpoint's models; empty when it has no such list.

        Raises:
            LlmUnavailable: it does not answer within a few seconds, or refuses the key.
        """
        with _translated():
            client = await self._client_here()
            async with asyncio.timeout(min(self._timeout_s, _PING_TIMEOUT_S)):
                return await client.model_names()

    @property
    def refused_parts(self) -> frozenset[str]:
        """Return what the endpoint has refused by name of the requests so far."""
        return self._refused

    async def aclose(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.aclose()

    async def _try_repeatedly(self, call: CallRequest, deadline: float) -> Completion:
        for attempt in range(self._max_retries + 1):
            try:
                return await self._negotiate(call)
            except CallFailed as failure:
                tried = {"model": self.name, "attempt": attempt + 1}
                _log.warning("model call failed: %s", failure, extra=tried)
                may_pass = MEANINGS[failure.kind].may_pass
                if call.has_spoken or not may_pass:
                    raise

                is_last = attempt == self._max_retries
                if is_last:
                    raise

                pause = self._pause(attempt, failure)
                has_time = monotonic() + pause < deadline
                if pause > _MAX_PAUSE_S or not has_time:
                    raise

            await asyncio.sleep(pause)

        raise AssertionError("unreachable: the last attempt returns or raises")

    def _pause(self, attempt: int, failure: CallFailed) -> float:
        if failure.retry_after_s is not None:
            return failure.retry_after_s

        jitter = 1 - random.random() / 4  # noqa: S311 - spreads clients, keeps no secret
        pause = self._back_off_s * 2.0**attempt * jitter
        return min(pause, _MAX_PAUSE_S)

    async def _negotiate(self, call: CallRequest) -> Completion:
        """Try once; leave out, now and in later requests, what the endpoint refuses by name."""
        refused = self._refused
        while True:
            body = call.body(refused)
            try:
                completion = await self._send(body, call)
            except CallFailed as failure:
                named = call.refused_part(failure, body)
                if named is None:
                    raise

                refused |= {named}
            else:
                self._refused |= refused
                return completion

    async def _send(self, body: dict[str, Any], call: CallRequest) -> Completion:
        client = await self._client_here()
        async with client.send(body) as response:
            return await read_completion(
                response.chunks, response.content_type, call.tokens, call.assembly(), call.limit
            )

    async def _client_here(self) -> "LlmClient":
        """Return the running loop's client; a forked process has a loop and a client of its own."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            open_client = await asyncio.to_thread(_load_transport)
            if loop not in self._clients:  # another call may have been faster
                slots = FairSlots(self._max_in_flight, self._share)
                self._clients[loop] = open_client(self._endpoint, self._timeout_s, slots)

        return self._clients[loop]


@contextmanager
def _translated() -> Iterator[None]:
    """Raise `LlmUnavailable` for what fails inside."""
    try:
        yield
    except TimeoutError as exc:
        raise unavailable(CallFailed("timeout")) from exc
    except CallFailed as exc:
        raise unavailable(exc) from exc


def _load_transport() -> "type[LlmClient]":
    from llm.transport import LlmClient  # the import costs over half a second, see there

    return LlmClient
