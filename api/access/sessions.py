"""Sessions of people who have signed in on the page: a sealed cookie says who they are.

All workers that share the key know every session. One that has been ended is noted in a folder, so
that a copy of its cookie is of no use either.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from itsdangerous import BadData, URLSafeTimedSerializer
from werkzeug.datastructures import Headers
from werkzeug.http import parse_cookie

from common.actor import Actor, attributes_of

_SALT = "session"
_NAME = "citu_session"
_MOST_COOKIE_CHARS = 3800  # browsers keep 4096 bytes, name and attributes included
_ID_BYTES = 16


class SessionTooLarge(Exception):
    """The user has too many groups or attributes for a cookie."""


@dataclass(frozen=True)
class CookiePlace:
    """Where browsers send cookies: to the address of the service alone.

    Attributes:
        path: the path of the service, with a slash at its end.
        is_secure: they travel over TLS only.
    """

    path: str
    is_secure: bool

    @classmethod
    def of(cls, public_url: str) -> "CookiePlace":
        """Return the place of a service with this address."""
        parts = urlsplit(public_url)
        return cls(parts.path.rstrip("/") + "/", parts.scheme == "https")

    def name_of(self, name: str) -> str:
        """Return the cookie's name, with what keeps neighbouring hosts from setting it."""
        if not self.is_secure:
            return name
        if self.path == "/":
            return f"__Host-{name}"

        return f"__Secure-{name}"


class Sessions:
    """Begins, recognises and ends sessions.

    Args:
        key: gives the key, which is the same for all workers; called at the first use.
        max_age_s: seconds for which a session can be used.
        ended: the folder in which ended sessions are noted.
    """

    def __init__(
        self, key: Callable[[], str], max_age_s: float, place: CookiePlace, ended: Path
    ) -> None:
        self._key = key
        self._ended = ended
        self.max_age_s = max_age_s
        self.place = place
        self.cookie_name = place.name_of(_NAME)

    @cached_property
    def _serializer(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._key(), salt=_SALT)

    def begun(self, actor: Actor) -> str:
        """Return the cookie of a new session of this user.

        Raises:
            SessionTooLarge: the user has too many groups or attributes.
        """
        session = {
            "id": secrets.token_hex(_ID_BYTES),
            "user": actor.user_id,
            "groups": list(actor.groups),
            "attributes": {name: list(values) for name, values in actor.attributes},
        }
        cookie = str(self._serializer.dumps(session))
        if len(cookie) > _MOST_COOKIE_CHARS:
            raise SessionTooLarge

        return cookie

    def is_in(self, headers: Headers) -> bool:
        """Tell whether a request with these headers brings a session, valid or not."""
        return bool(cookie_in(headers, self.cookie_name))

    def actor_of(self, headers: Headers) -> Actor | None:
        """Return whose session such a request brings; None: it brings no valid one."""
        session = self._session_in(headers)
        if session is None or self._note_of(session["id"]).exists():
            return None

        attributes = attributes_of(session["attributes"])
        return Actor(session["user"], tuple(session["groups"]), attributes=attributes)

    def end(self, headers: Headers) -> None:
        """Have the session of a request with these headers be recognised no more."""
        session = self._session_in(headers)
        if session is None:
            return

        self._ended.mkdir(parents=True, exist_ok=True)
        self._forget_old_notes()
        self._note_of(session["id"]).touch(mode=0o600)

    def _session_in(self, headers: Headers) -> Mapping[str, Any] | None:
        cookie = cookie_in(headers, self.cookie_name)
        try:
            session = self._serializer.loads(cookie, max_age=int(self.max_age_s))
        except (BadData, ValueError, TypeError):
            return None

        return session if isinstance(session, dict) else None

    def _note_of(self, session_id: str) -> Path:
        return self._ended / session_id

    def _forget_old_notes(self) -> None:
        """Remove the notes of sessions that would not be valid any more."""
        oldest = time.time() - self.max_age_s - 1
        for note in self._ended.iterdir():
            with suppress(FileNotFoundError):
                if note.stat().st_mtime < oldest:
                    note.unlink()


def cookie_in(headers: Headers, name: str) -> str:
    """Return the cookie of this name that a request with these headers brings; empty: none."""
    return parse_cookie(headers.get("Cookie", "")).get(name, "")
