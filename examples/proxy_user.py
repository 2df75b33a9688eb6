"""The user whom a proxy names in headers, as oauth2-proxy, Authelia and Pomerium do.

    USER_RESOLVER=examples.proxy_user:proxy_user
    USER_RESOLVER_PROXIES=127.0.0.1

The proxy signs people in. It must set these headers itself on every request, and drop the ones that
clients send. Whoever can connect from an address of `USER_RESOLVER_PROXIES` can name any user.
"""

from agent.extensions.points import Provided, RequestHead
from common.actor import Actor, attributes_of

USER, GROUPS, REGION = "X-Forwarded-User", "X-Forwarded-Groups", "X-Forwarded-Region"


class ProxyUser:
    """Implements `UserResolver`."""

    def resolve(self, head: RequestHead) -> Actor | None:
        """Return the user of the headers, with groups, and a region that row rules may name."""
        user = head.headers.get(USER, "").strip()
        if not user:
            return None

        attributes = attributes_of({"region": _listed(head, REGION)})
        return Actor(user, _listed(head, GROUPS), attributes=attributes)


def _listed(head: RequestHead, header: str) -> tuple[str, ...]:
    """Return what stands between the commas of a header."""
    parts = head.headers.get(header, "").split(",")
    return tuple(part.strip() for part in parts if part.strip())


def proxy_user(_provided: Provided) -> ProxyUser:
    """Return the resolver; `USER_RESOLVER` names this function."""
    return ProxyUser()
