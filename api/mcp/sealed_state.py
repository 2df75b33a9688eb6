"""Seals the state of a call that waits for its user, so that only its own repetition opens it.

The client keeps the state and sends it back, perhaps to another worker. The seal binds it to the
user, the tool and the arguments, and it expires.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer

from common.actor import Actor

_SALT = "mcp.request-state"


class InvalidState(Exception):
    """The state was not sealed here for this call, or its time is over."""


class StateSeal:
    """Seals and opens states.

    Args:
        key: gives the key, which is the same for all workers; called at the first use.
        max_age_s: seconds for which a state can be used.
    """

    def __init__(self, key: Callable[[], str], max_age_s: float) -> None:
        self._key = key
        self._max_age_s = max_age_s

    @cached_property
    def _serializer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._key(), salt=_SALT)

    def sealed(self, actor: Actor, call: Mapping[str, Any], state: Mapping[str, Any]) -> str:
        """Return a text for the client.

        Args:
            call: the tool and the arguments that the state belongs to.
            state: JSON; the client can read it, but not change it.
        """
        bound = self._serializer.dumps([_fingerprint(actor, call), dict(state)])
        return bound if isinstance(bound, str) else bound.decode()

    def opened(self, actor: Actor, call: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Return the state in a text.

        Raises:
            InvalidState: it was changed, belongs to another user or call, or is too old.
        """
        try:
            fingerprint, state = self._serializer.loads(text, max_age=int(self._max_age_s))
        except (BadData, ValueError, TypeError) as exc:
            raise InvalidState from exc

        if not isinstance(state, dict) or not isinstance(fingerprint, str):
            raise InvalidState
        if not secrets.compare_digest(fingerprint, _fingerprint(actor, call)):
            raise InvalidState

        return state


def _fingerprint(actor: Actor, call: Mapping[str, Any]) -> str:
    bound = json.dumps([actor.owner, call], sort_keys=True, default=str)
    return hashlib.sha256(bound.encode()).hexdigest()
