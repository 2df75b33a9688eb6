"""The service: `create_app` for any WSGI server, `app` for gunicorn, and `python unified_api.py` to serve locally.

Importing this module starts nothing: no thread, no server, no connection. Those come with the first question, in the
process that answers it, so that preloading and forking servers work.
"""

import re
import secrets
import sys
import time
from typing import Any

from dotenv import load_dotenv
from flask import Flask, Response, g, request

from agent.bootstrap import Services, bootstrap
from api.ask import ask_blueprint
from api.health import health_blueprint
from api.page import page_blueprint
from api.places import Places
from api.replies import register_error_handlers
from app_config import ConfigurationError, Settings
from common import logs

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_access_log = logs.logging.getLogger("unified_api.access")


def create_app(settings: Settings, services: Services | None = None) -> Flask:
    """The Flask application over `services` (default: those that `settings` describe)."""
    services = services or bootstrap(settings)
    app = Flask(__name__, static_folder="static", static_url_path="/static")
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.register_blueprint(
        ask_blueprint(
            services.agent,
            Places(settings.max_streams),
            max_question_chars=settings.max_question_chars,
            ping_interval_s=settings.ping_interval_s,
        )
    )
    app.register_blueprint(health_blueprint(services.checks, required=frozenset({"database"})))
    app.register_blueprint(page_blueprint())
    register_error_handlers(app)
    app.before_request(_begin_request)
    app.after_request(_end_request)
    return app


def _begin_request() -> None:
    given = request.headers.get("X-Request-ID", "")
    logs.request_id.set(given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(8)}")
    g.started = time.perf_counter()


def _end_request(response: Response) -> Response:
    response.headers["X-Request-ID"] = logs.request_id.get()
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    # Everything the page needs comes from here; text from the database can't become script whatever it holds.
    response.headers["Content-Security-Policy"] = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'"
    milliseconds = round((time.perf_counter() - g.started) * 1000, 1)
    _access_log.info(
        "request", extra={"method": request.method, "path": request.path, "status": response.status_code, "ms": milliseconds}
    )
    return response


def __getattr__(name: str) -> Any:
    # `app` is made when a server asks for it, so that importing the module for anything else has no effect.
    if name != "app":
        raise AttributeError(name)
    load_dotenv()
    settings = Settings.from_env()
    logs.configure(settings.log_level)
    globals()["app"] = app = create_app(settings)
    return app
