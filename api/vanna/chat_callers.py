"""Who speaks, as far as answers need to know; no request is needed any more to tell."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flask import request

from api.access.callers import acting_as, current_caller
from api.access.rights import speaks_for_themselves
from api.requests import language_of_body
from common.actor import Actor
from common.text import Lang

Count = Callable[[Actor, str | None], None]
"""Counts one question of a caller at an address, see `Admission.count`."""


@dataclass(frozen=True)
class ChatCaller:
    """The caller who sends messages.

    Attributes:
        actor: on whose behalf.
        is_credible: whether nobody else could speak in this user's name, see
            `speaks_for_themselves`.
        lang: the language of what is said outside of answers.
        count: counts one question; raises `RateLimited`. It may wait for the network.
    """

    actor: Actor
    is_credible: bool
    lang: Lang
    count: Callable[[], None]


def chat_caller_of_request(user_id: str | None, count: Count) -> ChatCaller:
    """Return the sender of the request, whose message names the user `user_id`."""
    return ChatCaller(
        actor=acting_as(user_id),
        is_credible=speaks_for_themselves(),
        lang=language_of_body({}, request.headers.get("Accept-Language")),
        count=partial(count, current_caller(), request.remote_addr),
    )
