"""Answers Vanna's clients with chunks: begins or joins a run, greets, takes feedback.

The HTTP endpoint and the WebSocket check a request by `parse_chat`, take a slot for it, and then:

    reply = await chat_service.open(request, caller)  # raises the CituError that refuses it
    async for chunk in reply.chunks(on_end=slot.leave):
        send(to_json(chunk))

Closing the chunks early means that the client has left. Both are used on the event loop.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from agent.question import Question
from agent.runs.events import stored_event
from agent.runs.run_service import RunService, RunView
from agent.services.database_services import ServedDatabases
from agent.services.learning.feedback_service import FeedbackService, GivenFeedback
from api.given_answers import answer_in
from api.requests import parse_answer
from api.run_start import RunRequest, fingerprint_of
from api.vanna.chat_callers import ChatCaller
from api.vanna.chat_requests import ChatAnswer, ChatRating, ChatRequest
from api.vanna.chunks import (
    Chunk,
    ChunkEnvelope,
    Translation,
    error_chunks,
    greeting_chunks,
    said_chunks,
)
from common.actor import Actor
from common.errors import INTERNAL_ERROR_TEXT, CituError, Conflict, InternalError, NotFound
from common.text import Lang, Text
from store import EventFrame, RunRecord

_log = logging.getLogger(__name__)

# How long a run goes on without its client. The web component asks again by another endpoint as
# soon as its connection breaks, and waits for nothing; this leaves time for networks that take a
# while to come back.
GRACE_S = 10.0

_GREETING = Text(
    "您好！请用中文或英文提问，我会查询数据库，给出答案、SQL、表格和图表。",
    "Hello! Ask in Chinese or English, and I answer from the database, with the SQL, a table and "
    "a chart.",
)
_FOR_EXAMPLE = Text("例如：", "For example:")
_THANKS = Text("感谢反馈！", "Thank you for the feedback!")
_GONE = Text("这次回答已不再保留：请重新提问。", "This answer is no longer kept: please ask again.")


Chunks = AsyncGenerator[Chunk, None]


@dataclass(frozen=True)
class ChatReply:
    """The reply to one request; nothing has begun yet.

    Attributes:
        chunks: gives the chunks, of which the last ones say that the user may go on; to be iterated
            once. Takes what to call when the work is done, which may be after the client has left.
            The chunks never raise.
    """

    chunks: Callable[[Callable[[], None]], Chunks]


class ChatService:
    """Answers the requests of Vanna's clients, over the same services as all other endpoints."""

    def __init__(
        self, service: RunService, databases: ServedDatabases, feedback: FeedbackService
    ) -> None:
        self._service = service
        self._databases = databases
        self._feedback = feedback

    async def open(
        self, asked: ChatRequest, chat_caller: ChatCaller, *, streams: bool = True
    ) -> ChatReply:
        """Settle what answers the request.

        Args:
            streams: whether the client sees chunks as they come; else texts are not sent in pieces.

        Raises:
            RateLimited: the caller asks too often; a repeated request does not count.
            IdempotencyKeyReused: the client has given another question the same `request_id`.
        """
        if asked.said == "question":
            return await self._reply_to_question(asked, chat_caller, streams=streams)

        await asyncio.to_thread(chat_caller.count)
        if asked.said == "greeting":
            return _at_once(asked, chat_caller.lang, self._greet(asked, chat_caller))
        if isinstance(asked.said, ChatRating):
            return _at_once(
                asked, chat_caller.lang, self._reply_to_rating(asked, asked.said, chat_caller)
            )

        answer = asked.said
        return ChatReply(
            lambda on_end: _visibly(
                asked, chat_caller.lang, self._resumed(asked, answer, chat_caller, on_end)
            )
        )

    # --------------------------------------------------------------------------
    # questions

    async def _reply_to_question(
        self, asked: ChatRequest, chat_caller: ChatCaller, *, streams: bool
    ) -> ChatReply:
        run = _asked_run(asked, chat_caller, streams=streams)
        earlier = await run.earlier(self._service)
        if earlier is not None:
            return _at_once(asked, chat_caller.lang, self._followed(asked, earlier))

        try:
            await asyncio.to_thread(chat_caller.count)
        except BaseException:
            await run.give_up(self._service)
            raise

        is_watched = streams or run.key is not None
        return ChatReply(
            lambda on_end: _visibly(
                asked, chat_caller.lang, self._begun(asked, run, on_end, is_watched)
            )
        )

    def _begun(
        self, asked: ChatRequest, run: RunRequest, on_end: Callable[[], None], is_watched: bool
    ) -> Chunks:
        question = run.question
        envelope = _envelope(asked, question.run_id)
        translation = Translation(
            envelope,
            question.answer_lang,
            asked.message,
            prefix=question.run_id,
            moment=question.asked_at,
        )
        return _translate(self._frames_of(run, on_end, is_watched), translation)

    async def _frames_of(
        self, run: RunRequest, on_end: Callable[[], None], is_watched: bool
    ) -> AsyncGenerator[EventFrame, None]:
        async with aclosing(
            self._service.watch(run.begin(self._service, on_end, is_watched=is_watched))
        ) as frames:
            async for frame in frames:
                yield frame

    def _followed(self, asked: ChatRequest, record: RunRecord, after: int = 0) -> Chunks:
        """Return the chunks of a run that has begun already, from beyond frame number `after`."""
        head = record.head
        translation = Translation(
            _envelope(asked, head.run_id),
            head.lang,
            head.question,
            prefix=f"{head.run_id}-{after}" if after else head.run_id,
            moment=head.started_at,
            is_repeated=not after,
        )
        return _translate(self._service.follow(head.user_id, head.run_id, after), translation)

    async def _resumed(
        self,
        asked: ChatRequest,
        answer: ChatAnswer,
        chat_caller: ChatCaller,
        on_end: Callable[[], None],
    ) -> Chunks:
        """Give the user's answer to the run that waits for it, and go on with that run."""
        try:
            view = await self._service.look(chat_caller.actor.owner, answer.run_id)
            after = await self._answered(view, answer, chat_caller.actor, on_end)
        except BaseException:
            on_end()
            raise

        async with aclosing(self._followed(asked, view.record, after)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _answered(
        self, view: RunView, answer: ChatAnswer, actor: Actor, on_end: Callable[[], None]
    ) -> int:
        """Give the answer to the run, and return the number of the last frame before it.

        It is 0 when the run had the answer already, because the client repeats its request.
        """
        fields = {"interrupt_id": answer.interrupt_id, "answer": _answer_of(view, answer.text)}
        try:
            await self._service.resume(actor, answer.run_id, *parse_answer(fields), on_end=on_end)
        except Conflict:
            if view.record.state == "waiting":
                raise

            on_end()
            return 0

        return view.record.last_seq

    # --------------------------------------------------------------------------
    # other messages

    async def _greet(self, asked: ChatRequest, chat_caller: ChatCaller) -> Chunks:
        try:
            asked_database = self._databases.of(None, chat_caller.actor)
            examples = await asked_database.examples(chat_caller.lang, chat_caller.actor)
        except CituError:  # the database can't be read now; the first question will say so
            examples = ()

        greeting = _GREETING.to(chat_caller.lang)
        if examples:
            greeting += "\n" + _FOR_EXAMPLE.to(chat_caller.lang)

        chunks = greeting_chunks(
            _envelope(asked), asked.kept_request_id, greeting, examples, chat_caller.lang
        )
        for chunk in chunks:
            yield chunk

    async def _reply_to_rating(
        self, asked: ChatRequest, rated: ChatRating, chat_caller: ChatCaller
    ) -> Chunks:
        feedback = GivenFeedback(
            run_id=rated.run_id,
            rating="satisfied" if rated.is_good else "unsatisfied",
            actor=chat_caller.actor,
            lang=chat_caller.lang,
            conversation_id=asked.kept_conversation_id,
            is_credible=chat_caller.is_credible,
        )
        warnings: list[str] = (await self._feedback.take(feedback))["warnings"]
        lines = [_THANKS.to(chat_caller.lang), *warnings]
        for chunk in said_chunks(_envelope(asked), asked.kept_request_id, lines, chat_caller.lang):
            yield chunk


def _asked_run(asked: ChatRequest, chat_caller: ChatCaller, *, streams: bool) -> RunRequest:
    question = Question(
        question=asked.message,
        conversation_id=asked.kept_conversation_id,
        continues=asked.continues,
        actor=chat_caller.actor,
        is_credible=chat_caller.is_credible,
        stream_tokens=streams,
    )
    fingerprint = fingerprint_of([asked.message, asked.conversation_id])
    # Only a client that has named its request can come back for the answer.
    return RunRequest(
        question, asked.key, fingerprint, grace_s=GRACE_S if asked.key is not None else 0.0
    )


def _answer_of(view: RunView, text: str) -> Any:
    # Parse the event again, because an answer has floats for fractions where a stored event has
    # Decimals.
    asked = json.loads(view.last.rendered)["data"] if view.last is not None else {}
    return answer_in(asked, text)


def _envelope(asked: ChatRequest, run_id: str | None = None) -> ChunkEnvelope:
    return ChunkEnvelope(asked.conversation_id, asked.request_id, run_id)


async def _translate(frames: AsyncGenerator[EventFrame, None], translation: Translation) -> Chunks:
    is_over = False
    async with aclosing(frames):
        async for frame in frames:
            event = stored_event(frame.data)
            is_over = event.is_last
            for chunk in translation.chunks_of(event.data):
                yield chunk

    if not is_over:
        raise NotFound(_GONE)


def _at_once(asked: ChatRequest, lang: Lang, chunks: Chunks) -> ChatReply:
    """Return a reply that begins no run, so that its work is done when its chunks are."""

    async def ended(on_end: Callable[[], None]) -> Chunks:
        try:
            async with aclosing(_visibly(asked, lang, chunks)) as shown:
                async for chunk in shown:
                    yield chunk
        finally:
            on_end()

    return ChatReply(ended)


async def _visibly(asked: ChatRequest, lang: Lang, chunks: Chunks) -> Chunks:
    """Yield the chunks, and what goes wrong between them as chunks as well."""
    error: CituError | None = None
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    except CituError as exc:
        error = exc
    except Exception:  # noqa: BLE001 - a client must see that there will be no answer
        _log.exception("unexpected failure in a conversation")
        error = InternalError(INTERNAL_ERROR_TEXT)

    if error is not None:
        for chunk in error_chunks(error, _envelope(asked), asked.kept_request_id, lang):
            yield chunk
