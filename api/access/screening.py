"""Tells by a request's head whether its body need not be awaited: a server asks before it does."""

from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask, request

from api.access.admission import Admission
from api.access.wait_needed import WaitNeeded
from common.errors import CituError

SCREENED = "citu.answered_by_head"
"""The key of the WSGI environment that says whether the head alone decides the answer."""

# Endpoints that are open to everybody, and wait for what others have to say.
_WAITING = frozenset(
    {"health.ready", "sign_in.begin_login", "sign_in.end_login", "sign_in.log_out"}
)


class Screening:
    """A WSGI application that answers nothing, and only sets `SCREENED` in the environment.

    It is one so that whatever stands before the real application may stand before it as well.
    """

    def __init__(self, app: Flask, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    def __call__(self, environ: dict[str, Any], _start: Callable[..., Any]) -> Iterable[bytes]:
        """Judge the request of this environment, whose body is not read."""
        with self._app.request_context(environ):
            environ[SCREENED] = self._is_decided_by_head()

        return ()

    def _is_decided_by_head(self) -> bool:
        """Tell whether the request will be refused, or its body is not needed to answer it."""
        try:
            caller = self._admission.identify(may_wait=False)
        except WaitNeeded:
            return False
        except CituError:
            return True

        return caller is None and request.endpoint not in _WAITING
