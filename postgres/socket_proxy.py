"""Passes data between libpq and the server's socket in small pieces, and counts what arrives.

libpq accepts messages of any length and reads for as long as the server sends: an error message of
100 MB, a value of 1 GB or ten million rows would end up in this process and block its event loop
meanwhile. libpq has no limit for that. So it gets one end of a socket pair in place of the server's
socket, under the same descriptor. libpq works over it as before, with encryption, too; and this
class stops reading from the server when the limit is reached.
"""

import fcntl
import os
import socket
import struct
import termios

_PIECE = 65_536  # bytes passed on at a time; the socket pair holds more
_NOTHING = memoryview(b"")


class AnswerTooLarge(Exception):
    """More has arrived than the reader allows."""


class SocketProxy:
    """A proxy between libpq and the connected, non-blocking socket `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        self._libpq = descriptor
        self._server = socket.socket(fileno=os.dup(descriptor))
        self._ours, theirs = socket.socketpair()
        for end in (self._server, self._ours, theirs):
            end.setblocking(False)

        os.dup2(theirs.fileno(), descriptor, inheritable=False)
        theirs.close()
        self._to_server = _NOTHING
        self._to_libpq = _NOTHING
        self._allowed: int | None = None
        self._has_ended = False

    def fileno(self) -> int:
        """Return the descriptor of the server's socket, to wait on."""
        return self._server.fileno()

    def allow(self, size: int | None) -> None:
        """Let at most `size` bytes arrive from now on; None: any number."""
        self._allowed = size

    def send(self) -> bool:
        """Send what libpq wants to send; false if the network takes no more now."""
        is_more = True
        while self._to_server or is_more:
            if not self._to_server:
                is_more = self._take_from_libpq() == _PIECE
                continue

            try:
                self._to_server = self._to_server[self._server.send(self._to_server) :]
            except BlockingIOError:
                return False
            except OSError:  # the server has hung up; its reason may be among what has arrived
                self._to_server = _NOTHING

        return True

    def _take_from_libpq(self) -> int:
        try:
            self._to_server = memoryview(self._ours.recv(_PIECE))
        except OSError:
            return 0

        return len(self._to_server)

    @property
    def holds_some(self) -> bool:
        """Tell whether something has arrived that was not passed on yet."""
        return bool(self._to_libpq)

    def receive(self) -> bool:
        """Pass a piece of what has arrived, or the end, on to libpq; false when there is none.

        Raises:
            AnswerTooLarge: more has arrived than allowed; the connection can only be closed.
        """
        if not self._to_libpq and not self._take_from_server():
            return self._has_ended

        try:
            self._to_libpq = self._to_libpq[self._ours.send(self._to_libpq) :]
        except BlockingIOError:
            return True  # libpq has to read first

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
        """Tell whether libpq has still to read something that was passed on."""
        size: int = struct.unpack("i", fcntl.ioctl(self._libpq, termios.FIONREAD, b"\0\0\0\0"))[0]
        return size > 0

    def close(self) -> None:
        """Send the goodbye that libpq wrote when it closed its end, and hang up."""
        self.send()
        self._hang_up()

    def _hang_up(self) -> None:
        self._ours.close()
        self._server.close()

    def __del__(self) -> None:
        self._hang_up()  # a connection that is collected closes its socket
