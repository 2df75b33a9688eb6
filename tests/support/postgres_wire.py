"""A Unix socket in front of PostgreSQL's that can fall silent and lose cancel requests, which no
server does itself.
"""

import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

from psycopg2.extensions import make_dsn, parse_dsn

_CANCEL = struct.pack("!II", 16, 80877102)  # how a CancelRequest begins


class Wire:
    """A context manager; `url` leads through it.

    Attributes:
        is_silent: nothing passes, in either direction; what is sent meanwhile is lost.
        cancels_to_lose: how many of the next cancel requests don't arrive.
        sent: what clients have sent.
    """

    def __init__(self, server_url: str, folder: Path) -> None:
        self._dsn = parse_dsn(server_url)
        self.url = make_dsn(server_url, host=str(folder))
        self.is_silent = False
        self.cancels_to_lose = 0
        self.sent = bytearray()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/.s.PGSQL.{self._dsn['port']}")
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> "Wire":
        self._listener.listen()
        self._acceptor.start()
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() alone does not
        self._acceptor.join()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=[client], daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        try:
            server = self._upstream()
        except OSError:
            client.close()
            return  # no server runs, so the client is refused
        with client, server:
            back = threading.Thread(
                target=self._pass, args=[server, client, bytearray()], daemon=True
            )
            back.start()
            self._pass(client, server, self.sent)
            back.join()

    def _upstream(self) -> socket.socket:
        """Return a connection to the server, which listens in a folder or at a TCP port."""
        host, port = self._dsn["host"], self._dsn["port"]
        if not host.startswith("/"):
            return socket.create_connection((host, int(port)))
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(f"{host}/.s.PGSQL.{port}")
        except OSError:
            server.close()
            raise
        return server

    def _pass(self, source: socket.socket, target: socket.socket, seen: bytearray) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                seen += data
                if self._loses(data):
                    break
                if not self.is_silent:
                    target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _loses(self, data: bytes) -> bool:
        if not data.startswith(_CANCEL) or not self.cancels_to_lose:
            return False
        self.cancels_to_lose -= 1
        return True
