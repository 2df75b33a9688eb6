"""A small server that speaks the OpenAI chat-completions protocol over a real socket and sends the
replies of a test.

The model is the only part that tests replace; everything around it (the openai client, its
connections, retries, streaming and cancellation) is exercised against this server instead of a
mock. It runs an asyncio loop of its own in a thread, parses just enough HTTP/1.1, and answers an
undelayed reply without starting a task, so that a benchmark with several hundred connections
measures its client and not this file.

    with OpenAiServer() as server:
        server.replies(Reply("SELECT 1"), Reply(status=429, headers={"Retry-After": "1"}))   # one
                                                                                             each,
                                                                                             in
                                                                                             order
        server.default = lambda request: Reply("echo " + request.question)                   # when
                                                                                             the
                                                                                             queue
                                                                                             is
                                                                                             empty

A request that breaks the rules of the protocol (`openai_rules`) gets a 400 as a provider's,
whatever is queued, and fails the test at its end (`conftest.py`), also when the code under test has
lived with the refusal.

By hand: `python -m tests.support.openai_server --port 9000 --script demo`, then
OPENAI_BASE_URL=http://127.0.0.1:9000/v1.
"""

import argparse
import asyncio
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from tests.support.openai_replies import (
    EVENT_STREAM,
    Called,
    Gate,
    Reply,
    Request,
    chunk,
    chunked,
    closing,
    event,
    head,
    plain_answer,
    refusal,
)
from tests.support.openai_rules import violation

__all__ = ["Called", "Gate", "OpenAiServer", "Reply", "Request", "openai_server", "take_violations"]

Script = Callable[[Request], Reply]
_log = logging.getLogger(__name__)
_violations: deque[str] = deque()  # of all servers since they were last taken


def take_violations() -> list[str]:
    """Return what servers of this process have refused since the last time, because it breaks the
    protocol's rules.
    """
    taken = []
    while _violations:
        taken.append(_violations.popleft())
    return taken


class _Connection(asyncio.Protocol):
    """One keep-alive connection: collects a request, asks the script, writes the reply."""

    def __init__(self, server: "OpenAiServer", number: int) -> None:
        self._server = server
        self._number = number
        self._buffer = bytearray()
        self._transport: asyncio.Transport
        self._current: Request | None = None
        self._task: asyncio.Task[None] | None = None
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open_connections.discard(self)
        if self._task:
            self._task.cancel()
        if self._current:
            self._current.disconnected.set()
            self._server.in_flight -= 1
        self.closed.set()

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._current is None and (request := self._take_request()):
            self._answer(request)

    def _take_request(self) -> Request | None:
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return None
        first, *lines = self._buffer[:head_end].decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        body_end = head_end + 4 + int(headers.get("content-length", "0"))
        if len(self._buffer) < body_end:
            return None
        body = bytes(self._buffer[head_end + 4 : body_end])
        del self._buffer[:body_end]
        return Request(first.split(" ")[1], headers, json.loads(body or b"{}"), self._number)

    def _answer(self, request: Request) -> None:
        reply = self._server.take_reply(request)
        if reply.is_immediate:
            self._transport.write(self._whole(request, reply))
            return
        self._begin(request)
        self._task = asyncio.get_running_loop().create_task(self._perform(request, reply))

    def _begin(self, request: Request) -> None:
        self._current = request
        self._server.in_flight += 1
        self._server.most_in_flight = max(self._server.most_in_flight, self._server.in_flight)

    def _whole(self, request: Request, reply: Reply) -> bytes:
        if not request.is_stream or reply.status != 200 or reply.body is not None:
            return plain_answer(request, reply)
        pieces = b"".join(self._frame(request, piece) for piece in reply.stream_pieces())
        frames = chunked(pieces + closing(request, reply)) + b"0\r\n\r\n"
        return head(200, EVENT_STREAM, reply.headers, None) + frames

    @staticmethod
    def _frame(request: Request, piece: Any) -> bytes:
        if isinstance(piece, bytes):
            return piece
        return event(chunk(request, piece if isinstance(piece, Mapping) else {"content": piece}))

    async def _perform(self, request: Request, reply: Reply) -> None:
        """Write a reply that takes time, then serve what was pipelined meanwhile."""
        await asyncio.sleep(reply.delay_s)
        if reply.gate:
            await reply.gate.wait()
        if request.is_stream and reply.status == 200 and reply.body is None:
            await self._stream(request, reply)
        elif reply.repeat:
            await self._drip()
        else:
            answer = plain_answer(request, reply)
            self._transport.write(answer if reply.ending == "complete" else answer[:-20])
        await self._end(reply)

    async def _stream(self, request: Request, reply: Reply) -> None:
        self._transport.write(head(200, EVENT_STREAM, reply.headers, None))
        while True:
            for piece in reply.stream_pieces():
                await self._perform_piece(request, piece)
            if not reply.repeat:
                break
            await asyncio.sleep(0.01 if self._transport.get_write_buffer_size() > 1_000_000 else 0)
        if reply.ending == "complete":
            self._transport.write(chunked(closing(request, reply)) + b"0\r\n\r\n")

    async def _drip(self) -> None:
        """Send a plain reply's blanks without end."""
        self._transport.write(head(200, "application/json", {}, None))
        while True:
            self._transport.write(chunked(b" "))
            await asyncio.sleep(0.02)

    async def _perform_piece(self, request: Request, piece: Any) -> None:
        if isinstance(piece, Gate):
            await piece.wait()
        elif isinstance(piece, (int, float)):
            await asyncio.sleep(piece)
        else:
            self._transport.write(chunked(self._frame(request, piece)))

    async def _end(self, reply: Reply) -> None:
        if reply.ending == "silence":
            await asyncio.Event().wait()
        self._task, self._current = None, None
        self._server.in_flight -= 1
        if reply.ending == "disconnect":
            self._transport.close()
        else:
            self.data_received(b"")


class OpenAiServer:
    """The server in its own thread; a context manager.

    Attributes:
        default: answers when no queued reply is left.
        models: the reply to every request for the list of models.
        embeddings: answers every request for vectors.
        requests: what was received, in order.
        connection_count: connections accepted so far.
        in_flight: delayed or gated requests that are not answered yet; `most_in_flight`: the most
            there have been.
    """

    def __init__(
        self, script: Script | None = None, port: int = 0, address: str = "127.0.0.1"
    ) -> None:
        self.default: Script = script or (lambda request: Reply(status=500))
        self.embeddings: Script = lambda request: Reply(status=404)
        self.models = Reply(body={"object": "list", "data": []})
        self.requests: list[Request] = []
        self.open_connections: set[_Connection] = set()
        self.connection_count = 0
        self.in_flight = self.most_in_flight = 0
        self.port = port
        self._address = address
        self._queue: deque[Reply] = deque()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="openai-server", daemon=True
        )

    @property
    def root(self) -> str:
        """Return scheme, host and port: Azure's endpoint. `url` is the base URL of the protocol."""
        return f"http://{self._address}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def replies(self, *replies: Reply) -> None:
        """Queue replies, one per request; afterwards `default` answers (a 500 unless the test sets
        it).
        """
        self._queue.extend(replies)

    def forget_replies(self) -> None:
        """Drop queued replies, so that those left from one question don't answer the next."""
        self._queue.clear()

    def take_reply(self, request: Request) -> Reply:
        """Note a request and return its reply; called by a connection."""
        self.requests.append(request)
        path = request.path.partition("?")[0]
        if path.endswith("/models"):
            return self.models
        if path.endswith("/embeddings"):
            return self.embeddings(request)
        if not path.endswith("/chat/completions"):
            return Reply(status=404)
        problem = violation(request.params)
        if problem:
            _violations.append(problem)
            return refusal(problem)
        return self._queue.popleft() if self._queue else self.default(request)

    def __enter__(self) -> "OpenAiServer":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *exc_info: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def close(self) -> None:
        """Refuse new connections and breaks the open ones, as a server that goes down does."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)

    async def _start(self) -> None:
        self._listener = await self._loop.create_server(
            self._connect, self._address, self.port, backlog=1024
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    def _connect(self) -> _Connection:
        self.connection_count += 1
        return _Connection(self, self.connection_count)

    async def _stop(self) -> None:
        self._listener.close()
        open_now = tuple(self.open_connections)
        for connection in open_now:
            connection.abort()
        await asyncio.gather(*(connection.closed.wait() for connection in open_now))


@pytest.fixture
def openai_server() -> Iterator[OpenAiServer]:
    """Yield a fresh scripted server; unscripted requests get a 500."""
    with OpenAiServer() as server:
        yield server


def demo_script(request: Request) -> Reply:
    """Recognise Citu's own prompts well enough to try the service by hand: one fixed answer per
    kind of prompt.
    """
    prompt = "\n".join(str(message["content"]) for message in request.messages)
    kind = '{"type": "DATABASE", "confidence": 0.9, "reason": "scripted"}'
    answers = {"NO_SQL:": "```sql\nSELECT 1 AS n\n```", '"type"': kind}
    text = next(
        (answer for marker, answer in answers.items() if marker in prompt),
        "This is a scripted reply.",
    )
    pieces = [item for word in text.split(" ") for item in (f"{word} ", 0.05)]
    return Reply(pieces=pieces) if request.is_stream else Reply(text)


SCRIPTS: Mapping[str, Script] = {"demo": demo_script}


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--script", choices=SCRIPTS, default="demo")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    with OpenAiServer(SCRIPTS[options.script], options.port) as server, suppress(KeyboardInterrupt):
        _log.info("OPENAI_BASE_URL=%s", server.url)
        threading.Event().wait()


if __name__ == "__main__":
    main()
