"""An issuer of access tokens over a real port: its metadata, its keys, and the tokens it signs."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "https://citu.example.com"


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
        self.metadata = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
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


@contextmanager
def issuing() -> Iterator[TokenIssuer]:
    """Yield an issuer on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = issuer.answer(self.path)
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
