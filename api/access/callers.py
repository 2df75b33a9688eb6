"""Who a request comes from, and whose conversations and runs it is about."""

from dataclasses import dataclass

from flask import Request, g

from api.access.key_file import KeyFile, KeysUnreadable
from common.errors import KeysUnavailable, Unauthorized
from common.text import Text

_NOBODY = "anonymous"
_IGNORED = Text(
    "已忽略 user_id：该 API 密钥只能代表它自己的用户。",
    "user_id was ignored: this API key speaks for its own user only.",
)
_MISSING = Text(
    "需要 API 密钥：请用请求头 Authorization: Bearer <密钥> 或 X-API-Key: <密钥> 提供；密钥由管理员用 "
    ".venv/bin/python -m api.keys create 生成。",
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


@dataclass(frozen=True)
class Caller:
    """Whoever sent the request.

    Attributes:
        user_id: the key's user; None: nobody is authenticated, because no keys are configured.
        acts_for_others: the key is trusted to say on whose behalf it asks.
    """

    user_id: str | None = None
    groups: tuple[str, ...] = ()
    acts_for_others: bool = False


def current_caller() -> Caller:
    """The caller of the request being served."""
    caller: Caller = g.get("caller", Caller())
    return caller


def acting_user(given: str | None) -> str:
    """The user a request is about; `given` is the body's or the query's `user_id`, which only some may choose."""
    caller = current_caller()
    if caller.user_id is None:
        return given or _NOBODY
    return given if given and caller.acts_for_others else caller.user_id


def untrusted_user_warning(given: str | None) -> Text | None:
    """What to tell a caller whose `user_id` names somebody it may not act for."""
    return _IGNORED if given and acting_user(given) != given else None


def authenticated(request: Request, keys: KeyFile) -> Caller:
    """Whose key the request carries; nobody's, when keys are not needed.

    Raises:
        Unauthorized: a key is needed, and this is none.
        KeysUnavailable: the keys can't be read.
    """
    if not keys.is_needed():
        return Caller()
    presented = _presented(request)
    if not presented:
        raise Unauthorized(_MISSING)
    try:
        key = keys.find(presented)
    except KeysUnreadable as exc:
        raise KeysUnavailable(_UNREADABLE) from exc
    if key is None:
        raise Unauthorized(_UNKNOWN)
    return Caller(key.user_id, key.groups, key.acts_for_others)


def _presented(request: Request) -> str:
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    # A proxy in front may have an Authorization header of its own (Basic), so this one goes first.
    return request.headers.get("X-API-Key", "").strip() or (credentials.strip() if scheme.lower() == "bearer" else "")
