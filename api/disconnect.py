"""Has the client left? WSGI servers notice only when they write; the socket knows at once.

A peer that closed its end may still read: clients may say that they have sent all (`shutdown(SHUT_WR)`).
Only what it answers to more bytes tells the two apart: a peer that is gone refuses them. So it is sent some that mean
nothing to one that reads.
"""

import select
import socket
import time
from collections.abc import Callable
from typing import Any

# The keys under which gunicorn and werkzeug put the connection into the WSGI environment.
_KEYS = ("gunicorn.socket", "werkzeug.socket")
# Linux tells a closed peer also when there are bytes left to read (a line break after the body, a pipelined request),
# which a look at the data would mistake for a client that is there. Elsewhere POLLHUP, always watched, has to do.
_PEER_CLOSED = getattr(select, "POLLRDHUP", 0)
_REFUSED = select.POLLERR | select.POLLHUP | select.POLLNVAL
# HTTP/1.1 lets a server send any number of these before the answer, and clients skip them.
_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
_ASK_AGAIN_S = 5.0  # one that half-closed may leave later
_ASK_FIRST_S = 1.0  # one that half-closed with its request mostly waits: spared the question if the answer is quick


class Client:
    """The client of a request, as its socket shows it; nobody's when the server doesn't show that.

    Args:
        environ: the request's WSGI environment.
        ask: sends the client something meaningless by way of the response that is being written; None: none is, and
            nothing will be while the client is looked at.
    """

    def __init__(self, environ: dict[str, Any], ask: Callable[[], None] | None = None) -> None:
        self._connection: Any = next((environ[key] for key in _KEYS if key in environ), None)
        self._ask = ask
        if ask is None and environ.get("SERVER_PROTOCOL") == "HTTP/1.1" and type(self._connection) is socket.socket:
            self._ask = self._send_interim
        begins_closed = self._connection is not None and _seen(self._connection) == _PEER_CLOSED
        self._ask_at = time.monotonic() + _ASK_FIRST_S if begins_closed else 0.0

    def has_left(self) -> bool:
        """True when nobody will read what is sent; a client that only half-closed is asked first."""
        if self._connection is None:
            return False
        seen = _seen(self._connection)
        if seen & _REFUSED or not seen:
            return bool(seen)
        if self._ask is None:
            return True
        if time.monotonic() < self._ask_at:
            return False
        self._ask_at = time.monotonic() + _ASK_AGAIN_S
        self._ask()
        return bool(_seen(self._connection) & _REFUSED)

    def _send_interim(self) -> None:
        try:
            self._connection.send(_INTERIM, socket.MSG_DONTWAIT)
        except OSError:  # the next look says what it means
            return


def _seen(connection: Any) -> int:
    """What is known of the peer: 0, that it is there; `_PEER_CLOSED`, that it sends nothing more; `_REFUSED`."""
    descriptor = connection.fileno()
    if descriptor < 0:
        return select.POLLNVAL
    watch = select.poll()
    watch.register(descriptor, _PEER_CLOSED)
    return sum(event for _, event in watch.poll(0))
