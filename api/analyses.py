"""`POST /api/v0/runs/{run_id}/analyze`: figures about an answer's rows."""

from typing import Any, cast

from flask import Blueprint, Response, request

from agent.analysis.analysing import WHATS, What, Wish
from agent.analysis.desk import AnalysisDesk, WantedAnalysis
from agent.analysis.limits import MOST_HORIZON
from api.access.callers import acting_as
from api.fields import choice, identifier, optional, short_text, unknown_fields, wrong
from api.places import Places
from api.requests import json_object, parse_reader, parse_run_id
from api.responses import reply
from api.waiting import result_of
from common.envelope import success
from common.text import Text

_FIELDS = frozenset(("what", "measure", "by", "horizon", "lang", "user_id", "conversation_id"))
_EXAMPLE = '{"what": ["describe", "change"]}'
_DONE = Text("分析完成", "Done")


def analyses_blueprint(desk: AnalysisDesk, places: Places) -> Blueprint:
    """The endpoint. A request takes one of the `places` for questions."""
    blueprint = Blueprint("analyses", __name__)

    @blueprint.post("/api/v0/runs/<run_id>/analyze")
    def analyze_run(run_id: str) -> Response:
        body = json_object(request, _EXAMPLE)
        reader = parse_reader(body, request.headers.get("Accept-Language"))
        wish = Wish(
            lang=reader.lang,
            what=optional(body, "what", _whats),
            measure=optional(body, "measure", short_text),
            by=optional(body, "by", short_text),
            horizon=optional(body, "horizon", _horizon),
            notices=unknown_fields(body, _FIELDS),
        )
        conversation_id = optional(body, "conversation_id", identifier)
        wanted = WantedAnalysis(parse_run_id(run_id), acting_as(reader.user_id), wish, conversation_id)
        return reply(success(result_of(desk.analyze(wanted), places, request.environ), _DONE.to(wish.lang)))

    return blueprint


def _whats(field: str, value: object) -> tuple[What, ...]:
    if not isinstance(value, list) or not value:
        zh, en = "、".join(WHATS), ", ".join(WHATS)
        raise wrong(field, f"非空列表，元素为 {zh}", f"a list, not empty, of {en}")
    return tuple(cast(What, choice(*WHATS)(field, one)) for one in value)


def _horizon(field: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_HORIZON:
        return value
    raise wrong(field, f"1 到 {MOST_HORIZON} 的整数", f"a whole number from 1 to {MOST_HORIZON}")
