"""Tells by the claims of a token who the caller is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api.access.names import is_name
from common.actor import Actor, Attributes, attributes_of
from common.errors import Unauthorized
from common.text import Text

_MOST_VALUES = 1000
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

    def actor_of(self, claims: Mapping[str, Any]) -> Actor:
        """Return who the claims are about.

        Raises:
            Unauthorized: a claim is missing, or not of its form.
        """
        return Actor(self._user(claims), self._groups(claims), attributes=self._attributes(claims))

    def _user(self, claims: Mapping[str, Any]) -> str:
        user = _claim_at(claims, self.user)
        if isinstance(user, str) and is_name(user):
            return user

        raise Unauthorized(_unusable(self.user))

    def _groups(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the caller's groups. A list that the issuer has cut is refused.

        A group that is missing could be one that takes rights away.
        """
        groups = _texts(_claim_at(claims, self.groups))
        if groups is None:
            raise Unauthorized(_unusable(self.groups))
        if not groups and _is_left_out(claims, self.groups):
            raise Unauthorized(_OVERAGE)

        return groups

    def _attributes(self, claims: Mapping[str, Any]) -> Attributes:
        values = {}
        for name, claim in self.attributes.items():
            texts = _texts(_claim_at(claims, claim))
            if texts is None:
                raise Unauthorized(_unusable(claim))

            values[name] = texts

        return attributes_of(values)


def _claim_at(claims: Mapping[str, Any], name: str) -> Any:
    """Return the claim of this name, or the value at this path; None where there is none."""
    if name in claims:
        return claims[name]

    claim: Any = claims
    for part in name.split("."):
        if not isinstance(claim, dict):
            return None

        claim = claim.get(part)

    return claim


def _texts(value: Any) -> tuple[str, ...] | None:
    """Return the values of a claim as texts; None if one of them can't be a text."""
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


def _is_left_out(claims: Mapping[str, Any], name: str) -> bool:
    """Tell whether the issuer has left the claim out as too long, and says where it is."""
    elsewhere = claims.get("_claim_names")
    is_elsewhere = isinstance(elsewhere, dict) and name in elsewhere
    return is_elsewhere or claims.get("hasgroups") in (True, "true")
