"""`/api/v0/etl/lineage` and `/api/v0/etl/impact`: where tables come from, what depends on them."""

from flask import Blueprint, Response, request

from agent.services.database_services import ServedDatabases
from agent.services.lineage_service import LineageService
from api.access.callers import acting_as
from api.models.request_models import ImpactQuery, LineageQuery
from api.requests import parse_database, parse_reader
from api.responses import reply
from api.slots import QuestionSlots
from api.waiting import result_of
from common.actor import Actor
from common.envelope import success
from common.text import Lang, Text
from etl.lineage.lineage_graph import as_cypher, as_mermaid

_DONE = Text("处理完成", "Done")


def lineage_blueprint(databases: ServedDatabases, slots: QuestionSlots) -> Blueprint:
    """Return the blueprint; a request takes one of the `slots` for questions."""
    blueprint = Blueprint("lineage", __name__, url_prefix="/api/v0/etl")

    def reader() -> tuple[Actor, LineageService, Lang]:
        parsed = parse_reader(request.args, request.headers.get("Accept-Language"))
        actor = acting_as(parsed.user_id)
        return actor, databases.of(parse_database(request.args), actor).lineage, parsed.lang

    @blueprint.get("/lineage")
    def lineage() -> Response:
        actor, service, lang = reader()
        query = LineageQuery.read(request.args)
        reading = service.lineage(query.table, query.column, query.direction, query.depth, actor)
        part = result_of(reading, slots, request.environ)
        if query.format == "mermaid":
            return Response(as_mermaid(part), mimetype="text/plain")
        if query.format == "cypher":
            return Response(as_cypher(part), mimetype="text/plain")

        answer = {
            "nodes": list(part.nodes),
            "edges": [edge.model_dump() for edge in part.edges],
            "truncated": part.is_truncated,
        }
        return reply(success(answer, _DONE.to(lang)))

    @blueprint.get("/impact")
    def impact() -> Response:
        actor, service, lang = reader()
        query = ImpactQuery.read(request.args)
        reading = service.impact(query.table, query.column, actor, lang)
        return reply(success(result_of(reading, slots, request.environ), _DONE.to(lang)))

    return blueprint
