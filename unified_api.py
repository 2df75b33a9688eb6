"""The service: `create_app` for any WSGI server, `app` for gunicorn, and `python unified_api.py` to
serve locally.

Importing this module starts no thread, no server and no connection. The first question starts them,
in the process that answers it, so that servers that preload and fork work.
"""

import re
import secrets
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from api.access.access_tokens import AccessTokens

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # The imports below take two seconds; until they are done, Ctrl-C ends the process at once,
    # without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from dotenv import load_dotenv
from flask import Flask, Response, request
from werkzeug.exceptions import NotFound
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.routing import RequestRedirect

from agent.asked_databases import AskedDatabase
from agent.bootstrap import Services, bootstrap
from agent.budgets.budgets_file import BudgetsFileError
from agent.extensions.loading import ExtensionError
from agent.services.readiness import visible_database_states
from agent.tools.tool import EVERYONE
from agent.tools.tool_groups import InvalidToolGroups, groups_of
from api.access.admission import Admission, register_admission
from api.access.authentication import Authentication, ProxyUsers
from api.access.callers import current_caller
from api.access.challenges import Challenges
from api.access.key_file import KeyFile, KeysUnreadable
from api.access.origins import Anonymity
from api.access.rights import GroupRights
from api.access.screening import Screening
from api.access.sessions import CookiePlace, Sessions
from api.access.shared_key import kept_key
from api.access.shared_keys import SharedKeys
from api.access.token_claims import ClaimNames
from api.access_log import AccessLog
from api.agui.agui_endpoint import agui_blueprint
from api.analyses import analyses_blueprint
from api.artefacts import artefacts_blueprint
from api.ask import ask_blueprint
from api.chat_completions.completion_endpoints import chat_completions_blueprint
from api.compression import register_compression
from api.conversations import conversations_blueprint
from api.database_list import databases_blueprint
from api.examples import examples_blueprint
from api.exports import exports_blueprint
from api.feedback import feedback_blueprint
from api.file_uploads import FORM_BYTES
from api.files import FILES_PATH, files_blueprint
from api.health import Found, health_blueprint
from api.lineage import lineage_blueprint
from api.mcp.citu_content import INSTRUCTIONS, CituContent
from api.mcp.endpoint import mcp_blueprint
from api.mcp.mcp_services import McpServices
from api.mcp.sealed_state import StateSeal
from api.mcp.server import McpServer
from api.me import me_blueprint
from api.metrics_page import metrics_blueprint
from api.openapi import VERSION, openapi_blueprint
from api.page import page_blueprint
from api.protected_resource import protected_resource_blueprint
from api.reference import reference_blueprint
from api.request_tracing import RequestTracing
from api.responses import register_error_handlers
from api.reviewing import learning_blueprint
from api.runs import runs_blueprint
from api.schema import schema_blueprint
from api.semantic import semantic_blueprint
from api.shared_key_store import fetch_shared_keys
from api.sign_in import SignIn, sign_in_blueprint
from api.slots import QuestionSlots
from api.sockets.live_socket import SocketLimits
from api.sockets.open_sockets import Sockets
from api.sql import sql_blueprint
from api.vanna.chat_service import ChatService
from api.vanna.chat_socket import chat_socket_blueprint
from api.vanna.endpoints import vanna_blueprint
from app_config import ConfigurationError, Settings, claims_by_attribute
from common import logs
from common.errors import CituError
from common.rate_limits import RateLimits
from databases.databases_file import DatabasesFileError
from databases.embedded.embedded_server import EmbeddedServerError
from databases.source import (
    EmbeddedSource,
    InvalidDatabaseUrl,
    Unreachable,
    probe,
    readable_tables,
)
from files.file_index import FILES
from guard import AccessRuleError
from guard.row_rules import RowRulesError
from knowledge.semantic.checking import problems_of
from knowledge.semantic.problems import SemanticFileError
from llm import InvalidEndpoint
from postgres.addresses import described_address
from serving.listen_address import OpenToOthers, PortUnavailable, listen, refuse_strangers
from serving.measuring_workers import begin_measuring
from serving.request_reading import LargeBodies
from serving.worker import GunicornServer, gunicorn_options
from store.open_store import InvalidRedisUrl
from store.shared_hits import shared_hit

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_SLOW_CLIENT_S = 60.0  # seconds a client may take for an answer beyond what its question may


def create_app(settings: Settings, services: Services | None = None) -> Flask:
    """Return the Flask application over `services` (default: those that `settings` describe)."""
    services = services or bootstrap(settings)
    app = Flask(__name__, static_folder="static", static_url_path="/static")
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    slots = QuestionSlots(settings.max_streams, settings.caller_share)
    admission = _admission(settings, services)
    app.register_blueprint(
        ask_blueprint(
            services.runs,
            services.databases,
            services.flows,
            slots,
            max_question_chars=settings.max_question_chars,
            ping_interval_s=settings.ping_interval_s,
        )
    )
    app.register_blueprint(
        runs_blueprint(services.runs, slots, ping_interval_s=settings.ping_interval_s)
    )
    app.register_blueprint(exports_blueprint(services.exports, slots))
    app.register_blueprint(artefacts_blueprint(services.artefacts))
    app.register_blueprint(analyses_blueprint(services.analyses, slots))
    app.register_blueprint(conversations_blueprint(services.store.conversations))
    app.register_blueprint(sql_blueprint(services.databases, slots))
    app.register_blueprint(
        schema_blueprint(services.databases, slots, max_question_chars=settings.max_question_chars)
    )
    app.register_blueprint(lineage_blueprint(services.databases, slots))
    app.register_blueprint(
        examples_blueprint(
            services.databases, slots, max_question_chars=settings.max_question_chars
        )
    )
    app.register_blueprint(feedback_blueprint(services.feedback, slots))
    app.register_blueprint(learning_blueprint(services.databases, _rights(settings), slots))
    app.register_blueprint(semantic_blueprint(services.databases, _rights(settings), slots))
    app.register_blueprint(me_blueprint(_rights(settings)))
    app.register_blueprint(databases_blueprint(services.databases, slots))
    app.register_blueprint(
        files_blueprint(services.files, slots, max_file_bytes=settings.max_file_bytes)
    )
    chat_service = ChatService(services.runs, services.databases, services.feedback)
    app.register_blueprint(
        vanna_blueprint(
            chat_service,
            slots,
            admission.count,
            max_question_chars=settings.max_question_chars,
            ping_interval_s=settings.ping_interval_s,
        )
    )
    app.register_blueprint(
        chat_socket_blueprint(
            chat_service,
            slots,
            admission,
            _sockets(settings),
            max_question_chars=settings.max_question_chars,
        )
    )
    app.register_blueprint(
        mcp_blueprint(
            _mcp_server(settings, services),
            slots,
            admission,
            ping_interval_s=settings.ping_interval_s,
        )
    )
    app.register_blueprint(
        agui_blueprint(
            services.runs,
            services.databases,
            services.flows,
            slots,
            max_question_chars=settings.max_question_chars,
            ping_interval_s=settings.ping_interval_s,
        )
    )
    app.register_blueprint(
        chat_completions_blueprint(
            services.runs,
            services.flows,
            slots,
            admission,
            max_question_chars=settings.max_question_chars,
            ping_interval_s=settings.ping_interval_s,
        )
    )
    app.register_blueprint(
        health_blueprint(
            services.checks,
            required=frozenset({"database"}),
            shown=partial(_shown_readiness, services, admission, _rights(settings)),
        )
    )
    app.register_blueprint(openapi_blueprint())
    app.register_blueprint(reference_blueprint())
    app.register_blueprint(page_blueprint())
    app.register_blueprint(protected_resource_blueprint(admission.challenges))
    app.register_blueprint(sign_in_blueprint(_sign_in(settings, admission)))
    if services.metrics is not None and settings.metrics:
        app.register_blueprint(metrics_blueprint(services.metrics, _rights(settings)))

    register_error_handlers(app)
    app.extensions["citu"] = services
    if settings.shared_api_keys:
        keys = KeyFile(settings.api_keys_path)
        app.extensions["citu_shared_keys"] = SharedKeys(keys, services.store.documents)
    AccessLog(services.metrics).register(app)
    if services.files is not None:
        app.extensions["citu_large_bodies"] = LargeBodies(
            FILES_PATH, settings.max_file_bytes + FORM_BYTES, services.files.folder.path
        )

    app.before_request(_begin_request)
    if services.tracing is not None:
        RequestTracing(services.tracing).register(app)

    app.before_request(_redirect_nowhere)
    register_admission(app, admission)
    app.after_request(_end_request)
    register_compression(app)
    app.extensions["citu_screening"] = _behind_proxies(Screening(app, admission), settings)
    app.wsgi_app = _behind_proxies(app.wsgi_app, settings)  # type: ignore[assignment,method-assign]
    return app


def _mcp_server(settings: Settings, services: Services) -> McpServer:
    offered = McpServices(
        runs=services.runs,
        databases=services.databases,
        asked=services.asked,
        exports=services.exports,
        analyses=services.analyses,
        registry=services.tools,
        agents=services.flows,
        max_question_chars=settings.max_question_chars,
    )
    seal = StateSeal(
        lambda: settings.mcp_state_key or kept_key(settings.data_path / "mcp_state_key"),
        settings.run_waiting_ttl_s,
    )
    return McpServer(CituContent(offered), seal, {"name": "citu", "version": VERSION}, INSTRUCTIONS)


def _behind_proxies(application: "WSGIApplication", settings: Settings) -> "WSGIApplication":
    if not settings.trusted_proxies:
        return application

    # Take only the client's address from proxies: a client can send the other headers if a proxy
    # doesn't set them.
    return ProxyFix(
        application, x_for=settings.trusted_proxies, x_proto=0, x_host=0, x_port=0, x_prefix=0
    )


def _admission(settings: Settings, services: Services) -> Admission:
    proxies = None
    if services.user_resolver is not None:
        proxies = ProxyUsers(services.user_resolver, _listed(settings.user_resolver_proxies))

    return Admission(
        authentication=Authentication(
            KeyFile(settings.api_keys_path),
            _access_tokens(settings),
            proxies,
            _sessions(settings) if settings.oidc_client_id else None,
        ),
        anonymity=Anonymity(
            settings.host, settings.allow_anonymous, _listed(settings.cors_origins.lower())
        ),
        rate_limits=_rate_limits(settings, services) if settings.rate_limit else None,
        shows_examples=settings.examples_without_key,
        challenges=Challenges(
            settings.oauth_issuer if settings.takes_access_tokens else "",
            tuple(settings.oauth_scopes.split()),
            settings.public_url,
        ),
    )


def _access_tokens(settings: Settings) -> "AccessTokens | None":
    if not settings.takes_access_tokens:
        return None

    # Only services with an issuer need the libraries, which take a while to import.
    from api.access.access_tokens import AccessTokens  # noqa: PLC0415
    from api.access.issuer_keys import IssuerKeys  # noqa: PLC0415

    return AccessTokens(
        issuer=settings.oauth_issuer,
        audiences=_listed(settings.oauth_audience),
        scopes=tuple(settings.oauth_scopes.split()),
        claims=_claim_names(settings),
        keys=IssuerKeys(settings.oauth_issuer, settings.oauth_jwks_url),
    )


def _claim_names(settings: Settings) -> ClaimNames:
    return ClaimNames(
        settings.oauth_user_claim,
        settings.oauth_groups_claim,
        claims_by_attribute(settings.oauth_attributes),
    )


def _session_key(settings: Settings) -> str:
    return settings.session_key or kept_key(settings.data_path / "session_key")


def _sessions(settings: Settings) -> Sessions:
    return Sessions(
        lambda: _session_key(settings),
        settings.session_ttl_s,
        CookiePlace.of(settings.public_url),
        settings.data_path / "ended_sessions",
    )


def _sign_in(settings: Settings, admission: Admission) -> SignIn | None:
    sessions = admission.authentication.sessions
    if sessions is None:
        return None

    from api.access.issuer_keys import IssuerKeys  # noqa: PLC0415
    from api.access.openid_login import OpenIdClient, OpenIdLogin  # noqa: PLC0415
    from api.access.signed_tokens import SignedTokens  # noqa: PLC0415

    home = settings.public_url.rstrip("/") + "/"
    client = OpenIdClient(
        settings.oidc_client_id,
        settings.oidc_client_secret,
        settings.oidc_scopes,
        f"{home}login/callback",
        home,
    )
    tokens = admission.authentication.tokens
    keys = IssuerKeys(settings.oauth_issuer, settings.oauth_jwks_url)
    if tokens is not None:
        keys = tokens.keys  # which are then fetched once for both

    login = OpenIdLogin(
        client,
        SignedTokens(settings.oauth_issuer, keys),
        _claim_names(settings),
        lambda: _session_key(settings),
    )
    return SignIn(login, sessions, home)


def _sockets(settings: Settings) -> Sockets:
    limits = SocketLimits(
        message_bytes=settings.max_body_bytes, drip_s=settings.request_timeout_s + _SLOW_CLIENT_S
    )
    return Sockets(settings.max_sockets, limits, settings.caller_share)


def _shown_readiness(
    services: Services, admission: Admission, rights: GroupRights, found: Found
) -> Found:
    """Return what was found: to operators all of it, to others what every caller may know."""
    admission.recognise()
    if rights.is_operator(current_caller()):
        return found

    return {**found, "database": visible_database_states(found["database"], services.asked)}


def _rights(settings: Settings) -> GroupRights:
    return GroupRights(_listed(settings.reviewer_groups), _listed(settings.operator_groups))


def _listed(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def _rate_limits(settings: Settings, services: Services) -> RateLimits:
    timeout_s = settings.store_timeout_s
    return RateLimits(
        settings.rate_limit,
        redis_url=settings.redis_url,
        timeout_s=timeout_s,
        hit=shared_hit(services.store, timeout_s),
    )


def _begin_request() -> None:
    given = request.headers.get("X-Request-ID", "")
    logs.request_id.set(given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(8)}")


def _redirect_nowhere() -> None:
    """Answer 404 where Flask would redirect `/static//a` to the host that the request names."""
    if isinstance(request.routing_exception, RequestRedirect):
        raise NotFound


_SAID_TWICE = ("Content-Disposition", "Last-Modified", "Accept-Ranges")


def _end_request(response: Response) -> Response:
    response.headers["X-Request-ID"] = logs.request_id.get()
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Permissions-Policy"] = (
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()"
    )
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    # The page loads everything from this server, and text from the database never runs as script.
    response.headers.setdefault(
        "Content-Security-Policy",
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'",
    )
    if request.path.startswith("/api/"):
        response.headers.setdefault("Cache-Control", "no-store")
    if request.path.startswith("/static/"):
        # Of some sixty files: what their ETags and names say already is 100 bytes of each.
        for name in _SAID_TWICE:
            response.headers.pop(name, None)

    return response


def __getattr__(name: str) -> Any:
    # Makes `app` only when a server asks for it, so that other imports of the module have no
    # effect.
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
    """Serve over HTTP until a signal interrupts it.

    If it can't, it prints one sentence on stderr and returns exit code 1.
    """
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)

        settings = _settings()
        begin_measuring(settings)
        services = bootstrap(settings)
        listening = listen(settings.host, settings.port)
        fetch_shared_keys(settings)
        refuse_strangers(
            [listening],
            keys=KeyFile(settings.api_keys_path),
            is_open=settings.allow_anonymous or settings.knows_callers,
        )
        _make_ready(services, settings)
        _check_meanings(services)
        _warn_of_groups(settings)
    except _REASONS as error:
        sys.stderr.write(f"Citu can't start. {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130

    server = GunicornServer(
        lambda: create_app(settings, services),
        listening,
        gunicorn_options(
            settings.max_streams,
            question_s=settings.request_timeout_s,
            drain_s=settings.drain_s,
            connections_per_address=settings.max_connections_per_address,
            trusted_proxies=settings.trusted_proxies,
            is_measured=settings.is_measured,
        ),
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
    DatabasesFileError,
    BudgetsFileError,
)


def _make_ready(services: Services, settings: Settings) -> None:
    sources = services.sources
    for database in services.asked.all():
        try:
            _reach(database)
        except Unreachable as error:
            if services.asked.is_one and database.name == services.asked.default:
                raise

            # Its questions fail until it can be reached; those about the others are answered.
            sys.stderr.write(f"The database {database.name} can't be asked now. {error}\n")

    if isinstance(sources.app, EmbeddedSource) and not settings.redis_url:
        try:
            sources.app.start()
        except EmbeddedServerError as error:
            # Keep serving: questions are answered without being kept.
            advice = "set REDIS_URL or APP_DATABASE_URL"
            sys.stderr.write(f"Conversations can't be kept: {advice}. {error}\n")


def _reach(database: AskedDatabase) -> None:
    """Connect to the database, or start it.

    Raises:
        Unreachable: it can't be used; says why.
        EmbeddedServerError: the embedded server can't run here.
    """
    source, options = database.datasource.source, database.datasource.options
    if isinstance(source, EmbeddedSource):
        source.start()
    else:
        setting = database.name if database.entry is not None else "DATABASE_URL"
        if database.name == FILES:
            setting = "WORKSPACE_URL"

        probe(source(), setting, require_read_only_role=options.require_read_only_role)
        if database.name != FILES:
            _say_what_is_closed(source())


def _say_what_is_closed(url: str) -> None:
    """Tell the operator when the role can read nothing; /ready only says that it can connect."""
    reading = readable_tables(url)
    if reading is not None and reading.is_useless:
        sys.stderr.write(f"{reading.said().en} {reading.advice().en}\n")


def _check_meanings(services: Services) -> None:
    """Check the operator's semantic files against their databases while somebody reads the
    problems.

    A service that is running goes on without what has ceased to fit; one that begins does not,
    because a column that is marked as sensitive under a mistaken name would be shown.
    """
    for database in services.asked.all():
        if database.meanings is None or database.is_demo:
            continue

        path, datasource = Path(database.meanings.name), database.datasource
        try:
            problems = problems_of(path, datasource.source, datasource.options)
        except CituError as error:
            # The database can't answer now; the service checks the file when it first reads it.
            sys.stderr.write(f"{path} was not checked against the database. {error}\n")
            continue

        if problems:
            raise SemanticFileError(str(path), problems)


def _warn_of_groups(settings: Settings) -> None:
    """Tell the operator of groups that no API key has: misspelt ones, or ones without keys yet."""
    unknown: set[str] = set().union(*groups_of(settings.tool_groups).values()) - {EVERYONE}
    try:
        keys = KeyFile(settings.api_keys_path).all()
    except KeysUnreadable:  # every request will say so
        return

    for key in keys:
        unknown.difference_update(key.groups)

    if unknown:
        listed = ", ".join(sorted(unknown))
        sys.stderr.write(f"TOOL_GROUPS names groups that no API key has: {listed}.\n")


def _banner(settings: Settings, services: Services) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{settings.port}"
    thinking = f"model {services.thinker}"
    if services.thinker == "offline":
        thinking = "offline rules (no OPENAI_API_KEY)"

    database, question = _asked_in_words(services, settings)
    needs_key = settings.knows_callers or KeyFile(settings.api_keys_path).is_needed()
    key = " -H 'Authorization: Bearer <API key>'" if needs_key else ""
    banner = (
        f"Citu is ready: {address}\n"
        f"  answers by {thinking}; asks {database}; keeps conversations in {_memory(settings)}\n"
        f"  try it: curl -s {address}/api/v0/ask_agent{key} -H 'Content-Type: application/json'"
        f' -d \'{{"question": "{question}"}}\'\n'
    )
    if needs_key:
        return banner

    return banner + _notes_without_keys(services, settings)


def _asked_in_words(services: Services, settings: Settings) -> tuple[str, str]:
    """Return what is asked, and a question to try."""
    databases = services.asked.all()
    if not services.asked.is_one:
        return ", ".join(database.name for database in databases), "你能查什么数据？"
    if databases[0].is_demo:
        return "the embedded demo", "查询各服务区的营业收入排行"

    return described_address(settings.database_url), "你能查什么数据？"


def _notes_without_keys(services: Services, settings: Settings) -> str:
    notes = ""
    if any(map(_hides_rows, services.asked.all())):
        notes += (
            "  rows are shown as to somebody of no group: make API keys, "
            "by which users and their groups are known\n"
        )
    if settings.allow_anonymous:
        notes += (
            "  anonymous access is open: everybody who can connect may ask (ALLOW_ANONYMOUS=true)\n"
        )

    return notes


def _hides_rows(database: AskedDatabase) -> bool:
    options = database.datasource.options
    return options.row_context or options.row_rules is not None


def _memory(settings: Settings) -> str:
    if settings.redis_url:
        return "REDIS_URL"

    if settings.app_database_url:
        return "APP_DATABASE_URL"

    return "the embedded server"


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
