"""Tells who sent a request: the holder of an API key or of an access token, somebody who has signed
in on the page, or the user whom a proxy names.
"""

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import Request
from werkzeug.datastructures import Headers

from agent.extensions.points import RequestHead, UserResolver
from api.access.key_file import PREFIX, KeyFile, KeysUnreadable
from api.access.names import is_name
from api.access.sessions import Sessions
from api.access.wait_needed import WaitNeeded
from common.actor import NOBODY, Actor
from common.errors import InternalError, KeysUnavailable, Unauthorized
from common.text import Text

if TYPE_CHECKING:
    from api.access.access_tokens import AccessTokens

_BEARER = "citu.bearer."  # what a subprotocol that is a key begins with
UNIX = "unix"
"""Stands for whoever connects by a Unix socket among the addresses of proxies."""

_MISSING = Text(
    "需要 API 密钥：请用请求头 Authorization: Bearer <密钥> 或 X-API-Key: <密钥> 提供；"
    "密钥由管理员用 .venv/bin/python -m api.keys create 生成。",
    "An API key is needed: send the header Authorization: Bearer <key>, or X-API-Key: <key>. "
    "The operator of this service makes keys with .venv/bin/python -m api.keys create.",
)
_UNKNOWN = Text(
    "API 密钥未知、已吊销或已过期：请向管理员申请新的密钥。",
    "This API key is unknown, revoked or expired: ask the operator of this service for a new one.",
)
_UNREADABLE = Text(
    "暂时无法核对 API 密钥，请联系管理员（原因见服务日志）。",
    "API keys can't be checked now: tell the operator of this service; its log says why.",
)
_NO_TOKEN = Text(
    "需要访问令牌或 API 密钥：请用请求头 Authorization: Bearer <令牌> 提供；"
    "WWW-Authenticate 说明在哪里取得令牌。",
    "An access token or an API key is needed: send the header Authorization: Bearer <token>. "
    "WWW-Authenticate says where tokens are had.",
)
_NOT_SIGNED_IN = Text(
    "没有登录：请在本服务的页面上登录，程序请用请求头 Authorization: Bearer <密钥> 提供 API 密钥。",
    "Nobody is signed in: sign in on the page of this service; programs send an API key in the "
    "header Authorization: Bearer <key>.",
)
_NOT_RESOLVED = Text(
    "没有登录：请通过本服务的登录代理访问，或提供 API 密钥。",
    "Nobody is signed in: come through the proxy that signs users in, or send an API key.",
)
_BAD_RESOLVER = Text(
    "用户解析器给出了无效的用户，请联系管理员。",
    "The resolver of users gave one that is not valid: tell the operator of this service.",
)


@dataclass(frozen=True)
class ProxyUsers:
    """The users whom trusted proxies name, or whose sessions are known.

    Attributes:
        trusted: addresses and networks of the proxies; `unix` stands for Unix sockets.
    """

    resolver: UserResolver
    trusted: frozenset[str]

    def user_of(self, head: RequestHead) -> Actor | None:
        """Return the user; None: the request comes past the proxies, or names nobody."""
        if not self.trusts(head.peer):
            return None

        actor = self.resolver.resolve(head)
        if actor is None:
            return None

        names = [actor.user_id or "", *actor.groups]
        for _, values in actor.attributes:
            names += values

        if not all(map(is_name, names)):
            raise InternalError(_BAD_RESOLVER)

        return actor

    def trusts(self, peer: str | None) -> bool:
        """Tell whether the connection comes from one of the proxies."""
        if not peer:
            return UNIX in self.trusted

        try:
            address = ipaddress.ip_address(peer.partition("%")[0])
        except ValueError:
            return False

        if address.version == 6 and address.ipv4_mapped is not None:
            address = address.ipv4_mapped

        networks = [ipaddress.ip_network(each) for each in self.trusted - {UNIX}]
        return any(address in network for network in networks)


@dataclass(frozen=True)
class Authentication:
    """Tells callers by whatever the service knows them by."""

    keys: KeyFile
    tokens: "AccessTokens | None" = None
    proxies: ProxyUsers | None = None
    sessions: Sessions | None = None

    def is_by_session(self, head: RequestHead) -> bool:
        """Tell whether a session is all by which the sender of a request may be known."""
        if self.sessions is None or presented_key(head.headers):
            return False

        return self.sessions.is_in(head.headers)

    def is_needed(self) -> bool:
        """Tell whether requests must say who sends them."""
        return self.proxies is not None or self._checks_callers()

    def _checks_callers(self) -> bool:
        """Tell whether callers can be known without a proxy's word."""
        if self.tokens is not None or self.sessions is not None:
            return True

        return self.keys.is_needed()

    def caller_of(self, head: RequestHead, *, may_wait: bool = True) -> Actor:
        """Return who sends a request with this head; `NOBODY` where nobody has to say.

        Args:
            may_wait: others may be asked, which takes time.

        Raises:
            Unauthorized: it does not say, or what it says is not valid.
            InsufficientScope: its access token lacks a scope.
            KeysUnavailable, IssuerUnavailable: what it says can't be checked now.
            WaitNeeded: it can't without waiting.
        """
        presented = presented_key(head.headers)
        is_checked = self._checks_callers()
        if presented and is_checked:
            return self._holder_of(presented, may_wait=may_wait)
        if self.sessions is not None:
            signed_in = self.sessions.actor_of(head.headers)
            if signed_in is not None:
                return signed_in
        if self.proxies is not None:
            return self._user_of(self.proxies, head, may_wait=may_wait)
        if not is_checked:
            return NOBODY

        raise Unauthorized(self._missing())

    def _missing(self) -> Text:
        """Return what a request is told that does not say who sends it."""
        if self.tokens is not None:
            return _NO_TOKEN
        if self.sessions is not None:
            return _NOT_SIGNED_IN

        return _MISSING

    def _user_of(self, proxies: ProxyUsers, head: RequestHead, *, may_wait: bool) -> Actor:
        if not may_wait and proxies.trusts(head.peer):
            raise WaitNeeded

        actor = proxies.user_of(head)
        if actor is not None:
            return actor

        raise Unauthorized(_NOT_RESOLVED if self.tokens is None else _NO_TOKEN)

    def _holder_of(self, presented: str, *, may_wait: bool) -> Actor:
        if self.tokens is not None and not presented.startswith(PREFIX):
            return self.tokens.caller_of(presented, may_wait=may_wait)

        try:
            key = self.keys.find(presented)
        except KeysUnreadable as exc:
            raise KeysUnavailable(_UNREADABLE) from exc

        if key is None:
            raise Unauthorized(_UNKNOWN)

        return Actor(key.user_id, key.groups, key.acts_for_others, attributes=key.attributes)


def head_of(request: Request) -> RequestHead:
    """Return the head of a request, with the address that has connected, be it a proxy's."""
    original = request.environ.get("werkzeug.proxy_fix.orig", request.environ)
    return RequestHead(request.headers, original.get("REMOTE_ADDR"))


def presented_key(headers: Headers) -> str:
    """Return the text of the key or the token that a request with these headers carries; empty: it
    carries none.

    Pages can't set headers of a WebSocket's handshake, but name subprotocols: one of them may be
    `citu.bearer.<key>`.
    """
    # X-API-Key goes first, because a proxy in front may use the Authorization header for itself
    # (Basic).
    key = headers.get("X-API-Key", "").strip()
    return key or _bearer_token(headers) or _key_among_subprotocols(headers)


def _bearer_token(headers: Headers) -> str:
    scheme, _, credentials = headers.get("Authorization", "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else ""


def _key_among_subprotocols(headers: Headers) -> str:
    for part in headers.get("Sec-WebSocket-Protocol", "").split(","):
        subprotocol = part.strip()
        if subprotocol.startswith(_BEARER):
            return subprotocol.removeprefix(_BEARER)

    return ""
