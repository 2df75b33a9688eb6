"""Who a request comes from, and whose conversations and runs it is about."""

from dataclasses import dataclass

from flask import g

from common.text import Text

_NOBODY = "anonymous"
_IGNORED = Text(
    "已忽略 user_id：该 API 密钥只能代表它自己的用户。",
    "user_id was ignored: this API key speaks for its own user only.",
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
