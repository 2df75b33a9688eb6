"""`GET /v1/models`, one of them by name, and `POST /v1/chat/completions`."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import aclosing
from typing import Any

from flask import Blueprint, Response, request

from agent.question import Question
from agent.runs.events import stored_event
from agent.runs.run_service import RunService
from api.access.admission import Admission
from api.access.callers import acting_as, current_caller
from api.access.rights import speaks_for_themselves
from api.chat_completions.completion_replies import (
    ChatCompletion,
    error_object,
    model_list,
    model_object,
)
from api.chat_completions.completion_requests import (
    AGENTS,
    CONVERSATION_HEADERS,
    CompletionRequest,
    last_message,
    parse_completion,
)
from api.chat_completions.side_replies import side_reply
from api.given_answers import answer_in
from api.requests import json_of
from api.responses import error_reply
from api.run_frames import Frames, frames_after, frames_of
from api.slots import HeldSlot, QuestionSlots
from api.streaming import event_stream
from api.waiting import WAIT_S, queue_of
from common import sse
from common.actor import Actor
from common.envelope import to_bytes
from common.errors import (
    CANCELLED_TEXT,
    INTERNAL_ERROR_TEXT,
    Cancelled,
    CituError,
    InternalError,
    NotFound,
)
from common.runtime import NoItem
from common.text import Text, language_of

_log = logging.getLogger(__name__)
_DONE = sse.data(b"[DONE]")
Written = dict[str, Any]


def chat_completions_blueprint(
    runs: RunService,
    agents: Collection[str],
    slots: QuestionSlots,
    admission: Admission,
    *,
    max_question_chars: int,
    ping_interval_s: float,
) -> Blueprint:
    """Return the endpoints. A question takes one of the `slots`."""
    blueprint = Blueprint("chat_completions", __name__, url_prefix="/v1")
    offered = [name for name, agent in AGENTS.items() if agent in agents]

    @blueprint.get("/models")
    def list_models() -> Response:
        return _json(model_list(offered))

    @blueprint.get("/models/<name>")
    def read_model(name: str) -> Response:
        if name not in offered:
            raise NotFound(_no_model(offered), suggestions=offered)
        return _json(model_object(name))

    @blueprint.post("/chat/completions")
    def complete_chat() -> Response:
        body = json_of(request)
        beside = side_reply(last_message(body))
        if beside is not None:
            asked = _side_request(body)
            completion = _completion(asked)
            pieces = _said_at_once(asked, beside, completion)
            return _response_of(asked, pieces, completion, ping_interval_s)

        headers = {name: request.headers.get(name, "") for name in CONVERSATION_HEADERS}
        asked = parse_completion(body, headers, max_question_chars)
        admission.count(current_caller(), request.remote_addr)
        held_slot = HeldSlot(slots.take())
        actor = acting_as(asked.user_id)
        is_credible = speaks_for_themselves()
        completion = _completion(asked)

        async def frames() -> Frames:
            return await _frames(runs, asked, actor, held_slot.give(), is_credible=is_credible)

        pieces = held_slot.over(_pieces(frames, asked, completion))
        return _response_of(asked, pieces, completion, ping_interval_s)

    blueprint.register_error_handler(Exception, _refused)
    return blueprint


def _no_model(offered: Collection[str]) -> Text:
    listed = ", ".join(offered)
    return Text(f"没有这个模型。有：{listed}。", f"There is no such model. There are: {listed}.")


async def _frames(
    runs: RunService,
    asked: CompletionRequest,
    actor: Actor,
    leave: Callable[[], None],
    *,
    is_credible: bool,
) -> Frames:
    """Begin the run, or answer the one that waits."""
    if asked.waiting is not None:
        return await frames_after(
            runs, actor, asked.waiting, lambda data: answer_in(data, asked.question), leave
        )

    question = Question(
        question=asked.question,
        agent=asked.agent,
        conversation_id=asked.conversation_id,
        continues=asked.continues,
        actor=actor,
        is_credible=is_credible,
        stream_tokens=asked.streams,
    )
    return frames_of(runs, question, leave, is_watched=asked.streams)


async def _pieces(
    frames: Callable[[], Awaitable[Frames]], asked: CompletionRequest, completion: ChatCompletion
) -> AsyncGenerator[Written, None]:
    """Yield a completion as the chunks of a stream; or as the one object, or an error."""
    try:
        async with aclosing(await frames()) as opened:
            async for frame in opened:
                event = stored_event(frame.data)
                completion.status = event.code
                piece = completion.piece_of(event.data)
                if asked.streams and piece:
                    yield completion.chunk({"role": "assistant", "content": piece})
    except CituError as error:
        completion.fail(error)
    except Exception:  # noqa: BLE001 - a client must see that there will be no answer
        _log.exception("unexpected failure in a completion")
        completion.fail(InternalError(INTERNAL_ERROR_TEXT))

    for last in _ending(asked, completion):
        yield last


def _ending(asked: CompletionRequest, completion: ChatCompletion) -> list[Written]:
    if completion.error is not None:
        return [error_object(completion.error)]
    if not asked.streams:
        return [completion.whole()]

    ending = [completion.chunk({}, "stop")]
    if asked.with_usage:
        ending.append(completion.usage_chunk())

    return ending


async def _said_at_once(
    asked: CompletionRequest, text: str, completion: ChatCompletion
) -> AsyncGenerator[Written, None]:
    completion.piece_of({"type": "token", "text": text, "run_id": "side"})
    if asked.streams:
        yield completion.chunk({"role": "assistant", "content": text})

    for last in _ending(asked, completion):
        yield last


def _side_request(body: Any) -> CompletionRequest:
    """Return the request beside a chat, of which nothing is asked."""
    return parse_completion({**body, "messages": [{"role": "user", "content": "-"}]}, {}, 1)


def _completion(asked: CompletionRequest) -> ChatCompletion:
    return ChatCompletion(asked.model, language_of(asked.question), request.host_url.rstrip("/"))


def _response_of(
    asked: CompletionRequest,
    pieces: AsyncGenerator[Written, None],
    completion: ChatCompletion,
    ping_interval_s: float,
) -> Response:
    if asked.streams:
        return event_stream(pieces, _sse_bytes, ping_interval_s=ping_interval_s, closing=_DONE)

    queue = queue_of(pieces, request.environ)
    last: Written | None = None
    while (piece := queue.take(WAIT_S)) is not None:
        if not isinstance(piece, NoItem):
            last = piece

    if last is None:
        raise Cancelled(CANCELLED_TEXT)

    return _json(last, completion.status)


def _sse_bytes(piece: Written) -> bytes:
    return sse.data(to_bytes(piece))


def _json(body: Written, status: int = 200) -> Response:
    return Response(to_bytes(body), status, content_type="application/json; charset=utf-8")


def _refused(error: Exception) -> Response:
    """Return an error in OpenAI's shape, with the status and headers of Citu's."""
    response = error_reply(error)
    data = response.get_json()["data"]
    response.set_data(to_bytes(error_object(data)))
    return response
