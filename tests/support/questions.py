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
    return (
        f"POST {path} HTTP/1.1\r\nHost: citu\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
    )


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
