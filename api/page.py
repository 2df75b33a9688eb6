"""`GET /` and `GET /c/{conversation_id}`: the page, a client of the API like any other."""

from pathlib import Path

from flask import Blueprint, Response, send_from_directory

_TEMPLATES = Path(__file__).resolve().parent.parent / "templates"


def page_blueprint() -> Blueprint:
    """Return the blueprint of the page; Flask serves its scripts and styles from `static/`."""
    blueprint = Blueprint("page", __name__)

    @blueprint.get("/")
    def index() -> Response:
        return send_from_directory(_TEMPLATES, "index.html", max_age=0)

    @blueprint.get("/c/<conversation_id>")
    def conversation(**_address: str) -> Response:
        """Serve the page, the same for every id; it asks the API with its reader's key."""
        # Its addresses are relative, because a proxy may serve it below a path that is unknown
        # here.
        markup = (_TEMPLATES / "index.html").read_text().replace('="static/', '="../static/')
        response = Response(markup, content_type="text/html; charset=utf-8")
        response.headers["Cache-Control"] = "no-cache"
        return response

    return blueprint
