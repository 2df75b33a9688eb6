"""`/login`, `/login/callback`, `/logout`: people sign in on the page, at the service's issuer."""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from flask import Blueprint, Response, redirect, request

from api.access.origins import refuse_other_pages
from api.access.sessions import CookiePlace, Sessions, SessionTooLarge, cookie_in
from api.requests import parse_reader
from api.responses import error_reply, reply
from common.envelope import success
from common.errors import NotFound, RateLimited
from common.text import Text

if TYPE_CHECKING:
    from api.access.openid_login import OpenIdLogin

_log = logging.getLogger(__name__)

_ATTEMPT = "citu_login"
_STATE_CHARS = 12  # of the state, by which attempts in several tabs are kept apart
_OUT = Text("已退出登录", "Signed out")
_NONE = Text(
    "这里不能登录：没有设置 OIDC_CLIENT_ID。请使用 API 密钥。",
    "Nobody can sign in here, because OIDC_CLIENT_ID is not set: use an API key.",
)


@dataclass(frozen=True)
class SignIn:
    """The services of these endpoints.

    Attributes:
        home: the address of the page, with a slash at its end.
    """

    login: "OpenIdLogin"
    sessions: Sessions
    home: str


def sign_in_blueprint(sign_in: SignIn | None) -> Blueprint:
    """Return the endpoints, which are open to all; None: nobody can sign in."""
    blueprint = Blueprint("sign_in", __name__)

    def served() -> SignIn:
        if sign_in is None:
            raise NotFound(_NONE)

        return sign_in

    @blueprint.get("/login")
    def begin_login() -> Response:
        """Send the browser to the issuer."""
        return _begun(served(), request.args.get("to", ""))

    @blueprint.get("/login/callback")
    def end_login() -> Response:
        """Take the issuer's answer, begin a session, and show the page."""
        return _end_login(served())

    @blueprint.post("/logout")
    def log_out() -> Response:
        """End the session of this browser."""
        services = served()
        refuse_other_pages(request)
        services.sessions.end(request.headers)
        reader = parse_reader(request.args, request.headers.get("Accept-Language"))
        data = {"issuer_logout_url": services.login.end_address()}
        response = reply(success(data, _OUT.to(reader.lang)))
        _drop(response, services.sessions.cookie_name, services.sessions.place)
        return response

    @blueprint.errorhandler(RateLimited)
    def refuse_for_now(error: RateLimited) -> Response:
        """Show the page, which says that somebody tries to sign in too often."""
        return error_reply(error) if sign_in is None else _without(sign_in, "too_often")

    return blueprint


def _begun(services: SignIn, goes_to: str) -> Response:
    from api.access.openid_login import ATTEMPT_S, LoginFailure  # only where people sign in

    try:
        attempt = services.login.begun(goes_to)
    except LoginFailure as failure:
        return _failed_login(services, failure.reason, str(failure))

    place = services.sessions.place
    response = _sent_to(attempt.address)
    response.set_cookie(
        _attempt_name(place, attempt.state),
        attempt.cookie,
        max_age=ATTEMPT_S,
        path=place.path,
        secure=place.is_secure,
        httponly=True,
        samesite="Lax",  # it has to come along when the issuer sends the browser back
    )
    return response


def _end_login(services: SignIn) -> Response:
    from api.access.openid_login import LoginFailure  # only where people sign in

    sessions, place = services.sessions, services.sessions.place
    name = _attempt_name(place, request.args.get("state", ""))
    try:
        actor, goes_to = services.login.ended(request.args, cookie_in(request.headers, name))
        cookie = sessions.begun(actor)
    except LoginFailure as failure:
        response = _failed_login(services, failure.reason, str(failure))
        if failure.reason == "expired":  # the cookie may be another attempt's, which goes on
            return response
    except SessionTooLarge:
        response = _failed_login(
            services, "too_large", "groups and attributes don't fit into a cookie"
        )
    else:
        sessions.end(request.headers)  # of whoever was signed in before
        response = _sent_to(services.home + goes_to)
        response.set_cookie(
            sessions.cookie_name,
            cookie,
            max_age=int(sessions.max_age_s),
            path=place.path,
            secure=place.is_secure,
            httponly=True,
            samesite="Strict",
        )

    _drop(response, name, place)
    return response


def _attempt_name(place: CookiePlace, state: str) -> str:
    return place.name_of(f"{_ATTEMPT}_{state[:_STATE_CHARS]}")


def _failed_login(services: SignIn, reason: str, why: str) -> Response:
    _log.warning("a login failed (%s): %s", reason, why)
    return _without(services, reason)


def _without(services: SignIn, reason: str) -> Response:
    """Show the page, which says for what reason nobody is signed in."""
    return _sent_to(f"{services.home}?{urlencode({'login': reason})}")


def _sent_to(address: str) -> Response:
    response = redirect(address, 303)
    response.headers["Cache-Control"] = "no-store"
    assert isinstance(response, Response)
    return response


def _drop(response: Response, name: str, place: CookiePlace) -> None:
    if name.isascii() and name.replace("-", "").replace("_", "").isalnum():
        response.delete_cookie(name, path=place.path, secure=place.is_secure, httponly=True)
