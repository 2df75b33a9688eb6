"""`POST /api/v0/ask_agent` and `POST /api/v0/ask_agent_stream`: the same question, answered whole or step by step."""

import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, after_this_request, request

from agent.citu_agent import CituLangGraphAgent
from agent.events import Event
from api.places import Places
from api.replies import reply
from api.requests import AskRequest, json_object, parse_ask
from api.waiting import next_item
from common import sse
from common.errors import CANCELLED_TEXT, Cancelled
from common.runtime import Feed

_RETRY_MS = 3000


def ask_blueprint(
    agent: CituLangGraphAgent, places: Places, *, max_question_chars: int, ping_interval_s: float
) -> Blueprint:
    """Both endpoints over one agent."""
    blueprint = Blueprint("ask", __name__)

    def begin(*, streams: bool) -> "_Answering":
        asked = parse_ask(json_object(request), max_question_chars)
        answering = _Answering(agent, asked, places, request.environ, streams=streams)

        # Closed when the response, whichever it will be, has been written: until then it holds a thread. A `finally` in
        # frames() would not do: a generator that was never started does not run its body when it is closed.
        @after_this_request
        def close_with(response: Response) -> Response:
            response.call_on_close(answering.close)
            return response

        return answering

    @blueprint.post("/api/v0/ask_agent")
    def ask_agent() -> Response:
        answering = begin(streams=False)
        return reply(answering.terminal_event().sync_envelope())

    @blueprint.post("/api/v0/ask_agent_stream")
    def ask_agent_stream() -> Response:
        answering = begin(streams=True)
        return Response(answering.frames(ping_interval_s), content_type=sse.CONTENT_TYPE, headers=sse.HEADERS)

    return blueprint


class _Answering:
    """One question being answered for one HTTP client."""

    def __init__(
        self, agent: CituLangGraphAgent, asked: AskRequest, places: Places, environ: dict[str, Any], *, streams: bool
    ) -> None:
        self._asked = asked
        self._environ = environ
        # The place is held until both the run and the response are over: a run may outlive its client.
        self._leave = places.take(holders=2)
        # Nobody watches a sync answer being written: the model is asked for it whole, and only the end is handed over.
        question = replace(asked.question, stream_tokens=streams and asked.question.stream_tokens)
        events = agent.process_question_stream(question)
        self._feed: Feed[Event] = Feed(events if streams else _last(events), on_end=self._leave)

    def terminal_event(self) -> Event:
        """Waits for the last event.

        Raises:
            Cancelled: the client left before the question was begun.
        """
        last: Event | None = None
        while (event := self._next()) is not None:
            if isinstance(event, Event):
                last = event
        if last is None:
            raise Cancelled(CANCELLED_TEXT)
        return last

    def frames(self, ping_interval_s: float) -> Iterator[bytes]:
        """The stream: every event as a frame, comments while there is none."""
        yield sse.retry(_RETRY_MS)
        written, number = time.monotonic(), 0
        while (event := self._next()) is not None:
            if isinstance(event, Event):
                number += 1
                yield sse.frame(f"{self._asked.question.run_id}:{number}", event.envelope())
                written = time.monotonic()
            elif time.monotonic() - written >= ping_interval_s:
                yield sse.PING
                written = time.monotonic()

    def _next(self) -> Event | object | None:
        """The next event, None after the last; something else when there was none for a while."""
        return next_item(self._feed, self._environ, cancels=self._asked.cancels_on_disconnect)

    def close(self) -> None:
        """The response is over, whether or not the client waited for its end."""
        if self._asked.cancels_on_disconnect:
            self._feed.cancel()
        self._leave()


async def _last(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        if event.is_terminal:
            yield event
