"""`GET /` and `GET /c/{conversation_id}`: the page, one file that uses the same API as every other client."""

from pathlib import Path

from flask import Blueprint, Response, send_from_directory

_TEMPLATES = Path(__file__).resolve().parent.parent / "templates"


def page_blueprint() -> Blueprint:
    """The blueprint of the page itself; Flask serves its scripts and styles from `static/`."""
    blueprint = Blueprint("page", __name__)

    @blueprint.get("/")
    def index() -> Response:
        return send_from_directory(_TEMPLATES, "index.html", max_age=0)

    @blueprint.get("/c/<conversation_id>")
    def conversation(**_address: str) -> Response:
        """The same for everybody and every id: what it may show, the page asks the API with its reader's key."""
        # Its addresses are relative, because a proxy may serve it below a path that is unknown here.
        markup = (_TEMPLATES / "index.html").read_text().replace('="static/', '="../static/')
        response = Response(markup, content_type="text/html; charset=utf-8")
        response.headers["Cache-Control"] = "no-cache"
        return response

    return blueprint
