"""The keys by which one issuer signs its access tokens (JWKS), fetched when they are needed.

They are kept, and fetched again when they are old or a token names another one, as seldom as a
bucket of fetches allows: tokens are sent by strangers. While the issuer can't be reached, keys that
are known go on.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jwt import PyJWK, PyJWTError

from api.access.issuer_documents import IssuerFailure, address_in, document_at, metadata_of
from api.access.wait_needed import WaitNeeded

_log = logging.getLogger(__name__)

_FRESH_S = 3600.0  # after which keys are fetched again
_KEPT_S = 86400.0  # for which keys go on while the issuer can't be reached
_BURST = 5  # fetches that may follow each other at once …
_REFILL_S = 6.0  # … after which one more may begin in so many seconds
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
        jwks_url: the address of the keys; empty: the issuer's metadata say it.
        clock: seconds, monotonic.
    """

    def __init__(
        self, issuer: str, jwks_url: str = "", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._clock = clock
        self._lock = threading.Lock()
        self._key_set: _KeySet | None = None
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
        key_set = self._key_set
        key = self._key_in(key_set, key_id)
        is_fresh = key_set is not None and self._clock() - key_set.at < _FRESH_S
        if key is not None and (is_fresh or not may_wait):
            return key
        if not may_wait:
            raise WaitNeeded
        if key is not None:
            return self._key_after_fetching(key_id)

        with self._lock:
            key = self._key_in(self._key_set, key_id)
            if key is None and self._may_fetch():
                self._fetch()
                key = self._key_in(self._key_set, key_id)

        if key is None and self._has_failed:
            raise IssuerFailure(self._issuer)

        return key

    def _key_after_fetching(self, key_id: str) -> VerifyingKey | None:
        """Fetch the keys again if they may be fetched now, and return the key of that id.

        Only one thread fetches; the others take what is there.
        """
        if self._lock.acquire(blocking=False):
            try:
                if self._may_fetch():
                    self._fetch()
            finally:
                self._lock.release()

        return self._key_in(self._key_set, key_id)

    def _key_in(self, key_set: _KeySet | None, key_id: str) -> VerifyingKey | None:
        if key_set is None or self._clock() - key_set.at >= _KEPT_S:
            return None

        return key_set.keys.get(key_id)

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
            url = self._jwks_url or address_in(metadata_of(self._issuer), "jwks_uri")
            keys = _keys_in(document_at(url))
        except IssuerFailure as failure:
            self._has_failed = True
            _log.error("the keys of OAUTH_ISSUER can't be fetched: %s", failure)
            return

        self._has_failed = False
        self._key_set = _KeySet(self._clock(), keys)


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
    algorithms: frozenset[str] = frozenset()
    if entry.get("kty") == "RSA":
        algorithms = _RSA
    if entry.get("kty") in ("EC", "OKP"):
        algorithms = _BY_CURVE.get(str(entry.get("crv")), frozenset())

    named = entry.get("alg")
    if named is None:
        return algorithms

    return algorithms & {str(named)}
