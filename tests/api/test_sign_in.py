"""People who sign in on the page, by OpenID Connect, at an issuer over a real socket."""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app_config import ConfigurationError, Settings
from tests.support.cases import all_cases
from tests.support.token_issuer import (
    AUDIENCE,
    TokenIssuer,
    client_of,
    issuing,
    rsa_key,
    unsigned,
)

ME = "/api/v0/me"
VALIDATE = "/api/v0/sql/validate"
HOME = "http://localhost/"
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}
MakeClient = Callable[..., FlaskClient]


@pytest.fixture(scope="module")
def running_issuer() -> Iterator[TokenIssuer]:
    with issuing() as opened:
        yield opened


@pytest.fixture
def issuer(running_issuer: TokenIssuer) -> Iterator[TokenIssuer]:
    """An issuer that does nothing wrong, until a test has it."""
    running_issuer.publish("first")
    usual = dict(running_issuer.metadata)
    yield running_issuer
    running_issuer.metadata = usual
    running_issuer.person, running_issuer.id_token = {"sub": "ann"}, {}
    running_issuer.refuses, running_issuer.status = "", 200
    running_issuer.client = ("citu-page", "")


@pytest.fixture
def make_client(tmp_path: Path, issuer: TokenIssuer) -> MakeClient:
    """Browsers of a service whose people sign in at the issuer."""
    return partial(
        client_of, issuer, tmp_path, public_url="http://localhost", oidc_client_id=issuer.client[0]
    )


def begun(client: FlaskClient, to: str = "") -> str:
    """Return where a browser is sent to sign in."""
    response = client.get("/login", query_string={"to": to} if to else None)
    assert response.status_code == 303, response.get_data()
    return str(response.headers["Location"])


def answered(address: str) -> str:
    """Return the address with which the issuer sends the browser back."""
    return str(httpx2.get(address, follow_redirects=False).headers["Location"])


def back(client: FlaskClient, answer: str, **changes: str) -> TestResponse:
    """Come back with the issuer's answer, of which a test may change something."""
    parts = urlsplit(answer)
    return client.get(parts.path, query_string=dict(parse_qsl(parts.query)) | changes)


def signed_in(client: FlaskClient, to: str = "") -> TestResponse:
    return back(client, answered(begun(client, to)))


def me(client: FlaskClient, **headers: str) -> tuple[int, Any]:
    """Return the status, and the user or the error."""
    response = client.get(ME, headers=OWN_PAGE | headers)
    data = json.loads(response.get_data())["data"]
    return response.status_code, data.get("error_type") or data["user_id"]


REFUSED = (401, "unauthorized")


def test_whoever_signs_in_asks_with_a_cookie(make_client: MakeClient, issuer: TokenIssuer) -> None:
    client = make_client(oauth_attributes="region", operator_groups="ops")
    refused = client.get(ME, headers=OWN_PAGE)
    assert refused.status_code == 401
    assert json.loads(refused.get_data())["data"]["sign_in"] == "login"
    issuer.person = {"sub": "王芳", "groups": ["ops", "sales"], "region": "north"}
    response = signed_in(client, "c/citu_20260101_x")
    assert (response.status_code, response.headers["Location"]) == (303, f"{HOME}c/citu_20260101_x")
    data = json.loads(client.get(ME, headers=OWN_PAGE).get_data())["data"]
    assert data == {
        "user_id": "王芳",
        "groups": ["ops", "sales"],
        "attributes": {"region": ["north"]},
        "acts_for_others": False,
        "authenticated": True,
        "has_session": True,
        "is_reviewer": False,
        "is_operator": True,
    }
    asked = client.post(VALIDATE, json={}, headers=OWN_PAGE)
    assert asked.status_code == 400, "let in, and it has no SQL"


def test_cookies_are_kept_from_scripts_and_other_sites(
    make_client: MakeClient, issuer: TokenIssuer
) -> None:
    client = make_client()
    [attempt] = client.get("/login").headers.getlist("Set-Cookie")
    assert "HttpOnly" in attempt
    assert "SameSite=Lax" in attempt
    [session, dropped] = signed_in(client).headers.getlist("Set-Cookie")
    assert session.startswith("citu_session=")
    assert "HttpOnly" in session
    assert "SameSite=Strict" in session
    assert "Max-Age=28800" in session
    assert "Max-Age=0" in dropped, "an attempt serves once"
    secure = make_client(public_url="https://citu.example.com/data")
    [attempt] = secure.get("/login").headers.getlist("Set-Cookie")
    assert attempt.startswith("__Secure-citu_login_")
    assert "Secure" in attempt
    assert "Path=/data/" in attempt
    alone = make_client(public_url="https://citu.example.com")
    assert alone.get("/login").headers["Set-Cookie"].startswith("__Host-citu_login_")


def test_the_issuer_is_asked_as_the_standards_say(
    make_client: MakeClient, issuer: TokenIssuer
) -> None:
    query = dict(parse_qsl(urlsplit(begun(make_client(oidc_scopes="openid groups"))).query))
    assert query.pop("state") != query.pop("nonce")
    assert len(query.pop("code_challenge")) == 43
    assert query == {
        "response_type": "code",
        "client_id": "citu-page",
        "redirect_uri": f"{HOME}login/callback",
        "scope": "openid groups",
        "code_challenge_method": "S256",
    }
    issuer.client = ("citu-page", "a secret: & +")
    assert me(make_client(oidc_client_secret="wrong")) == REFUSED
    client = make_client(oidc_client_secret=issuer.client[1])
    assert signed_in(client).headers["Location"] == HOME
    assert me(client) == (200, "ann")


def test_only_the_browser_that_began_can_end(make_client: MakeClient, issuer: TokenIssuer) -> None:
    client, other = make_client(), make_client()
    answer = answered(begun(client))
    with all_cases() as cases:
        for name, browser, changes in (
            ("another browser", other, {}),
            ("another state", client, {"state": "A" * 43}),
            ("a changed state", client, {"state": dict(parse_qsl(answer))["state"][:-1] + "_"}),
            ("no state", client, {"state": ""}),
        ):
            with cases.case(name):
                response = back(browser, answer, **changes)
                assert response.headers["Location"] == f"{HOME}?login=expired"
                assert me(browser) == REFUSED
    second = answered(begun(client))
    assert back(client, answer).headers["Location"] == HOME, "another tab takes nothing away"
    assert back(client, answer).headers["Location"] == f"{HOME}?login=expired", "replayed"
    assert back(client, second).headers["Location"] == HOME


def test_a_code_that_was_used_or_is_of_somebody_else_signs_nobody_in(
    make_client: MakeClient, issuer: TokenIssuer
) -> None:
    client, other = make_client(), make_client()
    foreign = dict(parse_qsl(urlsplit(answered(begun(other))).query))["code"]
    response = back(client, answered(begun(client)), code=foreign)
    assert response.headers["Location"] == f"{HOME}?login=invalid"
    assert me(client) == REFUSED
    assert back(client, answered(begun(client)), code="").status_code == 303
    assert me(client) == REFUSED


def hostile_answers(issuer: TokenIssuer) -> dict[str, dict[str, Any]]:
    """Return claims of ID tokens that sign nobody in, by what is wrong with them."""
    return {
        "another nonce": {"nonce": "A" * 43},
        "no nonce": {"nonce": ...},
        "another issuer": {"iss": "https://evil.example"},
        "another client": {"aud": "another-page"},
        "this service's API": {"aud": AUDIENCE},
        "several clients, and no word for whom": {"aud": ["citu-page", "other"]},
        "given to another client": {"azp": "other"},
        "expired": {"exp": int(time.time()) - 1},
        "no end": {"exp": ...},
        "another key": {"key": "foreign", "header": {"kid": "first"}},
        "a logout token": {"header": {"typ": "logout+jwt"}},
        "no user": {"sub": ...},
        "groups of another form": {"groups": {"a": 1}},
        "groups elsewhere": {"hasgroups": True},
    }


def test_id_tokens_that_may_not_be_believed_sign_nobody_in(
    make_client: MakeClient, issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make_client(oauth_audience=AUDIENCE)
    rsa_key("foreign")  # made now, because a token has 5 s to arrive
    with all_cases() as cases:
        for name, claims in hostile_answers(issuer).items():
            with cases.case(name):
                issuer.id_token = claims
                assert signed_in(client).headers["Location"] == f"{HOME}?login=invalid"
                assert me(client) == REFUSED
        issuer.id_token = {}
        for algorithm in ("none", "HS256"):
            with cases.case(algorithm):
                token = unsigned({"alg": algorithm, "kid": "first"}, issuer.claims(aud="citu-page"))
                monkeypatch.setattr(issuer, "token", lambda *_, _token=token, **__: _token)
                assert signed_in(client).headers["Location"] == f"{HOME}?login=invalid"
                monkeypatch.undo()
    issuer.id_token = {"aud": ["citu-page", "other"], "azp": "citu-page"}
    assert signed_in(client).headers["Location"] == HOME
    assert rsa_key("first") is not None


def test_what_the_issuer_refuses_or_can_not_do_is_said(
    make_client: MakeClient, issuer: TokenIssuer
) -> None:
    client = make_client()
    issuer.refuses = "access_denied"
    assert signed_in(client).headers["Location"] == f"{HOME}?login=refused"
    issuer.refuses = ""
    answer = answered(begun(client))
    assert back(client, answer, iss="https://evil.example").headers["Location"] == (
        f"{HOME}?login=invalid"
    ), "answers of other issuers are not mixed in (RFC 9207)"
    issuer.person = {"sub": "ann", "groups": [f"group number {n:04}" for n in range(900)]}
    noisy = [f"{n * 7919 % 10007:x}{n * 104729 % 99991:x}" for n in range(900)]
    issuer.person["groups"] = noisy
    assert signed_in(client).headers["Location"] == f"{HOME}?login=too_large"
    issuer.status = 500
    assert make_client().get("/login").headers["Location"] == f"{HOME}?login=unavailable"
    issuer.status = 200
    promising = {**issuer.metadata, "authorization_response_iss_parameter_supported": True}
    issuer.metadata = promising
    client = make_client()
    issuer.person = {"sub": "ann"}
    assert signed_in(client).headers["Location"] == f"{HOME}?login=invalid"
    answer = answered(begun(client))
    assert back(client, answer, iss=issuer.url).headers["Location"] == HOME


def test_nobody_is_sent_elsewhere_afterwards(make_client: MakeClient, issuer: TokenIssuer) -> None:
    client = make_client()
    for to in ("https://evil.example", "//evil.example", "/\\evil", "c/../../x", "c/a\nb", "?x"):
        assert signed_in(client, to).headers["Location"] == HOME


def test_sessions_end(make_client: MakeClient, issuer: TokenIssuer) -> None:
    client = make_client(session_ttl_s=30.0)
    signed_in(client)
    copied = client.get_cookie("citu_session")
    assert copied is not None
    assert client.post("/logout").status_code == 403, "nobody says that the page asks"
    assert client.post("/logout", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert me(client) == (200, "ann")
    response = client.post("/logout", headers=OWN_PAGE)
    assert json.loads(response.get_data())["data"]["issuer_logout_url"] == (
        f"{issuer.url}/logout?client_id=citu-page&post_logout_redirect_uri=http%3A%2F%2Flocalhost%2F"
    )
    assert me(client) == REFUSED
    client.set_cookie("citu_session", copied.value)
    assert me(client) == REFUSED, "a copy of the cookie is of no use either"
    other = make_client(session_ttl_s=30.0)
    signed_in(other)
    assert me(other) == (200, "ann"), "her other browser stays signed in"


def test_sessions_expire_and_hold_for_their_key_only(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make_client(session_ttl_s=30.0)
    signed_in(client)
    cookie = client.get_cookie("citu_session")
    assert cookie is not None
    another_key = make_client(session_key="another key of hosts")
    for browser, value in (
        (another_key, cookie.value),
        (client, cookie.value[:-3] + "abc"),
        (client, cookie.value + "x"),
        (client, "e30.x.y"),
    ):
        browser.set_cookie("citu_session", value)
        assert me(browser) == REFUSED
    same_key = make_client(session_ttl_s=30.0)
    same_key.set_cookie("citu_session", cookie.value)
    assert me(same_key) == (200, "ann"), "workers share the key"
    now = time.time()
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: now + 32)
    assert me(same_key) == REFUSED


def test_a_session_is_for_the_services_own_page_only(
    make_client: MakeClient, issuer: TokenIssuer
) -> None:
    client = make_client(cors_origins="https://app.example.com", oauth_audience=AUDIENCE)
    signed_in(client)
    with all_cases() as cases:
        for name, headers in {
            "another site": {"Sec-Fetch-Site": "cross-site"},
            "a neighbour": {"Sec-Fetch-Site": "same-site", "Origin": "http://other.localhost"},
            "an origin of CORS_ORIGINS": {"Origin": "https://app.example.com"},
            "nobody says from where": {},
        }.items():
            with cases.case(name):
                for path in (VALIDATE, "/mcp", "/v1/chat/completions", "/api/agui"):
                    asked = client.post(path, json={}, headers=headers)
                    assert asked.status_code == 403, path
        with cases.case("a WebSocket of another site"):
            head = {"Upgrade": "websocket", "Connection": "Upgrade"}
            path = "/api/vanna/v2/chat_websocket"
            foreign = {**head, "Origin": "https://app.example.com"}
            assert client.get(path, headers=foreign).status_code == 403
            own = {**head, "Origin": "http://localhost"}
            assert client.get(path, headers=own).status_code not in (401, 403)
        with cases.case("a key"):
            # Who brings a key or a token is known by it, whatever the browser adds.
            token = issuer.token(sub="bob")
            response = client.get(ME, headers={"Authorization": f"Bearer {token}"})
            assert json.loads(response.get_data())["data"]["user_id"] == "bob"


def test_where_people_only_sign_in_no_token_is_taken(
    make_client: MakeClient, issuer: TokenIssuer
) -> None:
    client = make_client()
    refused = client.get(ME, headers={"Authorization": f"Bearer {issuer.token()}"})
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert client.get("/.well-known/oauth-protected-resource").status_code == 404


def test_who_tries_to_sign_in_too_often_is_told_on_the_page(make_client: MakeClient) -> None:
    client = make_client(rate_limit="3/hour")
    answer = answered(begun(client))
    begun(client)
    assert back(client, answer, code="guessed").headers["Location"] == f"{HOME}?login=invalid"
    for response in (client.get("/login"), back(client, answer)):
        assert response.headers["Location"] == f"{HOME}?login=too_often"


def test_without_a_client_nobody_signs_in(make_client: MakeClient) -> None:
    client = make_client(oidc_client_id="", oauth_audience=AUDIENCE)
    for method, path in (("GET", "/login"), ("GET", "/login/callback"), ("POST", "/logout")):
        assert client.open(path, method=method).status_code == 404
    data = json.loads(client.get(ME).get_data())["data"]
    assert "sign_in" not in data
    with pytest.raises(ConfigurationError, match="PUBLIC_URL"):
        make_client(public_url="")
    with pytest.raises(ConfigurationError, match="https"):
        make_client(public_url="http://citu.example.com")
    with pytest.raises(ConfigurationError, match="OIDC_SCOPES"):
        Settings.from_env({"OIDC_SCOPES": "profile"})
