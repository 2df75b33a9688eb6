"""Who may come in: what every request has to pass before a view sees it.

Closed is the rule: an address that is not named here as open needs a caller who may ask, also one added tomorrow.
"""

from dataclasses import dataclass

from flask import Flask, g, request

from api.access.callers import authenticated
from api.access.key_file import KeyFile
from api.access.origins import Anonymity, allow_origins
from api.access.rate_limits import RateLimits

# What monitors, browsers and tools look at before they have a key; nothing in it is about anybody's data.
_OPEN = frozenset({"health.health", "health.ready", "openapi.openapi", "page.index", "static"})
_API = "/api/"
# What costs a model call or a statement.
_COSTLY = frozenset(f"/api/v0/{name}" for name in ("ask_agent", "ask_agent_stream", "sql/run", "sql/validate"))


@dataclass(frozen=True)
class Admission:
    """What a service asks of its callers; `rate_limits` None: as often as they like."""

    keys: KeyFile
    anonymity: Anonymity
    rate_limits: RateLimits | None

    def admit(self) -> None:
        """Admits the request being served, or raises the `CituError` that says what it lacks."""
        # A browser asks by OPTIONS what it may send, without a key; the answer holds nothing else.
        if request.method == "OPTIONS" or _is_open():
            return
        g.caller = caller = authenticated(request, self.keys)
        if caller.user_id is None:
            self.anonymity.admit(request)
            g.is_sent_by_operator = self.anonymity.is_sent_by_operator(request)
        if self.rate_limits is not None and request.url_rule is not None and request.url_rule.rule in _COSTLY:
            self.rate_limits.count(caller, request.remote_addr)


def _is_open() -> bool:
    if request.endpoint is None:  # there is no such address; under /api/ only callers get to know
        return not request.path.startswith(_API)
    return request.endpoint in _OPEN


def register_admission(app: Flask, admission: Admission) -> None:
    """Every request of the app passes `admission`; pages of its allowed origins may read the answers."""
    app.extensions["citu_admission"] = admission
    app.before_request(admission.admit)
    allow_origins(app, admission.anonymity.origins)
