"""Server-Sent Events as bytes. Source: WHATWG HTML, section "Server-sent events"."""

CONTENT_TYPE = "text/event-stream; charset=utf-8"
HEADERS = {
    # no-transform stops proxies that compress from holding frames back; X-Accel-Buffering stops
    # nginx from buffering.
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}
PING = b": ping\n\n"


def retry(milliseconds: int) -> bytes:
    """Tell the client how long to wait before it reconnects."""
    return f"retry: {milliseconds}\n\n".encode()


def frame(event_id: str, data: bytes) -> bytes:
    """Return one event; `data` is JSON on one line."""
    return b"id: " + event_id.encode() + b"\ndata: " + data + b"\n\n"


def data(line: bytes) -> bytes:
    """Return one event without an id; `line` has no line break."""
    return b"data: " + line + b"\n\n"
