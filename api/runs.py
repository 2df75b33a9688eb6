"""`/api/v0/runs`: shows, follows and cancels a run by its id, from any worker."""

from typing import Any

from flask import Blueprint, Response, request

from agent.runs.run_service import RunService, RunView
from api.access.callers import acting_as
from api.models.request_models import EventsQuery, event_number
from api.requests import (
    Reader,
    body_of,
    json_object,
    parse_answer,
    parse_reader,
    parse_run_id,
)
from api.responses import reply
from api.slots import QuestionSlots
from api.streaming import last_event_seq, streamed
from api.waiting import from_store
from common.envelope import success
from common.text import Lang, Text

_STATES = {
    "running": Text("正在回答", "Running"),
    "waiting": Text("等待您的回答", "Waiting for your answer"),
    "completed": Text("处理完成", "Done"),
    "error": Text("处理失败", "Failed"),
    "cancelled": Text("已取消", "Cancelled"),
}

# Examples of bodies
_CANCEL = '{"user_id": "alice"}'
_ANSWER = '{"interrupt_id": "…", "answer": "…"}'
# Fields of what a waiting run asks
_QUESTION = ("interrupt_id", "kind", "prompt", "choices", "schema")


def runs_blueprint(
    service: RunService, slots: QuestionSlots, *, ping_interval_s: float
) -> Blueprint:
    """Return the blueprint of all endpoints, over one service.

    A stream takes one of the `slots` for questions.
    """
    blueprint = Blueprint("runs", __name__, url_prefix="/api/v0/runs")

    @blueprint.get("/<run_id>")
    def read_run(run_id: str) -> Response:
        reader = _reader()
        view = from_store(service.look(acting_as(reader.user_id).owner, parse_run_id(run_id)))
        return shown_run(view, reader.lang)

    @blueprint.get("/<run_id>/events")
    def follow_run(run_id: str) -> Response:
        user_id, run_id = acting_as(_reader().user_id).owner, parse_run_id(run_id)
        # An EventSource that reconnects repeats the address with its old `after`, so the header may
        # be further on.
        asked_after = event_number(EventsQuery.read(request.args).after, run_id) or 0
        after = max(asked_after, last_event_seq(run_id))
        slots.take()
        view = from_store(service.look(user_id, run_id))
        if view.last is not None and after >= view.record.last_seq:
            return Response(status=204)  # tells a native EventSource to stop reconnecting

        events = service.follow(user_id, run_id, after)
        return streamed(events, run_id, ping_interval_s=ping_interval_s)

    @blueprint.post("/<run_id>/cancel")
    def cancel_run(run_id: str) -> Response:
        reader = _reader(json_object(request, _CANCEL) if body_of(request) else {})
        view = from_store(service.cancel(acting_as(reader.user_id).owner, parse_run_id(run_id)))
        return shown_run(view, reader.lang, 200 if view.last is not None else 202)

    @blueprint.post("/<run_id>/resume")
    def resume_run(run_id: str) -> Response:
        body = json_object(request, _ANSWER)
        reader, run_id = _reader(body), parse_run_id(run_id)
        interrupt_id, answer = parse_answer(body)
        slot = slots.take()
        actor = acting_as(reader.user_id)
        slot.hold()
        try:
            resuming = service.resume(actor, run_id, interrupt_id, answer, on_end=slot.leave)
            view = from_store(resuming)
        except BaseException:
            slot.leave()
            raise

        return shown_run(view, reader.lang, 202)

    return blueprint


def _reader(body: dict[str, Any] | None = None) -> Reader:
    return parse_reader({**request.args, **(body or {})}, request.headers.get("Accept-Language"))


def shown_run(view: RunView, lang: Lang, code: int = 200) -> Response:
    """Return the run as the endpoints show it."""
    head = view.record.head
    data = {
        "run_id": head.run_id,
        "conversation_id": head.conversation_id,
        "question": head.question,
        "state": view.record.state,
        "started_at": head.started_at,
        "last_event_id": f"{head.run_id}:{view.record.last_seq}",
        "result": view.last.sync_envelope()
        if view.last is not None and view.last.is_terminal
        else None,
    }
    if view.last is not None and not view.last.is_terminal:
        data["waiting_for"] = {
            key: view.last.data[key] for key in _QUESTION if key in view.last.data
        }

    return reply(success(data, _STATES[view.record.state].to(lang), code))
