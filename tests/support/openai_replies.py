"""Replies of the scripted server: as tests write them, and as the OpenAI protocol sends them.

A reply with tool calls is `Reply(calls=[Called("count_rows", {"table": "shop"})])`. Streamed, each
call is sent like OpenAI does it: id and name first, then the arguments in pieces. Other ways are
deltas among the pieces, which are sent as they are; `deltas_of` cuts a call's arguments wherever a
test wants.
"""

import asyncio
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

Ending = Literal["complete", "disconnect", "silence"]
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    429: "Too Many Requests",
}
EVENT_STREAM = "text/event-stream; charset=utf-8"
_ARGUMENT_PIECE = 7  # characters


class Gate:
    """A point in a reply where the server stops until the test opens it; `reached` tells the test
    it got there.
    """

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._is_open = threading.Event()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def open(self) -> None:
        """Let every reply go on that waits here, now or later; callable from any thread."""
        self._is_open.set()
        for loop, event in self._waiting:
            loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        """Wait until it is open; called by the server."""
        event = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), event))
        self.reached.set()
        if not self._is_open.is_set():
            await event.wait()


Piece = str | float | bytes | Gate | Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """One call of the endpoint as the client sent it; `disconnected` is set when it left before the
    reply ended.
    """

    path: str
    headers: Mapping[str, str]
    params: Mapping[str, Any]
    connection: int
    disconnected: threading.Event = field(default_factory=threading.Event)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the messages of the prompt."""
        return list(self.params.get("messages", []))

    @property
    def question(self) -> str:
        """Return the text of the last message."""
        return str(self.messages[-1].get("content") or "") if self.messages else ""

    @property
    def tool_names(self) -> list[str]:
        """Return the names of the tools that are offered."""
        return [tool["function"]["name"] for tool in self.params.get("tools", [])]

    @property
    def is_stream(self) -> bool:
        """Tell whether the client asked for server-sent events."""
        return bool(self.params.get("stream"))


@dataclass(frozen=True)
class Called:
    """A scripted tool call; `arguments` that are text go out as they are, whatever they hold."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def arguments_text(self) -> str:
        """Return the arguments as the protocol spells them."""
        return (
            self.arguments
            if isinstance(self.arguments, str)
            else json.dumps(self.arguments, ensure_ascii=False)
        )

    def spelled(self, place: int) -> dict[str, Any]:
        """Return the call in a whole message; calls without an id are numbered."""
        function = {"name": self.name, "arguments": self.arguments_text}
        return {"id": self.id or f"call_scripted_{place}", "type": "function", "function": function}


def deltas_of(call: Called, place: int, cuts: Sequence[int] = ()) -> list[dict[str, Any]]:
    """Return the deltas of one streamed call, its arguments cut at these places."""
    text, edges = call.arguments_text, sorted({0, *cuts, len(call.arguments_text)})
    first = {
        **call.spelled(place),
        "index": place,
        "function": {"name": call.name, "arguments": ""},
    }
    pieces = [text[start:end] for start, end in pairwise(edges) if end <= len(text)]
    rest = [{"index": place, "function": {"arguments": piece}} for piece in pieces]
    return [{"tool_calls": [entry]} for entry in (first, *rest)]


@dataclass(frozen=True)
class Reply:
    """One scripted reply.

    Attributes:
        text: what the model says.
        pieces: the same as a stream: a str is one chunk, a float a pause in seconds, a Gate waits
            for the test, bytes go out raw, a mapping is a delta. None cuts `text` into words and
            the arguments of `calls` into pieces.
        calls: the tools it calls after its text.
        delay_s: pause before the first byte. A `gate` holds the reply back until the test opens it.
        status, headers, body: an answer that is not a completion; `body` (str, bytes or JSON-able)
            replaces everything.
        ending: `complete`, or after the last piece `disconnect` (the connection breaks) or
            `silence` (it stays open).
        repeat: sends the pieces (of a plain reply: blanks) again and again until the client leaves.
        finish_reason: None leaves it out; a reply with `calls` that would stop says `tool_calls`.
        usage: whether the endpoint reports tokens (in streams only when the client asks for it).
        message: extra keys of the message (`refusal`, `reasoning_content`, …).
    """

    text: str | None = ""
    pieces: Sequence[Piece] | None = None
    calls: Sequence[Called] = ()
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
        """Tell whether the whole reply can be written at once."""
        timed = any(isinstance(piece, (float, int, Gate)) for piece in self.pieces or ())
        return not (self.delay_s or self.gate or self.repeat or timed or self.ending != "complete")

    def stream_pieces(self) -> Sequence[Piece]:
        """Return `pieces`, or the text word by word and the calls in pieces."""
        if self.pieces is not None:
            return self.pieces
        words = re.findall(r"\s*\S+|\s+$", self.text or "")
        return [
            *words,
            *(delta for place, call in enumerate(self.calls) for delta in _in_pieces(call, place)),
        ]

    @property
    def said_reason(self) -> str | None:
        """Return the finish reason that is sent."""
        return "tool_calls" if self.calls and self.finish_reason == "stop" else self.finish_reason

    def whole_text(self) -> str | None:
        """Return `text`, or the text among the pieces; None beside calls when there is none."""
        if self.pieces is None:
            return self.text or (None if self.calls else self.text)
        return "".join(piece for piece in self.pieces if isinstance(piece, str))


def _in_pieces(call: Called, place: int) -> list[dict[str, Any]]:
    return deltas_of(call, place, range(0, len(call.arguments_text), _ARGUMENT_PIECE))


def _written(reply: Reply) -> str:
    """Return all that the model wrote, for counting."""
    return (reply.whole_text() or "") + "".join(
        call.name + call.arguments_text for call in reply.calls
    )


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


def _usage(request: Request, text: str) -> dict[str, int]:
    prompt, completion = _tokens(json.dumps(request.messages)), _tokens(text)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def head(status: int, content_type: str, headers: Mapping[str, str], length: int | None) -> bytes:
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}",
        f"Content-Type: {content_type}",
        framing,
    ]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def completion(request: Request, reply: Reply) -> dict[str, Any]:
    text = reply.whole_text()
    message = {"role": "assistant", "content": text, **reply.message}
    if reply.calls:
        message["tool_calls"] = [call.spelled(place) for place, call in enumerate(reply.calls)]
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": request.params.get("model", "scripted"),
        "choices": [{"index": 0, "message": message, "finish_reason": reply.said_reason}],
    }
    return {**body, "usage": _usage(request, _written(reply))} if reply.usage else body


def chunk(
    request: Request, delta: Mapping[str, Any], finish_reason: str | None = None
) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": request.params.get("model", "scripted"),
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}],
    }


def closing(request: Request, reply: Reply) -> bytes:
    """Return the events after the last piece: finish reason, usage when asked for, `[DONE]`."""
    data = event(chunk(request, {}, reply.said_reason)) if reply.said_reason else b""
    if reply.usage and (request.params.get("stream_options") or {}).get("include_usage"):
        usage = _usage(request, _written(reply))
        data += event({**chunk(request, {}), "choices": [], "usage": usage})
    return data + b"data: [DONE]\n\n"


def _error_body(status: int) -> dict[str, Any]:
    return {
        "error": {
            "message": f"scripted status {status}",
            "type": "scripted",
            "param": None,
            "code": None,
        }
    }


def refusal(problem: str) -> Reply:
    """Return what a provider answers to a request that breaks its rules."""
    error = {"message": problem, "type": "invalid_request_error", "param": None, "code": None}
    return Reply(status=400, body={"error": error})


def plain_answer(request: Request, reply: Reply) -> bytes:
    body = reply.body
    if body is None:
        body = completion(request, reply) if reply.status == 200 else _error_body(reply.status)
    content_type = "text/html" if isinstance(body, (str, bytes)) else "application/json"
    text = body if isinstance(body, (str, bytes)) else json.dumps(body)
    data = text.encode() if isinstance(text, str) else text
    return head(reply.status, content_type, reply.headers, len(data)) + data
