"""A small server that speaks the OpenAI chat-completions protocol over a real socket and says what a test tells it to.

The model is the one part that tests can't have for real; everything around it (the openai client, its connections,
retries, streaming and cancellation) is exercised against this server instead of a mock. It runs an asyncio loop of its
own in a thread, parses just enough HTTP/1.1, and answers an undelayed reply without starting a task, so that a
benchmark with several hundred connections measures its client and not this file.

    with OpenAiServer() as server:
        server.replies(Reply("SELECT 1"), Reply(status=429, headers={"Retry-After": "1"}))   # one each, in order
        server.default = lambda request: Reply("echo " + request.question)                   # when the queue is empty

By hand: `python -m tests.openai_server --port 9000 --script demo`, then OPENAI_BASE_URL=http://127.0.0.1:9000/v1.
"""

import argparse
import asyncio
import json
import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

Ending = Literal["complete", "disconnect", "silence"]
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
_EVENT_STREAM = "text/event-stream; charset=utf-8"
_log = logging.getLogger(__name__)


class Gate:
    """A point in a reply where the server stops until the test opens it; `reached` tells the test it got there."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._open = threading.Event()
        self._waiter: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """Lets the reply go on; callable from any thread, before or after the server gets there."""
        self._open.set()
        if self._loop and self._waiter:
            self._loop.call_soon_threadsafe(self._waiter.set)

    async def wait(self) -> None:
        """Called by the server."""
        self._loop, self._waiter = asyncio.get_running_loop(), asyncio.Event()
        self.reached.set()
        if not self._open.is_set():
            await self._waiter.wait()


@dataclass(frozen=True)
class Request:
    """One call of the endpoint as the client sent it; `disconnected` is set when it left before the reply ended."""

    path: str
    headers: Mapping[str, str]
    params: Mapping[str, Any]
    connection: int
    disconnected: threading.Event = field(default_factory=threading.Event)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the prompt."""
        return list(self.params.get("messages", []))

    @property
    def question(self) -> str:
        """The text of the last message."""
        return str(self.messages[-1]["content"]) if self.messages else ""

    @property
    def is_stream(self) -> bool:
        """Whether the client asked for server-sent events."""
        return bool(self.params.get("stream"))


@dataclass(frozen=True)
class Reply:
    """One scripted reply.

    Attributes:
        text: what the model says.
        pieces: the same as a stream: a str is one chunk, a float a pause in seconds, a Gate waits for the test, bytes
            go out raw. None cuts `text` into words.
        delay_s: pause before the first byte. A `gate` holds the reply back until the test opens it.
        status, headers, body: an answer that is not a completion; `body` (str, bytes or JSON-able) replaces everything.
        ending: `complete`, or after the last piece `disconnect` (the connection breaks) or `silence` (it stays open).
        repeat: sends the pieces again and again until the client leaves.
        usage: whether the endpoint reports tokens (in streams only when the client asks for it).
        message: extra keys of the message (`refusal`, `reasoning_content`, …).
    """

    text: str | None = ""
    pieces: Sequence[str | float | bytes | Gate] | None = None
    delay_s: float = 0.0
    gate: Gate | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    ending: Ending = "complete"
    repeat: bool = False
    finish_reason: str | None = "stop"
    usage: bool = True
    message: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_immediate(self) -> bool:
        """Whether the whole reply can be written at once."""
        timed = any(isinstance(piece, (float, int, Gate)) for piece in self.pieces or ())
        return not (self.delay_s or self.gate or self.repeat or timed or self.ending != "complete")

    def stream_pieces(self) -> Sequence[str | float | bytes | Gate]:
        """`pieces`, or the text word by word."""
        return re.findall(r"\s*\S+|\s+$", self.text or "") if self.pieces is None else self.pieces

    def whole_text(self) -> str | None:
        """`text`, or the text among the pieces."""
        if self.pieces is None:
            return self.text
        return "".join(piece for piece in self.pieces if isinstance(piece, str))


Script = Callable[[Request], Reply]


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


def _usage(request: Request, text: str) -> dict[str, int]:
    prompt, completion = _tokens(json.dumps(request.messages)), _tokens(text)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _head(status: int, content_type: str, headers: Mapping[str, str], length: int | None) -> bytes:
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}", f"Content-Type: {content_type}", framing]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def _completion(request: Request, reply: Reply) -> dict[str, Any]:
    text = reply.whole_text()
    message = {"role": "assistant", "content": text, **reply.message}
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": request.params.get("model", "scripted"),
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
    }
    return {**body, "usage": _usage(request, text or "")} if reply.usage else body


def _chunk(request: Request, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": request.params.get("model", "scripted"),
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}],
    }


def _closing(request: Request, reply: Reply) -> bytes:
    """The events after the last piece: finish reason, usage when asked for, `[DONE]`."""
    data = _event(_chunk(request, {}, reply.finish_reason)) if reply.finish_reason else b""
    if reply.usage and (request.params.get("stream_options") or {}).get("include_usage"):
        usage = _usage(request, reply.whole_text() or "")
        data += _event({**_chunk(request, {}), "choices": [], "usage": usage})
    return data + b"data: [DONE]\n\n"


def _error_body(status: int) -> dict[str, Any]:
    return {"error": {"message": f"scripted status {status}", "type": "scripted", "param": None, "code": None}}


def _plain_answer(request: Request, reply: Reply) -> bytes:
    body = reply.body
    if body is None:
        body = _completion(request, reply) if reply.status == 200 else _error_body(reply.status)
    text = isinstance(body, (str, bytes))
    data = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else json.dumps(body).encode()
    return _head(reply.status, "text/html" if text else "application/json", reply.headers, len(data)) + data


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
        self.closed.set()

    def close(self) -> None:
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
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
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
        self._current = request
        self._task = asyncio.get_running_loop().create_task(self._perform(request, reply))

    def _whole(self, request: Request, reply: Reply) -> bytes:
        if not request.is_stream or reply.status != 200 or reply.body is not None:
            return _plain_answer(request, reply)
        pieces = b"".join(self._frame(request, piece) for piece in reply.stream_pieces())
        head = _head(200, _EVENT_STREAM, reply.headers, None)
        return head + _chunked(pieces + _closing(request, reply)) + b"0\r\n\r\n"

    @staticmethod
    def _frame(request: Request, piece: Any) -> bytes:
        return piece if isinstance(piece, bytes) else _event(_chunk(request, {"content": piece}))

    async def _perform(self, request: Request, reply: Reply) -> None:
        """Writes a reply that takes time, then serves what was pipelined meanwhile."""
        await asyncio.sleep(reply.delay_s)
        if reply.gate:
            await reply.gate.wait()
        if request.is_stream and reply.status == 200 and reply.body is None:
            await self._stream(request, reply)
        elif reply.ending == "complete":
            self._transport.write(_plain_answer(request, reply))
        else:
            answer = _plain_answer(request, reply)
            self._transport.write(answer[: len(answer) - 20])
        await self._end(reply)

    async def _stream(self, request: Request, reply: Reply) -> None:
        self._transport.write(_head(200, _EVENT_STREAM, reply.headers, None))
        while True:
            for piece in reply.stream_pieces():
                await self._perform_piece(request, piece)
            if not reply.repeat:
                break
            await asyncio.sleep(0.01 if self._transport.get_write_buffer_size() > 1_000_000 else 0)
        if reply.ending == "complete":
            self._transport.write(_chunked(_closing(request, reply)) + b"0\r\n\r\n")

    async def _perform_piece(self, request: Request, piece: Any) -> None:
        if isinstance(piece, Gate):
            await piece.wait()
        elif isinstance(piece, (int, float)):
            await asyncio.sleep(piece)
        else:
            self._transport.write(_chunked(self._frame(request, piece)))

    async def _end(self, reply: Reply) -> None:
        if reply.ending == "silence":
            await asyncio.Event().wait()
        self._task, self._current = None, None
        if reply.ending == "disconnect":
            self._transport.close()
        else:
            self.data_received(b"")


class OpenAiServer:
    """The server in its own thread; a context manager. `url` is what OPENAI_BASE_URL would be."""

    def __init__(self, script: Script | None = None, port: int = 0) -> None:
        self.default: Script = script or (lambda request: Reply(status=500))
        self.requests: list[Request] = []
        self.open_connections: set[_Connection] = set()
        self.connection_count = 0
        self.port = port
        self._queue: deque[Reply] = deque()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openai-server", daemon=True)

    @property
    def root(self) -> str:
        """Scheme, host and port: the Azure endpoint."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base URL of the OpenAI protocol."""
        return f"{self.root}/v1"

    def replies(self, *replies: Reply) -> None:
        """Queues replies, one per request; afterwards `default` answers (a 500 unless the test sets it)."""
        self._queue.extend(replies)

    def take_reply(self, request: Request) -> Reply:
        """Called by a connection: notes the request and gives its reply."""
        self.requests.append(request)
        if not request.path.partition("?")[0].endswith("/chat/completions"):
            return Reply(status=404)
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
        """Refuses new connections and breaks the open ones, as a server that goes down does."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)

    async def _start(self) -> None:
        self._listener = await self._loop.create_server(self._connect, "127.0.0.1", self.port, backlog=1024)
        self.port = self._listener.sockets[0].getsockname()[1]

    def _connect(self) -> _Connection:
        self.connection_count += 1
        return _Connection(self, self.connection_count)

    async def _stop(self) -> None:
        self._listener.close()
        open_now = tuple(self.open_connections)
        for connection in open_now:
            connection.close()
        await asyncio.gather(*(connection.closed.wait() for connection in open_now))


@pytest.fixture
def openai_server() -> Iterator[OpenAiServer]:
    """A fresh scripted server; unscripted requests get a 500."""
    with OpenAiServer() as server:
        yield server


def demo_script(request: Request) -> Reply:
    """Recognises Citu's own prompts well enough to try the service by hand: one fixed answer per kind of prompt."""
    prompt = "\n".join(str(message["content"]) for message in request.messages)
    kind = '{"type": "DATABASE", "confidence": 0.9, "reason": "scripted"}'
    answers = {"NO_SQL:": "```sql\nSELECT 1 AS n\n```", '"type"': kind}
    text = next((answer for marker, answer in answers.items() if marker in prompt), "This is a scripted reply.")
    pieces = [item for word in text.split(" ") for item in (f"{word} ", 0.05)]
    return Reply(pieces=pieces) if request.is_stream else Reply(text)


SCRIPTS: Mapping[str, Script] = {"demo": demo_script}


def main() -> None:
    """Serves until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--script", choices=SCRIPTS, default="demo")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    with OpenAiServer(SCRIPTS[options.script], options.port) as server:
        _log.info("OPENAI_BASE_URL=%s", server.url)
        threading.Event().wait()


if __name__ == "__main__":
    main()
