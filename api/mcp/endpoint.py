"""`POST /mcp`: one JSON-RPC request, answered by JSON or by a stream of messages."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from flask import Blueprint, Response, request

from api.access.admission import Admission
from api.access.callers import acting_as, current_caller, is_authenticated, is_sent_by_operator
from api.mcp.content import McpCaller, holds_nothing
from api.mcp.messages import McpError, McpRequest, error_message, parse_request
from api.mcp.server import McpReply, McpServer
from api.requests import json_of, language_of_body
from api.slots import HeldSlot, QuestionSlots
from api.streaming import event_stream
from api.waiting import WAIT_S, queue_of
from common import sse
from common.envelope import to_bytes
from common.errors import CANCELLED_TEXT, Cancelled
from common.runtime import NoItem

_STREAM = "text/event-stream"


def mcp_blueprint(
    server: McpServer, slots: QuestionSlots, admission: Admission, *, ping_interval_s: float
) -> Blueprint:
    """Return the endpoint; requests that do work take one of the `slots` for questions."""
    blueprint = Blueprint("mcp", __name__)

    @blueprint.post("/mcp")
    def handle_message() -> Response:
        # With a key, too: a page of another site may have talked a browser's user into one.
        admission.anonymity.refuse_foreign_page(request)
        try:
            asked = parse_request(json_of(request), request.headers)
            if asked is None or asked.id is None:
                return Response(status=202)

            method = server.method_of(asked)
        except McpError as error:
            return _json(error_message(error), error.status)

        if method.is_counted:
            admission.count(current_caller(), request.remote_addr)

        streams = _streams(asked, always=method.streams)
        held_slot = HeldSlot(slots.take()) if method.works else None
        replies = server.replies(asked, _caller(held_slot, is_watching=streams))
        if held_slot is not None:
            replies = held_slot.over(replies)
        if streams:
            return event_stream(replies, _sse_bytes, ping_interval_s=ping_interval_s)

        return _whole(replies)

    return blueprint


def _caller(held_slot: HeldSlot | None, *, is_watching: bool) -> McpCaller:
    return McpCaller(
        acting_as(None),
        language_of_body({}, request.headers.get("Accept-Language")),
        is_authenticated() or is_sent_by_operator(),
        request.host_url.rstrip("/"),
        is_watching,
        held_slot.give if held_slot is not None else holds_nothing,
    )


def _streams(asked: McpRequest, *, always: bool) -> bool:
    """Tell whether the client wants to see the steps, and can."""
    if not always and asked.progress_token is None:
        return False

    return _STREAM in request.headers.get("Accept", "")


def _whole(replies: AsyncIterator[McpReply]) -> Response:
    """Return the last message; what came before it is for streams.

    Raises:
        Cancelled: the client left.
    """
    queue = queue_of(replies, request.environ)
    last: McpReply | None = None
    while (reply := queue.take(WAIT_S)) is not None:
        if not isinstance(reply, NoItem):
            last = reply

    if last is None:
        raise Cancelled(CANCELLED_TEXT)

    return _json(last.message, last.status)


def _json(message: Mapping[str, Any], status: int) -> Response:
    return Response(to_bytes(message), status, content_type="application/json; charset=utf-8")


def _sse_bytes(reply: McpReply) -> bytes:
    return sse.data(to_bytes(reply.message))
