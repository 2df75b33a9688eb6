"""`POST /api/vanna/v2/chat_sse` answers chunk by chunk, `…/chat_poll` with all at once."""

from typing import Any

from flask import Blueprint, Response, request

from api.requests import json_of
from api.responses import error_reply, request_language
from api.slots import QuestionSlots
from api.streaming import event_stream
from api.vanna.chat_callers import Count, chat_caller_of_request
from api.vanna.chat_requests import names_of, parse_chat
from api.vanna.chat_service import ChatService
from api.vanna.chunks import Chunk, ChunkEnvelope, Translation
from api.waiting import WAIT_S, from_store, queue_of
from common import sse
from common.envelope import to_bytes
from common.errors import InvalidRequest
from common.runtime import NoItem

_DONE = sse.data(b"[DONE]")


def vanna_blueprint(
    chat_service: ChatService,
    slots: QuestionSlots,
    count: Count,
    *,
    max_question_chars: int,
    ping_interval_s: float,
) -> Blueprint:
    """Return the endpoints. Each request takes one of the `slots` for questions.

    Args:
        count: counts a question against the limit of its caller, see `Admission.count`.
    """
    blueprint = Blueprint("vanna", __name__, url_prefix="/api/vanna/v2")

    @blueprint.post("/chat_sse")
    def chat_sse() -> Response:
        asked = parse_chat(json_of(request), max_question_chars)
        chat_caller, slot = chat_caller_of_request(asked.user_id, count), slots.take()
        reply = from_store(chat_service.open(asked, chat_caller))
        slot.hold()
        return event_stream(
            reply.chunks(slot.leave), _sse_bytes, ping_interval_s=ping_interval_s, closing=_DONE
        )

    @blueprint.post("/chat_poll")
    def chat_poll() -> Response:
        asked = parse_chat(json_of(request), max_question_chars)
        chat_caller, slot = chat_caller_of_request(asked.user_id, count), slots.take()
        reply = from_store(chat_service.open(asked, chat_caller, streams=False))
        slot.hold()
        queue, chunks = queue_of(reply.chunks(slot.leave), request.environ), []
        while (chunk := queue.take(WAIT_S)) is not None:
            if not isinstance(chunk, NoItem):
                chunks.append(chunk)

        body = _all_chunks_json(chunks, asked.conversation_id, asked.request_id)
        return Response(to_bytes(body), content_type="application/json; charset=utf-8")

    blueprint.register_error_handler(Exception, _refused)
    return blueprint


def _sse_bytes(chunk: Chunk) -> bytes:
    return sse.data(to_bytes(chunk))


def _all_chunks_json(chunks: list[Chunk], conversation_id: str, request_id: str) -> dict[str, Any]:
    return {
        "chunks": chunks,
        "conversation_id": conversation_id,
        "request_id": request_id,
        "total_chunks": len(chunks),
    }


def _refused(error: Exception) -> Response:
    """Return the envelope of an error, with the chunks that show it, for clients of either kind."""
    response = error_reply(error)
    body: dict[str, Any] = response.get_json()
    data, (conversation_id, request_id) = body["data"], _names()
    envelope = ChunkEnvelope(conversation_id, request_id)
    translation = Translation(
        envelope, request_language(), "", prefix=data["request_id"], moment=data["timestamp"]
    )
    response.set_data(
        to_bytes(body | _all_chunks_json(translation.chunks_of(data), conversation_id, request_id))
    )
    return response


def _names() -> tuple[str, str]:
    try:
        return names_of(json_of(request))
    except InvalidRequest:
        return "", ""
