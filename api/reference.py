"""`GET /docs`: the API as a page to read and to try out, made by Swagger UI from `/openapi.json`.

Everything comes from this server: the package `flask_swagger_ui` holds Swagger UI's files. Its own
page has inline script, which our Content-Security-Policy forbids, so the page and its start script
are ours.
"""

from importlib.resources import files
from pathlib import Path

from flask import Blueprint, Response, send_from_directory

_TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
_SWAGGER_UI = str(files("flask_swagger_ui").joinpath("dist"))
# Swagger UI's style sheet has its icons as data: URLs.
_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action "
    "'none'; frame-ancestors 'none'"
)


def reference_blueprint() -> Blueprint:
    """Return the blueprint of the page and of Swagger UI's files."""
    blueprint = Blueprint(
        "reference", __name__, static_folder=_SWAGGER_UI, static_url_path="/docs/files"
    )

    @blueprint.get("/docs")
    def reference() -> Response:
        page = send_from_directory(_TEMPLATES, "reference.html", max_age=0)
        page.headers["Content-Security-Policy"] = _POLICY
        return page

    return blueprint
