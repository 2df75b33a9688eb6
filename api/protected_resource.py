"""`GET /.well-known/oauth-protected-resource`: where access tokens for this service are had."""

from flask import Blueprint, Response, jsonify, request

from api.access.challenges import WELL_KNOWN, Challenges
from common.errors import NotFound
from common.text import Text

_NONE = Text("这里没有设置令牌签发者。", "There is no issuer of access tokens for this address.")


def protected_resource_blueprint(challenges: Challenges) -> Blueprint:
    """Return the endpoint, which is open to all: clients read it before they have a token."""
    blueprint = Blueprint("protected_resource", __name__)

    def read_metadata(resource: str = "") -> Response:
        metadata = challenges.metadata(request, f"/{resource}" if resource else "")
        if metadata is None:
            raise NotFound(_NONE)

        return jsonify(metadata)

    for path in (WELL_KNOWN, f"{WELL_KNOWN}/<path:resource>"):
        blueprint.add_url_rule(path, "read_metadata", read_metadata, methods=["GET"])

    return blueprint
