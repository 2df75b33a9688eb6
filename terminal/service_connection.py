"""Asks a service over HTTP, or one that runs in this process without any port."""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

_TIMEOUT_S = 300.0  # between two pieces of an answer; pings come far more often
_DATA = b"data: "
_PIECE = 65_536

Event = Mapping[str, Any]
Events = Generator[Event, None, None]
Pieces = Generator[bytes, None, None]


class CannotAsk(Exception):
    """The service can't be reached, or refuses; the message says so to the user."""


class ServiceConnection(Protocol):
    """A way to a service."""

    def ask(self, body: Mapping[str, Any]) -> Events:
        """Yield `data` of each event of a question's stream; closing it cancels the run.

        Raises:
            CannotAsk: there is no stream.
        """

    def answer(self, run_id: str, body: Mapping[str, Any]) -> Events:
        """Answer what a run has asked, and yield `data` of each event that follows.

        Raises:
            CannotAsk: the answer is refused.
        """

    def export(self, run_id: str, query: Mapping[str, str]) -> Pieces:
        """Yield a file of an answer's rows in pieces.

        Raises:
            CannotAsk: there is no such file.
        """


_ASK = "/api/v0/ask_agent_stream"


def _resume_path(run_id: str) -> str:
    return f"/api/v0/runs/{run_id}/resume"


def _events_path(run: Mapping[str, Any]) -> str:
    """Return where a run is followed from the events that are known."""
    return f"/api/v0/runs/{run['run_id']}/events?{urlencode({'after': run['last_event_id']})}"


def _export_path(run_id: str, query: Mapping[str, str]) -> str:
    return f"/api/v0/runs/{run_id}/export?{urlencode(query)}"


class ServerConnection:
    """A service at an address.

    Args:
        key: its API key; empty: it needs none.
    """

    def __init__(self, url: str, key: str = "") -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def ask(self, body: Mapping[str, Any]) -> Events:
        data = json.dumps(body).encode()
        with closing(self._open(_ASK, data)) as response:
            yield from _events(response)

    def answer(self, run_id: str, body: Mapping[str, Any]) -> Events:
        with closing(self._open(_resume_path(run_id), json.dumps(body).encode())) as response:
            run = json.load(response)["data"]

        with closing(self._open(_events_path(run))) as response:
            yield from _events(response)

    def export(self, run_id: str, query: Mapping[str, str]) -> Pieces:
        with closing(self._open(_export_path(run_id, query))) as response:
            while piece := response.read(_PIECE):
                yield piece

    def _open(self, path: str, data: bytes | None = None) -> Any:
        headers = {**self._headers, "Content-Type": "application/json"}
        request = Request(self._url + path, data, headers)  # noqa: S310 - the user gives it
        try:
            return urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310
        except HTTPError as error:
            raise CannotAsk(_refusal(error.read(), error.code)) from error
        except (URLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise CannotAsk(f"{self._url} can't be reached: {reason}.") from error


class LocalConnection:
    """The service of this folder's settings, in this process.

    Args:
        application: a WSGI application.
    """

    def __init__(self, application: Callable[..., Any]) -> None:
        from werkzeug.test import Client

        self._client = Client(application)

    def ask(self, body: Mapping[str, Any]) -> Events:
        with closing(self._client.post(_ASK, json=dict(body))) as response:
            _check(response)
            yield from _events(_lines(response.iter_encoded()))

    def answer(self, run_id: str, body: Mapping[str, Any]) -> Events:
        with closing(self._client.post(_resume_path(run_id), json=dict(body))) as response:
            _check(response, 202)
            run = json.loads(response.get_data())["data"]

        with closing(self._client.get(_events_path(run))) as response:
            _check(response)
            yield from _events(_lines(response.iter_encoded()))

    def export(self, run_id: str, query: Mapping[str, str]) -> Pieces:
        with closing(self._client.get(_export_path(run_id, query))) as response:
            _check(response)
            yield from response.iter_encoded()


def _check(response: Any, expected: int = 200) -> None:
    if response.status_code != expected:
        raise CannotAsk(_refusal(response.get_data(), response.status_code))


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut a stream into lines."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole


def _events(lines: Iterable[bytes]) -> Iterator[Event]:
    for line in lines:
        if line.startswith(_DATA):
            yield json.loads(line.removeprefix(_DATA))["data"]


def _refusal(body: bytes, status: int) -> str:
    try:
        return str(json.loads(body)["data"]["error"])
    except (ValueError, KeyError, TypeError):
        return f"The service answered {status}."
