"""What passes between libpq and the server's socket: passed on in small pieces, and counted.

libpq makes room for a message of any length and reads for as long as the server sends: one error message of 100 MB, one
value of 1 GB, or ten million rows end up in this process, and keep its event loop meanwhile. Nothing in libpq bounds
that. So libpq is given one end of a socket pair in place of the server's socket, under the same descriptor. It does not
notice, not even when it encrypts; and what arrives stops where the reader says.
"""

import fcntl
import os
import socket
import struct
import termios
from contextlib import suppress

_PIECE = 65_536  # bytes passed on at a time; less than the pair of sockets takes


class AnswerTooLarge(Exception):
    """More has arrived than the reader allows."""


class Wire:
    """Takes the place of the connected, non-blocking socket `descriptor`, which libpq goes on using."""

    def __init__(self, descriptor: int) -> None:
        self._libpq = descriptor
        self._server = socket.socket(fileno=os.dup(descriptor))
        self._ours, theirs = socket.socketpair()
        for end in (self._server, self._ours, theirs):
            end.setblocking(False)
        os.dup2(theirs.fileno(), descriptor, inheritable=False)
        theirs.close()
        self._to_server = memoryview(b"")
        self._to_libpq = memoryview(b"")
        self._allowed: int | None = None
        self._has_ended = False

    def fileno(self) -> int:
        """The server's socket, to wait for."""
        return self._server.fileno()

    def allow(self, size: int | None) -> None:
        """From now on at most `size` bytes may arrive; None: any number."""
        self._allowed = size

    def send(self) -> bool:
        """Sends what libpq has to send; false while the network takes no more."""
        is_more = True
        while self._to_server or is_more:
            if not self._to_server:
                is_more = self._take_from_libpq() == _PIECE
            try:
                self._to_server = self._to_server[self._server.send(self._to_server) :]
            except BlockingIOError:
                return False
            except OSError:  # the server has hung up; why, it may have said before
                self._to_server = memoryview(b"")
        return True

    def _take_from_libpq(self) -> int:
        with suppress(OSError):
            self._to_server = memoryview(self._ours.recv(_PIECE))
        return len(self._to_server)

    @property
    def holds_some(self) -> bool:
        """Whether a part of what has arrived is still to be passed on."""
        return bool(self._to_libpq)

    def receive(self) -> bool:
        """Passes on a piece of what has arrived, or the end; false when there is nothing now.

        Raises:
            AnswerTooLarge: it is more than allowed. The connection can only be closed then.
        """
        if not self._to_libpq and not self._take_from_server():
            return self._has_ended
        with suppress(BlockingIOError):
            self._to_libpq = self._to_libpq[self._ours.send(self._to_libpq) :]
        return True

    def _take_from_server(self) -> bool:
        if self._has_ended:
            return False
        try:
            piece = self._server.recv(_PIECE)
        except BlockingIOError:
            return False
        except OSError:
            piece = b""
        if not piece:
            self._has_ended = True
            self._ours.shutdown(socket.SHUT_WR)
            return False
        if self._allowed is not None:
            self._allowed -= len(piece)
            if self._allowed < 0:
                raise AnswerTooLarge
        self._to_libpq = memoryview(piece)
        return True

    def has_unread(self) -> bool:
        """Whether libpq has not yet read all that was passed on."""
        size: int = struct.unpack("i", fcntl.ioctl(self._libpq, termios.FIONREAD, b"\0\0\0\0"))[0]
        return size > 0

    def close(self) -> None:
        """After libpq has closed its end: sends the goodbye it has left, and hangs up."""
        self.send()
        self._hang_up()

    def _hang_up(self) -> None:
        self._ours.close()
        self._server.close()

    def __del__(self) -> None:
        self._hang_up()  # like libpq's own socket when its connection is forgotten
