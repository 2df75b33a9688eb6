"""Judges access tokens of one issuer (JWT), and tells who the caller is by their claims.

Citu is an OAuth resource server: it issues nothing, and takes what its issuer has signed for it by
an asymmetric algorithm, within its time. All that a token says is checked or refused; nothing is
guessed.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt

from api.access.issuer_keys import ALGORITHMS, IssuerFailure, IssuerKeys, VerifyingKey
from api.access.names import is_name
from common.actor import Actor, Attributes, attributes_of
from common.errors import InsufficientScope, IssuerUnavailable, Unauthorized
from common.text import Text

_MOST_CHARS = 16_384
_SKEW_S = 10.0  # seconds by which the issuer's clock may be ahead
_MOST_VALUES = 1000
_RETRY_AFTER_S = 6
# What a header's `typ` may be: tokens of other kinds (logout, DPoP …) are no access tokens.
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
_OVERAGE = Text(
    "访问令牌没有列出全部组（组太多）：请让签发者只写入与本服务有关的组。",
    "The access token does not list all groups, because there are too many: have the issuer put "
    "only those into it that concern this service.",
)


def _unusable(claim: str) -> Text:
    return Text(
        f"访问令牌的声明 {claim} 缺失或格式不对。",
        f"The claim {claim} of the access token is missing, or not of its form.",
    )


@dataclass(frozen=True)
class ClaimNames:
    """The claims that say who the caller is.

    Each is a claim's name, or a path into objects: `realm_access.roles`.

    Attributes:
        attributes: the claims by the names of the attributes that they become.
    """

    user: str = "sub"
    groups: str = "groups"
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AccessTokens:
    """Judges the tokens of one issuer.

    Attributes:
        audiences: a token must be meant for one of them.
        scopes: a token must have all of them.
    """

    issuer: str
    audiences: Collection[str]
    scopes: tuple[str, ...]
    claims: ClaimNames
    keys: IssuerKeys

    def caller_of(self, token: str, *, may_wait: bool = True) -> Actor:
        """Return who presents the token.

        Raises:
            Unauthorized: it is none of the issuer's for this service, or not at this time.
            InsufficientScope: it lacks one of the scopes.
            IssuerUnavailable: it can't be checked now.
            WaitNeeded: it can't without a fetch, and `may_wait` is false.
        """
        claims = self._claims(token, may_wait=may_wait)
        missing = [scope for scope in self.scopes if scope not in _scopes_in(claims)]
        if missing:
            raise InsufficientScope(_lacks(missing))

        return Actor(
            self._user(claims),
            self._groups(claims),
            attributes=self._attributes(claims),
        )

    def _claims(self, token: str, *, may_wait: bool) -> Mapping[str, Any]:
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

        return self._verified(token, key, algorithm)

    def _key(self, key_id: object, *, may_wait: bool) -> VerifyingKey | None:
        if not isinstance(key_id, str) or not key_id:
            return None

        try:
            return self.keys.find(key_id, may_wait=may_wait)
        except IssuerFailure as failure:
            raise IssuerUnavailable(_ISSUER_AWAY, retry_after_s=_RETRY_AFTER_S) from failure

    def _verified(self, token: str, key: VerifyingKey, algorithm: str) -> Mapping[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=list(self.audiences),
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

    def _user(self, claims: Mapping[str, Any]) -> str:
        user = _found(claims, self.claims.user)
        if isinstance(user, str) and is_name(user):
            return user

        raise Unauthorized(_unusable(self.claims.user))

    def _groups(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the groups: all of them, because some may take rights away."""
        groups = _texts(_found(claims, self.claims.groups))
        if groups is None:
            raise Unauthorized(_unusable(self.claims.groups))
        if not groups and _has_more(claims, self.claims.groups):
            raise Unauthorized(_OVERAGE)

        return groups

    def _attributes(self, claims: Mapping[str, Any]) -> Attributes:
        values = {}
        for name, claim in self.claims.attributes.items():
            texts = _texts(_found(claims, claim))
            if texts is None:
                raise Unauthorized(_unusable(claim))

            values[name] = texts

        return attributes_of(values)


def _is_plain(header: Mapping[str, Any]) -> bool:
    """Tell whether the header is of an access token, and asks for nothing beside its signature."""
    kind = header.get("typ")
    if isinstance(kind, str):
        kind = kind.lower()

    is_known = kind is None or (isinstance(kind, str) and kind in _TYPES)
    return is_known and "crit" not in header and "b64" not in header


def _found(claims: Mapping[str, Any], name: str) -> Any:
    """Return the claim of this name, or what is at this path; None: there is nothing."""
    if name in claims:
        return claims[name]

    found: Any = claims
    for part in name.split("."):
        if not isinstance(found, dict):
            return None

        found = found.get(part)

    return found


def _texts(value: Any) -> tuple[str, ...] | None:
    """Return the values of a claim as texts; None: it holds something that is none."""
    values = value if isinstance(value, list) else [value]
    if value is None:
        values = []
    if len(values) > _MOST_VALUES:
        return None

    texts = []
    for each in values:
        text = each
        if isinstance(each, bool):
            text = str(each).lower()
        elif isinstance(each, int):
            text = str(each)

        if not isinstance(text, str) or not (text == "" or is_name(text)):
            return None
        if text:
            texts.append(text)

    return tuple(dict.fromkeys(texts))


def _has_more(claims: Mapping[str, Any], name: str) -> bool:
    """Tell whether the issuer says that the claim stands elsewhere, being too long."""
    elsewhere = claims.get("_claim_names")
    is_elsewhere = isinstance(elsewhere, dict) and name in elsewhere
    return is_elsewhere or claims.get("hasgroups") in (True, "true")


def _scopes_in(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes: `scope` is the standard's, `scp` that of Entra and Okta."""
    found: set[str] = set()
    for name in ("scope", "scp"):
        value = claims.get(name)
        if isinstance(value, str):
            found.update(value.split())
        if isinstance(value, list):
            found.update(each for each in value if isinstance(each, str))

    return frozenset(found)


def _lacks(scopes: Collection[str]) -> Text:
    listed = " ".join(scopes)
    return Text(
        f"访问令牌缺少权限范围：{listed}。请重新登录并申请它。",
        f"The access token lacks the scope {listed}: sign in again, and ask for it.",
    )
