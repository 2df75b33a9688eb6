"""`/api/v0/schema`: searches, lists and describes the tables that the caller may read."""

from typing import Any

from flask import Blueprint, Response, request

from agent.services.database_services import ServedDatabases
from api.access.callers import acting_as
from api.models.request_models import SearchQuery
from api.requests import parse_database, parse_page, parse_reader, parse_table_name
from api.responses import reply
from api.slots import QuestionSlots
from api.waiting import result_of
from common.actor import Actor
from common.envelope import success
from common.text import Lang, Text
from knowledge.tables.schema_service import SchemaService

_DONE = Text("处理完成", "Done")


def schema_blueprint(
    databases: ServedDatabases, slots: QuestionSlots, *, max_question_chars: int
) -> Blueprint:
    """Return the endpoints that describe and search tables.

    A request takes one of the `slots` for questions, because it may have to read the catalogue.

    Args:
        max_question_chars: longest text that can be searched for, in characters.
    """
    blueprint = Blueprint("schema", __name__, url_prefix="/api/v0/schema")

    def reader() -> tuple[Actor, SchemaService, Lang]:
        parsed = parse_reader(request.args, request.headers.get("Accept-Language"))
        actor = acting_as(parsed.user_id)
        return actor, databases.of(parse_database(request.args), actor).schema, parsed.lang

    @blueprint.get("/search")
    def search_schema() -> Response:
        actor, service, lang = reader()
        query = SearchQuery.read(request.args, max_chars=max_question_chars)
        tables = result_of(service.search(query.q, query.limit, actor), slots, request.environ)
        return reply(success(tables, _DONE.to(lang)))

    @blueprint.get("/tables")
    def list_tables() -> Response:
        actor, service, lang = reader()
        limit, cursor = parse_page(request.args)
        return reply(
            success(
                result_of(service.tables(limit, cursor, actor), slots, request.environ),
                _DONE.to(lang),
            )
        )

    @blueprint.post("/reload")
    def reload_schema() -> Response:
        actor, service, lang = reader()
        services = databases.of(parse_database(request.args), actor)

        async def reread() -> dict[str, Any]:
            await services.reread()
            page = await service.tables(1, None, actor)
            return {"table_count": page["table_count"]}

        return reply(success(result_of(reread(), slots, request.environ), _DONE.to(lang)))

    @blueprint.get("/tables/<name>")
    def describe_table(name: str) -> Response:
        actor, service, lang = reader()
        table = result_of(service.table(parse_table_name(name), actor), slots, request.environ)
        return reply(success(table, _DONE.to(lang)))

    return blueprint
