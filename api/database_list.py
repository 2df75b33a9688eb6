"""`GET /api/v0/databases`: the databases that the caller may ask, and how they are."""

from flask import Blueprint, Response, request

from agent.services.database_services import ServedDatabases
from api.access.callers import acting_as
from api.requests import parse_reader
from api.responses import reply
from api.slots import QuestionSlots
from api.waiting import result_of
from common.envelope import success
from common.text import Text

_DONE = Text("处理完成", "Done")


def databases_blueprint(databases: ServedDatabases, slots: QuestionSlots) -> Blueprint:
    """Return the endpoint that lists the databases that the caller may ask.

    A request takes one of the `slots` for questions, because it may have to read the catalogues.
    """
    blueprint = Blueprint("databases", __name__)

    @blueprint.get("/api/v0/databases")
    def list_databases() -> Response:
        reader = parse_reader(request.args, request.headers.get("Accept-Language"))
        listing = databases.listed(acting_as(reader.user_id), reader.lang)
        listed = result_of(listing, slots, request.environ)
        return reply(success({"databases": listed}, _DONE.to(reader.lang)))

    return blueprint
