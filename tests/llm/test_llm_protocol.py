"""Endpoints that break HTTP itself, at the first call and at a later one, which does not go the
same way.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from common.errors import LlmUnavailable
from llm.openai_chat import OpenAiChat
from llm.providers import Endpoint
from tests.support.model_calls import HELLO

_BODY = json.dumps(
    {"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]}
).encode()
FINE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_BODY),
    _BODY,
)
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

BROKEN = {
    "nothing": b"",
    "noise": b"\x00\xff noise\r\n\r\n",
    "another protocol": b"220 mail.example ESMTP\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Ty",
    "a length that is none": OK + b"Content-Length: many\r\n\r\n{}",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a chunk that is none": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "half a chunk": OK + b'Transfer-Encoding: chunked\r\n\r\n40\r\n{"choices"',
    "less than its length": OK + b"Content-Length: 5000\r\n\r\n{}",
    "a coding that is none": OK + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    "an endless head": OK + b"X-Long: " + b"x" * 1_000_000 + b"\r\n\r\n",
    "a redirect to itself": (
        b"HTTP/1.1 307 Again\r\nLocation: /v1/chat/completions\r\nContent-Length: 0\r\n\r\n"
    ),
    "a redirect to nowhere": (
        b"HTTP/1.1 307 Again\r\nLocation: gopher://x\r\nContent-Length: 0\r\n\r\n"
    ),
}


@asynccontextmanager
async def raw_server(answer: Callable[[], bytes]) -> AsyncIterator[str]:
    """Sends `answer` to each request, whatever it is, and hangs up; yields its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(re.findall(rb"(?i)content-length: (\d+)", head)[0]))
        writer.write(answer())
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("fine_before", [0, 1])
def test_broken_http_is_unavailability(kind: str, fine_before: int) -> None:
    async def scenario() -> None:
        answers = [FINE] * fine_before
        async with raw_server(lambda: answers.pop() if answers else BROKEN[kind]) as url:
            model = OpenAiChat(
                Endpoint("openai", "m", url, "key"), timeout_s=10, max_retries=0, max_tokens=10
            )
            for _ in range(fine_before):
                assert (await model.complete(HELLO)).text == "fine"
            for on_token in (None, lambda _: None):
                with pytest.raises(LlmUnavailable):
                    await model.complete(HELLO, on_token=on_token)
            await model.aclose()

    asyncio.run(scenario())
