"""Server-Sent Events as bytes. Source: WHATWG HTML, section "Server-sent events"."""

from typing import Any

from common.envelope import to_bytes

CONTENT_TYPE = "text/event-stream; charset=utf-8"
HEADERS = {
    # no-transform keeps compressing proxies from holding frames back; the second is nginx's own switch for buffering.
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}
PING = b": ping\n\n"


def retry(milliseconds: int) -> bytes:
    """How long a client should wait before it reconnects."""
    return f"retry: {milliseconds}\n\n".encode()


def frame(event_id: str, value: Any) -> bytes:
    """One event. `to_bytes` writes no line break, so one `data:` line holds it all."""
    return b"id: " + event_id.encode() + b"\ndata: " + to_bytes(value) + b"\n\n"
