"""Questions to a running service about the tables of `tests.support.live.GAUGES`.

With what the scripted model says to them.
"""

import json
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_stream import Stream, post_json
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer

SYNC, STREAM = "/api/v0/ask_agent", "/api/v0/ask_agent_stream"
ASK = {"question": "how many gauges", "routing_mode": "database_direct"}
CHAT = {"question": "hello", "routing_mode": "chat_direct"}
ROWS = Reply("SELECT n, name FROM gauge")
ENDLESS = Reply("SELECT n FROM endless")

_QUESTION, _SQL = ASK["question"], "SELECT n FROM endless"
_MESSAGES = [{"id": "1", "role": "user", "content": _QUESTION}]
_CALLED: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
_ASKED: dict[str, Any] = {"name": "ask", "arguments": {"question": _QUESTION}}
_STREAMED: dict[str, Any] = {**_ASKED, "_meta": {"progressToken": "p"}}
OTHER_PROTOCOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "a question over MCP": ("/mcp", {**_CALLED, "params": _ASKED}),
    "a stream over MCP": ("/mcp", {**_CALLED, "params": _STREAMED}),
    "a statement over MCP": (
        "/mcp",
        {**_CALLED, "params": {"name": "run_sql", "arguments": {"sql": _SQL}}},
    ),
    "AG-UI": ("/api/agui", {"threadId": "t", "runId": "r", "messages": _MESSAGES}),
    "a completion": ("/v1/chat/completions", {"model": "citu", "messages": _MESSAGES}),
    "a streamed completion": (
        "/v1/chat/completions",
        {"model": "citu", "messages": _MESSAGES, "stream": True},
    ),
    "Vanna": ("/api/vanna/v2/chat_sse", {"message": _QUESTION}),
}
"""Requests of other protocols, which run `ENDLESS` or its statement: path and body."""


@contextmanager
def scripted(model: OpenAiServer, *replies: Reply) -> Iterator[None]:
    """Let the model give these replies; drop unused ones at the end."""
    rest = deque(replies)
    before = model.default
    model.default = lambda request: rest.popleft() if rest else before(request)
    yield
    model.default = before


def post(path: str, body: dict[str, Any]) -> bytes:
    """Return a request as it goes over the wire."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: citu\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def send(port: int, path: str, body: dict[str, Any], after: bytes = b"") -> socket.socket:
    """Ask without waiting for the answer; `after` follows the body."""
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(post(path, body) + after)
    return client


def last(port: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the terminal envelope of a question."""
    if path == SYNC:
        status, envelope = post_json(port, path, body)
        assert status == envelope["code"]
        return envelope
    with Stream(port, path, body) as stream:
        return list(stream.events())[-1]


def error_of(envelope: dict[str, Any]) -> tuple[int, str, bool, str | None]:
    """Return code, type, whether to try again, and the node of an error."""
    data = envelope["data"]
    assert (data["type"], envelope["success"]) == ("error", False)
    return envelope["code"], data["error_type"], data["retryable"], data.get("node")
