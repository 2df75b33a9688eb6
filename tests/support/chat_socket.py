"""A client of `WS /api/vanna/v2/chat_websocket`, which reads answers frame by frame as a program
does.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.client import ClientConnection, connect

PATH = "/api/vanna/v2/chat_websocket"
WAIT_S = 20.0
Frame = dict[str, Any]


class Chat:
    """An open socket of the chat protocol."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, message: str, **fields: Any) -> None:
        """Ask without waiting for the answer."""
        self.connection.send(json.dumps({"message": message, **fields}))

    def frame(self) -> Frame:
        """Return the next frame."""
        found: Frame = json.loads(self.connection.recv(WAIT_S))
        return found

    def frames(self) -> list[Frame]:
        """Return the frames up to the next completion."""
        found = [self.frame()]
        while found[-1].get("type") != "completion":
            found.append(self.frame())
        return found

    def ask(self, message: str, **fields: Any) -> list[Frame]:
        """Ask, and read the whole answer."""
        self.send(message, **fields)
        return self.frames()


@contextmanager
def chatting(
    port: int, *, origin: str | None = None, subprotocols: Any = None, **headers: str
) -> Iterator[Chat]:
    """Open a socket; `headers` with underscores for dashes."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    address = f"ws://127.0.0.1:{port}{PATH}"
    origin_of: Any = origin
    with connect(
        address,
        origin=origin_of,
        subprotocols=subprotocols,
        additional_headers=given,
        compression=None,
        max_size=None,
        open_timeout=WAIT_S,
    ) as connection:
        yield Chat(connection)


def kinds(frames: list[Frame]) -> list[str]:
    """Return what the parts of an answer are."""
    return [frame["rich"]["type"] for frame in frames]


def texts(frames: list[Frame]) -> list[str]:
    """Return what is said in text, the last state of each part."""
    found = {
        frame["rich"]["id"]: frame["rich"]["data"]["content"]
        for frame in frames
        if kinds([frame]) == ["text"]
    }
    return list(found.values())
