"""`GET /`: the page, one static file that uses the same API as every other client."""

from pathlib import Path

from flask import Blueprint, Response, send_from_directory

_TEMPLATES = Path(__file__).resolve().parent.parent / "templates"


def page_blueprint() -> Blueprint:
    """The blueprint of the page itself; Flask serves its scripts and styles from `static/`."""
    blueprint = Blueprint("page", __name__)

    @blueprint.get("/")
    def index() -> Response:
        return send_from_directory(_TEMPLATES, "index.html", max_age=0)

    return blueprint
