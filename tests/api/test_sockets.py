"""WebSockets as the clients of a small service see them: real connections, handed over by a real
WSGI server.

The service answers messages by what they say, so that tests decide how long an answer takes and how
large it is.
"""

import asyncio
import errno
import os
import select
import socket
import ssl
import struct
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from flask import Flask, request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, OPEN, Protocol
from websockets.sync.client import ClientConnection, connect
from werkzeug.serving import make_server

from api.responses import register_error_handlers
from api.sockets.live_socket import SocketLimits
from api.sockets.open_sockets import Sockets
from common.runtime import loop
from tests.support.effort import tries
from tests.support.live import descriptor_count, eventually

WAIT_S = 10.0
HANDSHAKE = {
    "Host": "localhost",
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
PIECE = b"x" * 65536


@dataclass
class Service:
    """A service with one WebSocket address, and what it has seen.

    It answers a message by the message; `hold` only when the test opens the gate; `pour N` by N
    pieces of 64 KiB first; `flood N` by one frame of N bytes; `break` by an exception.
    """

    most: int
    limits: SocketLimits
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    poured: int = 0
    held: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    left: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    port: int = 0

    def __post_init__(self) -> None:
        self._sockets = Sockets(self.most, self.limits)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/socket"

    def app(self) -> Flask:
        app = Flask("small")
        register_error_handlers(app)
        for is_socket in (True, False):
            app.add_url_rule(
                "/socket", f"socket {is_socket}", self._open, methods=["GET"], websocket=is_socket
            )
        return app

    def _open(self) -> Any:
        return self._sockets.open(request, self._answers)

    async def _answers(self, message: str) -> AsyncGenerator[bytes, None]:
        try:
            if message == "break":
                raise ValueError(message)
            if message == "hold":
                self.held.release()
                await self.gate.wait()
            if message.startswith("flood "):
                yield b"x" * int(message.removeprefix("flood "))
            for _ in range(
                int(message.removeprefix("pour ")) if message.startswith("pour ") else 0
            ):
                yield PIECE
                self.poured += 1
            yield message.encode()
        except (asyncio.CancelledError, GeneratorExit):
            self.left.release()
            raise

    def open_gate(self) -> None:
        loop().call_soon_threadsafe(self.gate.set)

    def has_room_for(self) -> int:
        """How many sockets could be opened now."""
        return self._sockets.free


Serve = Callable[..., Service]


@contextmanager
def serving(most: int = 8, **limits: Any) -> Iterator[Service]:
    service = Service(most, SocketLimits(**limits))
    server = make_server("127.0.0.1", 0, service.app(), threaded=True)
    service.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
        eventually(lambda: service.has_room_for() == most)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """One for all tests that leave it as it was."""
    with serving() as service:
        yield service


@contextmanager
def opened(service: Service, **options: Any) -> Iterator[ClientConnection]:
    with connect(
        service.url, compression=None, open_timeout=WAIT_S, close_timeout=WAIT_S, **options
    ) as client:
        yield client


def close_code(client: ClientConnection) -> int:
    """The code the server closes with, after what else it sends."""
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            client.recv(WAIT_S)
    assert closed.value.rcvd is not None, "the server said nothing"
    return closed.value.rcvd.code


@contextmanager
def raw(service: Service) -> Iterator[socket.socket]:
    """A connection whose handshake is done, without a client library that answers pings or notices
    mistakes.
    """
    with socket.create_connection(("127.0.0.1", service.port), WAIT_S) as client:
        lines = [f"{name}: {value}" for name, value in HANDSHAKE.items()]
        client.sendall("\r\n".join(["GET /socket HTTP/1.1", *lines, "", ""]).encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += client.recv(1)
        assert answer.startswith(b"HTTP/1.1 101 ")
        yield client


def frames_until_end(client: socket.socket) -> list[Frame]:
    """Whatever the server sends until it closes."""
    wire = Protocol(CLIENT, state=OPEN, max_size=None)
    found: list[Frame] = []
    while data := client.recv(65536):
        wire.receive_data(data)
        found += [event for event in wire.events_received() if isinstance(event, Frame)]
    return found


def text(message: str) -> bytes:
    return Frame(Opcode.TEXT, message.encode()).serialize(mask=True)


def code_of(frame: Frame) -> int:
    assert frame.opcode is Opcode.CLOSE
    return int.from_bytes(frame.data[:2], "big")


# ------------------------------------------------------------------------------
# messages


def test_messages_are_answered_one_after_another(service: Service) -> None:
    with opened(service) as client:
        messages = ["one", "zwei", "三", "pour 3", "last"]
        for message in messages:
            client.send(message)
        answers = [client.recv(WAIT_S) for _ in range(len(messages) + 3)]
    assert answers == ["one", "zwei", "三", *[PIECE.decode()] * 3, "pour 3", "last"]


def test_a_message_may_come_in_fragments(service: Service) -> None:
    with opened(service) as client:
        client.send(["on", "", "e"])
        assert client.recv(WAIT_S) == "one"


def test_a_message_waits_for_the_one_before() -> None:
    with serving() as service, opened(service) as client:
        for message in ("hold", *"12345678"):
            client.send(message)
        with pytest.raises(TimeoutError):
            client.recv(0.05)
        service.open_gate()
        assert [client.recv(WAIT_S) for _ in range(9)] == ["hold", *"12345678"]


def test_no_more_than_eight_messages_may_wait() -> None:
    with serving() as service, opened(service) as client:
        client.send("hold")
        assert service.held.acquire(timeout=WAIT_S)
        for message in "123456789":
            client.send(message)
        assert close_code(client) == 1008
        assert service.left.acquire(timeout=WAIT_S), "what was being answered is given up"


def test_an_answer_that_breaks_ends_the_socket(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(service) as client:
        client.send("break")
        assert close_code(client) == 1011
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "answering a message broke"
    ]


LIMIT = SocketLimits().message_bytes
MISTAKES = {
    "binary": (Frame(Opcode.BINARY, b"{}").serialize(mask=True), 1003),
    "not UTF-8": (Frame(Opcode.TEXT, b"\xff").serialize(mask=True), 1007),
    "half a character": (Frame(Opcode.TEXT, b"\xe4\xb8").serialize(mask=True), 1007),
    "too long": (text("x" * (LIMIT + 1)), 1009),
    "announced too long": (text("x" * (LIMIT + 1))[:10], 1009),
    "too long in fragments": (
        Frame(Opcode.TEXT, b"x" * LIMIT, fin=False).serialize(mask=True)
        + Frame(Opcode.CONT, b"x", fin=True).serialize(mask=True),
        1009,
    ),
    "not masked": (Frame(Opcode.TEXT, b"{}").serialize(mask=False), 1002),
    "a fragment of nothing": (Frame(Opcode.CONT, b"x").serialize(mask=True), 1002),
    "reserved bits": (b"\xf1\x80\0\0\0\0", 1002),
    "a long ping": (b"\x89\xfe\x00\x7e" + bytes(4 + 126), 1002),
    "a close code nobody may send": (b"\x88\x82\0\0\0\0" + struct.pack("!H", 1005), 1002),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_by_their_code(mistake: str, service: Service) -> None:
    data, code = MISTAKES[mistake]
    with raw(service) as client:
        client.sendall(data)
        assert [code_of(frame) for frame in frames_until_end(client)] == [code]


def test_the_longest_message_is_taken(service: Service) -> None:
    with opened(service, max_size=None) as client:
        client.send("x" * LIMIT)
        assert client.recv(WAIT_S) == "x" * LIMIT


# ------------------------------------------------------------------------------
# silence and leaving


def test_an_idle_socket_is_closed() -> None:
    with serving(idle_s=0.05) as service, opened(service) as client:
        assert close_code(client) == 1000


def test_a_socket_whose_message_is_being_answered_is_not_idle() -> None:
    with serving(idle_s=0.05) as service, opened(service) as client:
        client.send("hold")
        with pytest.raises(TimeoutError):
            client.recv(0.2)
        service.open_gate()
        assert client.recv(WAIT_S) == "hold"
        assert close_code(client) == 1000


def test_pings_are_sent_and_a_client_that_answers_none_is_dropped() -> None:
    with serving(ping_s=0.05) as service, raw(service) as client:
        ping, end = frames_until_end(client)
        assert (ping.opcode, code_of(end)) == (Opcode.PING, 1011)


def test_a_client_that_answers_pings_stays() -> None:
    with serving(ping_s=0.3) as service, opened(service) as client:
        with pytest.raises(TimeoutError):
            client.recv(0.8)
        client.send("here")
        assert client.recv(WAIT_S) == "here"


LEAVING: dict[str, Callable[[socket.socket], None]] = {
    "closes": lambda client: client.sendall(b"\x88\x80\0\0\0\0"),
    "vanishes": lambda client: client.setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    ),
    "hangs up": lambda client: None,
    "closes half": lambda client: client.shutdown(socket.SHUT_WR),
}


@pytest.mark.parametrize("way", LEAVING)
def test_nobody_is_answered_who_has_left(way: str, service: Service) -> None:
    with raw(service) as client:
        client.sendall(text("hold"))
        assert service.held.acquire(timeout=WAIT_S)
        LEAVING[way](client)
        if way == "closes half":
            assert service.left.acquire(timeout=WAIT_S)
            return
    assert service.left.acquire(timeout=WAIT_S)


# ------------------------------------------------------------------------------
# back-pressure


def test_a_client_that_does_not_read_is_waited_for_and_then_dropped() -> None:
    with serving(stall_s=0.3) as service, raw(service) as client:
        client.sendall(text("pour 100000"))
        assert service.left.acquire(timeout=WAIT_S)
        assert service.poured < 1000, "what a client does not read is not made"
        with pytest.raises(OSError):  # noqa: PT011 - which one depends on what the kernel still had
            while client.recv(65536):
                pass
            raise ConnectionAbortedError


def test_a_client_that_reads_slowly_gets_everything() -> None:
    with serving(stall_s=0.4) as service, raw(service) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.sendall(text("pour 40"))
        wire, length = Protocol(CLIENT, state=OPEN, max_size=None), 0
        while length < 40 * len(PIECE) + len("pour 40"):
            if length < 10 * len(PIECE):
                select.select([], [], [], 0.005)
            wire.receive_data(client.recv(16384))
            length += sum(
                len(event.data) for event in wire.events_received() if isinstance(event, Frame)
            )


def test_a_client_that_takes_a_little_now_and_then_is_dropped_in_the_end() -> None:
    size = 16 * 1024 * 1024
    with serving(stall_s=0.3, drip_s=0.2) as service, raw(service) as client:
        client.sendall(text(f"flood {size}"))
        length = 0
        with suppress(ConnectionError):
            while data := client.recv(16384):
                length += len(data)
                select.select([], [], [], 0.002)
        assert 0 < length < size
        assert service.left.acquire(timeout=WAIT_S)


def test_a_client_whose_answers_pile_up_is_read_no_more() -> None:
    """It may send pings without end and read none of the answers: they would fill the memory."""
    ping = Frame(Opcode.PING, b"x" * 100).serialize(mask=True) * 1000
    with serving(stall_s=2.0) as service, raw(service) as client:
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):  # not sent, because not read; dropped is something else
            while True:
                client.sendall(ping)


# ------------------------------------------------------------------------------
# handshakes


@pytest.mark.parametrize(
    ("changes", "status", "error_type"),
    [
        ({"Upgrade": "", "Connection": ""}, 426, "upgrade_required"),
        ({"Upgrade": "h2c"}, 426, "upgrade_required"),
        ({"Connection": "close"}, 426, "upgrade_required"),
        ({"Sec-WebSocket-Version": "8"}, 426, "upgrade_required"),
        ({"Sec-WebSocket-Version": ""}, 426, "upgrade_required"),
        ({"Sec-WebSocket-Key": ""}, 400, "invalid_request"),
        ({"Sec-WebSocket-Key": "c2hvcnQ="}, 400, "invalid_request"),
        ({"Sec-WebSocket-Key": "!"}, 400, "invalid_request"),
        ({"Sec-WebSocket-Protocol": "a b"}, 400, "invalid_request"),
        ({"Transfer-Encoding": "chunked"}, 400, "invalid_request"),
        ({}, 501, "sockets_unavailable"),  # the test client has no connection
    ],
)
def test_a_handshake_that_fails_is_an_envelope(
    changes: dict[str, str], status: int, error_type: str, service: Service
) -> None:
    headers = {name: value for name, value in (HANDSHAKE | changes).items() if value}
    response = service.app().test_client().get("/socket", headers=headers)
    envelope: Any = response.get_json()
    assert (response.status_code, envelope["code"], envelope["data"]["error_type"]) == (
        status,
        status,
        error_type,
    )
    assert ("Sec-WebSocket-Version" in response.headers) == (status == 426)


def test_other_methods_versions_and_bodies_are_refused(service: Service) -> None:
    client = service.app().test_client()
    assert client.get("/socket", headers=HANDSHAKE, data=b"{}").status_code == 400
    assert client.post("/socket", headers=HANDSHAKE).status_code == 405
    old = client.get(
        "/socket", headers=HANDSHAKE, environ_overrides={"SERVER_PROTOCOL": "HTTP/1.0"}
    )
    assert old.status_code == 400


def test_a_server_that_ends_tls_itself_has_no_connection_to_give(service: Service) -> None:
    with ssl.create_default_context().wrap_socket(
        socket.socket(), server_hostname="localhost"
    ) as encrypted:
        given = {"gunicorn.socket": encrypted}
        response = (
            service.app().test_client().get("/socket", headers=HANDSHAKE, environ_overrides=given)
        )
    assert response.status_code == 501


def test_no_compression_is_agreed_on(service: Service) -> None:
    with connect(service.url) as client:  # offers it
        assert client.response is not None
        assert "Sec-WebSocket-Extensions" not in client.response.headers


def test_the_subprotocol_is_accepted_and_no_key_is_repeated(service: Service) -> None:
    offers: list[Any] = ["citu.bearer.citu_key_x", "citu.chat"]
    with opened(service, subprotocols=offers) as client:
        assert client.subprotocol == "citu.chat"
        assert client.response is not None
        assert "citu_key_x" not in str(client.response.headers)


def test_one_socket_too_many_is_refused_until_another_ends() -> None:
    with serving(most=2) as service:
        with opened(service), opened(service):
            with pytest.raises(InvalidStatus) as refused, opened(service):
                pass
            assert refused.value.response.status_code == 503
            assert refused.value.response.headers["Retry-After"] == "5"
        eventually(lambda: service.has_room_for() == 2)
        with opened(service):
            pass


def test_a_socket_that_could_not_be_taken_leaves_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_descriptor(_number: int) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with serving(most=1) as service:
        with monkeypatch.context() as trouble:
            trouble.setattr("api.sockets.takeover.os.dup", no_descriptor)
            with raw(service) as client:
                assert client.recv(1) == b"", "the server closes it"
        eventually(lambda: service.has_room_for() == 1)
        with opened(service) as other:
            other.send("here")
            assert other.recv(WAIT_S) == "here"


def test_an_open_socket_holds_no_thread() -> None:
    with serving(most=20) as service:
        before = threading.active_count()
        with ExitStack() as sockets:
            for _ in range(20):
                sockets.enter_context(raw(service))
            eventually(lambda: threading.active_count() <= before)


# ------------------------------------------------------------------------------
# fuzzing

FRAMES = st.builds(
    lambda first, data, mask: (
        bytes([first, mask << 7 | (len(data) if len(data) < 126 else 126)])
        + (struct.pack("!H", len(data)) if len(data) >= 126 else b"")
        + bytes(4 * mask)
        + data
    ),
    st.integers(0, 255) | st.sampled_from([0x80 | opcode for opcode in Opcode]),
    st.binary(max_size=300) | st.sampled_from([b"echo", b"break", b"pour 2", b"\x03\xe8"]),
    st.sampled_from([True, True, True, False]),
)


@given(sent=st.lists(FRAMES | st.binary(max_size=64), max_size=12), cut=st.integers(0, 3))
@settings(
    max_examples=tries(18),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_bytes_break_the_loop_or_leak_a_socket(
    sent: list[bytes], cut: int, service: Service
) -> None:
    with raw(service) as client:
        data = b"".join(sent)
        try:
            client.sendall(data[: len(data) - cut])
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        except OSError:  # the service has closed meanwhile
            pass
    eventually(lambda: service.has_room_for() == service.most)
    with opened(service) as other:
        other.send("still here")
        assert other.recv(WAIT_S) == "still here"


def test_descriptors_do_not_pile_up(service: Service) -> None:
    with opened(service):
        pass
    eventually(lambda: service.has_room_for() == service.most)
    before = descriptor_count(os.getpid())
    for _ in range(20):
        with raw(service) as client:
            client.sendall(text("echo"))
    eventually(lambda: service.has_room_for() == service.most)
    eventually(lambda: descriptor_count(os.getpid()) <= before)
