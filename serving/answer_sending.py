"""Sends answers without holding a thread for a client that takes its own slowly.

What a client does not take at once of an answer of known length waits for it beside the thread that
made it. A stream, whose length nobody knows, and an answer that is too long to wait are made as
fast as they are taken; they hold their thread, and one of the MAX_STREAMS.
"""

import os
import select
import socket
import ssl
from collections import deque
from typing import Any

from gunicorn.http import wsgi

_MOST_WAITING_BYTES = 8 * 1024 * 1024  # of one answer
_FILE_BLOCK_BYTES = 262_144
_NOT_NOW = (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError)


def send_some(connection: socket.socket, data: bytes | memoryview) -> int:
    """Send what the client takes at once; return how many bytes that was.

    Raises:
        OSError: the client has left.
    """
    try:
        if isinstance(connection, ssl.SSLSocket):
            connection.setblocking(False)  # encrypted connections take no flags
            return connection.send(data)

        return connection.send(data, socket.MSG_DONTWAIT)
    except _NOT_NOW:
        return 0


class OutgoingBytes:
    """Takes the bytes of one connection's answers; gunicorn's response takes it for a socket.

    Args:
        connection: whose client is answered.
        stall_s: seconds without a byte taken after which a client is given up that holds a thread.
    """

    def __init__(self, connection: socket.socket, stall_s: float) -> None:
        self._connection = connection
        self._stall_s = stall_s
        self._waiting: deque[memoryview] = deque()
        self._may_wait = False

    @property
    def held_bytes(self) -> int:
        """Return the bytes of memory that hold what the client has not taken yet."""
        return sum(memoryview(part.obj).nbytes for part in self._waiting)

    def begin_answer(self, length: int | None) -> None:
        """Tell how long the answer is that comes next; None: nobody knows."""
        self._may_wait = length is not None and length <= _MOST_WAITING_BYTES

    def sendall(self, data: bytes) -> None:
        """Take all of it; wait in this thread only with what may not wait elsewhere.

        Raises:
            OSError: the client has left, or has taken nothing for `stall_s`.
        """
        rest = memoryview(data)
        if not self._waiting:
            rest = rest[send_some(self._connection, rest) :]
        if rest:
            self._waiting.append(rest)
        if not self._may_wait:
            self._send_waiting()

    def sendfile(self, file: Any, offset: int, count: int) -> None:
        """Take `count` bytes of a file from `offset` on; called by gunicorn's response."""
        while count > 0:
            block = os.pread(file.fileno(), min(count, _FILE_BLOCK_BYTES), offset)
            if not block:  # the file has become shorter
                return

            self.sendall(block)
            offset += len(block)
            count -= len(block)

    def _send_waiting(self) -> None:
        while not self.flush():
            room = select.poll()
            room.register(self._connection, select.POLLOUT)
            if not room.poll(self._stall_s * 1000):
                self._waiting.clear()
                raise TimeoutError

    def flush(self) -> bool:
        """Send what the client takes now; return whether that was all.

        Raises:
            OSError: the client has left.
        """
        try:
            while self._waiting:
                sent = send_some(self._connection, self._waiting[0])
                if not sent:
                    return False

                self._waiting[0] = self._waiting[0][sent:]
                if not self._waiting[0]:
                    self._waiting.popleft()
        except OSError:
            self._waiting.clear()
            raise

        return True


class OutgoingResponse(wsgi.Response):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn's response, written to `OutgoingBytes`."""

    def __init__(self, req: Any, _sock: Any, cfg: Any, outgoing: OutgoingBytes) -> None:
        super().__init__(req, outgoing, cfg)

    def send_headers(self) -> None:
        """Called before the first byte of the body, when the headers are known."""
        if not self.headers_sent:
            self.sock.begin_answer(self.response_length)

        super().send_headers()
