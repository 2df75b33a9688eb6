"""Judges access tokens of one issuer, and tells who the caller is by their claims.

Citu is an OAuth resource server: it issues nothing, and takes what its issuer has signed for it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from api.access.issuer_keys import IssuerKeys
from api.access.signed_tokens import SignedTokens
from api.access.token_claims import ClaimNames
from common.actor import Actor
from common.errors import InsufficientScope
from common.text import Text


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
        signed = SignedTokens(self.issuer, self.keys)
        claims = signed.claims(token, self.audiences, may_wait=may_wait)
        missing = [scope for scope in self.scopes if scope not in _scopes_in(claims)]
        if missing:
            raise InsufficientScope(_lacks(missing))

        return self.claims.actor_of(claims)


def _scopes_in(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes: `scope` is the standard's, `scp` that of Entra and Okta."""
    scopes: set[str] = set()
    for name in ("scope", "scp"):
        value = claims.get(name)
        if isinstance(value, str):
            scopes.update(value.split())
        if isinstance(value, list):
            scopes.update(each for each in value if isinstance(each, str))

    return frozenset(scopes)


def _lacks(scopes: Collection[str]) -> Text:
    listed = " ".join(scopes)
    return Text(
        f"访问令牌缺少权限范围：{listed}。请重新登录并申请它。",
        f"The access token lacks the scope {listed}: sign in again, and ask for it.",
    )
