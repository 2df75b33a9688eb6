"""`GET /api/v0/examples` has questions to begin with, `/api/v0/completions` what one may become."""

from flask import Blueprint, Response, request

from agent.services.database_services import ServedDatabases
from agent.services.example_questions import Examples
from api.access.callers import acting_as
from api.models.request_models import CompletionQuery
from api.requests import parse_database, parse_reader
from api.responses import reply
from api.slots import QuestionSlots
from api.waiting import result_of
from common.actor import Actor
from common.envelope import success
from common.text import Lang, Text

_DONE = Text("处理完成", "Done")


def examples_blueprint(
    databases: ServedDatabases, slots: QuestionSlots, *, max_question_chars: int
) -> Blueprint:
    """Return the endpoints that help to ask.

    A request takes one of the `slots` for questions, because it may have to read the catalogue.
    """
    blueprint = Blueprint("examples", __name__)

    @blueprint.get("/api/v0/examples")
    def list_examples() -> Response:
        reader = parse_reader(request.args, request.headers.get("Accept-Language"))
        lang, actor = reader.lang, acting_as(reader.user_id)
        examples = databases.of(parse_database(request.args), actor).examples
        questions = result_of(_example_questions(examples, lang, actor), slots, request.environ)
        return reply(success({"examples": questions, "lang": lang}, _DONE.to(lang)))

    @blueprint.get("/api/v0/completions")
    def complete() -> Response:
        reader = parse_reader(request.args, request.headers.get("Accept-Language"))
        query = CompletionQuery.read(request.args, max_chars=max_question_chars)
        actor = acting_as(reader.user_id)
        service = databases.of(parse_database(request.args), actor).completions
        work = service.completions(query.q, query.limit, actor)
        completions = result_of(work, slots, request.environ)
        return reply(success({"completions": completions}, _DONE.to(reader.lang)))

    return blueprint


async def _example_questions(examples: Examples, lang: Lang, actor: Actor) -> list[str]:
    return list(await examples(lang, actor))
