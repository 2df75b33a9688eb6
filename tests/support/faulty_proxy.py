"""A TCP proxy that spoils one kind of answer on purpose: streams that arrive byte by byte, break
off or fall silent.

The server under test can't produce faults of a network. This proxy stands between it and a real
client, and passes all bytes unchanged except the answers of `POST /api/v0/ask_agent_stream`.
"""

import socket
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

_STREAM_REQUEST = b"POST /api/v0/ask_agent_stream"


@dataclass(frozen=True)
class Fault:
    """The fault of a stream.

    Attributes:
        piece: bytes per write; 0 passes pieces as they come.
        after: the fault strikes right after these bytes, once; None: never.
        then: `cut` closes the connection in the middle of the body, `stall` keeps it open and sends
            nothing more.
    """

    piece: int = 0
    after: bytes | None = None
    then: Literal["cut", "stall"] = "cut"


class FaultyProxy:
    """Listens on a free loopback port as a context manager; `client_left` is set when the client
    has gone.
    """

    def __init__(self, upstream_port: int, fault: Fault) -> None:
        self._upstream_port = upstream_port
        self.fault = fault
        self.client_left = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> "FaultyProxy":
        self._acceptor.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() alone does not
        self._listener.close()
        self._acceptor.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._upstream_port)) as upstream:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            is_stream = threading.Event()
            back = threading.Thread(
                target=self._pass_answers, args=(upstream, client, is_stream), daemon=True
            )
            back.start()
            try:
                while data := client.recv(65536):
                    if data.startswith(_STREAM_REQUEST):
                        is_stream.set()
                    upstream.sendall(data)
            except OSError:
                pass
            if is_stream.is_set():
                self.client_left.set()
            _shut(upstream)
            back.join()

    def _pass_answers(
        self, upstream: socket.socket, client: socket.socket, is_stream: threading.Event
    ) -> None:
        try:
            passed = b""
            while data := upstream.recv(65536):
                if not is_stream.is_set():
                    client.sendall(data)
                    continue
                passed += data
                if self._strikes(client, passed, data):
                    return
            _shut(client)
        except OSError:
            _shut(client)

    def _strikes(self, client: socket.socket, passed: bytes, data: bytes) -> bool:
        """Pass `data`, the end of `passed`, as far as the fault allows; true when the fault has
        struck.
        """
        at = passed.find(self.fault.after) if self.fault.after else -1
        if at < 0:
            self._send(client, data)
            return False
        fault, self.fault = self.fault, Fault(self.fault.piece)
        before = len(passed) - len(data)
        self._send(client, passed[before : at + len(fault.after or b"")])
        if fault.then == "cut":
            _shut(client)  # not a reset, which would drop what the client has not read yet
        return True

    def _send(self, client: socket.socket, data: bytes) -> None:
        size = self.fault.piece or max(len(data), 1)
        for start in range(0, len(data), size):
            client.sendall(data[start : start + size])


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side closed first
