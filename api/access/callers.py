"""Tells who sent a request, and on whose behalf: who owns its conversations and audit lines."""

from flask import Request, g
from werkzeug.datastructures import Headers

from api.access.key_file import KeyFile, KeysUnreadable
from common.actor import NOBODY, Actor
from common.errors import KeysUnavailable, Unauthorized
from common.text import Text

_BEARER = "citu.bearer."  # what a subprotocol that is a key begins with

_IGNORED = Text(
    "已忽略 user_id：该 API 密钥只能代表它自己的用户。",
    "user_id was ignored: this API key speaks for its own user only.",
)
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


def current_caller() -> Actor:
    """Return the holder of the request's key; `NOBODY` while no keys are configured."""
    caller: Actor = g.get("caller", NOBODY)
    return caller


def is_authenticated() -> bool:
    """Tell whether the request being served carries a valid key."""
    return current_caller().user_id is not None


def is_sent_by_operator() -> bool:
    """Tell whether the request came without a key, to a service that only serves its machine.

    False for requests that another site's page sent, for all requests while `ALLOW_ANONYMOUS` lets
    strangers in, and at addresses that need no admission.
    """
    return bool(g.get("is_sent_by_operator", False))


def acting_as(given: str | None) -> Actor:
    """Return the actor of the request being served; see `acting_for`."""
    return acting_for(
        current_caller(), given, is_credible=is_authenticated() or is_sent_by_operator()
    )


def acting_for(caller: Actor, given: str | None, *, is_credible: bool) -> Actor:
    """Return the actor on whose behalf something is done that `caller` asks for.

    A key that acts for others may name somebody else. The result then keeps the key's groups
    and attributes, because nobody else vouches for that user, but may not name a third one.

    Args:
        given: the `user_id` in the body or the query; ignored where the caller may not choose it.
        is_credible: whether nobody else could speak in that user's name.
    """
    may_choose = caller.acts_for_others or caller.user_id is None
    if not given or not may_choose:
        return caller

    return Actor(given, caller.groups, is_vouched_for=is_credible, attributes=caller.attributes)


def untrusted_user_warning(given: str | None) -> Text | None:
    """Return the warning for a caller whose `user_id` was ignored; None when it was not."""
    is_ignored = given and acting_as(given).user_id != given
    return _IGNORED if is_ignored else None


def authenticated(request: Request, keys: KeyFile) -> Actor:
    """Return the holder of the request's key; `NOBODY` while the service has no keys.

    Raises:
        Unauthorized: a key is needed, and the request has none, or one that is not valid.
        KeysUnavailable: the keys can't be read.
    """
    return holder_of(presented_key(request.headers), keys)


def holder_of(presented: str, keys: KeyFile) -> Actor:
    """Return the holder of the key of this text, or of the empty text; see `authenticated`."""
    if not keys.is_needed():
        return NOBODY
    if not presented:
        raise Unauthorized(_MISSING)

    try:
        key = keys.find(presented)
    except KeysUnreadable as exc:
        raise KeysUnavailable(_UNREADABLE) from exc

    if key is None:
        raise Unauthorized(_UNKNOWN)

    return Actor(key.user_id, key.groups, key.acts_for_others, attributes=key.attributes)


def presented_key(headers: Headers) -> str:
    """Return the text of the key that a request with these headers carries; empty: it carries none.

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
