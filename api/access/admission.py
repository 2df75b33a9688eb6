"""Checks every request before a view sees it: the key, or where the request comes from, and how often.

Addresses are closed unless `_OPEN` names them, so an address added later is protected without being listed anywhere.
"""

from dataclasses import dataclass

from flask import Flask, g, request

from api.access.callers import authenticated, holder_of, is_sent_by_operator, presented_key
from api.access.key_file import KeyFile
from api.access.origins import Anonymity, allow_origins
from common.actor import Actor
from common.rate_limits import RateLimits

# Endpoints for monitors, browsers and tools that have no key yet; none of them shows anybody's data.
_OPEN = frozenset(
    {
        "health.health",
        "health.ready",
        "openapi.openapi",
        "page.index",
        "static",
        "reference.reference",
        "reference.static",
    }
)
_API = "/api/"
# Addresses whose requests cost a model call or a statement; RATE_LIMIT counts these.
_QUESTIONS_AND_SQL = (
    *("ask_agent", "ask_agent_stream", "sql/run", "sql/validate"),
    *("feedback", "knowledge/import", "runs/<run_id>/export"),
)
_COSTLY = frozenset(f"/api/v0/{name}" for name in _QUESTIONS_AND_SQL)


@dataclass(frozen=True)
class Visitor:
    """Whoever opened a connection over which questions come without a request of their own.

    Attributes:
        key: the text of the key that was presented, or empty.
        address: what rate limits count for callers without a key.
        is_operator: see `is_sent_by_operator`.
    """

    key: str
    address: str | None
    is_operator: bool


@dataclass(frozen=True)
class Admission:
    """The checks of one service; `rate_limits` None: callers may ask as often as they like."""

    keys: KeyFile
    anonymity: Anonymity
    rate_limits: RateLimits | None

    def admit(self) -> None:
        """Admits the request being served and notes its caller in `g`, or raises the `CituError` that says why not."""
        # Browsers send OPTIONS without a key, to ask what they may send; the answer holds nothing else.
        if request.method == "OPTIONS" or _is_open():
            return
        g.caller = caller = authenticated(request, self.keys)
        if caller.user_id is None:
            self.anonymity.admit(request)
            g.is_sent_by_operator = self.anonymity.is_sent_by_operator(request)
        if request.url_rule is not None and request.url_rule.rule in _COSTLY:
            self.count(caller, request.remote_addr)

    def count(self, caller: Actor, address: str | None) -> None:
        """Counts one request against the caller's limit; for addresses of which only some requests cost anything.

        Raises:
            RateLimited: it is one too many.
        """
        if self.rate_limits is not None:
            self.rate_limits.count(caller, address)

    def visitor(self) -> Visitor:
        """Whoever sent the request being served, which was admitted, from this service's own page or an allowed one.

        Raises:
            ForbiddenOrigin: another site's page sent it. With a key, too: browsers ask no service before they open a
                WebSocket, and let every page read what it says.
        """
        self.anonymity.refuse_foreign_page(request)
        return Visitor(presented_key(request), request.remote_addr, is_sent_by_operator())

    def caller_of(self, visitor: Visitor) -> Actor:
        """The caller in whose name a visitor asks now. Reads a file, so call it in a thread.

        Raises:
            Unauthorized: the key has been revoked or has expired meanwhile, or keys have been made.
            KeysUnavailable: the keys can't be read.
        """
        return holder_of(visitor.key, self.keys)


def _is_open() -> bool:
    if request.endpoint is None:  # no such address; under /api/ only admitted callers learn that
        return not request.path.startswith(_API)
    return request.endpoint in _OPEN


def register_admission(app: Flask, admission: Admission) -> None:
    """Makes every request of the app pass `admission`, and lets pages of its allowed origins read the answers."""
    app.extensions["citu_admission"] = admission
    app.before_request(admission.admit)
    allow_origins(app, admission.anonymity.origins)
