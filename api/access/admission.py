"""Checks before the view who or what sent a request, and how often they do.

Addresses are closed unless `_OPEN` names them, so an address added later is protected without being
listed anywhere.
"""

from dataclasses import dataclass, field, replace

from flask import Flask, g, request
from werkzeug.datastructures import Headers

from agent.extensions.points import RequestHead
from api.access.authentication import Authentication, head_of, presented_key
from api.access.callers import is_sent_by_operator
from api.access.challenges import Challenges
from api.access.charges import charge_of
from api.access.origins import Anonymity, allow_origins, refuse_other_pages
from api.access.wait_needed import WaitNeeded
from common.actor import NOBODY, Actor, caller_id, caller_id_of
from common.errors import CituError, InsufficientScope, Unauthorized
from common.rate_limits import RateLimits

# Endpoints for monitors, browsers and tools that have no key yet; none of them shows anybody's
# data.
_OPEN = frozenset(
    {
        "health.health",
        "health.ready",
        "openapi.openapi",
        "page.index",
        "protected_resource.read_metadata",
        "sign_in.begin_login",
        "sign_in.end_login",
        "sign_in.log_out",
        "static",
        "reference.reference",
        "reference.static",
    }
)
# What the page shows before its reader has given a key, where the operator allows it.
_EXAMPLES = "examples.list_examples"
_API = "/api/"
LOGIN = "login"
"""Where people sign in with a browser, from the service's address on."""


@dataclass(frozen=True)
class Visitor:
    """The client of a connection over which questions come without requests of their own.

    Attributes:
        head: the head of the request that has opened it; it says who asks.
        address: what rate limits count for callers without a key.
        is_operator: see `is_sent_by_operator`.
    """

    head: RequestHead
    address: str | None
    is_operator: bool


@dataclass(frozen=True)
class Admission:
    """The checks of one service.

    Attributes:
        authentication: tells who sends a request.
        challenges: say where access tokens are had.
        rate_limits: None: callers may ask as often as they like.
        shows_examples: whether example questions are shown to those who have no key yet.
    """

    authentication: Authentication
    anonymity: Anonymity
    rate_limits: RateLimits | None
    shows_examples: bool = False
    challenges: Challenges = field(default_factory=Challenges)

    def admit(self) -> None:
        """Admit the request and note its caller in `g`, or raise the refusing `CituError`."""
        caller = self.identify()
        if request.method == "OPTIONS" or charge_of(request.endpoint) != "counted":
            return

        # Whoever signs in is nobody yet, and counts by the address.
        self.count(NOBODY if caller is None else caller, request.remote_addr)

    def identify(self, *, may_wait: bool = True) -> Actor | None:
        """Return the caller of the request, by its head; None: the address is open to all.

        Notes the caller in `g`. Raises the `CituError` that says why the caller is not let in, or
        `WaitNeeded` where that needs waiting, and it may not wait.
        """
        # Browsers send OPTIONS without a key, to ask what they may send; the answer holds nothing
        # else.
        caller_id.set(caller_id_of(NOBODY, request.remote_addr))
        if request.method == "OPTIONS" or _is_open():
            return None
        if self._shows_examples_to(request.headers):
            g.caller = NOBODY
            return NOBODY

        g.caller = caller = self._caller(may_wait=may_wait)
        caller_id.set(caller_id_of(caller, request.remote_addr))
        if caller.user_id is None:
            self.anonymity.admit(request)
            g.is_sent_by_operator = self.anonymity.is_sent_by_operator(request)

        return caller

    def recognise(self) -> None:
        """Note in `g` who sends the request to an address that is open to all, where that is known.

        A key that is not valid is none: whoever sends it is nobody.
        """
        try:
            g.caller = self._caller(may_wait=True)
        except CituError:
            return

        if g.caller.user_id is None:
            g.is_sent_by_operator = self.anonymity.is_sent_by_operator(request)

    def _caller(self, *, may_wait: bool) -> Actor:
        if self.authentication.proxies is not None:
            # Browsers add to requests by themselves what a proxy knows users by.
            self.anonymity.refuse_foreign_page(request)

        head = head_of(request)
        g.is_by_session = self.authentication.is_by_session(head)
        if g.is_by_session:
            refuse_other_pages(request)

        try:
            return self.authentication.caller_of(head, may_wait=may_wait)
        except (Unauthorized, InsufficientScope) as error:
            is_presented = bool(presented_key(head.headers))
            error.challenge = self.challenges.of(error, request, is_presented=is_presented)
            if isinstance(error, Unauthorized) and self.authentication.sessions is not None:
                error.sign_in = LOGIN

            raise

    def _shows_examples_to(self, headers: Headers) -> bool:
        """Tell whether the request is for examples by somebody whose key is not given yet."""
        if not self.shows_examples or request.endpoint != _EXAMPLES:
            return False

        return self.authentication.keys.is_needed() and not presented_key(headers)

    def knows(self, head: RequestHead) -> bool:
        """Tell whether a request with this head is from a known caller, or needs none.

        True also where that is not known without waiting.
        """
        try:
            self.authentication.caller_of(head, may_wait=False)
        except WaitNeeded:
            return True
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
        head = head_of(request)
        own_head = replace(head, headers=Headers(head.headers))  # not the request, which ends
        return Visitor(own_head, request.remote_addr, is_sent_by_operator())

    def caller_of(self, visitor: Visitor) -> Actor:
        """Return the caller in whose name a visitor asks now. Reads a file, so call it in a thread.

        Raises:
            Unauthorized: the key or the token has been revoked or has expired meanwhile, or keys
                have been made.
            KeysUnavailable, IssuerUnavailable: it can't be checked now.
        """
        return self.authentication.caller_of(visitor.head)


def _is_open() -> bool:
    if request.endpoint is None:  # no such address; under /api/ only admitted callers learn that
        return not request.path.startswith(_API)

    return request.endpoint in _OPEN


def register_admission(app: Flask, admission: Admission) -> None:
    """Make every request of the app pass `admission`, and let its origins read the answers."""
    app.extensions["citu_admission"] = admission
    app.before_request(admission.admit)
    allow_origins(app, admission.anonymity.origins)
