"""The keys by which one issuer signs its access tokens (JWKS), fetched when they are needed.

They are kept, and fetched again when they are old or a token names another one, as seldom as a
bucket of fetches allows: tokens are sent by strangers. While the issuer can't be reached, keys that
are known go on.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from jwt import PyJWK, PyJWTError

from api.access.undecided import WaitNeeded
from common.loopback import is_loopback

_log = logging.getLogger(__name__)

_FRESH_S = 3600.0  # after which keys are fetched again
_KEPT_S = 86400.0  # for which keys go on while the issuer can't be reached
_BURST = 5  # fetches that may follow each other at once …
_REFILL_S = 6.0  # … after which one more may begin in so many seconds
_TIMEOUT_S = 5.0  # for a whole document
_MOST_BYTES = 262_144
_MOST_KEYS = 100
_MOST_KID_CHARS = 256

_BY_CURVE = {
    "P-256": frozenset({"ES256"}),
    "P-384": frozenset({"ES384"}),
    "P-521": frozenset({"ES512"}),
    "Ed25519": frozenset({"EdDSA"}),
    "Ed448": frozenset({"EdDSA"}),
}
_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
ALGORITHMS = _RSA.union(*_BY_CURVE.values())
"""Those by which tokens may be signed. None of them has a key that both sides know."""


class IssuerFailure(Exception):
    """The issuer's keys can't be had; the message says why, for the log."""


@dataclass(frozen=True)
class VerifyingKey:
    """A public key of the issuer, and the algorithms that it may be used with."""

    key: Any
    algorithms: frozenset[str]


@dataclass(frozen=True)
class _KeySet:
    """Keys by their ids, as they were fetched at a second of the clock."""

    at: float
    keys: Mapping[str, VerifyingKey] = field(default_factory=dict)


class IssuerKeys:
    """The keys of one issuer; several threads may use them at once.

    Args:
        issuer: as its tokens and its own metadata name it.
        jwks_url: of the keys; empty: the issuer's metadata say it.
        clock: seconds, monotonic.
    """

    def __init__(
        self, issuer: str, jwks_url: str = "", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._clock = clock
        self._lock = threading.Lock()
        self._known: _KeySet | None = None
        self._has_failed = False
        self._fetches = float(_BURST)
        self._counted_at = clock()

    def find(self, key_id: str, *, may_wait: bool = True) -> VerifyingKey | None:
        """Return the key of that id; None: the issuer has none.

        Args:
            may_wait: keys that are not there may be fetched, which takes seconds.

        Raises:
            IssuerFailure: the issuer can't be reached, and this key is not known.
            WaitNeeded: `may_wait` is false.
        """
        known = self._known
        key = self._key_in(known, key_id)
        is_fresh = known is not None and self._clock() - known.at < _FRESH_S
        if key is not None and (is_fresh or not may_wait):
            return key
        if not may_wait:
            raise WaitNeeded
        if key is not None:
            return self._renewed(key_id)

        with self._lock:
            key = self._key_in(self._known, key_id)
            if key is None and self._may_fetch():
                self._fetch()
                key = self._key_in(self._known, key_id)

        if key is None and self._has_failed:
            raise IssuerFailure(self._issuer)

        return key

    def _renewed(self, key_id: str) -> VerifyingKey | None:
        """Have one thread fetch what is old; the others go on with it."""
        if self._lock.acquire(blocking=False):
            try:
                if self._may_fetch():
                    self._fetch()
            finally:
                self._lock.release()

        return self._key_in(self._known, key_id)

    def _key_in(self, known: _KeySet | None, key_id: str) -> VerifyingKey | None:
        if known is None or self._clock() - known.at >= _KEPT_S:
            return None

        return known.keys.get(key_id)

    def _may_fetch(self) -> bool:
        now = self._clock()
        self._fetches = min(_BURST, self._fetches + (now - self._counted_at) / _REFILL_S)
        self._counted_at = now
        if self._fetches < 1:
            return False

        self._fetches -= 1
        return True

    def _fetch(self) -> None:
        try:
            url = self._jwks_url or _discovered(self._issuer)
            keys = _keys_in(_document(url))
        except IssuerFailure as failure:
            self._has_failed = True
            _log.error("the keys of OAUTH_ISSUER can't be fetched: %s", failure)
            return

        self._has_failed = False
        self._known = _KeySet(self._clock(), keys)


def is_safe_address(url: str) -> bool:
    """Tell whether nobody on the way can change what is fetched from there."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_own = host == "localhost" or is_loopback(host)
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_own))


def _discovered(issuer: str) -> str:
    """Return the address of the keys as the issuer's metadata say, OpenID's or OAuth's own."""
    parts = urlsplit(issuer)
    openid = issuer.rstrip("/") + "/.well-known/openid-configuration"
    own = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server"
    try:
        metadata = _document(openid)
    except IssuerFailure:
        metadata = _document(own + parts.path.rstrip("/"))

    if metadata.get("issuer") != issuer:
        raise IssuerFailure(f"its metadata name another issuer: {metadata.get('issuer')!r:.200}")

    url = metadata.get("jwks_uri")
    if not isinstance(url, str) or not is_safe_address(url):
        raise IssuerFailure("its metadata name no https:// address of keys (jwks_uri)")

    return url


def _document(url: str) -> dict[str, Any]:
    """Return the JSON object at the address.

    Raises:
        IssuerFailure: there is none, or it is too long, or takes too long.
    """
    import httpx2  # noqa: PLC0415 - only services with an issuer need it

    try:
        document = json.loads(_fetched(httpx2, url))
    # Whatever a client library or a parser raises: its name tells what happened.
    except IssuerFailure:
        raise
    except Exception as error:
        raise IssuerFailure(f"{url}: {type(error).__name__}") from error

    if not isinstance(document, dict):
        raise IssuerFailure(f"{url}: it is no JSON object")

    return document


def _fetched(http: Any, url: str) -> bytes:
    ends_at = time.monotonic() + _TIMEOUT_S
    content = bytearray()
    with (
        http.Client(timeout=_TIMEOUT_S, follow_redirects=False) as client,
        client.stream("GET", url, headers={"Accept": "application/json"}) as response,
    ):
        if response.status_code != 200:
            raise IssuerFailure(f"{url}: status {response.status_code}")

        for part in response.iter_bytes(8192):
            content += part
            if len(content) > _MOST_BYTES:
                raise IssuerFailure(f"{url}: more than {_MOST_BYTES} bytes")
            if time.monotonic() > ends_at:
                raise IssuerFailure(f"{url}: it takes more than {_TIMEOUT_S:g} s")

    return bytes(content)


def _keys_in(document: Mapping[str, Any]) -> dict[str, VerifyingKey]:
    """Return the keys that verify signatures; others may stand among them."""
    entries = document.get("keys")
    if not isinstance(entries, list):
        raise IssuerFailure("there is no list of keys")

    keys: dict[str, VerifyingKey] = {}
    for entry in entries[:_MOST_KEYS]:
        key = _verifying_key(entry)
        if key is not None:
            keys.setdefault(entry["kid"], key)

    if not keys:
        raise IssuerFailure("none of its keys has a kid and can verify signatures")

    return keys


def _verifying_key(entry: Any) -> VerifyingKey | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None

    key_id = entry.get("kid")
    if not isinstance(key_id, str) or not 0 < len(key_id) <= _MOST_KID_CHARS:
        return None

    algorithms = _algorithms_of(entry)
    if not algorithms:
        return None

    try:
        key = PyJWK({**entry, "alg": min(algorithms)}).key
    except (PyJWTError, ValueError, TypeError) as error:
        _log.warning("a key of OAUTH_ISSUER is left out: %s", type(error).__name__)
        return None

    return VerifyingKey(key, algorithms)


def _algorithms_of(entry: Mapping[str, Any]) -> frozenset[str]:
    """Return what the key may be used with: nothing for keys that both sides know (`oct`)."""
    found: frozenset[str] = frozenset()
    if entry.get("kty") == "RSA":
        found = _RSA
    if entry.get("kty") in ("EC", "OKP"):
        found = _BY_CURVE.get(str(entry.get("crv")), frozenset())

    named = entry.get("alg")
    if named is None:
        return found

    return found & {str(named)}
