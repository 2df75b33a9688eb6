"""Opens WebSockets: from a handshake in a view to a `LiveSocket` on the event loop, so many at once and no more."""

import asyncio
import socket
import threading
from contextvars import Context
from functools import partial

from flask import Request, Response

from api.sockets.handshake import shake_hands
from api.sockets.live_socket import Answers, Limits, LiveSocket
from api.sockets.takeover import Takeover, connection_of
from common.errors import TooManyStreams
from common.logs import request_id
from common.runtime import loop
from common.text import Text

_RETRY_AFTER_S = 5
_FULL = Text("打开的 WebSocket 已达上限，请稍后重试。", "All places for WebSockets are taken; try again in a moment.")
# The kernel would keep megabytes for every client that reads slowly, and count them as taken.
_SEND_BUFFER_BYTES = 262_144


class Sockets:
    """The open sockets of one process, `most` at once."""

    def __init__(self, most: int, limits: Limits) -> None:
        self._most = most
        self._limits = limits
        self._lock = threading.Lock()
        self._count = 0

    @property
    def free(self) -> int:
        """How many more could be opened now."""
        return self._most - self._count

    def open(self, request: Request, answers: Answers) -> Response:
        """Answers the handshake of an admitted request; its messages are then answered by `answers` on the loop.

        Raises:
            UpgradeRequired, InvalidRequest: see `shake_hands`.
            SocketsUnavailable: see `connection_of`.
            TooManyStreams: all places are taken.
        """
        headers = shake_hands(request)
        connection = connection_of(request)
        self._come()
        return Takeover(headers, connection, partial(self._begin, answers), self._go)

    def _come(self) -> None:
        with self._lock:
            if self._count >= self._most:
                raise TooManyStreams(_FULL, retry_after_s=_RETRY_AFTER_S)
            self._count += 1

    def _go(self) -> None:
        with self._lock:
            self._count -= 1

    def _begin(self, answers: Answers, connection: socket.socket) -> None:
        context = Context()  # not the request's own, whose objects would live as long as the socket
        context.run(request_id.set, request_id.get())
        context.run(asyncio.run_coroutine_threadsafe, self._serve(answers, connection), loop())

    async def _serve(self, answers: Answers, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: LiveSocket(answers, self._limits, self._go), connection
            )
        except OSError:  # the client has left already
            connection.close()
            self._go()
