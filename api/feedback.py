"""`POST /api/v0/feedback`: what a user says of an answer."""

from dataclasses import replace

from flask import Blueprint, Response, request

from agent.services.learning.feedback_service import FeedbackService
from api.access.callers import acting_as
from api.access.rights import speaks_for_themselves
from api.learning_requests import parse_feedback
from api.requests import json_object
from api.responses import reply
from api.slots import QuestionSlots
from api.waiting import result_of
from common.envelope import success
from common.text import Text

_DONE = Text("感谢反馈", "Thank you for the feedback")
_EXAMPLE = '{"run_id": "…", "rating": "satisfied"}'


def feedback_blueprint(service: FeedbackService, slots: QuestionSlots) -> Blueprint:
    """Return the endpoint that takes verdicts on answers.

    A request takes one of the `slots` for questions, because it may run SQL.
    """
    blueprint = Blueprint("feedback", __name__)

    @blueprint.post("/api/v0/feedback")
    def give_feedback() -> Response:
        feedback, user_id = parse_feedback(
            json_object(request, _EXAMPLE), request.headers.get("Accept-Language")
        )
        feedback = replace(feedback, actor=acting_as(user_id), is_credible=speaks_for_themselves())
        return reply(
            success(
                result_of(service.take(feedback), slots, request.environ), _DONE.to(feedback.lang)
            )
        )

    return blueprint
