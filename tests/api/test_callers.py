"""Who is let in over HTTP: keys, no keys, other sites' pages; what is refused, and what the
answers' headers say.
"""

import io
import json
import logging
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, g
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from api.access.callers import acting_as, current_caller, untrusted_user_warning
from api.access.key_file import KeyFile
from app_config import ConfigurationError, Settings
from common.actor import Actor
from common.logs import JsonLines
from common.redaction import redacted
from common.text import Text
from tests.support.asking import SYNC, Asking
from tests.support.effort import tries
from unified_api import create_app

VALIDATE = "/api/v0/sql/validate"
OPEN = {
    "/",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/<path:resource>",
    "/health",
    "/ready",
    "/openapi.json",
    "/login",
    "/login/callback",
    "/logout",
    "/static/<path:filename>",
    "/docs",
    "/docs/files/<path:filename>",
}
MakeApp = Callable[..., Flask]


@pytest.fixture
def make_app(tmp_path: Path) -> MakeApp:
    """An application of its own; it does not reach a database before it is asked."""

    def make(**changes: Any) -> Flask:
        nowhere = "postgresql://nobody@127.0.0.1:9/none"
        settings = Settings(
            data_dir=str(tmp_path), audit_log="off", database_url=nowhere, app_database_url=nowhere
        )
        return create_app(replace(settings, **changes))

    return make


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    """The file of the applications that `make_app` makes."""
    return KeyFile(tmp_path / "api_keys.json")


def ask(
    client: FlaskClient, *, headers: Mapping[str, str] | None = None, **environ: Any
) -> TestResponse:
    """A request that gets 400 once it is let in: it has no SQL."""
    return client.post(VALIDATE, json={}, headers=headers, environ_overrides=environ)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def error_of(response: TestResponse) -> tuple[int, str]:
    return response.status_code, json.loads(response.get_data())["data"]["error_type"]


LET_IN = (400, "invalid_request")
NO_KEY = (401, "unauthorized")
FOREIGN = (403, "forbidden_origin")

# ------------------------------------------------------------------------------
# keys


def test_keys_take_effect_at_the_next_request(make_app: MakeApp, keys: KeyFile) -> None:
    client = make_app().test_client()
    assert error_of(ask(client)) == LET_IN
    text, key = keys.create("alice")
    assert error_of(ask(client)) == NO_KEY
    assert error_of(ask(client, headers=bearer(text))) == LET_IN
    assert error_of(ask(client, headers={"Authorization": f"bearer  {text} "})) == LET_IN
    assert error_of(ask(client, headers={"X-API-Key": text})) == LET_IN
    # A proxy's own password in Authorization does not matter then.
    assert (
        error_of(ask(client, headers={"X-API-Key": text, "Authorization": "Basic YTpi"})) == LET_IN
    )
    keys.revoke(key.key_id)
    assert error_of(ask(client, headers=bearer(text))) == NO_KEY
    assert error_of(ask(client)) == NO_KEY


def test_an_expired_key_is_refused(make_app: MakeApp, keys: KeyFile) -> None:
    text, _key = keys.create("alice", expires_in_days=1)
    client = make_app().test_client()
    assert error_of(ask(client, headers=bearer(text))) == LET_IN
    document = json.loads(keys.path.read_text())
    document["keys"][0]["expires_at"] = "2020-01-01T00:00:00.000+00:00"
    keys.path.write_text(json.dumps(document))
    assert error_of(ask(client, headers=bearer(text))) == NO_KEY


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_refusal_says_what_to_do(make_app: MakeApp, keys: KeyFile, language: str) -> None:
    keys.create("alice")
    client = make_app().test_client()
    response = ask(client, headers={"Accept-Language": language})
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    envelope = json.loads(response.get_data())
    assert (envelope["code"], envelope["success"]) == (401, False)
    data = envelope["data"]
    assert (data["type"], data["error_type"], data["retryable"]) == ("error", "unauthorized", False)
    assert "Authorization: Bearer <" in data["error"]
    assert ("密钥" in data["error"]) == (language == "zh")
    assert data["request_id"] == response.headers["X-Request-ID"]
    unknown = json.loads(
        ask(client, headers=bearer("citu_key_x") | {"Accept-Language": language}).get_data()
    )
    assert unknown["data"]["error"] != data["error"]


def test_every_address_but_the_open_ones_needs_a_key(make_app: MakeApp, keys: KeyFile) -> None:
    keys.create("alice")
    app = make_app()
    app.add_url_rule("/api/v9/new", "added_tomorrow", lambda: "secret")
    app.add_url_rule("/elsewhere", "added_elsewhere", lambda: "secret")
    client = app.test_client()
    closed = 0
    for rule in app.url_map.iter_rules():
        _, path = rule.build(dict.fromkeys(rule.arguments, "x")) or ("", "")
        for method in (rule.methods or set()) - {"OPTIONS"}:
            with client.open(path, method=method) as response:
                assert (response.status_code == 401) == (rule.rule not in OPEN), (method, rule.rule)
                closed += response.status_code == 401
    assert closed > 10
    assert client.get("/api/v0/nothing").status_code == 401
    assert client.get("/nothing").status_code == 404
    assert client.get(VALIDATE).status_code == 401


def test_nobody_is_let_in_while_the_keys_can_not_be_read(
    make_app: MakeApp, keys: KeyFile, caplog: pytest.LogCaptureFixture
) -> None:
    text, _key = keys.create("alice")
    client = make_app().test_client()
    assert error_of(ask(client, headers=bearer(text))) == LET_IN
    good = keys.path.read_bytes()
    keys.path.write_bytes(good[:-20])
    assert error_of(ask(client, headers=bearer(text))) == (503, "keys_unavailable")
    assert error_of(ask(client)) == NO_KEY
    assert "is not a file of API keys" in caplog.text
    assert str(keys.path) not in ask(client, headers=bearer(text)).get_data(as_text=True)
    keys.path.unlink()
    assert error_of(ask(client, headers=bearer(text))) == (503, "keys_unavailable")
    assert error_of(ask(client)) == NO_KEY
    keys.path.write_bytes(good)
    assert error_of(ask(client, headers=bearer(text))) == LET_IN


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=tries(15))
@given(
    name=st.sampled_from(["Authorization", "X-API-Key"]),
    value=st.text(st.characters(codec="latin-1")),
)
def test_whatever_is_sent_instead_of_a_key_is_refused(
    make_app: MakeApp, keys: KeyFile, name: str, value: str
) -> None:
    if not keys.is_needed():
        keys.create("alice")
    client = make_app().test_client()
    for text in (value, f"Bearer {value}", f"Bearer citu_key_{value}"):
        # As WSGI servers pass it; client libraries refuse to send some of these.
        response = client.post(
            VALIDATE, json={}, environ_overrides={f"HTTP_{name.upper().replace('-', '_')}": text}
        )
        assert error_of(response) == NO_KEY


def test_no_key_is_in_the_log_or_in_an_answer(make_app: MakeApp, keys: KeyFile) -> None:
    text, key = keys.create("alice")
    client = make_app().test_client()
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    access = logging.getLogger("unified_api.access")
    level = access.level
    access.addHandler(handler)
    access.setLevel("DEBUG")
    try:
        answers = [
            ask(client, headers=headers)
            for headers in (bearer(text), {"X-API-Key": text}, bearer(text[:-1]))
        ]
        client.get(
            f"/api/v0/{text}?key={text}", headers=bearer(text)
        )  # a client that takes the key for an id
    finally:
        access.removeHandler(handler)
        access.setLevel(level)
    lines = written.getvalue()
    assert [json.loads(line)["user_id"] for line in lines.splitlines()] == [
        "alice",
        "alice",
        None,
        "alice",
    ]
    said = lines + "".join(
        answer.get_data(as_text=True) + str(answer.headers) for answer in answers
    )
    assert text[:-1] not in said
    assert key.sha256 not in said


@pytest.mark.parametrize(
    "path", ["", "//", "/static//main.js", "/static/main.js//", "//api//v0/examples", "/static"]
)
def test_no_address_is_redirected_to_the_host_a_request_names(make_app: MakeApp, path: str) -> None:
    client = make_app(allow_anonymous=True).test_client()
    response = client.get(
        "/", headers={"Host": "evil.example"}, environ_overrides={"PATH_INFO": path}
    )
    assert "Location" not in response.headers
    assert response.status_code in (200, 404)
    response.close()


@given(st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "L"])))
def test_a_log_line_shows_control_and_invisible_characters_escaped(text: str) -> None:
    record = logging.LogRecord("unified_api.access", logging.INFO, "", 0, "request", None, None)
    record.path = text
    line = JsonLines().format(record)
    assert not {"Cc", "Zl", "Zp"} & set(map(unicodedata.category, line))
    assert "\u202e" not in line
    assert json.loads(line)["path"] == redacted(text)


# ------------------------------------------------------------------------------
# whose request it is


def _acting(app: Flask, caller: Actor | None, given: str | None) -> tuple[Actor, Text | None]:
    with app.test_request_context():
        if caller is not None:
            g.caller = caller
        return acting_as(given), untrusted_user_warning(given)


def test_a_user_id_is_believed_without_keys_and_from_who_acts_for_others(make_app: MakeApp) -> None:
    app = make_app()
    alice, backend = Actor("alice", ("sales",)), Actor("backend", ("apps",), acts_for_others=True)
    believed = [
        (None, None, Actor()),
        (None, "bob", Actor("bob", is_vouched_for=False)),  # nobody says so but the request
        (alice, None, alice),
        (alice, "alice", alice),
        (backend, None, backend),
        (backend, "bob", Actor("bob", ("apps",))),
    ]
    for caller, given_user, actor in believed:
        assert _acting(app, caller, given_user) == (actor, None)
    actor, warning = _acting(app, alice, "bob")
    assert actor == alice
    assert warning is not None
    assert "user_id" in warning.zh and "user_id" in warning.en


def test_the_caller_is_known_to_views(make_app: MakeApp, keys: KeyFile) -> None:
    app = make_app()
    app.add_url_rule("/api/v9/me", "me", lambda: vars(current_caller()))
    client = app.test_client()
    nobody: dict[str, Any] = {
        "user_id": None,
        "groups": [],
        "acts_for_others": False,
        "is_vouched_for": True,
        "attributes": [],
    }
    assert client.get("/api/v9/me").json == nobody
    text, _key = keys.create("alice", groups=("sales", "ops"), acts_for_others=True)
    me = client.get("/api/v9/me", headers=bearer(text)).json
    assert me == nobody | {"user_id": "alice", "groups": ["sales", "ops"], "acts_for_others": True}


def test_the_audit_log_names_the_keys_user(tmp_path: Path, demo_url: str) -> None:
    keys = KeyFile(tmp_path / "api_keys.json")
    audit = tmp_path / "audit.jsonl"
    settings = Settings(data_dir=str(tmp_path), database_url=demo_url, audit_log=str(audit))
    with Asking(settings) as asking:

        def run(text: str | None) -> None:
            body = {"sql": "SELECT 1", "user_id": "mallory"}
            headers = bearer(text) if text else {}
            assert (
                asking.client.post("/api/v0/sql/run", json=body, headers=headers).status_code == 200
            )

        run(None)
        run(keys.create("alice")[0])
        run(keys.create("backend", acts_for_others=True)[0])
    assert [json.loads(line)["user_id"] for line in audit.read_text().splitlines()] == [
        "mallory",
        "alice",
        "mallory",
    ]


def test_nobody_reads_what_another_asked(tmp_path: Path, demo_url: str) -> None:
    keys = KeyFile(tmp_path / "api_keys.json")
    alice, bob = bearer(keys.create("alice")[0]), bearer(keys.create("bob")[0])
    backend = bearer(keys.create("backend", acts_for_others=True)[0])
    with Asking(Settings(data_dir=str(tmp_path), database_url=demo_url)) as asking:
        body = {"question": "hello", "user_id": "bob"}
        asked = json.loads(asking.client.post(SYNC, json=body, headers=alice).get_data())["data"]
        assert any("user_id" in warning for warning in asked["warnings"])
        conversation, run = (
            f"/api/v0/conversations/{asked['conversation_id']}",
            f"/api/v0/runs/{asked['run_id']}",
        )
        addresses = [
            ("GET", run),
            ("GET", f"{run}/events"),
            ("POST", f"{run}/cancel"),
            ("GET", conversation),
            ("PATCH", conversation),
            ("DELETE", f"{conversation}/turns"),
            ("DELETE", conversation),
        ]

        def status(method: str, path: str, headers: dict[str, str], user_id: str) -> int:
            given: dict[str, Any] = (
                {"json": {"title": "t", "user_id": user_id}} if method in ("PATCH", "POST") else {}
            )
            query = None if given else {"user_id": user_id}
            with asking.client.open(
                path, method=method, headers=headers, query_string=query, **given
            ) as response:
                response.get_data()
                return response.status_code

        for method, path in addresses:
            assert status(method, path, bob, "alice") == 404, (method, path)
            assert status(method, path, backend, "bob") == 404, (method, path)
        for method, path in addresses:
            assert status(method, path, alice, "bob") in (200, 202), (method, path)
        assert status("GET", run, backend, "alice") == 200


# ------------------------------------------------------------------------------
# without any key


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8084", "localhost.:80", "127.0.0.1:9", "127.8.8.8", "[::1]:1"]
)
def test_this_machine_may_ask_without_a_key(make_app: MakeApp, host: str) -> None:
    client = make_app().test_client()
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1", ""):
        assert error_of(ask(client, HTTP_HOST=host, REMOTE_ADDR=address)) == LET_IN


def test_the_configured_host_is_an_own_name(make_app: MakeApp) -> None:
    assert (
        error_of(ask(make_app(host="citu.test").test_client(), HTTP_HOST="Citu.test:8084"))
        == LET_IN
    )
    assert error_of(ask(make_app().test_client(), HTTP_HOST="citu.test:8084")) == FOREIGN


LOCAL: list[dict[str, Any]] = [
    {"HTTP_HOST": "citu:8084"},
    {
        "HTTP_X_FORWARDED_FOR": "127.0.0.1, ::1",
        "HTTP_X_REAL_IP": "127.0.0.1",
        "HTTP_X_FORWARDED_HOST": "localhost:80",
    },
    {"HTTP_FORWARDED": 'for=127.0.0.1;proto=http, for="[::1]:80"'},
]


@pytest.mark.parametrize("environ", LOCAL, ids=str)
def test_a_proxy_on_this_machine_asks_for_it(make_app: MakeApp, environ: dict[str, Any]) -> None:
    assert error_of(ask(make_app().test_client(), **environ)) == LET_IN


STRANGERS: list[dict[str, Any]] = [
    {"HTTP_HOST": "evil.example"},
    {"HTTP_HOST": "localhost.evil.example:8084"},
    {"HTTP_HOST": "127.0.0.1.evil.example"},
    {"HTTP_HOST": "192.168.1.5:8084"},
    {"HTTP_HOST": "[::2]:1"},
    {"HTTP_HOST": "[::1"},
    {"HTTP_HOST": "0.0.0.0:8084"},
    {"HTTP_HOST": "user@localhost@evil.example"},
    {"REMOTE_ADDR": "192.168.1.5"},
    {"REMOTE_ADDR": "fe80::1%eth0"},
    {"HTTP_X_FORWARDED_FOR": "192.0.2.1, 127.0.0.1"},
    {"HTTP_FORWARDED": "for=192.0.2.1"},
    {"HTTP_X_REAL_IP": "192.0.2.1"},
    {"HTTP_X_FORWARDED_FOR": "unknown"},
    {"HTTP_X_FORWARDED_HOST": "evil.example"},
    {"HTTP_HOST": "intranet", "HTTP_ACCEPT_LANGUAGE": "en"},
]


@pytest.mark.parametrize(
    "forwarded", [":" * 100_000, ":" * 50_000 + "1" * 50_000 + "x"], ids=["colons", "digits"]
)
def test_no_header_takes_long_to_be_refused(make_app: MakeApp, forwarded: str) -> None:
    assert error_of(ask(make_app().test_client(), HTTP_X_FORWARDED_FOR=forwarded)) == FOREIGN


@pytest.mark.parametrize("environ", STRANGERS, ids=str)
def test_others_need_a_key_or_an_open_service(
    make_app: MakeApp, keys: KeyFile, environ: dict[str, Any]
) -> None:
    client = make_app().test_client()
    refused = ask(client, **environ)
    assert error_of(refused) == FOREIGN
    sentence = json.loads(refused.get_data())["data"]["error"]
    assert "python -m api.keys create" in sentence
    assert "ALLOW_ANONYMOUS=true" in sentence
    assert client.get("/health", environ_overrides=environ).status_code == 200
    assert error_of(ask(make_app(allow_anonymous=True).test_client(), **environ)) == LET_IN
    text, _key = keys.create("alice")
    assert error_of(ask(client, headers=bearer(text), **environ)) == LET_IN


OTHER_SITES = [
    {"Origin": "https://evil.example"},
    {"Origin": "http://localhost:3000"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "http://["},
    {"Origin": "ftp://localhost"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"},
    {"Sec-Fetch-Site": "anything"},
]
OWN_PAGES = [
    {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "http://localhost"},
    {"Origin": "http://localhost:80"},
    {"Origin": "https://LOCALHOST:443"},  # behind a proxy that speaks TLS
]


@pytest.mark.parametrize("headers", OTHER_SITES, ids=str)
def test_pages_of_other_sites_need_a_key(
    make_app: MakeApp, keys: KeyFile, headers: dict[str, str]
) -> None:
    client = make_app().test_client()
    refused = ask(client, headers=headers)
    assert error_of(refused) == FOREIGN
    assert "CORS_ORIGINS" in json.loads(refused.get_data())["data"]["error"]
    assert error_of(ask(make_app(allow_anonymous=True).test_client(), headers=headers)) == FOREIGN
    # As a form of another site can send it: no content type that a browser would ask permission
    # for.
    simple = client.post(
        VALIDATE, data='{"sql": "SELECT 1"}', content_type="text/plain", headers=headers
    )
    assert error_of(simple) == FOREIGN
    text, _key = keys.create("alice")
    assert error_of(ask(client, headers=headers | bearer(text))) == LET_IN


@pytest.mark.parametrize("headers", OWN_PAGES, ids=str)
def test_the_services_own_page_may_ask(make_app: MakeApp, headers: dict[str, str]) -> None:
    assert error_of(ask(make_app().test_client(), headers=headers)) == LET_IN


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=tries(15))
@given(origin=st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_no_other_origin_is_taken_for_the_own_one(make_app: MakeApp, origin: str) -> None:
    client = make_app().test_client()
    for text in (origin, f"http://{origin}", f"http://localhost{origin}x"):
        refused = client.post(VALIDATE, json={}, environ_overrides={"HTTP_ORIGIN": text})
        assert error_of(refused) == FOREIGN or text.lower() in (
            "http://localhost",
            "https://localhost",
        )


# ------------------------------------------------------------------------------
# CORS

APP, OTHER = "https://app.example.com", "https://other.example.com"


def preflight(client: FlaskClient, origin: str, method: str = "POST") -> Any:
    asked = "authorization, content-type, idempotency-key, last-event-id, x-api-key, x-evil"
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": asked,
    }
    return client.options(VALIDATE, headers=headers).headers


def test_nothing_is_shared_with_other_origins_by_default(make_app: MakeApp) -> None:
    client = make_app().test_client()
    for headers in (preflight(client, APP), ask(client, headers={"Origin": APP}).headers):
        assert not any(name.startswith("Access-Control") for name, _ in headers)


def test_allowed_origins_may_ask_and_read(make_app: MakeApp, keys: KeyFile) -> None:
    client = make_app(cors_origins=f"http://localhost:3000, {APP.upper()}").test_client()
    assert error_of(ask(client, headers={"Origin": APP})) == LET_IN
    assert error_of(ask(client, headers={"Origin": OTHER})) == FOREIGN
    keys.create("alice")
    allowed = preflight(client, APP)
    assert allowed["Access-Control-Allow-Origin"] == APP
    assert allowed["Access-Control-Allow-Headers"].lower().split(", ") == [
        "authorization",
        "content-type",
        "idempotency-key",
        "last-event-id",
        "x-api-key",
    ]
    assert {"GET", "POST", "PATCH", "DELETE"} <= set(
        allowed["Access-Control-Allow-Methods"].split(", ")
    )
    assert "Access-Control-Allow-Credentials" not in allowed
    refused = ask(client, headers={"Origin": APP})
    assert refused.status_code == 401  # and the page can read why
    assert refused.headers["Access-Control-Allow-Origin"] == APP
    assert refused.headers["Access-Control-Expose-Headers"] == "Retry-After, X-Request-ID"
    assert "Origin" in refused.headers["Vary"]
    for origin in (
        OTHER,
        APP + ".evil.example",
        APP + ":8443",
        "http://app.example.com",
        "null",
        APP.replace(".", "x"),
    ):
        assert "Access-Control-Allow-Origin" not in preflight(client, origin)
        assert "Access-Control-Allow-Origin" not in ask(client, headers={"Origin": origin}).headers
    assert (
        "Access-Control-Allow-Origin" not in client.get("/health", headers={"Origin": APP}).headers
    )


def test_every_origin_may_be_allowed_but_never_with_cookies(make_app: MakeApp) -> None:
    client = make_app(cors_origins="*").test_client()
    response = ask(client, headers={"Origin": OTHER, "Sec-Fetch-Site": "cross-site"})
    assert error_of(response) == LET_IN
    for headers in (response.headers, preflight(client, OTHER)):
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CORS_ORIGINS", "app.example.com"),
        ("CORS_ORIGINS", "https://app.example.com/"),
        ("CORS_ORIGINS", "https://*.example.com"),
        ("CORS_ORIGINS", "https://a.example,,https://b.example"),
        ("CORS_ORIGINS", "null"),
        ("RATE_LIMIT", "60"),
        ("RATE_LIMIT", "0/minute"),
        ("RATE_LIMIT", "60/fortnight"),
        ("RATE_LIMIT", "60/minute,"),
        ("TRUSTED_PROXIES", "-1"),
        ("ALLOW_ANONYMOUS", "maybe"),
    ],
)
def test_settings_that_can_not_be(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Settings.from_env({name: value})


# ------------------------------------------------------------------------------
# headers and sizes


def test_what_answers_tell_browsers(make_app: MakeApp) -> None:
    client = make_app().test_client()
    for response in (
        client.get("/"),
        client.get("/static/base.css"),
        ask(client),
        client.get("/nothing"),
    ):
        headers = response.headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "camera=()" in headers["Permissions-Policy"]
        policy = {
            part.split()[0]: part.split()[1:]
            for part in headers["Content-Security-Policy"].split(";")
        }
        assert policy["default-src"] == ["'self'"]
        assert (
            not {"script-src", "style-src", "connect-src"} & policy.keys()
        )  # nothing is laxer than the default
        for directive in ("frame-ancestors", "base-uri", "object-src", "form-action"):
            assert policy[directive] == ["'none'"]
        response.close()
    assert ask(client).headers["Cache-Control"] == "no-store"


def test_bodies_of_any_framing_are_bounded(make_app: MakeApp) -> None:
    client = make_app(max_body_bytes=1000).test_client()
    large = json.dumps({"sql": "x" * 1000}).encode()

    def post(content: bytes, **environ: Any) -> tuple[int, str]:
        return error_of(
            client.post(VALIDATE, input_stream=io.BytesIO(content), environ_overrides=environ)
        )

    too_large = client.post(VALIDATE, data=large)
    assert "at most 1000 bytes" in json.loads(too_large.get_data())["data"]["error"]
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    assert post(large, **chunked) == LET_IN
    assert post(b"{}", CONTENT_LENGTH="99999999999999999999") == (400, "invalid_request")
    assert post(b"{}", CONTENT_LENGTH="-1") == LET_IN
    assert post(b"{}", CONTENT_LENGTH="many") == LET_IN
    assert post(b"{}") == LET_IN  # no length: no body
    assert post(b"[" * 900, CONTENT_LENGTH="900") == LET_IN
    assert error_of(make_app().test_client().post(VALIDATE, data=b"[" * 60_000)) == LET_IN
