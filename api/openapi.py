"""`GET /openapi.json`: the API as OpenAPI 3.1. The document is beside this file; a test compares it with the routes."""

from pathlib import Path

from flask import Blueprint, Response, send_file

DOCUMENT = Path(__file__).with_name("openapi.json")


def openapi_blueprint() -> Blueprint:
    """The blueprint, which sends the file unchanged."""
    blueprint = Blueprint("openapi", __name__)

    @blueprint.get("/openapi.json")
    def openapi() -> Response:
        return send_file(DOCUMENT, mimetype="application/json", max_age=0)

    return blueprint
