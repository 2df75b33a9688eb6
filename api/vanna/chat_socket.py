"""`WS /api/vanna/v2/chat_websocket`: requests over one connection, one after another.

The last frame that answers a request says `completion`, in both places where clients look for it:
Vanna's own server says so in `type`, its own TypeScript client waits for it in `rich.type`. An
error is a frame too: before the completion where a valid request is refused, and alone where the
request is none.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from flask import Blueprint, Response, request

from api.access.admission import Admission, Visitor
from api.access.callers import acting_for
from api.requests import language_of_body
from api.slots import QuestionSlots
from api.sockets.open_sockets import Sockets
from api.vanna.chat_callers import ChatCaller
from api.vanna.chat_requests import ChatRequest, names_of, parse_chat
from api.vanna.chat_service import ChatService
from api.vanna.chunks import Chunk, ChunkEnvelope, error_chunks
from api.vanna.components import ChatPart
from common import timestamps
from common.actor import caller_id, caller_id_of
from common.envelope import to_bytes
from common.errors import CituError, InvalidRequest
from common.text import Lang

_NAME = "chat_websocket"
_PATH = f"/api/vanna/v2/{_NAME}"


def chat_socket_blueprint(
    chat_service: ChatService,
    slots: QuestionSlots,
    admission: Admission,
    sockets: Sockets,
    *,
    max_question_chars: int,
) -> Blueprint:
    """Return the endpoint for Vanna's chat over a WebSocket.

    An open socket is one of `sockets`; each question over it takes one of the `slots`.
    """
    blueprint = Blueprint("vanna_socket", __name__)

    def chat_websocket() -> Response:
        lang = language_of_body({}, request.headers.get("Accept-Language"))
        chat = _Chat(chat_service, slots, admission, admission.visitor(), lang, max_question_chars)
        return sockets.open(request, chat.answer)

    for is_socket in (True, False):  # a request for none is told that one is needed
        blueprint.add_url_rule(
            _PATH, f"{_NAME}_{is_socket}", chat_websocket, methods=["GET"], websocket=is_socket
        )

    return blueprint


@dataclass(frozen=True)
class _Chat:
    """The messages of one visitor over one socket."""

    chat_service: ChatService
    slots: QuestionSlots
    admission: Admission
    visitor: Visitor
    lang: Lang
    max_question_chars: int

    async def answer(self, message: str) -> AsyncGenerator[bytes, None]:
        """Yield the frames that answer one message."""
        body = _json(message)
        try:
            asked = parse_chat(body, self.max_question_chars)
        except InvalidRequest as error:
            yield to_bytes(
                _refusal(
                    error, ChunkEnvelope(*names_of(body)), f"req_{secrets.token_hex(8)}", self.lang
                )[0]
            )
            return

        envelope = ChunkEnvelope(asked.conversation_id, asked.request_id)
        try:
            async with aclosing(self._chunks(asked)) as chunks:
                async for chunk in chunks:
                    yield to_bytes(chunk)
        except CituError as error:
            for chunk in _refusal(error, envelope, asked.kept_request_id, self.lang):
                yield to_bytes(chunk)

        yield to_bytes(_completion(envelope, asked.kept_request_id))

    async def _chunks(self, asked: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """Yield the chunks that answer a message; raise what refuses it before the first one."""
        caller = await asyncio.to_thread(self.admission.caller_of, self.visitor)
        is_credible = caller.user_id is not None or self.visitor.is_operator
        chat_caller = ChatCaller(
            actor=acting_for(caller, asked.user_id, is_credible=is_credible),
            is_credible=is_credible,
            lang=self.lang,
            count=partial(self.admission.count, caller, self.visitor.address),
        )
        caller_id.set(caller_id_of(caller, self.visitor.address))
        slot = await self.slots.take_for_message()
        try:
            reply = await self.chat_service.open(asked, chat_caller)
            slot.hold()
            async with aclosing(reply.chunks(slot.leave)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            slot.leave()


def _json(message: str) -> object:
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return None


def _refusal(error: CituError, envelope: ChunkEnvelope, prefix: str, lang: Lang) -> list[Chunk]:
    """Return the chunks that show an error, of which the first says that it is one."""
    first, *rest = error_chunks(error, envelope, prefix, lang)
    return [first | {"type": "error", "data": {"message": error.message(lang)}}, *rest]


def _completion(envelope: ChunkEnvelope, prefix: str) -> Chunk:
    done: dict[str, Any] = {"status": "done"}
    part = ChatPart("completion", f"{prefix}-completion", done)
    return envelope.chunk(part, timestamps.now(), type="completion", data=done)
