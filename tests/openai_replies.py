"""What a scripted server says: replies as tests write them, and as the OpenAI protocol spells them."""

import asyncio
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Ending = Literal["complete", "disconnect", "silence"]
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
EVENT_STREAM = "text/event-stream; charset=utf-8"


class Gate:
    """A point in a reply where the server stops until the test opens it; `reached` tells the test it got there."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._is_open = threading.Event()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def open(self) -> None:
        """Lets every reply go on that waits here, now or later; callable from any thread."""
        self._is_open.set()
        for loop, event in self._waiting:
            loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        """Called by the server."""
        event = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), event))
        self.reached.set()
        if not self._is_open.is_set():
            await event.wait()


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
        repeat: sends the pieces (of a plain reply: blanks) again and again until the client leaves.
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


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


def _usage(request: Request, text: str) -> dict[str, int]:
    prompt, completion = _tokens(json.dumps(request.messages)), _tokens(text)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def head(status: int, content_type: str, headers: Mapping[str, str], length: int | None) -> bytes:
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}", f"Content-Type: {content_type}", framing]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def completion(request: Request, reply: Reply) -> dict[str, Any]:
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


def chunk(request: Request, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": request.params.get("model", "scripted"),
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}],
    }


def closing(request: Request, reply: Reply) -> bytes:
    """The events after the last piece: finish reason, usage when asked for, `[DONE]`."""
    data = event(chunk(request, {}, reply.finish_reason)) if reply.finish_reason else b""
    if reply.usage and (request.params.get("stream_options") or {}).get("include_usage"):
        usage = _usage(request, reply.whole_text() or "")
        data += event({**chunk(request, {}), "choices": [], "usage": usage})
    return data + b"data: [DONE]\n\n"


def _error_body(status: int) -> dict[str, Any]:
    return {"error": {"message": f"scripted status {status}", "type": "scripted", "param": None, "code": None}}


def plain_answer(request: Request, reply: Reply) -> bytes:
    body = reply.body
    if body is None:
        body = completion(request, reply) if reply.status == 200 else _error_body(reply.status)
    content_type = "text/html" if isinstance(body, (str, bytes)) else "application/json"
    text = body if isinstance(body, (str, bytes)) else json.dumps(body)
    data = text.encode() if isinstance(text, str) else text
    return head(reply.status, content_type, reply.headers, len(data)) + data
