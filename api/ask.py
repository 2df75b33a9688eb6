"""`POST /api/v0/ask_agent` answers a question at once, `…/ask_agent_stream` step by step.

`POST /api/v0/runs` only starts its run, for clients that follow it by its id. `…/etl/ask` and
`…/etl/ask_stream` are the same for the agent that drafts transformations.
"""

from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from typing import Literal

from flask import Blueprint, Response, request

from agent.question import Question
from agent.runs.events import Event
from agent.runs.run_service import RunService
from agent.services.database_services import ServedDatabases
from api.access.callers import acting_as, untrusted_user_warning
from api.access.rights import speaks_for_themselves
from api.requests import (
    ETL,
    AskRequest,
    json_object,
    parse_ask,
    parse_etl_ask,
    parse_idempotency_key,
)
from api.responses import reply_of
from api.run_start import RunRequest, fingerprint_of
from api.runs import shown_run
from api.slots import QuestionSlot, QuestionSlots
from api.streaming import last_event_seq, streamed
from api.waiting import WAIT_S, from_store, queue_of
from common.errors import CANCELLED_TEXT, Cancelled, Conflict
from common.text import Text
from store import EventFrame, RunRecord

_RETRY_AFTER_S = 1
_EXAMPLE = Text(
    '{"question": "各服务区的营业收入排行"}', '{"question": "Revenue ranking by service area"}'
)
_ETL_EXAMPLE = Text(
    '{"question": "把订单表和用户表 JOIN，按月汇总销售额，写入销售汇总表"}',
    '{"question": "orders: total amount by month, into monthly_sales"}',
)
_RUNNING = Text(
    "同一个 Idempotency-Key 的请求正在处理：请稍后重试，或用 run_id 查看进度。",
    "The request of this Idempotency-Key is being answered: try again in a moment, or look at "
    "the run by its run_id.",
)


def ask_blueprint(
    service: RunService,
    databases: ServedDatabases,
    agents: Collection[str],
    slots: QuestionSlots,
    *,
    max_question_chars: int,
    ping_interval_s: float,
) -> Blueprint:
    """Return the blueprint of all endpoints, which share one service.

    Requests name one of the `agents`, or none.
    """
    blueprint = Blueprint("ask", __name__)

    def asked(example: Text = _EXAMPLE) -> "_Asked":
        body = json_object(request, example)
        if example is _ETL_EXAMPLE or body.get("agent") == ETL:
            ask_request = parse_etl_ask(body, max_question_chars)
        else:
            ask_request = parse_ask(body, max_question_chars, agents)

        question = _for_caller(ask_request)
        if question.database is not None:
            databases.checked(question.database, question.actor)

        return _Asked(service, slots, question, ask_request.on_disconnect)

    @blueprint.post("/api/v0/ask_agent")
    def ask_agent() -> Response:
        return asked().answer()

    @blueprint.post("/api/v0/ask_agent_stream")
    def ask_agent_stream() -> Response:
        return asked().stream(ping_interval_s)

    @blueprint.post("/api/v0/runs")
    def start_run() -> Response:
        return asked().start()

    @blueprint.post("/api/v0/etl/ask")
    def ask_etl() -> Response:
        return asked(_ETL_EXAMPLE).answer()

    @blueprint.post("/api/v0/etl/ask_stream")
    def ask_etl_stream() -> Response:
        return asked(_ETL_EXAMPLE).stream(ping_interval_s)

    return blueprint


class _Asked:
    """One request of either endpoint."""

    def __init__(
        self,
        service: RunService,
        slots: QuestionSlots,
        question: Question,
        on_disconnect: Literal["cancel", "continue"] | None,
    ) -> None:
        self._service = service
        self._slots = slots
        key = parse_idempotency_key(request.headers.get("Idempotency-Key"))
        fingerprint = fingerprint_of(request.get_json(force=True)) if key is not None else ""
        # A client that sends a key repeats the request after a broken connection, so its run goes
        # on unless the body says otherwise.
        becomes = on_disconnect or ("cancel" if key is None else "continue")
        self._run = RunRequest(question, key, fingerprint, outlives_clients=becomes == "continue")
        self._may_end_unwatched = on_disconnect == "cancel"

    def answer(self) -> Response:
        """Return the whole answer as one response.

        Raises:
            TooManyStreams: all slots are taken.
            Conflict: the earlier run of this Idempotency-Key has not ended yet.
            IdempotencyKeyReused: see `RunService.reserve_key`.
            Cancelled: the client left.
        """
        slot = self._slots.take()
        earlier = self._earlier()
        if earlier is not None:
            return self._again(earlier)

        slot.hold()
        # Nobody sees pieces of a sync answer, so the model is asked for the whole text at once.
        whole = replace(self._run, question=replace(self._run.question, stream_tokens=False))
        queue = queue_of(self._end_of(whole, slot), request.environ)
        last: Event | None = None
        while (event := queue.take(WAIT_S)) is not None:
            if isinstance(event, Event):
                last = event

        if last is None:
            raise Cancelled(CANCELLED_TEXT)

        return reply_of(last)

    def stream(self, ping_interval_s: float) -> Response:
        """Return the events while the run goes on; a repeated request gets those of its run.

        Raises:
            TooManyStreams, IdempotencyKeyReused: as `answer`.
        """
        slot = self._slots.take()
        earlier = self._earlier()
        if earlier is None:
            slot.hold()
            return streamed(
                self._frames_of(slot), self._run.question.run_id, ping_interval_s=ping_interval_s
            )

        run_id, after = earlier.head.run_id, last_event_seq(earlier.head.run_id)
        if earlier.state != "running" and after > earlier.last_seq:
            after = 0  # it is none of the run's events

        frames = self._service.follow(earlier.head.user_id, run_id, after)
        return streamed(frames, run_id, ping_interval_s=ping_interval_s)

    def start(self) -> Response:
        """Begin the run and return it at once; a repeated request gets its run as it is now.

        Raises:
            TooManyStreams, IdempotencyKeyReused: as `answer`.
        """
        slot = self._slots.take()
        earlier = self._earlier()
        if earlier is None:
            slot.hold()
            from_store(self._begun(slot))

        head = earlier.head if earlier is not None else self._run.question
        view = from_store(self._service.look(self._run.question.owner, head.run_id))
        response = shown_run(view, self._run.question.answer_lang, 202)
        response.headers["Location"] = f"{request.path}/{head.run_id}"
        return response

    async def _begun(self, slot: QuestionSlot) -> None:
        # Nobody watches it yet, so that only a body that says so lets it end with its clients.
        run = replace(self._run, outlives_clients=not self._may_end_unwatched)
        # Who is told that the run has begun finds it again, even if this worker dies at once.
        await run.begin(self._service, slot.leave, is_watched=True).begun()

    def _earlier(self) -> RunRecord | None:
        # Without a key there is nothing to ask the loop for.
        if self._run.key is not None:
            return from_store(self._run.earlier(self._service))

        return None

    async def _end_of(self, run: RunRequest, slot: QuestionSlot) -> AsyncIterator[Event]:
        yield await self._service.last(
            run.begin(self._service, slot.leave, is_watched=run.key is not None)
        )

    async def _frames_of(self, slot: QuestionSlot) -> AsyncIterator[EventFrame]:
        async for frame in self._service.watch(
            self._run.begin(self._service, slot.leave, is_watched=True)
        ):
            yield frame

    def _again(self, earlier: RunRecord) -> Response:
        """Return the answer that the earlier run ended with.

        Raises:
            Conflict: it has not ended yet.
        """
        head = earlier.head
        view = from_store(self._service.look(head.user_id, head.run_id))
        if view.last is None:
            raise Conflict(_RUNNING, run_id=head.run_id, retry_after_s=_RETRY_AFTER_S)

        return reply_of(view.last)


def _for_caller(asked: AskRequest) -> Question:
    """Return the question with its actor, and with a notice if the body's `user_id` was ignored."""
    ignored = untrusted_user_warning(asked.user_id)
    notices = (ignored,) if ignored is not None else ()
    return replace(
        asked.question,
        actor=acting_as(asked.user_id),
        is_credible=speaks_for_themselves(),
        notices=(*notices, *asked.question.notices),
    )
