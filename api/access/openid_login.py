"""Signs people in by OpenID Connect: the code flow with PKCE, state and nonce.

The browser is sent to the issuer with a challenge, and comes back with a code. What the answer is
checked against travels in a sealed cookie of that browser, so that no other browser can bring the
answer, and any worker can take it.
"""

import base64
import hashlib
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from itsdangerous import BadData, URLSafeTimedSerializer

from api.access.issuer_documents import (
    IssuerFailure,
    IssuerRefusal,
    address_in,
    metadata_of,
    posted_form,
)
from api.access.signed_tokens import SignedTokens
from api.access.token_claims import ClaimNames
from common.actor import Actor
from common.errors import CituError, IssuerUnavailable

_log = logging.getLogger(__name__)

_SALT = "login"
ATTEMPT_S = 600
"""Seconds that somebody may take to sign in at the issuer."""

_METADATA_S = 3600.0
_AT_ONCE = 8  # exchanges of codes in one worker: each waits for the issuer
_CONVERSATION = re.compile(r"c/[A-Za-z0-9_.-]{1,128}")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


class LoginFailure(Exception):
    """Somebody can't be signed in.

    Attributes:
        reason: `refused`: by the issuer or the person; `expired`: the attempt is not, or no longer,
            this browser's; `unavailable`: the issuer does not answer; `invalid`: its answer is not
            to be trusted, or does not say who it is; the log says why.
    """

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


@dataclass(frozen=True)
class Attempt:
    """The beginning of a login.

    Attributes:
        address: where the browser is sent.
        state: names the attempt.
        cookie: what the browser has to bring back.
    """

    address: str
    state: str
    cookie: str


@dataclass(frozen=True)
class OpenIdClient:
    """How the issuer knows this service.

    Attributes:
        secret: empty: a public client, whose codes are protected by PKCE alone.
        scopes: separated by blanks.
        redirect_uri: where browsers come back.
        home: the address of the page.
    """

    client_id: str
    secret: str
    scopes: str
    redirect_uri: str
    home: str


class OpenIdLogin:
    """Signs people in at one issuer.

    Args:
        key: gives the key that seals attempts, the same for all workers; called at the first use.
    """

    def __init__(
        self,
        client: OpenIdClient,
        tokens: SignedTokens,
        claims: ClaimNames,
        key: Callable[[], str],
    ) -> None:
        self._client = client
        self._tokens = tokens
        self._claims = claims
        self._key = key
        self._lock = threading.Lock()
        self._exchanges = threading.BoundedSemaphore(_AT_ONCE)
        self._metadata: dict[str, Any] = {}
        self._read_at = 0.0

    @cached_property
    def _serializer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._key(), salt=_SALT)

    def begun(self, goes_to: str) -> Attempt:
        """Return a new attempt.

        Args:
            goes_to: what the page shows afterwards: `c/{conversation}`; of anything else, nothing.

        Raises:
            LoginFailure: the issuer does not answer.
        """
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        query = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": self._client.redirect_uri,
            "scope": self._client.scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        if not _CONVERSATION.fullmatch(goes_to):
            goes_to = ""

        sealed = self._serializer.dumps([state, nonce, verifier, goes_to])
        endpoint = self._endpoint("authorization_endpoint")
        separator = "&" if "?" in endpoint else "?"
        return Attempt(f"{endpoint}{separator}{urlencode(query)}", state, str(sealed))

    def ended(self, answer: Mapping[str, str], cookie: str) -> tuple[Actor, str]:
        """Return who has signed in, and what the page shows now.

        Args:
            answer: the query with which the browser has come back.
            cookie: the cookie of the attempt.

        Raises:
            LoginFailure: nobody has, or nobody who may be believed.
        """
        nonce, verifier, goes_to = self._open_attempt(answer.get("state", ""), cookie)
        self._refuse_other_issuers(answer.get("iss"))
        if "error" in answer:
            raise LoginFailure("refused", f"the issuer says {answer['error']!r:.200}")

        code = answer.get("code", "")
        if not code:
            raise LoginFailure("invalid", "the issuer's answer has no code")

        return self._user(self._exchanged(code, verifier), nonce), goes_to

    def end_address(self) -> str | None:
        """Return where the session at the issuer is ended; None: it has no such place."""
        try:
            endpoint = self._endpoint("end_session_endpoint")
        except LoginFailure:
            return None

        query = {
            "client_id": self._client.client_id,
            "post_logout_redirect_uri": self._client.home,
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    def _open_attempt(self, state: str, cookie: str) -> tuple[str, str, str]:
        try:
            sealed_state, nonce, verifier, goes_to = self._serializer.loads(
                cookie, max_age=ATTEMPT_S
            )
        except (BadData, ValueError, TypeError) as error:
            raise LoginFailure("expired", "the cookie of the attempt is missing or old") from error

        if not _TOKEN.fullmatch(state) or not secrets.compare_digest(state, sealed_state):
            raise LoginFailure("expired", "the state is another attempt's")

        return nonce, verifier, goes_to

    def _refuse_other_issuers(self, named: str | None) -> None:
        """See that the answer is of this issuer (RFC 9207): of others, codes could be mixed in."""
        is_promised = self._known().get("authorization_response_iss_parameter_supported") is True
        is_missing = named is None and is_promised
        if is_missing or (named is not None and named != self._tokens.issuer):
            raise LoginFailure("invalid", f"the answer is of the issuer {named!r:.200}")

    def _exchanged(self, code: str, verifier: str) -> str:
        """Return the ID token that the issuer gives for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._client.redirect_uri,
            "code_verifier": verifier,
        }
        endpoint = self._endpoint("token_endpoint")
        if not self._exchanges.acquire(blocking=False):
            raise LoginFailure("unavailable", "too many people sign in at once")

        try:
            answer = posted_form(endpoint, {**form, **self._own_fields()}, self._credentials())
        except IssuerRefusal as refusal:
            raise LoginFailure("invalid", f"the code is not taken: {refusal}") from refusal
        except IssuerFailure as failure:
            raise LoginFailure("unavailable", str(failure)) from failure
        finally:
            self._exchanges.release()

        token = answer.get("id_token")
        if not isinstance(token, str):
            raise LoginFailure("invalid", "the issuer gives no ID token: does it know openid?")

        return token

    def _own_fields(self) -> dict[str, str]:
        """Return what the form says of this service, where HTTP's own header does not."""
        if self._credentials() is not None:
            return {}

        fields = {"client_id": self._client.client_id}
        if self._client.secret:
            fields["client_secret"] = self._client.secret

        return fields

    def _credentials(self) -> tuple[str, str] | None:
        if not self._client.secret or self._takes_secret_in_form():
            return None

        # OAuth has both parts encoded as forms are, before they are joined.
        encoded = urlencode({self._client.client_id: self._client.secret})
        client_id, _, secret = encoded.partition("=")
        return client_id, secret

    def _takes_secret_in_form(self) -> bool:
        methods = self._known().get("token_endpoint_auth_methods_supported")
        return isinstance(methods, list) and "client_secret_basic" not in methods

    def _user(self, token: str, nonce: str) -> Actor:
        client_id = self._client.client_id
        try:
            claims = self._tokens.claims(token, [client_id])
            actor = self._claims.actor_of(claims)
        except IssuerUnavailable as error:
            raise LoginFailure("unavailable", str(error)) from error
        except CituError as error:
            raise LoginFailure("invalid", f"the ID token is refused: {error}") from error

        claimed_nonce = claims.get("nonce")
        if not isinstance(claimed_nonce, str) or not secrets.compare_digest(
            claimed_nonce.encode(), nonce.encode()
        ):
            raise LoginFailure("invalid", "the ID token is of another attempt (nonce)")

        is_shared = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if is_shared else client_id) != client_id:
            raise LoginFailure("invalid", "the ID token was given to another client (azp)")

        return actor

    def _endpoint(self, name: str) -> str:
        try:
            return address_in(self._known(), name)
        except IssuerFailure as failure:
            raise LoginFailure("unavailable", str(failure)) from failure

    def _known(self) -> dict[str, Any]:
        """Return the issuer's metadata, read at most once an hour."""
        with self._lock:
            is_old = time.monotonic() - self._read_at > _METADATA_S
            if self._metadata and not is_old:
                return self._metadata

            try:
                self._metadata = metadata_of(self._tokens.issuer)
            except IssuerFailure as failure:
                if not self._metadata:
                    raise LoginFailure("unavailable", str(failure)) from failure

                _log.warning("the metadata of OAUTH_ISSUER can't be read anew: %s", failure)

            self._read_at = time.monotonic()
            return self._metadata


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
