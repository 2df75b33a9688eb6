"""`POST /api/agui`: a run as a stream of AG-UI's events."""

import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, request

from agent.runs.events import stored_event
from agent.runs.run_service import RunService
from agent.services.database_services import ServedDatabases
from api.access.callers import acting_as
from api.access.rights import speaks_for_themselves
from api.agui.agui_events import AguiEvents
from api.agui.run_inputs import InterruptAnswer, RunInput, parse_run_input
from api.requests import json_of
from api.responses import request_language
from api.run_frames import Frames, frames_after, frames_of, last_frame
from api.slots import HeldSlot, QuestionSlots
from api.streaming import event_stream
from common import sse
from common.actor import Actor
from common.envelope import error_data, to_bytes
from common.errors import INTERNAL_ERROR_TEXT, CituError, InternalError
from common.text import Lang

_log = logging.getLogger(__name__)
Json = dict[str, Any]


def agui_blueprint(
    runs: RunService,
    databases: ServedDatabases,
    agents: Collection[str],
    slots: QuestionSlots,
    *,
    max_question_chars: int,
    ping_interval_s: float,
) -> Blueprint:
    """Return the endpoint. Each request takes one of the `slots` for questions."""
    blueprint = Blueprint("agui", __name__)

    @blueprint.post("/api/agui")
    def run_agent() -> Response:
        run_input = parse_run_input(json_of(request), max_question_chars, agents)
        actor, is_credible = acting_as(run_input.user_id), speaks_for_themselves()
        if not isinstance(run_input.asked, InterruptAnswer):
            question = replace(run_input.asked, actor=actor, is_credible=is_credible)
            if question.database is not None:
                databases.checked(question.database, actor)

            run_input = replace(run_input, asked=question)

        held_slot = HeldSlot(slots.take())
        events = _events(runs, run_input, actor, held_slot, request_language())
        return event_stream(held_slot.over(events), _sse_bytes, ping_interval_s=ping_interval_s)

    return blueprint


async def _events(
    runs: RunService, run_input: RunInput, actor: Actor, held_slot: HeldSlot, lang: Lang
) -> AsyncGenerator[list[Json], None]:
    """Yield the events of each frame together, because each piece wakes the thread that writes."""
    translation = AguiEvents(run_input.thread_id, run_input.run_id)
    yield [translation.started()]
    try:
        async with aclosing(await _frames(runs, run_input, actor, held_slot)) as frames:
            async for frame in frames:
                events = translation.of(stored_event(frame.data).data)
                if events:
                    yield events
    except CituError as error:  # an answer that can't be taken
        yield translation.of({"type": "error", **error_data(error, lang)})
    except Exception:  # noqa: BLE001 - a client must see that the run has ended
        _log.exception("unexpected failure in a run over AG-UI")
        broken = error_data(InternalError(INTERNAL_ERROR_TEXT), lang)
        yield translation.of({"type": "error", **broken})


async def _frames(
    runs: RunService, run_input: RunInput, actor: Actor, held_slot: HeldSlot
) -> Frames:
    asked = run_input.asked
    if not isinstance(asked, InterruptAnswer):
        return frames_of(runs, asked, held_slot.give())
    if asked.is_refused:
        await runs.cancel(actor.owner, asked.waiting.run_id)
        return await last_frame(runs, actor.owner, asked.waiting.run_id)

    return await frames_after(
        runs, actor, asked.waiting, lambda _asked: asked.payload, held_slot.give()
    )


def _sse_bytes(events: list[Json]) -> bytes:
    return b"".join(sse.data(to_bytes(event)) for event in events)
