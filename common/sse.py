"""Server-Sent Events as bytes. Source: WHATWG HTML, section "Server-sent events"."""

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


def frame(event_id: str, data: bytes) -> bytes:
    """One event; `data` is JSON on one line."""
    return b"id: " + event_id.encode() + b"\ndata: " + data + b"\n\n"
