"""`POST /api/v0/sql/validate` judges SQL that the caller gives, `POST /api/v0/sql/run` runs it like the agent's own."""

from dataclasses import replace

from flask import Blueprint, Response, request

from agent.ask.sql_desk import GivenSql, SqlDesk
from api.access.callers import acting_as
from api.places import Places
from api.requests import json_object, parse_sql, parse_user_id
from api.responses import reply
from api.waiting import result_of
from common.envelope import success
from common.text import Text

_ACCEPTED = Text("SQL验证通过", "The SQL is valid")
_REFUSED = Text("SQL验证未通过", "The SQL is refused")
_DONE = Text("处理完成", "Done")
_EXAMPLE = '{"sql": "SELECT 1"}'


def sql_blueprint(desk: SqlDesk, places: Places) -> Blueprint:
    """The blueprint of both endpoints, over one desk. Each request takes one of the `places` for questions."""
    blueprint = Blueprint("sql", __name__)

    @blueprint.post("/api/v0/sql/validate")
    def validate_sql() -> Response:
        given = _given()
        verdict = result_of(desk.validate(given), places, request.environ)
        return reply(success(verdict, (_ACCEPTED if verdict["ok"] else _REFUSED).to(given.lang)))

    @blueprint.post("/api/v0/sql/run")
    def run_sql() -> Response:
        given = _given()
        return reply(success(result_of(desk.run(given), places, request.environ), _DONE.to(given.lang)))

    return blueprint


def _given() -> GivenSql:
    body = json_object(request, _EXAMPLE)
    given = parse_sql(body, request.headers.get("Accept-Language"))
    return replace(given, actor=acting_as(parse_user_id(body)))
