"""Tells by its socket whether a client has left, which servers notice only when they write.

A client that has sent its request may close its sending end (`shutdown(SHUT_WR)`) and still read
the answer. To tell it from a client that is gone, send it bytes without meaning: a client that is
gone refuses them.
"""

import select
import socket
import time
from collections.abc import Callable
from typing import Any

# The keys under which gunicorn and werkzeug put the connection into the WSGI environment.
_KEYS = ("gunicorn.socket", "werkzeug.socket")
# Linux reports a closed sending end even while bytes are left to read (a line break after the body,
# a pipelined request); peeking at the data would find those bytes and take the client for present.
# Other systems only have POLLHUP, which poll always reports.
_PEER_CLOSED = getattr(select, "POLLRDHUP", 0)
_REFUSED = select.POLLERR | select.POLLHUP | select.POLLNVAL
# A server may send any number of these before an HTTP/1.1 answer, and clients skip them.
_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
_ASK_AGAIN_S = 5.0
# Delay the first probe: a client that half-closes after sending usually still reads.
_ASK_FIRST_S = 1.0


class RequestClient:
    """Watches the socket of a request's client, which without a socket never counts as gone.

    Args:
        environ: the request's WSGI environment.
        ask: probes the client by writing something without meaning into the response, which is
            being written by another part; None: no response is written while the client is watched,
            so the probe may use the socket itself.
        ask_again_s: seconds from one probe to the next, for a client that half-closed may leave
            later.
    """

    def __init__(
        self,
        environ: dict[str, Any],
        ask: Callable[[], None] | None = None,
        *,
        ask_again_s: float = _ASK_AGAIN_S,
    ) -> None:
        self._ask_again_s = ask_again_s
        sockets = [environ[key] for key in _KEYS if key in environ]
        self._connection: Any = next(iter(sockets), None)
        self._ask = ask
        is_plain = type(self._connection) is socket.socket
        takes_interim = is_plain and environ.get("SERVER_PROTOCOL") == "HTTP/1.1"
        if ask is None and takes_interim:
            self._ask = self._send_interim

        self._ask_at = 0.0
        begins_closed = self._connection is not None and _seen(self._connection) == _PEER_CLOSED
        if begins_closed:
            self._ask_at = time.monotonic() + _ASK_FIRST_S

    def has_left(self) -> bool:
        """Tell whether nobody will read what is sent.

        A client that only half-closed is probed before it counts as gone.
        """
        if self._connection is None:
            return False

        seen = _seen(self._connection)
        if not seen:
            return False
        if seen & _REFUSED:
            return True
        if self._ask is None:
            return True
        if time.monotonic() < self._ask_at:
            return False

        self._ask_at = time.monotonic() + self._ask_again_s
        self._ask()
        return bool(_seen(self._connection) & _REFUSED)

    def _send_interim(self) -> None:
        try:
            self._connection.send(_INTERIM, socket.MSG_DONTWAIT)
        except OSError:  # the next poll of the socket reports why
            return


def _seen(connection: Any) -> int:
    """Return poll flags: 0 while the client is there, `_PEER_CLOSED` when it sends no more.

    Bits of `_REFUSED` say that it left.
    """
    descriptor = connection.fileno()
    if descriptor < 0:
        return select.POLLNVAL

    watch = select.poll()
    watch.register(descriptor, _PEER_CLOSED)
    return sum(event for _, event in watch.poll(0))
