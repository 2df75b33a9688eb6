"""`POST /api/vanna/v2/chat_sse` answers chunk by chunk, `POST /api/vanna/v2/chat_poll` with all chunks at the end."""

from typing import Any

from flask import Blueprint, Response, request

from api.places import Places
from api.requests import json_of
from api.responses import error_reply, request_language
from api.streaming import event_stream
from api.vanna.chat_requests import names_of, parse_chat
from api.vanna.chunks import Chunk, Envelope, Translation
from api.vanna.speakers import Count, speaker_of_request
from api.vanna.talk import Talk
from api.waiting import WAIT_S, feed_of, from_store
from common import sse
from common.envelope import to_bytes
from common.errors import InvalidRequest
from common.runtime import Quiet

_DONE = sse.data(b"[DONE]")


def vanna_blueprint(
    talk: Talk,
    places: Places,
    count: Count,
    *,
    max_question_chars: int,
    ping_interval_s: float,
) -> Blueprint:
    """The endpoints. Each request takes one of the `places` for questions.

    Args:
        count: counts a question against the limit of its caller, see `Admission.count`.
    """
    blueprint = Blueprint("vanna", __name__, url_prefix="/api/vanna/v2")

    @blueprint.post("/chat_sse")
    def chat_sse() -> Response:
        asked = parse_chat(json_of(request), max_question_chars)
        speaker, place = speaker_of_request(asked.user_id, count), places.take()
        reply = from_store(talk.open(asked, speaker))
        place.hold()
        return event_stream(reply.chunks(place.leave), _written, ping_interval_s=ping_interval_s, closing=_DONE)

    @blueprint.post("/chat_poll")
    def chat_poll() -> Response:
        asked = parse_chat(json_of(request), max_question_chars)
        speaker, place = speaker_of_request(asked.user_id, count), places.take()
        reply = from_store(talk.open(asked, speaker, streams=False))
        place.hold()
        feed, chunks = feed_of(reply.chunks(place.leave), request.environ), []
        while (chunk := feed.take(WAIT_S)) is not None:
            if not isinstance(chunk, Quiet):
                chunks.append(chunk)
        body = _whole(chunks, asked.conversation_id, asked.request_id)
        return Response(to_bytes(body), content_type="application/json; charset=utf-8")

    blueprint.register_error_handler(Exception, _refused)
    return blueprint


def _written(chunk: Chunk) -> bytes:
    return sse.data(to_bytes(chunk))


def _whole(chunks: list[Chunk], conversation_id: str, request_id: str) -> dict[str, Any]:
    return {
        "chunks": chunks,
        "conversation_id": conversation_id,
        "request_id": request_id,
        "total_chunks": len(chunks),
    }


def _refused(error: Exception) -> Response:
    """The envelope of every error, and in it the chunks that show the error: clients of either kind can read it."""
    response = error_reply(error)
    body: dict[str, Any] = response.get_json()
    data, (conversation_id, request_id) = body["data"], _names()
    envelope = Envelope(conversation_id, request_id)
    translation = Translation(envelope, request_language(), "", prefix=data["request_id"], moment=data["timestamp"])
    response.set_data(to_bytes(body | _whole(translation.chunks_of(data), conversation_id, request_id)))
    return response


def _names() -> tuple[str, str]:
    try:
        return names_of(json_of(request))
    except InvalidRequest:
        return "", ""
