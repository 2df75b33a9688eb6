"""Writes what comes from a run as Server-Sent Events while the run goes on."""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

from flask import Response, g, request

from api.waiting import streamed_queue_of
from common import sse
from common.runtime import NoItem, ThreadQueue
from store import EventFrame

T = TypeVar("T")
_RETRY_MS = 3000
# In JSON these bytes stand for keys only: within a text, its quotes would be escaped.
_EVENT_TYPE = re.compile(rb'"data":\{"type":"(\w+)"')
_ERROR_TYPE = re.compile(rb'"error_type":"(\w+)"')
_LAST_EVENTS = frozenset({"completed", "error", "question"})
_LEFT = "client_left"
_EVENT_ID = re.compile(r"(run_[0-9a-f]+):([0-9]{1,9})")


class StreamEnd:
    """How a stream ends, as far as it has been sent."""

    def __init__(self) -> None:
        self.is_whole = False
        self._last = b""

    def take(self, piece: bytes) -> None:
        """Note a piece of the stream: whole events, of which the last one counts."""
        self._last = piece

    @property
    def outcome(self) -> str:
        """Return the type of the last event, or of its error; `client_left` without one."""
        events = _EVENT_TYPE.findall(self._last)
        event = events[-1].decode() if events else ""
        if event == "error":
            error = _ERROR_TYPE.search(self._last, self._last.rindex(b'"data":{"type":"error"'))
            return error[1].decode() if error is not None else event

        if event in _LAST_EVENTS:
            return event

        return "completed" if self.is_whole and not events else _LEFT


def streamed(frames: AsyncIterator[EventFrame], run_id: str, *, ping_interval_s: float) -> Response:
    """Return a response that writes `frames`, and comments between them.

    A comment follows after every `ping_interval_s` seconds without a frame.

    `frames` is closed when the client leaves.
    """

    def written(frame: EventFrame) -> bytes:
        return sse.frame(f"{run_id}:{frame.seq}", frame.data)

    return event_stream(
        frames, written, ping_interval_s=ping_interval_s, opening=sse.retry(_RETRY_MS)
    )


def event_stream(
    items: AsyncIterator[T],
    written: Callable[[T], bytes],
    *,
    ping_interval_s: float,
    opening: bytes = b"",
    closing: bytes = b"",
) -> Response:
    """Return a response that writes `items` as they come, and comments between them.

    A comment follows after every `ping_interval_s` seconds without an item.

    Args:
        items: closed when the client leaves.
        written: one item as it is sent.
        opening, closing: what is sent before the first item, and after the last.
    """
    queue = streamed_queue_of(items, request.environ)
    g.stream_end = end = StreamEnd()
    body = _sse_chunks(queue, written, ping_interval_s, opening, closing)
    response = Response(_noted(body, end), content_type=sse.CONTENT_TYPE, headers=sse.HEADERS)
    # Not a `finally` in _written: closing a generator that was never started does not run any of
    # its body.
    response.call_on_close(queue.cancel)
    return response


def _sse_chunks(
    queue: ThreadQueue[T],
    written: Callable[[T], bytes],
    ping_interval_s: float,
    opening: bytes,
    closing: bytes,
) -> Iterator[bytes]:
    if opening:
        yield opening

    while (first := queue.take(ping_interval_s)) is not None:
        if isinstance(first, NoItem):
            yield sse.PING
        else:  # items that are ready already are sent in one piece
            yield b"".join(written(item) for item in (first, *queue.more()))

    if closing:
        yield closing


def _noted(body: Iterator[bytes], end: StreamEnd) -> Iterator[bytes]:
    """Pass the pieces on; each is noted when it has been sent."""
    for piece in body:
        yield piece
        end.take(piece)

    end.is_whole = True


def last_event_seq(run_id: str) -> int:
    """Return the number in `Last-Event-ID`; 0 when there is none, or one of another run."""
    event_id = _EVENT_ID.fullmatch(request.headers.get("Last-Event-ID", ""))
    if event_id is not None and event_id[1] == run_id:
        return int(event_id[2])

    return 0
