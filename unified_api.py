"""The service: `create_app` for any WSGI server, `app` for gunicorn, and `python unified_api.py` to serve locally.

Importing this module starts no thread, no server and no connection. The first question starts them, in the process that
answers it, so that servers that preload and fork work.
"""

import logging
import re
import secrets
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # The imports below take two seconds; until they are done, Ctrl-C ends the process at once, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from dotenv import load_dotenv
from flask import Flask, Response, g, request
from werkzeug.exceptions import NotFound
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.routing import RequestRedirect

from agent.bootstrap import Services, bootstrap, semantic_file
from agent.extensions.loading import ExtensionError
from agent.tools.tool import EVERYONE
from agent.tools.tool_groups import InvalidToolGroups, groups_of
from api.access.admission import Admission, register_admission
from api.access.callers import current_caller
from api.access.key_file import KeyFile, KeysUnreadable
from api.access.origins import Anonymity
from api.access.rights import Rights
from api.analyses import analyses_blueprint
from api.ask import ask_blueprint
from api.compression import register_compression
from api.conversations import conversations_blueprint
from api.examples import examples_blueprint
from api.exports import exports_blueprint
from api.feedback import feedback_blueprint
from api.health import health_blueprint
from api.learning import learning_blueprint
from api.me import me_blueprint
from api.openapi import openapi_blueprint
from api.page import page_blueprint
from api.places import Places
from api.reference import reference_blueprint
from api.responses import register_error_handlers
from api.runs import runs_blueprint
from api.schema import schema_blueprint
from api.sockets.live_socket import Limits
from api.sockets.opening import Sockets
from api.sql import sql_blueprint
from api.vanna.chat_socket import chat_socket_blueprint
from api.vanna.endpoints import vanna_blueprint
from api.vanna.talk import Talk
from app_config import ConfigurationError, Settings
from common import logs
from common.errors import CituError
from common.llm import InvalidEndpoint
from common.postgres.addresses import described_address
from common.rate_limits import RateLimits
from common.store.opening import InvalidRedisUrl
from databases import AccessRuleError
from databases.embedded_server import EmbeddedServerError
from databases.options import database_options
from databases.row_rules import RowRulesError
from databases.source import EmbeddedSource, InvalidDatabaseUrl, Sources, Unreachable, probe
from knowledge.semantic.checking import problems_of
from knowledge.semantic.problems import SemanticFileError
from serving.binding import OpenToOthers, refuse_strangers
from serving.worker import PortUnavailable, Server, gunicorn_options, listen

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_SLOW_CLIENT_S = 60.0  # seconds a client may take for an answer beyond what its question may
_access_log = logging.getLogger("unified_api.access")


def create_app(settings: Settings, services: Services | None = None) -> Flask:
    """The Flask application over `services` (default: those that `settings` describe)."""
    services = services or bootstrap(settings)
    app = Flask(__name__, static_folder="static", static_url_path="/static")
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    places = Places(settings.max_streams)
    admission = _admission(settings)
    app.register_blueprint(
        ask_blueprint(
            services.runs,
            services.flows,
            places,
            max_question_chars=settings.max_question_chars,
            ping_interval_s=settings.ping_interval_s,
        )
    )
    app.register_blueprint(runs_blueprint(services.runs, places, ping_interval_s=settings.ping_interval_s))
    app.register_blueprint(exports_blueprint(services.exports, places))
    app.register_blueprint(analyses_blueprint(services.analyses, places))
    app.register_blueprint(conversations_blueprint(services.store.conversations))
    app.register_blueprint(sql_blueprint(services.desk, places))
    app.register_blueprint(schema_blueprint(services.schema, places, max_question_chars=settings.max_question_chars))
    app.register_blueprint(examples_blueprint(services.examples, places))
    app.register_blueprint(feedback_blueprint(services.feedback, places))
    app.register_blueprint(learning_blueprint(services.learning, _rights(settings), places))
    app.register_blueprint(me_blueprint(_rights(settings)))
    talk = Talk(services.runs, services.examples, services.feedback)
    app.register_blueprint(
        vanna_blueprint(
            talk,
            places,
            admission.count,
            max_question_chars=settings.max_question_chars,
            ping_interval_s=settings.ping_interval_s,
        )
    )
    app.register_blueprint(
        chat_socket_blueprint(
            talk, places, admission, _sockets(settings), max_question_chars=settings.max_question_chars
        )
    )
    app.register_blueprint(health_blueprint(services.checks, required=frozenset({"database"})))
    app.register_blueprint(openapi_blueprint())
    app.register_blueprint(reference_blueprint())
    app.register_blueprint(page_blueprint())
    register_error_handlers(app)
    app.extensions["citu"] = services
    app.before_request(_begin_request)
    app.before_request(_redirect_nowhere)
    register_admission(app, admission)
    app.after_request(_end_request)
    register_compression(app)
    if settings.trusted_proxies:
        # Take only the client's address from proxies: a client can send the other headers if a proxy doesn't set them.
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=settings.trusted_proxies, x_proto=0, x_host=0, x_port=0, x_prefix=0
        )
    return app


def _admission(settings: Settings) -> Admission:
    return Admission(
        keys=KeyFile(settings.api_keys_path),
        anonymity=Anonymity(settings.host, settings.allow_anonymous, _listed(settings.cors_origins.lower())),
        rate_limits=_rate_limits(settings) if settings.rate_limit else None,
    )


def _sockets(settings: Settings) -> Sockets:
    limits = Limits(message_bytes=settings.max_body_bytes, drip_s=settings.request_timeout_s + _SLOW_CLIENT_S)
    return Sockets(settings.max_sockets, limits)


def _rights(settings: Settings) -> Rights:
    return Rights(_listed(settings.reviewer_groups), _listed(settings.operator_groups))


def _listed(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def _rate_limits(settings: Settings) -> RateLimits:
    return RateLimits(settings.rate_limit, redis_url=settings.redis_url, timeout_s=settings.store_timeout_s)


def _begin_request() -> None:
    given = request.headers.get("X-Request-ID", "")
    logs.request_id.set(given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(8)}")
    g.started = time.perf_counter()


def _redirect_nowhere() -> None:
    """Answers 404 instead: Flask would redirect `/static//a` to `/static/a` on the host that the Host header names."""
    if isinstance(request.routing_exception, RequestRedirect):
        raise NotFound


def _end_request(response: Response) -> Response:
    response.headers["X-Request-ID"] = logs.request_id.get()
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Permissions-Policy"] = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    # The page loads everything from this server, and text from the database never runs as script.
    response.headers.setdefault(
        "Content-Security-Policy",
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
    if request.path.startswith("/api/"):
        response.headers.setdefault("Cache-Control", "no-store")
    milliseconds = round((time.perf_counter() - g.started) * 1000, 1)
    _access_log.info(
        "request",
        extra={
            "method": request.method,
            "path": request.path,
            "status": response.status_code,
            "ms": milliseconds,
            "user_id": current_caller().user_id,
        },
    )
    return response


def __getattr__(name: str) -> Any:
    # Makes `app` only when a server asks for it, so that other imports of the module have no effect.
    if name != "app":
        raise AttributeError(name)
    globals()["app"] = app = create_app(_settings())
    return app


def _settings() -> Settings:
    load_dotenv(Path(".env"))
    settings = Settings.from_env()
    logs.configure(settings.log_level)
    return settings


def main() -> int:
    """Serves until interrupted. If it can't, it prints one sentence on stderr and returns exit code 1."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        settings = _settings()
        services = bootstrap(settings)
        listening = listen(settings.host, settings.port)
        refuse_strangers([listening], keys=KeyFile(settings.api_keys_path), is_open=settings.allow_anonymous)
        _make_ready(services.sources, settings)
        _check_meanings(services.sources, settings)
        _warn_of_groups(settings)
    except _REASONS as error:
        sys.stderr.write(f"Citu can't start. {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    server = Server(
        lambda: create_app(settings, services),
        listening,
        gunicorn_options(settings.max_streams, question_s=settings.request_timeout_s),
        when_ready=lambda: _say(_banner(settings, services)),
    )
    try:
        server.run()
    finally:
        services.sources.hold.release()
    return 0


# Errors that keep Citu from starting; their messages are written for people.
_REASONS = (
    ConfigurationError,
    ExtensionError,
    InvalidEndpoint,
    AccessRuleError,
    RowRulesError,
    PortUnavailable,
    EmbeddedServerError,
    InvalidDatabaseUrl,
    InvalidRedisUrl,
    InvalidToolGroups,
    Unreachable,
    OpenToOthers,
    SemanticFileError,
)


def _make_ready(sources: Sources, settings: Settings) -> None:
    if isinstance(sources.asked, EmbeddedSource):
        sources.asked.start()
    else:
        probe(sources.asked(), require_read_only_role=settings.require_read_only_role)
    if isinstance(sources.app, EmbeddedSource) and not settings.redis_url:
        try:
            sources.app.start()
        except EmbeddedServerError as error:  # keep serving: questions are answered without being kept
            sys.stderr.write(f"Conversations can't be kept: set REDIS_URL or APP_DATABASE_URL. {error}\n")


def _check_meanings(sources: Sources, settings: Settings) -> None:
    """Holds the operator's semantic file against the database, while there is a person to read what does not fit.

    A service that is running goes on without what has ceased to fit; one that begins does not, because a column that
    is marked as sensitive under a mistaken name would be shown.
    """
    path = semantic_file(settings, sources)
    if not settings.semantic_file or path is None:
        return
    try:
        problems = problems_of(path, sources.asked, database_options(settings))
    except CituError as error:  # the database answers, but not now: the service checks the file when it first reads it
        sys.stderr.write(f"The semantic file was not checked against the database. {error}\n")
        return
    if problems:
        raise SemanticFileError(str(path), problems)


def _warn_of_groups(settings: Settings) -> None:
    """Tells the operator of groups that no API key has: they may be misspelt, or their keys are made later."""
    named = {group for groups in groups_of(settings.tool_groups).values() for group in groups} - {EVERYONE}
    with suppress(KeysUnreadable):  # every request will say so
        held = {group for key in KeyFile(settings.api_keys_path).all() for group in key.groups}
        if named - held:
            sys.stderr.write(f"TOOL_GROUPS names groups that no API key has: {', '.join(sorted(named - held))}.\n")


def _banner(settings: Settings, services: Services) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{settings.port}"
    thinking = "offline rules (no OPENAI_API_KEY)" if services.thinker == "offline" else f"model {services.thinker}"
    is_demo = isinstance(services.sources.asked, EmbeddedSource)
    database = "the embedded demo" if is_demo else described_address(settings.database_url)
    needs_key = KeyFile(settings.api_keys_path).is_needed()
    key = " -H 'Authorization: Bearer <API key>'" if needs_key else ""
    question = "查询各服务区的营业收入排行" if is_demo else "你能查什么数据？"
    banner = (
        f"Citu is ready: {address}\n"
        f"  answers by {thinking}; asks {database}; keeps conversations in {_memory(settings)}\n"
        f"  try it: curl -s {address}/api/v0/ask_agent{key} -H 'Content-Type: application/json'"
        f' -d \'{{"question": "{question}"}}\'\n'
    )
    if (settings.row_context or settings.row_rules) and not needs_key:
        banner += (
            "  rows are shown as to somebody of no group: make API keys, by which users and their groups are known\n"
        )
    if settings.allow_anonymous and not needs_key:
        banner += "  anonymous access is open: everybody who can connect may ask (ALLOW_ANONYMOUS=true)\n"
    return banner


def _memory(settings: Settings) -> str:
    if settings.redis_url:
        return "REDIS_URL"
    return "APP_DATABASE_URL" if settings.app_database_url else "the embedded server"


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
