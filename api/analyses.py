"""`POST /api/v0/runs/{run_id}/analyze`: figures about an answer's rows."""

from flask import Blueprint, Response, request

from agent.analysis.analysing import AnalysisRequest
from agent.services.analysis_service import AnalysisService, WantedAnalysis
from api.access.callers import acting_as
from api.models.request_models import AnalyzeBody
from api.requests import json_object, parse_reader, parse_run_id
from api.responses import reply
from api.slots import QuestionSlots
from api.waiting import result_of
from common.envelope import success
from common.text import Text

_EXAMPLE = '{"what": ["describe", "change"]}'
_DONE = Text("分析完成", "Done")


def analyses_blueprint(service: AnalysisService, slots: QuestionSlots) -> Blueprint:
    """Return the endpoint. A request takes one of the `slots` for questions."""
    blueprint = Blueprint("analyses", __name__)

    @blueprint.post("/api/v0/runs/<run_id>/analyze")
    def analyze_run(run_id: str) -> Response:
        body = json_object(request, _EXAMPLE)
        reader = parse_reader(body, request.headers.get("Accept-Language"))
        fields = AnalyzeBody.read(body)
        analysis = AnalysisRequest(
            lang=reader.lang,
            what=fields.what,
            measure=fields.measure,
            by=fields.by,
            horizon=fields.horizon,
            notices=AnalyzeBody.notices(body),
        )
        actor = acting_as(reader.user_id)
        wanted_analysis = WantedAnalysis(
            parse_run_id(run_id), actor, analysis, fields.conversation_id
        )
        findings = result_of(service.analyze(wanted_analysis), slots, request.environ)
        return reply(success(findings, _DONE.to(reader.lang)))

    return blueprint
