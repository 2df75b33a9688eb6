"""What a browser may be made to send: requests of other sites' pages, and to names that only pretend to be ours.

A key in a header proves that the sender meant it: pages of other sites have none. Without keys, who can reach the
service may ask, and every page somebody on this machine looks at can reach it through that person's browser. So an
anonymous request is refused when a browser says that another site's page sent it (cross-site request forgery), and,
unless anonymous access is wanted, when it was not addressed to this machine by one of its own names (DNS rebinding) or
came from outside. Programs that are no browsers send none of those headers and notice nothing.
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
# Every colon can be read in one way only, so that a header full of them is judged in no time.
_ADDRESS = re.compile(r"""(?:for=)?"?(\[[0-9a-f:.]+\]|[0-9a-f]*(?::[0-9a-f.]*)+|[0-9.]+)(?::[0-9]+)?"?(?:;.*)?""")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_CROSS_SITE = Text(
    "其他网站的页面不能使用本服务。如需允许，请在 CORS_ORIGINS 中加入该页面的来源。",
    "Pages of other sites may not use this service. To allow one, add its origin to CORS_ORIGINS.",
)
_NOT_LOCAL = Text(
    "未配置 API 密钥时，只回答本机以 localhost 发来的请求。请用 "
    ".venv/bin/python -m api.keys create --user <用户> 创建密钥；"
    "若任何能连接的人都可以提问，请设置 ALLOW_ANONYMOUS=true。",
    "Without API keys, only requests from this machine to localhost are answered. Create a key with "
    ".venv/bin/python -m api.keys create --user NAME; or, if everybody who can connect may ask, set "
    "ALLOW_ANONYMOUS=true.",
)


@dataclass(frozen=True)
class Anonymity:
    """What an anonymous request may look like.

    Attributes:
        own_host: the name or address the service was told to listen on.
        is_open: others than this machine may ask.
        origins: whose pages may ask besides the service's own; `*`: everybody's.
    """

    own_host: str
    is_open: bool
    origins: Collection[str]

    def admit(self, request: Request) -> None:
        """Raises `ForbiddenOrigin` for a request that needs a key to vouch for it."""
        if not self.is_open and not _is_local(request, self.own_host):
            raise ForbiddenOrigin(_NOT_LOCAL)
        if _is_cross_site(request) and not self._allows(request.headers.get("Origin", "")):
            raise ForbiddenOrigin(_CROSS_SITE)

    def is_sent_by_operator(self, request: Request) -> bool:
        """Whether only somebody at this machine can have meant the request: no stranger, and no other site's page."""
        return not self.is_open and _is_local(request, self.own_host) and not _is_cross_site(request)

    def _allows(self, origin: str) -> bool:
        return _ANY in self.origins or origin.lower() in self.origins


def _is_local(request: Request, own_host: str) -> bool:
    """By every address and name that it came from and through; a proxy adds to what it was sent, so nobody can hide."""
    address = request.remote_addr  # none on a Unix socket
    return (
        (not address or is_loopback(address))
        and all(_is_for_loopback(one) for one in _listed(request, "X-Forwarded-For", "X-Real-IP", "Forwarded"))
        and (_is_own(request.host, own_host) or _is_program(request))
        and all(_is_own(name, own_host) for name in _listed(request, "X-Forwarded-Host"))
    )


def _listed(request: Request, *headers: str) -> list[str]:
    return [part.strip() for name in headers for part in request.headers.get(name, "").split(",") if part.strip()]


def _is_for_loopback(forwarded: str) -> bool:
    found = _ADDRESS.fullmatch(forwarded.lower())
    return found is not None and is_loopback(found[1].strip("[]"))


def _is_own(host: str, own_host: str) -> bool:
    name = _name(host)
    return name in ("localhost", own_host.lower()) or is_loopback(name)


def _is_program(request: Request) -> bool:
    """Whether it calls the service by a bare name (a container's, an alias) and is no browser.

    A network that a laptop is in can give bare names out, so that a page could use one; but browsers always say which
    languages they prefer, and pages can't stop them.
    """
    name = _name(request.host)
    return name.replace("-", "").replace("_", "").isalnum() and not _BROWSERS.intersection(request.headers.keys())


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_cross_site(request: Request) -> bool:
    """As far as the browser says; pages can't set either header. Over plain HTTP only localhost gets the first one."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("Origin")
    return origin is not None and _authority(origin) != request.host.lower()


def _authority(origin: str) -> str | None:
    """Host and port of a web page's origin, the port only when it is not its scheme's; None for any other text."""
    scheme, _, authority = origin.lower().partition("://")
    return authority.removesuffix(_DEFAULT_PORTS[scheme]) if scheme in _DEFAULT_PORTS else None


def allow_origins(app: Flask, origins: Collection[str]) -> None:
    """Lets browsers show the API's answers to pages of `origins`, with keys in headers, never with cookies."""
    if not origins:
        return
    CORS(
        app,
        resources={r"/api/v0/.*": {"origins": sorted(origins)}},
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
        always_send=False,  # nothing about other origins for who didn't say an allowed one
        intercept_exceptions=False,  # errors have their own way out, through the same headers
    )
