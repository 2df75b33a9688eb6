"""`POST /api/v0/sql/validate` judges a caller's SQL, `POST /api/v0/sql/run` runs it."""

from dataclasses import replace

from flask import Blueprint, Response, request

from agent.services.database_services import ServedDatabases
from agent.services.sql_service import GivenSql
from api.access.callers import acting_as
from api.requests import json_object, parse_sql, parse_user_id
from api.responses import reply
from api.slots import QuestionSlots
from api.waiting import result_of
from common.envelope import success
from common.text import Text

_ACCEPTED = Text("SQL验证通过", "The SQL is valid")
_REFUSED = Text("SQL验证未通过", "The SQL is refused")
_DONE = Text("处理完成", "Done")
_EXAMPLE = '{"sql": "SELECT 1"}'


def sql_blueprint(databases: ServedDatabases, slots: QuestionSlots) -> Blueprint:
    """Return the blueprint of both endpoints.

    Each request takes one of the `slots` for questions.
    """
    blueprint = Blueprint("sql", __name__)

    @blueprint.post("/api/v0/sql/validate")
    def validate_sql() -> Response:
        statement = _parse_given_sql()
        service = databases.of(statement.database, statement.actor).sql
        verdict = result_of(service.validate(statement), slots, request.environ)
        return reply(
            success(verdict, (_ACCEPTED if verdict["ok"] else _REFUSED).to(statement.lang))
        )

    @blueprint.post("/api/v0/sql/run")
    def run_sql() -> Response:
        statement = _parse_given_sql()
        service = databases.of(statement.database, statement.actor).sql
        return reply(
            success(
                result_of(service.run(statement), slots, request.environ), _DONE.to(statement.lang)
            )
        )

    return blueprint


def _parse_given_sql() -> GivenSql:
    body = json_object(request, _EXAMPLE)
    statement = parse_sql(body, request.headers.get("Accept-Language"))
    return replace(statement, actor=acting_as(parse_user_id(body)))
