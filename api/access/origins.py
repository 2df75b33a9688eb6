"""Refuses anonymous requests that nobody on this machine meant to send.

A request with a key was meant, because pages of other sites don't have the key. Without keys,
everybody who can reach the service may ask, and any page that somebody on this machine opens can
reach it through that person's browser. So an anonymous request is refused when the browser says
that another site's page sent it (cross-site request forgery). Unless `ALLOW_ANONYMOUS` is set, it
is also refused when it comes from another machine, or is addressed to a name that is not this
machine's own (DNS rebinding). Programs other than browsers send none of these headers and are not
affected.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from flask import Flask, Request
from flask_cors import CORS

from common.errors import ForbiddenOrigin
from common.loopback import is_loopback
from common.text import Text

_ANY = "*"
_BROWSERS = frozenset({"Accept-Language", "Origin", "Referer", "Sec-Fetch-Site"})
# Each repetition takes exactly one colon, so that a header full of colons is matched in linear
# time.
_ADDRESS = re.compile(
    r"""\A(?:for=)?"?(\[[0-9a-f:.]+\]|[0-9a-f]*(?::[0-9a-f.]*)+|[0-9.]+)(?::[0-9]+)?"?(?:;.*)?"""
)
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OTHER_PAGE = Text(
    "登录会话只供本服务自己的页面使用；其他页面和程序请使用 API 密钥或访问令牌。",
    "A session is for the service's own page only: other pages and programs send an API key or an "
    "access token.",
)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_CROSS_SITE = Text(
    "其他网站的页面不能使用本服务。如需允许，请在 CORS_ORIGINS 中加入该页面的来源。",
    "Pages of other sites may not use this service. To allow one, add its origin to CORS_ORIGINS.",
)
_NOT_LOCAL = Text(
    "未配置 API 密钥时，只回答本机以 localhost 发来的请求。请用 "
    ".venv/bin/python -m api.keys create --user <用户> 创建密钥；"
    "若任何能连接的人都可以提问，请设置 ALLOW_ANONYMOUS=true。",
    "Without API keys, only requests from this machine to localhost are answered. Create a key "
    "with .venv/bin/python -m api.keys create --user NAME; or, if everybody who can connect may "
    "ask, set ALLOW_ANONYMOUS=true.",
)


@dataclass(frozen=True)
class Anonymity:
    """The requests that are admitted without a key.

    Attributes:
        own_host: the name or address that the service listens on (`HOST`).
        is_open: other machines may ask, too (`ALLOW_ANONYMOUS`).
        origins: origins, in lower case, whose pages may ask besides the service's own page; `*`:
            all (`CORS_ORIGINS`).
    """

    own_host: str
    is_open: bool
    origins: Collection[str]

    def admit(self, request: Request) -> None:
        """Raise `ForbiddenOrigin` for a request that only a key could make acceptable."""
        if not self.is_open and not _is_local(request, self.own_host):
            raise ForbiddenOrigin(_NOT_LOCAL)

        self.refuse_foreign_page(request)

    def refuse_foreign_page(self, request: Request) -> None:
        """Raise `ForbiddenOrigin` for a request of a page whose site `origins` does not have."""
        if _is_cross_site(request) and not self._allows(request.headers.get("Origin", "")):
            raise ForbiddenOrigin(_CROSS_SITE)

    def is_sent_by_operator(self, request: Request) -> bool:
        """Tell whether a user of this machine meant the request.

        It comes from no other machine and no other site's page.

        Always false while other machines may ask: a proxy on this machine can make their requests
        look local.
        """
        if self.is_open or _is_cross_site(request):
            return False

        return _is_local(request, self.own_host)

    def _allows(self, origin: str) -> bool:
        return _ANY in self.origins or origin.lower() in self.origins


def refuse_other_pages(request: Request) -> None:
    """Raise `ForbiddenOrigin` unless the service's own page or its reader sent the request.

    Browsers add the cookie of a session to what any page sends, so `CORS_ORIGINS` changes nothing
    here. What changes anything has to say where it comes from, as all browsers do.
    """
    says_origin = "Origin" in request.headers or "Sec-Fetch-Site" in request.headers
    is_unsaid = request.method not in _SAFE_METHODS and not says_origin
    if is_unsaid or _is_cross_site(request):
        raise ForbiddenOrigin(_OTHER_PAGE)


def _is_local(request: Request, own_host: str) -> bool:
    """Tell whether every address and name that the request passed belongs to this machine.

    Proxies add to these headers what they were sent from, so a sender can add addresses, but can't
    remove its own.
    """
    address = request.remote_addr  # none on a Unix socket
    if address and not is_loopback(address):
        return False

    senders = _header_items(request, "X-Forwarded-For", "X-Real-IP", "Forwarded")
    if not all(_is_for_loopback(sender) for sender in senders):
        return False
    if not _is_own(request.host, own_host) and not _is_program(request):
        return False

    hosts = _header_items(request, "X-Forwarded-Host")
    return all(_is_own(host, own_host) for host in hosts)


def _header_items(request: Request, *headers: str) -> list[str]:
    """Return what stands between the commas of these headers."""
    items = []
    for name in headers:
        for part in request.headers.get(name, "").split(","):
            if part.strip():
                items.append(part.strip())

    return items


def _is_for_loopback(forwarded: str) -> bool:
    address = _ADDRESS.fullmatch(forwarded.lower())
    return address is not None and is_loopback(address[1].strip("[]"))


def _is_own(host: str, own_host: str) -> bool:
    name = _name(host)
    return name in ("localhost", own_host.lower()) or is_loopback(name)


def _is_program(request: Request) -> bool:
    """Tell whether a program other than a browser calls the service by a bare name.

    Such names are those of containers, or aliases.

    The network a laptop is in can hand out bare names, so a page could use one. But every browser
    sends `Accept-Language`, and a page can't prevent that.
    """
    is_browser = bool(_BROWSERS.intersection(request.headers.keys()))
    is_bare_name = _name(request.host).replace("-", "").replace("_", "").isalnum()
    return is_bare_name and not is_browser


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_cross_site(request: Request) -> bool:
    """Tell whether the browser says that another site's page sent the request.

    Pages can't set these headers themselves.

    Over plain HTTP, browsers send `Sec-Fetch-Site` to localhost only, so `Origin` is the second
    source.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in ("same-origin", "none")

    origin = request.headers.get("Origin")
    return origin is not None and _authority(origin) != request.host.lower()


def _authority(origin: str) -> str | None:
    """Return the host and port of an origin, without a default port; None for other texts."""
    scheme, _, authority = origin.lower().partition("://")
    if scheme not in _DEFAULT_PORTS:
        return None

    return authority.removesuffix(_DEFAULT_PORTS[scheme])


def allow_origins(app: Flask, origins: Collection[str]) -> None:
    """Let pages of `origins` read the API's answers, with keys in headers, never with cookies."""
    if not origins:
        return

    CORS(
        app,
        resources={r"/api/.*": {"origins": sorted(origins)}},
        send_wildcard=_ANY in origins,
        supports_credentials=False,
        allow_headers=[
            "Authorization",
            "X-API-Key",
            "Content-Type",
            "Idempotency-Key",
            "Last-Event-ID",
            "X-Request-ID",
        ],
        expose_headers=["X-Request-ID", "Retry-After"],
        max_age=600,
        always_send=False,  # send no CORS header to pages of other origins
        # Error handlers render errors; their responses get the same headers
        intercept_exceptions=False,
    )
