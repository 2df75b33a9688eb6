"""`/api/v0/schema`: the tables of the asked database as the caller may read them, searched, listed and described."""

from flask import Blueprint, Response, request

from api.access.callers import acting_as
from api.places import Places
from api.requests import parse_page, parse_reader, parse_search, parse_table_name
from api.responses import reply
from api.waiting import result_of
from common.actor import Actor
from common.envelope import success
from common.text import Lang, Text
from knowledge.schema_desk import SchemaDesk

_DONE = Text("处理完成", "Done")


def schema_blueprint(desk: SchemaDesk, places: Places, *, max_question_chars: int) -> Blueprint:
    """The blueprint. A request takes one of the `places` for questions, because it may have to read the catalogue.

    Args:
        max_question_chars: longest text that can be searched for, in characters.
    """
    blueprint = Blueprint("schema", __name__, url_prefix="/api/v0/schema")

    @blueprint.get("/search")
    def search_schema() -> Response:
        actor, lang = _reader()
        question, limit = parse_search(request.args, max_question_chars)
        found = result_of(desk.search(question, limit, actor), places, request.environ)
        return reply(success(found, _DONE.to(lang)))

    @blueprint.get("/tables")
    def list_tables() -> Response:
        actor, lang = _reader()
        limit, cursor = parse_page(request.args)
        return reply(success(result_of(desk.tables(limit, cursor, actor), places, request.environ), _DONE.to(lang)))

    @blueprint.get("/tables/<name>")
    def describe_table(name: str) -> Response:
        actor, lang = _reader()
        found = result_of(desk.table(parse_table_name(name), actor), places, request.environ)
        return reply(success(found, _DONE.to(lang)))

    return blueprint


def _reader() -> tuple[Actor, Lang]:
    reader = parse_reader(request.args, request.headers.get("Accept-Language"))
    return acting_as(reader.user_id), reader.lang
