"""One client's connection, as the worker keeps it between and during requests."""

import socket
import ssl
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from gunicorn import sock as gunicorn_sock
from gunicorn.workers.gthread import TConn

from serving.answer_sending import OutgoingBytes
from serving.request_reading import LargeBodies, RequestReader

_RECEIVED_BYTES = 65536  # at once


class Stage(Enum):
    """The next thing that a connection waits for."""

    IDLE = auto()  # a request's first byte
    HEAD = auto()  # the rest of its head
    BODY_SOON = auto()  # the rest of its body, which usually comes at once
    BODY = auto()  # the rest of its body, for as long as its size asks
    SERVED = auto()  # the thread that serves the request
    SENDING = auto()  # the client, which has not taken all of its answer
    CLOSING = auto()  # the client, which has not closed its end


class ClientConnection(TConn):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn's connection, with all that has been received and is to be sent.

    Attributes:
        stage: what it waits for.
        peer, caller: whom it, and the request being served, are counted for; see
            `ConnectionLimits`.
        serve_until: when the client must have taken the answer, by time.monotonic().
        goes_on: whether another request may follow the one being served.
        head_at: when its head was whole, by time.monotonic().
        watched: the event that the worker waits for, and what it does then.
        is_counted_busy: a thread of the worker's pool serves it.
        is_refused: it was one too many for its address.
    """

    def __init__(self, cfg: Any, accepted: socket.socket, client: Any, server: Any) -> None:
        super().__init__(cfg, accepted, client, server)
        self.sock: socket.socket
        self.stage = Stage.IDLE
        self.peer = ""
        self.caller = ""
        self.serve_until = float("inf")
        self.goes_on = False
        self.head_at = 0.0
        self.watched: tuple[int, Callable[[ClientConnection], None]] | None = None
        self.is_counted_busy = False
        self.is_refused = False
        self.outgoing: OutgoingBytes
        self.parser: RequestReader

    def open(self, body_bytes: int, stall_s: float, large: LargeBodies | None = None) -> None:
        """Make it ready to receive; nothing is waited for.

        Raises:
            OSError: the client has left already.
        """
        self.initialized = True  # for gunicorn, which would wait for the client
        if self.cfg.is_ssl:
            self.sock = gunicorn_sock.ssl_wrap_socket(self.sock, self.cfg)

        self.parser = RequestReader(self.cfg, self.client, body_bytes, large)
        self.outgoing = OutgoingBytes(self.sock, stall_s)

    @property
    def is_shaking_hands(self) -> bool:
        """Tell whether it will be encrypted, and is not yet."""
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.version() is None

    def receive(self) -> bytes:
        """Return the bytes that have come; none: the client sends no more.

        Raises:
            BlockingIOError, ssl.SSLWantReadError: nothing has come.
            OSError: the connection is broken.
        """
        self.sock.setblocking(False)
        if not isinstance(self.sock, ssl.SSLSocket):
            return bytes(self.sock.recv(_RECEIVED_BYTES))
        if self.is_shaking_hands:
            self.sock.do_handshake()

        received = self.sock.recv(_RECEIVED_BYTES)
        while self.sock.pending():  # the poller does not see what was decrypted already
            received += self.sock.recv(self.sock.pending())

        return received
