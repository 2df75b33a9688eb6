"""Verifies what one issuer has signed (JWT): by an asymmetric algorithm, for this audience, within
its time. All that a token says is checked or refused; nothing is guessed.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from api.access.issuer_documents import IssuerFailure
from api.access.issuer_keys import ALGORITHMS, IssuerKeys, VerifyingKey
from common.errors import IssuerUnavailable, Unauthorized
from common.text import Text

_MOST_CHARS = 16_384
_SKEW_S = 10.0  # seconds by which the issuer's clock may be ahead
_RETRY_AFTER_S = 6
# What a header's `typ` may be: tokens of other kinds (logout, DPoP …) don't say who asks.
_TYPES = frozenset({None, "jwt", "at+jwt", "application/at+jwt"})
_OPTIONS: Any = {"require": ["exp", "iss", "aud"]}
# Whatever the library or Python raises over a hostile token refuses it.
_REFUSING = (
    *(jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError),
    *(OverflowError, RecursionError, NotImplementedError),
)

_UNREADABLE = Text("访问令牌无法识别。", "The access token can't be read.")
_ALGORITHM = Text(
    "访问令牌的签名算法不被接受。",
    "The access token is signed by an algorithm that is not accepted here.",
)
_NO_KEY = Text(
    "访问令牌不是用其签发者的现有密钥签名的。",
    "The access token is not signed by a present key of its issuer.",
)
_NOT_VALID = Text("访问令牌无效。", "The access token is not valid.")
_BY_ERROR: Mapping[type[Exception], Text] = {
    jwt.ExpiredSignatureError: Text("访问令牌已过期。", "The access token has expired."),
    jwt.ImmatureSignatureError: Text("访问令牌尚未生效。", "The access token is not valid yet."),
    jwt.InvalidIssuerError: Text(
        "访问令牌由其他签发者签发。", "The access token is from another issuer."
    ),
    jwt.InvalidAudienceError: Text(
        "访问令牌不是为本服务签发的。", "The access token is meant for another service."
    ),
    jwt.InvalidSignatureError: Text(
        "访问令牌的签名不正确。", "The signature of the access token is wrong."
    ),
}
_ISSUER_AWAY = Text(
    "暂时无法取得令牌签发者的密钥，不能核对访问令牌；请稍后重试（原因见服务日志）。",
    "The keys of the tokens' issuer can't be fetched now, so the access token can't be checked: "
    "try again later; the service's log says why.",
)


@dataclass(frozen=True)
class SignedTokens:
    """Verifies the tokens of one issuer."""

    issuer: str
    keys: IssuerKeys

    def claims(
        self, token: str, audiences: Collection[str], *, may_wait: bool = True
    ) -> Mapping[str, Any]:
        """Return what the token says, if all of it may be believed.

        Args:
            audiences: it must be meant for one of them.

        Raises:
            Unauthorized: it is none of the issuer's for them, or not at this time.
            IssuerUnavailable: it can't be checked now.
            WaitNeeded: it can't without a fetch, and `may_wait` is false.
        """
        if len(token) > _MOST_CHARS:
            raise Unauthorized(_UNREADABLE)

        try:
            header = jwt.get_unverified_header(token)
        except _REFUSING as error:
            raise Unauthorized(_UNREADABLE) from error

        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise Unauthorized(_ALGORITHM)
        if not _is_plain(header):
            raise Unauthorized(_UNREADABLE)

        key = self._key(header.get("kid"), may_wait=may_wait)
        if key is None:
            raise Unauthorized(_NO_KEY)
        if algorithm not in key.algorithms:
            raise Unauthorized(_ALGORITHM)

        return self._verified_claims(token, key, algorithm, audiences)

    def _key(self, key_id: object, *, may_wait: bool) -> VerifyingKey | None:
        if not isinstance(key_id, str) or not key_id:
            return None

        try:
            return self.keys.find(key_id, may_wait=may_wait)
        except IssuerFailure as failure:
            raise IssuerUnavailable(_ISSUER_AWAY, retry_after_s=_RETRY_AFTER_S) from failure

    def _verified_claims(
        self, token: str, key: VerifyingKey, algorithm: str, audiences: Collection[str]
    ) -> Mapping[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=list(audiences),
                issuer=self.issuer,
                leeway=_SKEW_S,
                options=_OPTIONS,
            )
            # The skew is for issuers whose clock is ahead, not for what has expired.
            if int(claims["exp"]) <= time.time():
                raise jwt.ExpiredSignatureError
        except _REFUSING as error:
            raise Unauthorized(_BY_ERROR.get(type(error), _NOT_VALID)) from error

        return claims


def _is_plain(header: Mapping[str, Any]) -> bool:
    """Tell whether the header is of an access token, and asks for nothing beside its signature."""
    kind = header.get("typ")
    if isinstance(kind, str):
        kind = kind.lower()

    is_known = kind is None or (isinstance(kind, str) and kind in _TYPES)
    return is_known and "crit" not in header and "b64" not in header
