"""HTTP as a client on a socket sees it: JSON requests, and streams read block by block as they
arrive.
"""

import http.client
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

TIMEOUT_S = 60
PING_S = 0.1  # between the pings of services whose streams are read until nothing comes


def get_json(port: int, path: str) -> tuple[int, dict[str, Any]]:
    """Return status and body of a GET."""
    return _exchange(port, "GET", path, None, {})


def delete_json(port: int, path: str) -> tuple[int, dict[str, Any]]:
    """Return status and body of a DELETE."""
    return _exchange(port, "DELETE", path, None, {})


def post_json(port: int, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    """Return status and body of a POST."""
    return _exchange(
        port,
        "POST",
        path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", **headers},
    )


def _exchange(
    port: int, method: str, path: str, body: bytes | None, headers: dict[str, str]
) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        found: dict[str, Any] = json.loads(response.read())
        return response.status, found
    finally:
        connection.close()


class Stream:
    """An open stream of events."""

    def __init__(
        self, port: int, path: str, body: Any, *, method: str = "POST", **headers: str
    ) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        data = None if body is None else json.dumps(body).encode()
        self._begun = time.monotonic()
        self._connection.request(
            method, path, data, {"Content-Type": "application/json", **headers}
        )
        self._response = self._connection.getresponse()
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.getheaders()}

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection at any point of the stream."""
        self._response.close()
        self._connection.close()

    def next_block(self) -> str:
        """Return the next block of lines; empty at the end."""
        lines: list[str] = []
        while (line := self._response.readline().decode().rstrip("\n")) or not lines:
            if not line:
                break
            lines.append(line)
        return "\n".join(lines)

    def read_events(self, count: int, is_held: Callable[[], bool]) -> bool:
        """Read `count` events; false when there are no more, or no more while the run is held.

        Pings that were sent before the run was held may still be unread, with events behind them.
        There are at most as many of them as fit into the time since the stream began.
        """
        pings = 0
        most_before: float | None = None
        while count:
            block = self.next_block()
            if not block:
                return False
            count -= block.startswith("id: ")
            pings += block.startswith(":")
            if most_before is None and is_held():
                most_before = (time.monotonic() - self._begun) / PING_S
            if most_before is not None and pings > most_before:
                return False
        return True

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the envelopes of the frames still to come, comments left out."""
        assert self.status == 200, f"{self.status}: {self.next_block()}"
        while block := self.next_block():
            data = [
                line[len("data: ") :] for line in block.split("\n") if line.startswith("data: ")
            ]
            if data:
                yield json.loads("\n".join(data))
