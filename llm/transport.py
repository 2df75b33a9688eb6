"""The openai package's client, and the translation of its exceptions into `CallFailed`.

Imported at the first use of a model: importing openai takes over half a second, which neither
`import unified_api` nor a Citu without a model should wait for.
"""

import json
import logging
import math
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, cast
from urllib.request import getproxies

import aiohttp
import httpx2
import openai

from common.fair_slots import FairSlots
from common.tracing import outgoing_headers
from llm.call_failures import CallFailed, kind_of
from llm.providers import Endpoint

_CONNECT_TIMEOUT_S = 10.0
_SPARE_CONNECTIONS = 4  # for those who only ask whether the endpoint is there

# At DEBUG the openai client logs requests with their headers and bodies, which hold keys and
# questions.
logging.getLogger("openai").setLevel(logging.WARNING)
logging.getLogger("httpx2").setLevel(logging.WARNING)

_MALFORMED = (httpx2.UnsupportedProtocol, httpx2.InvalidURL, UnicodeError)
_BROKEN_OFF = (httpx2.TransportError, aiohttp.ClientError)
# aiohttp's own exceptions come through for answers that are not HTTP, because httpx2 has no
# exception for these.
_ERRORS = (
    openai.OpenAIError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    UnicodeError,
)


@dataclass
class Response:
    """An answer with status 200 whose body has not been read."""

    content_type: str
    chunks: AsyncGenerator[bytes, None]


class LlmClient:
    """The client of one event loop. Connections can't be shared between loops.

    Args:
        timeout_s: longest pause between two pieces of an answer, in seconds.
        slots: for requests sent and not answered; further ones wait for their caller's turn.

    Raises:
        CallFailed: the endpoint's address is malformed.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float, slots: FairSlots) -> None:
        timeout = httpx2.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S))
        limits = httpx2.Limits(max_connections=slots.size + _SPARE_CONNECTIONS)
        proxies = getproxies().values()
        uses_socks = any(proxy.startswith("socks") for proxy in proxies)
        if uses_socks:
            raise CallFailed("settings")  # aiohttp would talk to it as to an HTTP proxy

        try:
            # aiohttp instead of httpcore: it takes less than half the time, however many requests
            # are in flight.
            # Redirects are not followed: they would send the key and the prompt to another address.
            self._http = openai.DefaultAioHttpClient(
                timeout=timeout,
                limits=limits,
                follow_redirects=False,
                verify=trusted_certificates(),
            )
            self._api = _BUILDERS[endpoint.provider](endpoint, timeout, self._http)
        except (openai.OpenAIError, httpx2.InvalidURL, ValueError):
            # The address is malformed, or that of a proxy in the environment.
            raise CallFailed("settings") from None

        self._slots = slots
        self._first: httpx2.Request | None = None  # further requests are copies of it

    @asynccontextmanager
    async def send(self, body: dict[str, Any]) -> AsyncIterator[Response]:
        """Send one request when it is its turn; close the response at the end, read or not.

        Raises:
            CallFailed: anything went wrong, also while the body was read.
        """
        slot = await self._slots.acquire()
        try:
            async with aclosing(await self._post(body)) as response:
                yield Response(response.headers.get("content-type", ""), response.aiter_bytes())
        except _ERRORS as exc:
            # Not chained: these exceptions hold addresses and what the endpoint said, which may
            # repeat the key.
            raise _failure(exc) from None
        finally:
            slot.release()

    async def _post(self, body: dict[str, Any]) -> httpx2.Response:
        """Send the request and read the answer's head.

        The openai client knows how addresses, versions and keys are written into a request, but
        takes as long for it as sending takes. As they never change, it writes the first request,
        and the others are copies with another body.
        """
        if self._first is not None:
            return await _send(self._http, _copy(self._first, body))

        # Not `chat.completions.create`: that would walk through the messages by their types and
        # wrap the response.
        answer: object = await self._api.post(
            "/chat/completions",
            body=body,
            cast_to=httpx2.Response,
            stream=True,
            stream_cls=openai.AsyncStream[Any],
            options={"headers": outgoing_headers()},
        )
        response = cast(httpx2.Response, answer)  # as `cast_to` asks for
        response.request.headers.pop("content-length", None)  # aiohttp adds it
        response.request.headers.pop("traceparent", None)  # the next one has its own
        response.request.headers.pop("tracestate", None)
        self._first = response.request
        return response

    async def ping(self) -> None:
        """Ask for the list of models; an endpoint that has no such list (404) counts as reachable.

        Raises:
            CallFailed: there was no answer, or a failure that a completion would have as well.
        """
        try:
            async with self._api.models.with_streaming_response.list():
                return
        except _ERRORS as exc:
            failure = _failure(exc)
            is_reachable = failure.kind in {"model", "request"}
            if not is_reachable:
                raise failure from None

    async def model_names(self) -> tuple[str, ...]:
        """Return the names of the endpoint's models; empty when it has no list that can be read.

        Raises:
            CallFailed: as `ping`.
        """
        try:
            async with self._api.models.with_streaming_response.list() as answer:
                return _names_in(await answer.read())
        except _ERRORS as exc:
            failure = _failure(exc)
            is_reachable = failure.kind in {"model", "request"}
            if is_reachable:
                return ()

            raise failure from None

    async def aclose(self) -> None:
        await self._api.close()


def _names_in(body: bytes) -> tuple[str, ...]:
    try:
        entries = json.loads(body)["data"]
        return tuple(str(entry["id"]) for entry in entries)
    except (ValueError, TypeError, LookupError, RecursionError):
        return ()


def trusted_certificates() -> ssl.SSLContext:
    """Return the certificates that the machine or its environment trusts, read once (20 ms)."""
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _certificates(_file: str | None, _dir: str | None) -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def _copy(request: httpx2.Request, body: dict[str, Any]) -> httpx2.Request:
    """Return the request with another body: as a stream, for which httpx2 writes no headers."""
    stream = httpx2.ByteStream(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())
    copy = httpx2.Request(request.method, request.url, stream=stream, extensions=request.extensions)
    copy.headers = request.headers
    if continued := outgoing_headers():
        # `httpx2.Headers({**request.headers, ...})` would search all of them for each one.
        copy.headers = request.headers.copy()
        for name, value in continued.items():
            copy.headers[name] = value

    copy.read()  # what was read is sent as it is, a stream in pieces
    return copy


async def _send(http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Send a request as the openai client does, and raise what that raises."""
    try:
        response = await http.send(request, stream=True)
    except httpx2.TimeoutException as exc:
        raise openai.APITimeoutError(request) from exc
    except httpx2.TransportError as exc:
        raise openai.APIConnectionError(request=request) from exc

    if response.is_success:
        return response

    async with aclosing(response):
        await response.aread()

    try:
        body = response.json()
    except ValueError:
        body = None

    error = response.text
    if isinstance(body, dict):
        error = body.get("error", body)

    raise openai.APIStatusError("", response=response, body=error)


def _open_openai(
    endpoint: Endpoint, timeout: httpx2.Timeout, http_client: httpx2.AsyncClient
) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        api_key=endpoint.api_key,
        base_url=endpoint.url,
        timeout=timeout,
        max_retries=0,
        http_client=http_client,
    )


def _open_azure(
    endpoint: Endpoint, timeout: httpx2.Timeout, http_client: httpx2.AsyncClient
) -> openai.AsyncOpenAI:
    return openai.AsyncAzureOpenAI(
        api_key=endpoint.api_key,
        azure_endpoint=endpoint.url,
        azure_deployment=endpoint.model,
        api_version=endpoint.api_version,
        timeout=timeout,
        max_retries=0,
        http_client=http_client,
    )


_BUILDERS: dict[
    str, Callable[[Endpoint, httpx2.Timeout, httpx2.AsyncClient], openai.AsyncOpenAI]
] = {
    "openai": _open_openai,
    "azure": _open_azure,
}


def _failure(exc: Exception) -> CallFailed:
    if isinstance(exc, openai.APIStatusError):
        return _status_failure(exc)

    cause: BaseException | None = exc
    if isinstance(exc, openai.APIConnectionError):
        cause = exc.__cause__
    if isinstance(cause, _MALFORMED):
        return CallFailed("settings")
    if isinstance(exc, openai.APITimeoutError):
        # An endpoint that could not be reached in time may be reached next time; one that hangs
        # would hang again.
        if isinstance(cause, httpx2.ConnectTimeout):
            return CallFailed("connection")

        return CallFailed("timeout")

    if isinstance(exc, openai.APIConnectionError):
        return CallFailed("connection")
    if isinstance(exc, httpx2.TimeoutException):
        return CallFailed("timeout")
    if isinstance(exc, _BROKEN_OFF):
        return CallFailed("broken")

    return CallFailed("unusable")


def _status_failure(exc: openai.APIStatusError) -> CallFailed:
    kind = kind_of(exc.body, exc.status_code)
    detail = f"{exc.message} {exc.body}"[:2000]
    return CallFailed(
        kind, status=exc.status_code, retry_after_s=_retry_after(exc.response), detail=detail
    )


def _retry_after(response: httpx2.Response) -> float | None:
    """Return the seconds of `Retry-After`; model endpoints don't use its other form, a date."""
    try:
        seconds = float(response.headers.get("retry-after", ""))
    except ValueError:
        return None

    is_usable = math.isfinite(seconds) and seconds >= 0
    if not is_usable:
        return None

    return seconds
