"""Callers with access tokens of an OAuth issuer, and users whom a proxy names."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.extensions.loading import ExtensionError
from api.access.access_tokens import AccessTokens
from api.access.issuer_documents import IssuerFailure
from api.access.issuer_keys import _REFILL_S, IssuerKeys
from api.access.key_file import KeyFile
from api.access.token_claims import ClaimNames
from app_config import ConfigurationError, Settings
from common.errors import CituError
from common.redaction import redacted
from tests.support.cases import all_cases
from tests.support.effort import tries
from tests.support.row_worlds import serving
from tests.support.token_issuer import (
    AUDIENCE,
    TokenIssuer,
    client_of,
    ec_key,
    issuing,
    public_pem,
    rsa_key,
    unsigned,
)

ME = "/api/v0/me"
METADATA = "/.well-known/oauth-protected-resource"
MakeClient = Callable[..., FlaskClient]


@pytest.fixture(scope="module")
def issuer() -> Iterator[TokenIssuer]:
    with issuing() as opened:
        yield opened


@pytest.fixture
def make_client(tmp_path: Path, issuer: TokenIssuer) -> MakeClient:
    """Clients of services that take the issuer's tokens."""
    issuer.publish("first")

    return partial(client_of, issuer, tmp_path, oauth_audience=f"{AUDIENCE}, {AUDIENCE}/mcp")


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def seen(client: FlaskClient, token: str, **environ: Any) -> tuple[int, str]:
    """Return the status, and the user or the error."""
    response = client.get(ME, headers=bearer(token), environ_overrides=environ)
    data = json.loads(response.get_data())["data"]
    return response.status_code, data.get("error_type") or data["user_id"]


REFUSED = (401, "unauthorized")

# ------------------------------------------------------------------------------
# tokens


def test_claims_say_who_asks(make_client: MakeClient, issuer: TokenIssuer) -> None:
    client = make_client(
        oauth_user_claim="upn",
        oauth_groups_claim="realm_access.roles",
        oauth_attributes="region, level=https://example.com/level, gone",
        operator_groups="ops",
    )
    claims: dict[str, Any] = {
        "upn": "ann@example.com",
        "realm_access": {"roles": ["ops", "销售", "ops"]},
        "region": ["north", "south"],
        "https://example.com/level": 3,
    }
    token = issuer.token(**claims)
    data = json.loads(client.get(ME, headers=bearer(token)).get_data())["data"]
    assert data == {
        "user_id": "ann@example.com",
        "groups": ["ops", "销售"],
        "attributes": {"level": ["3"], "region": ["north", "south"]},
        "acts_for_others": False,
        "authenticated": True,
        "has_session": False,
        "is_reviewer": False,
        "is_operator": True,
    }
    with all_cases() as cases:
        mistakes: dict[str, dict[str, Any]] = {
            "no user": {"upn": ...},
            "a user that is no text": {"upn": 7},
            "a user with a control character": {"upn": "ann\0"},
            "groups that are no texts": {"realm_access": {"roles": [{}]}},
            "groups elsewhere": {"realm_access": {}, "hasgroups": True},
            "an attribute that is no text": {"region": {"a": 1}},
        }
        for name, changes in mistakes.items():
            with cases.case(name):
                assert seen(client, issuer.token(**{"upn": "ann", **changes})) == REFUSED


def hostile_tokens(issuer: TokenIssuer) -> dict[str, str]:
    """Return tokens that must be refused, by what is wrong with them."""
    now = int(time.time())
    claims = issuer.claims()
    head, _, signature = issuer.token().split(".")
    other_claims = unsigned({}, issuer.claims(sub="root")).split(".")[1]
    secret = public_pem(rsa_key("first"))
    confused = unsigned({"alg": "HS256", "kid": "first"}, claims).rsplit(".", 1)[0]
    digest = jwt.get_algorithm_by_name("HS256").sign(confused.encode(), secret)
    deep = json.loads("[" * 500 + "]" * 500)
    return {
        "nothing": ".",
        "no token": "abc",
        "none": unsigned({"alg": "none", "kid": "first"}, claims),
        "NONE": unsigned({"alg": "NonE", "kid": "first"}, claims),
        "no algorithm": unsigned({"kid": "first"}, claims),
        "key confusion": confused + "." + unsigned({}, {}, digest).split(".")[2],
        "a key of another issuer": issuer.token("foreign", header={"kid": "first"}),
        "a key that the token brings": issuer.token(
            "foreign", header={"kid": "first", "jku": "http://127.0.0.1:9/keys", "jwk": {}}
        ),
        "an algorithm of another kind of key": unsigned(
            {"alg": "ES256", "kid": "first"}, claims, b"\0" * 64
        ),
        "a signature of nothing": unsigned({"alg": "ES256", "kid": "first-ec"}, claims, b"\0" * 64),
        "no kid": jwt.encode(claims, rsa_key("first"), "RS256"),
        "an unknown kid": issuer.token(header={"kid": "unknown"}),
        "a kid that is a path": issuer.token(header={"kid": "../../etc/passwd"}),
        "a tampered payload": f"{head}.{other_claims}.{signature}",
        "no signature": issuer.token().rsplit(".", 1)[0] + ".",
        "another issuer": issuer.token(iss="https://evil.example"),
        "almost the issuer": issuer.token(iss=issuer.url + "/"),
        "no issuer": issuer.token(iss=...),
        "another audience": issuer.token(aud="https://other.example.com"),
        "no audience": issuer.token(aud=...),
        "an audience that begins alike": issuer.token(aud=[AUDIENCE + ".evil.example"]),
        "expired": issuer.token(exp=now - 1),
        "never expires": issuer.token(exp=...),
        "expires in eternity": issuer.token(exp=float("inf")),
        "not yet": issuer.token(nbf=now + 120),
        "from the future": issuer.token(iat=now + 120),
        "a logout token": issuer.token(header={"typ": "logout+jwt"}),
        "critical extensions": issuer.token(header={"crit": ["exp"]}),
        "an empty user": issuer.token(sub=" "),
        "nested deeply": issuer.token(deep=deep, header={"typ": "x"}),
        "huge": issuer.token(padding="x" * 20_000),
    }


def test_hostile_tokens_are_refused(make_client: MakeClient, issuer: TokenIssuer) -> None:
    client = make_client()
    assert seen(client, issuer.token()) == (200, "ann")
    by_curve = jwt.encode(issuer.claims(), ec_key("first"), "ES256", {"kid": "first-ec"})
    assert seen(client, by_curve) == (200, "ann")
    with all_cases() as cases:
        for name, token in hostile_tokens(issuer).items():
            with cases.case(name):
                assert seen(client, token) == REFUSED
                assert (
                    'error="invalid_token"'
                    in client.get(ME, headers=bearer(token)).headers["WWW-Authenticate"]
                )


@settings(max_examples=tries(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_nothing_but_what_the_issuer_signed_is_taken(issuer: TokenIssuer, data: Any) -> None:
    """Signed claims of any form give an actor or a refusal; anything else is refused."""
    tokens = AccessTokens(issuer.url, [AUDIENCE], (), ClaimNames(), IssuerKeys(issuer.url))
    tokens.keys._key_set = _known_keys(issuer)
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=4,
    )
    names = st.sampled_from(["iss", "aud", "sub", "exp", "nbf", "iat", "groups", "scope", "jti"])
    header = data.draw(st.dictionaries(st.sampled_from(["typ", "crit", "b64", "x5u"]), values))
    claims = issuer.claims() | data.draw(st.dictionaries(names, values, max_size=3))
    try:
        payload = json.dumps(claims).encode()
        token = jwt.api_jws.encode(
            payload, rsa_key("first"), "RS256", {**header, "b64": True, "kid": "first"}
        )
    except (ValueError, TypeError, jwt.PyJWTError):
        return
    try:
        assert tokens.caller_of(token).user_id == claims["sub"]
    except CituError as error:
        assert error.code == 401
    place = data.draw(st.integers(0, len(token) - 1))
    changed = token[:place] + data.draw(st.sampled_from("A.é\0=")) + token[place + 1 :]
    if changed.rsplit(".", 1)[0] != token.rsplit(".", 1)[0]:
        with pytest.raises(CituError):
            tokens.caller_of(changed)


_KNOWN: list[Any] = []


def _known_keys(issuer: TokenIssuer) -> Any:
    """Return the issuer's keys, fetched once for all examples."""
    if not _KNOWN:
        keys = IssuerKeys(issuer.url)
        keys.find("first")
        _KNOWN.append(keys._key_set)
    return _KNOWN[0]


def test_no_token_stays_in_a_log_line(issuer: TokenIssuer) -> None:
    token = issuer.token()
    for line in (token, f"token={token}", f"GET /x?access_token={token} 401"):
        assert token.split(".")[1] not in redacted(line)


def test_scopes_are_needed(make_client: MakeClient, issuer: TokenIssuer) -> None:
    client = make_client(oauth_scopes="citu.read citu.ask", public_url="https://citu.example.com/")
    for scopes in ({"scope": "a citu.read citu.ask"}, {"scp": ["citu.ask", "citu.read"]}):
        assert seen(client, issuer.token(**scopes)) == (200, "ann")
    response = client.get(ME, headers=bearer(issuer.token(scope="citu.read citu.asking")))
    assert response.status_code == 403
    data = json.loads(response.get_data())["data"]
    assert data["error_type"] == "insufficient_scope"
    assert "citu.ask" in data["error"]
    assert response.headers["WWW-Authenticate"] == (
        f'Bearer resource_metadata="https://citu.example.com{METADATA}", '
        'scope="citu.read citu.ask", error="insufficient_scope"'
    )


# ------------------------------------------------------------------------------
# the issuer's keys


def test_keys_are_fetched_seldom_and_followed_when_they_change(
    make_client: MakeClient, issuer: TokenIssuer
) -> None:
    client, before = make_client(), len(issuer.requests)
    began = time.monotonic()
    for _ in range(3):
        assert seen(client, issuer.token()) == (200, "ann")
    assert len(issuer.requests) - before == 2, "metadata and keys, once"
    issuer.publish("first", "second")
    assert seen(client, issuer.token("second")) == (200, "ann")
    issuer.publish("second")
    for number in range(20):
        assert seen(client, issuer.token(header={"kid": f"guess{number}"})) == REFUSED
    refilled = (time.monotonic() - began) / _REFILL_S  # on a busy machine, some
    assert len(issuer.requests) - before <= 12 + 2 * refilled, "strangers can't have them fetched"
    assert seen(client, issuer.token("first")) == REFUSED, "its key was withdrawn"


def test_an_issuer_that_is_away_is_told_and_known_keys_go_on(
    make_client: MakeClient, issuer: TokenIssuer, tmp_path: Path
) -> None:
    with socket.socket() as unused:  # bound, and nobody listens
        unused.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{unused.getsockname()[1]}"
        client = make_client(oauth_issuer=away)
        response = client.get(ME, headers=bearer(issuer.token(iss=away)))
        data = json.loads(response.get_data())["data"]
        assert (response.status_code, data["error_type"]) == (503, "issuer_unavailable")
        assert data["retryable"]
        assert int(response.headers["Retry-After"]) > 0
        key, _ = KeyFile(tmp_path / "api_keys.json").create("bob")
        assert seen(client, key) == (200, "bob"), "keys are the service's own"
    client = make_client()
    assert seen(client, issuer.token()) == (200, "ann")
    issuer.status = 500
    try:
        assert seen(client, issuer.token("second")) == (503, "issuer_unavailable")
        assert seen(client, issuer.token()) == (200, "ann")
    finally:
        issuer.status = 200


def test_old_keys_are_renewed_and_kept_for_a_day(issuer: TokenIssuer) -> None:
    now = [0.0]
    issuer.publish("first")
    keys = IssuerKeys(issuer.url, clock=lambda: now[0])
    assert keys.find("first") is not None
    issuer.status = 503
    now[0] = 4000.0
    assert keys.find("first") is not None, "old, and nothing newer can be had"
    issuer.status = 200
    issuer.publish("second")
    now[0] = 4100.0
    assert keys.find("first") is None, "renewed"
    issuer.status = 503
    now[0] += 86400.0
    with pytest.raises(IssuerFailure):
        keys.find("second")
    issuer.status = 200
    issuer.publish("first")


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"jwks_uri": "http://keys.example.com/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": 7},
    ],
)
def test_metadata_that_lead_elsewhere_are_not_followed(
    make_client: MakeClient, issuer: TokenIssuer, metadata: dict[str, Any]
) -> None:
    usual = issuer.metadata
    issuer.metadata = {**usual, **metadata}
    try:
        assert seen(make_client(), issuer.token())[0] == 503
        named = make_client(oauth_jwks_url=f"{issuer.url}/keys")
        assert seen(named, issuer.token()) == (200, "ann"), "the operator's word goes first"
    finally:
        issuer.metadata = usual


def test_keys_of_other_kinds_verify_nothing(make_client: MakeClient, issuer: TokenIssuer) -> None:
    secret = unsigned({}, {}, b"secret" * 8).split(".")[2]
    usual = issuer.keys
    rsa_entry = dict(usual[0])
    issuer.keys = [
        {"kty": "oct", "k": secret, "kid": "shared"},
        {**rsa_entry, "kid": "encrypting", "use": "enc"},
        {**rsa_entry, "kid": "bound", "alg": "RS512"},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        "nonsense",  # type: ignore[list-item]
        *usual,
    ]
    client = make_client()
    shared = jwt.encode(issuer.claims(), b"secret" * 8, "HS256", {"kid": "shared"})
    assert seen(client, shared) == REFUSED
    for kid in ("encrypting", "bound", "broken"):
        assert seen(client, issuer.token(header={"kid": kid})) == REFUSED
    issuer.publish("first")


# ------------------------------------------------------------------------------
# all endpoints


def test_every_protocol_asks_for_a_token_and_says_where(
    make_client: MakeClient, issuer: TokenIssuer
) -> None:
    client = make_client()
    places = {
        "/api/v0/ask_agent": METADATA,
        "/api/v0/ask_agent_stream": METADATA,
        "/v1/chat/completions": METADATA,
        "/api/agui": METADATA,
        "/api/vanna/v2/chat_sse": METADATA,
        "/mcp": f"{METADATA}/mcp",
    }
    with all_cases() as cases:
        for path, metadata in places.items():
            with cases.case(path):
                refused = client.post(path, json={"question": "x"})
                assert refused.status_code == 401
                assert refused.headers["WWW-Authenticate"] == (
                    f'Bearer resource_metadata="http://localhost{metadata}"'
                )
                let_in = client.post(path, json={}, headers=bearer(issuer.token()))
                assert let_in.status_code not in (401, 403), let_in.get_data()
        with cases.case("in the address"):
            assert client.get(f"{ME}?access_token={issuer.token()}").status_code == 401
        with cases.case("a WebSocket"):
            head = {"Upgrade": "websocket", "Connection": "Upgrade"}
            path = "/api/vanna/v2/chat_websocket"
            assert client.get(path, headers=head).status_code == 401
            named = {**head, "Sec-WebSocket-Protocol": f"citu.bearer.{issuer.token()}"}
            assert client.get(path, headers=named).status_code not in (401, 403)


def test_the_metadata_say_where_tokens_are_had(
    make_client: MakeClient, issuer: TokenIssuer
) -> None:
    client = make_client(oauth_scopes="citu.read", public_url="https://citu.example.com")
    for suffix in ("", "/mcp"):
        response = client.get(METADATA + suffix)
        assert response.status_code == 200
        assert json.loads(response.get_data()) == {
            "resource": f"https://citu.example.com{suffix}",
            "authorization_servers": [issuer.url],
            "bearer_methods_supported": ["header"],
            "resource_name": "Citu",
            "scopes_supported": ["citu.read"],
        }
    assert client.get(f"{METADATA}/else").status_code == 404
    without = make_client(oauth_issuer="", oauth_audience="")
    assert without.get(METADATA).status_code == 404


def test_groups_and_attributes_of_a_token_decide_rows(
    make_database: Callable[[str], str], issuer: TokenIssuer, tmp_path: Path
) -> None:
    issuer.publish("first")
    url = make_database(
        "CREATE TABLE sale (id integer, region text);"
        "INSERT INTO sale VALUES (1, 'north'), (2, 'south'), (3, 'west')"
    )
    rules = """
tables:
  public.sale:
    - groups: [clerks]
      rows: region = ANY (:attribute.region)
    - groups: [leads]
      rows: all
"""
    oauth: dict[str, Any] = {
        "oauth_issuer": issuer.url,
        "oauth_audience": AUDIENCE,
        "oauth_attributes": "region",
    }
    with serving("rules", url, tmp_path, rules=rules, **oauth) as world:

        def rows(**claims: Any) -> list[int]:
            world.keys["token"] = issuer.token(**claims)
            body = {"sql": "SELECT id FROM sale ORDER BY id"}
            code, data = world.call("token", "/api/v0/sql/run", body)
            assert code == 200, data
            return [row[0] for row in data["query_result"]["rows"]]

        assert rows(groups=["leads"]) == [1, 2, 3]
        assert rows(groups=["clerks"], region="north") == [1]
        assert rows(groups="clerks", region=["south", "west"]) == [2, 3]
        assert rows(groups=["clerks"], region=["north"], sub="bob") == [1]
        assert rows(groups=["clerks"]) == []
        assert rows(groups=["clerks"], region=None) == []
        assert rows(region="north") == []


# ------------------------------------------------------------------------------
# users whom a proxy names

PROXIED = {
    "oauth_issuer": "",
    "oauth_audience": "",
    "user_resolver": "examples.proxy_user:proxy_user",
    "user_resolver_proxies": "10.1.0.0/16, unix",
}
NAMED = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "clerks, leads"}


def test_the_example_takes_users_from_trusted_proxies_alone(
    make_client: MakeClient, tmp_path: Path
) -> None:
    client = make_client(**PROXIED, trusted_proxies=1)

    def status(peer: str, **headers: str) -> int:
        environ = {"REMOTE_ADDR": peer}
        sent = {**NAMED, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return client.get(ME, headers=sent, environ_overrides=environ).status_code

    response = client.get(ME, headers=NAMED, environ_overrides={"REMOTE_ADDR": "10.1.2.3"})
    data = json.loads(response.get_data())["data"]
    assert (data["user_id"], data["groups"]) == ("ann", ["clerks", "leads"])
    assert status("10.1.2.3", X_Forwarded_For="203.0.113.9") == 200
    assert status("") == 200
    assert status("127.0.0.1") == 401
    assert status("203.0.113.9", X_Forwarded_For="10.1.2.3") == 401
    assert status("10.1.2.3", X_Forwarded_User=" ") == 401
    # The proxy adds the user to whatever a browser sends, for another site's page, too.
    assert status("10.1.2.3", Sec_Fetch_Site="cross-site") == 403
    assert status("10.1.2.3", X_Forwarded_User="a" * 300) == 500
    key, _ = KeyFile(tmp_path / "api_keys.json").create("bob")
    both = {**NAMED, **bearer(key)}
    named = client.get(ME, headers=both, environ_overrides={"REMOTE_ADDR": "10.1.2.3"})
    assert json.loads(named.get_data())["data"]["user_id"] == "bob"


def test_without_the_setting_no_header_names_a_user(make_client: MakeClient) -> None:
    client = make_client(oauth_issuer="", oauth_audience="")
    response = client.get(ME, headers=NAMED)
    assert json.loads(response.get_data())["data"]["user_id"] is None


def test_settings_that_would_open_too_much_are_refused(make_client: MakeClient) -> None:
    with pytest.raises(ConfigurationError, match="OAUTH_AUDIENCE"):
        make_client(oauth_audience="")
    with pytest.raises(ConfigurationError, match="USER_RESOLVER_PROXIES"):
        make_client(**{**PROXIED, "user_resolver_proxies": ""})
    with pytest.raises(ExtensionError, match="USER_RESOLVER"):
        make_client(**{**PROXIED, "user_resolver": "examples.proxy_user:USER"})
    for name, value in {
        "OAUTH_ISSUER": "http://issuer.example.com",
        "OAUTH_JWKS_URL": "http://issuer.example.com/keys",
        "OAUTH_ATTRIBUTES": "a.b",
        "OAUTH_SCOPES": 'a"b',
        "USER_RESOLVER_PROXIES": "everywhere",
    }.items():
        with pytest.raises(ConfigurationError, match=name):
            Settings.from_env({name: value})
