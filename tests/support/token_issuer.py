"""An issuer over a real port: its metadata, its keys, the tokens it signs, and how people sign in
there (OpenID Connect's code flow with PKCE).
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flask.testing import FlaskClient
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from app_config import Settings
from unified_api import create_app

AUDIENCE = "https://citu.example.com"
_NOWHERE = "postgresql://nobody@127.0.0.1:9/none"


@cache
def rsa_key(name: str) -> rsa.RSAPrivateKey:  # noqa: ARG001 - each name has a key of its own
    return rsa.generate_private_key(65537, 2048)


@cache
def ec_key(name: str) -> ec.EllipticCurvePrivateKey:  # noqa: ARG001
    return ec.generate_private_key(ec.SECP256R1())


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def unsigned(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    """Return a token made by hand."""
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


class TokenIssuer:
    """What it publishes can be changed; `requests` are the paths that were fetched."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/realms/citu"
        self.requests: list[str] = []
        self.status = 200
        self.metadata: dict[str, Any] = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "end_session_endpoint": f"{self.url}/logout",
            "code_challenge_methods_supported": ["S256"],
        }
        # Of the people who sign in: who they are, and what the issuer does wrong.
        self.person: dict[str, Any] = {"sub": "ann"}
        self.id_token: dict[str, Any] = {}
        self.refuses = ""
        self.client = ("citu-page", "")
        self.codes: dict[str, dict[str, str]] = {}
        self.keys: list[dict[str, Any]] = []
        self.publish("first")

    def publish(self, *names: str) -> None:
        """Publish an RSA key and an EC key of each name, as `<name>` and `<name>-ec`."""
        self.keys = []
        for name in names:
            rsa_public = json.loads(RSAAlgorithm.to_jwk(rsa_key(name).public_key()))
            ec_public = json.loads(ECAlgorithm.to_jwk(ec_key(name).public_key()))
            self.keys += [
                {**rsa_public, "kid": name, "use": "sig"},
                {**ec_public, "kid": f"{name}-ec"},
            ]

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 300}
        return {name: value for name, value in (claims | changes).items() if value is not ...}

    def token(self, key: str = "first", *, header: Any = None, **changes: Any) -> str:
        """Return a token signed by RSA; a claim that is `...` is left out."""
        headers = {"kid": key} | (header or {})
        return jwt.encode(self.claims(**changes), rsa_key(key), "RS256", headers)

    def answer(self, path: str) -> tuple[int, bytes]:
        self.requests.append(path)
        if path == "/realms/citu/.well-known/openid-configuration":
            return self.status, json.dumps(self.metadata).encode()
        if path == "/realms/citu/keys":
            return self.status, json.dumps({"keys": self.keys}).encode()

        return 404, b"{}"

    def authorized(self, query: dict[str, str]) -> str:
        """Return where a person who signs in is sent, with a code."""
        if self.refuses:
            answer = {"error": self.refuses, "state": query["state"]}
            return f"{query['redirect_uri']}?{urlencode(answer)}"

        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def exchanged(self, form: dict[str, str], authorization: str) -> tuple[int, bytes]:
        """Return the ID token for a code, which serves once, to the client that it was given to."""
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        client_id, secret = self.client
        named = f"{quote_plus(client_id)}:{quote_plus(secret)}"
        expected = "Basic " + base64.b64encode(named.encode()).decode()
        is_right = (
            asked is not None
            and asked["code_challenge"] == challenge
            and asked["code_challenge_method"] == "S256"
            and form["redirect_uri"] == asked["redirect_uri"]
            and asked["client_id"] == client_id
            and (authorization == expected if secret else form["client_id"] == client_id)
        )
        if asked is None or not is_right:
            return 400, b'{"error": "invalid_grant"}'

        claims = {"aud": client_id, "nonce": asked["nonce"]} | self.person | self.id_token
        header = claims.pop("header", None)
        token = self.token(claims.pop("key", "first"), header=header, **claims)
        return 200, json.dumps({"access_token": "x", "id_token": token}).encode()


def client_of(issuer: TokenIssuer, folder: Path, **changes: Any) -> FlaskClient:
    """Return a client of a service that knows the issuer; its databases are nowhere.

    Args:
        folder: the folder of the service's data.
        changes: settings that it needs besides: an audience, a client to sign in, …
    """
    settings = Settings(
        data_dir=str(folder),
        audit_log="off",
        database_url=_NOWHERE,
        app_database_url=_NOWHERE,
        oauth_issuer=issuer.url,
    )
    return create_app(replace(settings, **changes)).test_client()


@contextmanager
def issuing() -> Iterator[TokenIssuer]:
    """Yield an issuer on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/realms/citu/authorize":
                self.send_response(302)
                self.send_header("Location", issuer.authorized(dict(parse_qsl(parts.query))))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.reply(*issuer.answer(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            issuer.requests.append(self.path)
            self.reply(
                *issuer.exchanged(dict(parse_qsl(body)), self.headers.get("Authorization", ""))
            )

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = TokenIssuer(server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
