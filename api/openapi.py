"""`GET /openapi.json`: the API as OpenAPI 3.1, kept beside this file and held against the routes by a test."""

from pathlib import Path

from flask import Blueprint, Response, send_file

DOCUMENT = Path(__file__).with_name("openapi.json")


def openapi_blueprint() -> Blueprint:
    """The document as it is."""
    blueprint = Blueprint("openapi", __name__)

    @blueprint.get("/openapi.json")
    def openapi() -> Response:
        return send_file(DOCUMENT, mimetype="application/json", max_age=0)

    return blueprint
