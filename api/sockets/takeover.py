"""Takes the connection of a request away from the WSGI server that serves it.

A WSGI server holds a thread for as long as its request lasts, and believes that the connection is
its own. So the request is answered with 101 like any other, by whichever server runs the view; then
the connection is moved to another descriptor, and the server keeps one of a connection that has
ended, which it finishes and closes as usual.
"""

import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

from flask import Request, Response
from werkzeug.wsgi import ClosingIterator

from common.errors import SocketsUnavailable
from common.text import Text

# The keys under which gunicorn and werkzeug put the connection into the WSGI environment.
_KEYS = ("gunicorn.socket", "werkzeug.socket")
_NO_SOCKET = Text(
    "WSGI 服务器没有交出连接，或由它自己终结 TLS，因此无法使用 WebSocket：请用 gunicorn 运行，"
    "由前置代理终结 TLS。",
    "The WSGI server gives no access to the connection, or ends TLS itself, so there are no "
    "WebSockets: serve with gunicorn, and end TLS at a proxy in front.",
)


def connection_of(request: Request) -> socket.socket:
    """Return the connection that the request came over, as its server holds it.

    Raises:
        SocketsUnavailable: the server does not show it, or it is encrypted, so that its bytes are
            not the client's.
    """
    connection: Any = next((request.environ[key] for key in _KEYS if key in request.environ), None)
    if type(connection) is not socket.socket:
        raise SocketsUnavailable(_NO_SOCKET)

    return connection


class Takeover(Response):
    """A response of which only the headers are sent; then `take` gets the connection.

    Args:
        headers: all of them.
        connection: as the server holds it.
        take: called once, in the request's thread; closes what it gets.
        forsake: called instead when the headers could not be sent.
    """

    def __init__(
        self,
        headers: dict[str, str],
        connection: socket.socket,
        take: Callable[[socket.socket], None],
        forsake: Callable[[], None],
    ) -> None:
        super().__init__(status=101, headers=headers)
        self.headers.pop("Content-Type", None)
        self._connection = connection
        self._take = take
        self._forsake = forsake
        self._is_settled = False
        self.call_on_close(self._settle)

    def get_app_iter(self, _environ: dict[str, Any]) -> ClosingIterator:
        """Return the body, which has no bytes.

        Werkzeug would not iterate over that of a response without a body.
        """
        return ClosingIterator(self._body(), self.close)

    def _body(self) -> Iterator[bytes]:
        """Yield the body, which is empty, and take the connection over behind the head."""
        yield b""  # makes the server send the headers
        moved = _moved(self._connection)  # fails when there are no descriptors left
        self._is_settled = True
        self._take(moved)

    def _settle(self) -> None:
        if not self._is_settled:
            self._is_settled = True
            self._forsake()


def _moved(connection: socket.socket) -> socket.socket:
    """Return the connection under a new descriptor; `connection` itself has ended."""
    ended, other = socket.socketpair()
    other.close()
    with ended:
        moved = socket.socket(fileno=os.dup(connection.fileno()))
        os.dup2(ended.fileno(), connection.fileno(), inheritable=False)

    return moved
