"""`GET /`: the page, one static file that talks to the same API as everybody else."""

from pathlib import Path

from flask import Blueprint, Response, send_from_directory

_TEMPLATES = Path(__file__).resolve().parent.parent / "templates"


def page_blueprint() -> Blueprint:
    """The page itself; its scripts and styles are served from `static/`."""
    blueprint = Blueprint("page", __name__)

    @blueprint.get("/")
    def index() -> Response:
        return send_from_directory(_TEMPLATES, "index.html", max_age=0)

    return blueprint
