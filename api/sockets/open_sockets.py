"""Opens WebSockets: from a handshake in a view to a `LiveSocket` on the event loop."""

import asyncio
import socket
from contextvars import Context
from functools import partial

from flask import Request, Response

from api.sockets.handshake import shake_hands
from api.sockets.live_socket import Answers, LiveSocket, SocketLimits
from api.sockets.takeover import Takeover, connection_of
from common.actor import caller_id
from common.errors import TooManyStreams
from common.fair_slots import FairSlots, Slot
from common.logs import request_id
from common.runtime import loop
from common.text import Text

_RETRY_AFTER_S = 5
_FULL = Text(
    "打开的 WebSocket 已达上限，请稍后重试。",
    "As many WebSockets are open as may; try again in a moment.",
)
_SHARE_TAKEN = Text(
    "您打开的 WebSocket 已达一个调用者的上限，请先关闭一些。",
    "You have as many WebSockets open as one caller may; close some of them first.",
)
# The kernel would keep megabytes for every client that reads slowly, and count them as taken.
_SEND_BUFFER_BYTES = 262_144


class Sockets:
    """The open sockets of one process, of which one caller has at most the part `share`."""

    def __init__(self, most: int, limits: SocketLimits, share: float = 1.0) -> None:
        self._slots = FairSlots(most, share)
        self._limits = limits

    @property
    def free(self) -> int:
        """Return how many more could be opened now."""
        return self._slots.free

    def open(self, request: Request, answers: Answers) -> Response:
        """Answer the handshake of an admitted request; `answers` then answers its messages.

        Raises:
            UpgradeRequired, InvalidRequest: see `shake_hands`.
            SocketsUnavailable: see `connection_of`.
            TooManyStreams: as many are open as may, of all or of the caller.
        """
        headers = shake_hands(request)
        connection = connection_of(request)
        slot = self._slots.take()
        if slot is None:
            is_own = self._slots.has_whole_share(caller_id.get())
            raise TooManyStreams(_SHARE_TAKEN if is_own else _FULL, retry_after_s=_RETRY_AFTER_S)

        return Takeover(headers, connection, partial(self._begin, answers, slot), slot.release)

    def _begin(self, answers: Answers, slot: Slot, connection: socket.socket) -> None:
        """Serve the connection on the event loop, from the request's thread."""
        context = Context()  # not the request's own, whose objects would live as long as the socket
        context.run(request_id.set, request_id.get())
        serving = self._serve(answers, slot, connection)
        context.run(asyncio.run_coroutine_threadsafe, serving, loop())

    async def _serve(self, answers: Answers, slot: Slot, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: LiveSocket(answers, self._limits, slot.release), connection
            )
        except OSError:  # the client has left already
            connection.close()
            slot.release()
