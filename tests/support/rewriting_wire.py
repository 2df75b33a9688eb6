"""A Unix socket in front of PostgreSQL's that changes the statements that pass, so that the server
seems to be another engine.
"""

import re
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.support.postgres_wire import Wire

_QUERY = b"Q"
_LOST = 1_000_000  # cancel requests


class RewritingWire(Wire):
    """A context manager; `url` leads through it.

    Args:
        changes: replacements for what fits a pattern in a statement.
        loses_cancels: whether no request to cancel arrives.
    """

    def __init__(
        self,
        server_url: str,
        folder: Path,
        changes: Mapping[str, str],
        *,
        loses_cancels: bool = False,
    ) -> None:
        super().__init__(server_url, folder)
        self._changes = changes
        if loses_cancels:
            self.cancels_to_lose = _LOST

    def _pass(self, source: socket.socket, target: socket.socket, seen: bytearray) -> None:
        """Pass what a client sends message by message, and answers as they come."""
        if seen is not self.sent:
            super()._pass(source, target, seen)
            return
        with suppress(OSError, struct.error):
            first = _exactly(source, 4)
            first += _exactly(source, struct.unpack("!I", first)[0] - 4)
            if not self._loses(first):
                target.sendall(first)
                while True:
                    target.sendall(self._changed(source))
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _changed(self, source: socket.socket) -> bytes:
        """Return the next message, changed if it is a statement."""
        kind, length = struct.unpack("!cI", _exactly(source, 5))
        body = _exactly(source, length - 4)
        if kind == _QUERY:
            text = body.decode()
            for pattern, replacement in self._changes.items():
                text = re.sub(pattern, replacement, text)
            body = text.encode()
        return struct.pack("!cI", kind, len(body) + 4) + body


def _exactly(source: socket.socket, size: int) -> bytes:
    """Return so many bytes; raises `struct.error` when the client has left before."""
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise struct.error
        data += more
    return data
