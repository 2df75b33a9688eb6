"""Checks before the view who or what sent a request, and how often they do.

Addresses are closed unless `_OPEN` names them, so an address added later is protected without being
listed anywhere.
"""

from dataclasses import dataclass

from flask import Flask, g, request
from werkzeug.datastructures import Headers

from api.access.callers import authenticated, holder_of, is_sent_by_operator, presented_key
from api.access.charges import charge_of
from api.access.key_file import KeyFile
from api.access.origins import Anonymity, allow_origins
from common.actor import NOBODY, Actor, caller_id, caller_id_of
from common.errors import CituError
from common.rate_limits import RateLimits

# Endpoints for monitors, browsers and tools that have no key yet; none of them shows anybody's
# data.
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
# What the page shows before its reader has given a key, where the operator allows it.
_EXAMPLES = "examples.list_examples"
_API = "/api/"


@dataclass(frozen=True)
class Visitor:
    """The client of a connection over which questions come without requests of their own.

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
    """The checks of one service.

    Attributes:
        rate_limits: None: callers may ask as often as they like.
        shows_examples: whether example questions are shown to those who have no key yet.
    """

    keys: KeyFile
    anonymity: Anonymity
    rate_limits: RateLimits | None
    shows_examples: bool = False

    def admit(self) -> None:
        """Admit the request and note its caller in `g`, or raise the refusing `CituError`."""
        caller = self.identify()
        if caller is None:
            return
        if charge_of(request.endpoint) == "counted":
            self.count(caller, request.remote_addr)

    def identify(self) -> Actor | None:
        """Return the caller of the request, by its head; None: the address is open to all.

        Notes the caller in `g`. Raises the `CituError` that says why the caller is not let in.
        """
        # Browsers send OPTIONS without a key, to ask what they may send; the answer holds nothing
        # else.
        caller_id.set(caller_id_of(NOBODY, request.remote_addr))
        if request.method == "OPTIONS" or _is_open():
            return None
        if self._shows_examples_to(request.headers):
            g.caller = NOBODY
            return NOBODY

        g.caller = caller = authenticated(request, self.keys)
        caller_id.set(caller_id_of(caller, request.remote_addr))
        if caller.user_id is None:
            self.anonymity.admit(request)
            g.is_sent_by_operator = self.anonymity.is_sent_by_operator(request)

        return caller

    def _shows_examples_to(self, headers: Headers) -> bool:
        """Tell whether the request is for examples by somebody whose key is not given yet."""
        if not self.shows_examples or request.endpoint != _EXAMPLES:
            return False

        return self.keys.is_needed() and not presented_key(headers)

    def knows(self, headers: Headers) -> bool:
        """Tell whether a request with these headers has a valid key, or needs none."""
        try:
            holder_of(presented_key(headers), self.keys)
        except CituError:
            return False

        return True

    def count(self, caller: Actor, address: str | None) -> None:
        """Count one request against the caller's limit, where only some requests cost anything.

        Raises:
            RateLimited: it is one too many.
        """
        if self.rate_limits is not None:
            self.rate_limits.count(caller, address)

    def visitor(self) -> Visitor:
        """Return the sender of the admitted request, from this service's or an allowed page.

        Raises:
            ForbiddenOrigin: another site's page sent it. With a key, too: browsers ask no service
                before they open a WebSocket, and let every page read what it says.
        """
        self.anonymity.refuse_foreign_page(request)
        return Visitor(presented_key(request.headers), request.remote_addr, is_sent_by_operator())

    def caller_of(self, visitor: Visitor) -> Actor:
        """Return the caller in whose name a visitor asks now. Reads a file, so call it in a thread.

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
    """Make every request of the app pass `admission`, and let its origins read the answers."""
    app.extensions["citu_admission"] = admission
    app.before_request(admission.admit)
    allow_origins(app, admission.anonymity.origins)
