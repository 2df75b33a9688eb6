"""Who speaks, as found when a request or a connection was admitted; afterwards no request is needed any more."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flask import request

from api.access.callers import acting_for, current_caller
from api.access.rights import speaks_for_themselves
from api.requests import language_of_body
from common.actor import Actor
from common.text import Lang

Count = Callable[[Actor, str | None], None]
"""Counts one question of a caller at an address, see `Admission.count`."""


@dataclass(frozen=True)
class Speaker:
    """Who sends messages.

    Attributes:
        actor: on whose behalf.
        is_credible: whether nobody else could speak in this user's name, see `speaks_for_themselves`.
        lang: of what is said outside of answers.
        count: counts one question; raises `RateLimited`. It may wait for the network.
    """

    actor: Actor
    is_credible: bool
    lang: Lang
    count: Callable[[], None]


def speakers_of_request(count: Count) -> Callable[[str | None], Speaker]:
    """Gives the speaker for the `user_id` that a message names, of all messages of the connection being admitted."""
    caller, is_credible, address = current_caller(), speaks_for_themselves(), request.remote_addr
    lang = language_of_body({}, request.headers.get("Accept-Language"))

    def speaker(user_id: str | None) -> Speaker:
        actor = acting_for(caller, user_id, is_credible=is_credible)
        return Speaker(actor, is_credible, lang, partial(count, caller, address))

    return speaker
