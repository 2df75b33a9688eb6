"""Tells on whose behalf a request is served: who owns its conversations and audit lines."""

from flask import g

from common.actor import NOBODY, Actor
from common.text import Text

_IGNORED = Text(
    "已忽略 user_id：该 API 密钥只能代表它自己的用户。",
    "user_id was ignored: this API key speaks for its own user only.",
)


def current_caller() -> Actor:
    """Return who sends the request; `NOBODY` where nobody has to say."""
    caller: Actor = g.get("caller", NOBODY)
    return caller


def is_authenticated() -> bool:
    """Tell whether it is known who sends the request being served."""
    return current_caller().user_id is not None


def has_session() -> bool:
    """Tell whether the sender of the request being served has signed in on the page."""
    return bool(g.get("is_by_session", False))


def is_sent_by_operator() -> bool:
    """Tell whether the request came without a key, to a service that only serves its machine.

    False for requests that another site's page sent, for all requests while `ALLOW_ANONYMOUS` lets
    strangers in, and at addresses that need no admission.
    """
    return bool(g.get("is_sent_by_operator", False))


def acting_as(user_id: str | None) -> Actor:
    """Return the actor of the request being served; see `acting_for`."""
    return acting_for(
        current_caller(), user_id, is_credible=is_authenticated() or is_sent_by_operator()
    )


def acting_for(caller: Actor, user_id: str | None, *, is_credible: bool) -> Actor:
    """Return the actor on whose behalf something is done that `caller` asks for.

    A key that acts for others may name somebody else. The result then keeps the key's groups
    and attributes, because nobody else vouches for that user, but may not name a third one.

    Args:
        user_id: the `user_id` in the body or the query; ignored where the caller may not choose it.
        is_credible: whether nobody else could speak in that user's name.
    """
    may_choose = caller.acts_for_others or caller.user_id is None
    if not user_id or not may_choose:
        return caller

    return Actor(user_id, caller.groups, is_vouched_for=is_credible, attributes=caller.attributes)


def untrusted_user_warning(user_id: str | None) -> Text | None:
    """Return the warning for a caller whose `user_id` was ignored; None when it was not."""
    is_ignored = user_id and acting_as(user_id).user_id != user_id
    return _IGNORED if is_ignored else None
