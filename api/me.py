"""`GET /api/v0/me`: who the caller is, and what it may do."""

from flask import Blueprint, Response, request

from api.access.callers import acting_as, has_session, is_authenticated
from api.access.rights import GroupRights
from api.requests import parse_reader
from api.responses import reply
from common.envelope import success
from common.text import Text

_DONE = Text("处理完成", "Done")


def me_blueprint(rights: GroupRights) -> Blueprint:
    """Return the endpoint; `rights` say which groups give which right."""
    blueprint = Blueprint("me", __name__)

    @blueprint.get("/api/v0/me")
    def read_me() -> Response:
        reader = parse_reader(request.args, request.headers.get("Accept-Language"))
        actor = acting_as(reader.user_id)
        data = {
            "user_id": actor.user_id,
            "groups": list(actor.groups),
            "attributes": {name: list(values) for name, values in actor.attributes},
            "acts_for_others": actor.acts_for_others,
            "authenticated": is_authenticated(),
            "has_session": has_session(),
            "is_reviewer": rights.is_reviewer(actor),
            "is_operator": rights.is_operator(actor),
        }
        return reply(success(data, _DONE.to(reader.lang)))

    return blueprint
