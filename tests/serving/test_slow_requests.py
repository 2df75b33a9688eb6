"""Clients that are slow, broken or too many, before any key is known: what they hold, how they are
answered, and that others are served meanwhile.
"""

import itertools
import json
import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from api.access.key_file import KeyFile
from api.openapi import DOCUMENT
from tests.support.http_stream import get_json, post_json
from tests.support.live import (
    Citu,
    descriptor_count,
    eventually,
    impatient,
    serving,
    serving_by_gunicorn,
    thread_count,
)
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import CHAT, SYNC, scripted

RUN = "/api/v0/sql/run"
ONE = {"sql": "SELECT 1"}
HEALTH = b"GET /health HTTP/1.1\r\nHost: citu\r\n\r\n"
LAST_HEALTH = b"GET /health HTTP/1.1\r\nHost: citu\r\nConnection: close\r\n\r\n"
HALF_HEAD = b"GET /health HTTP/1.1\r\nHos"
BIG = b"GET /openapi.json HTTP/1.1\r\nHost: citu\r\n\r\n"
MIDDLE = b"GET /static/texts.js HTTP/1.1\r\nHost: citu\r\n\r\n"
STALLED = 300
# Connections by which pools may have grown; far fewer than the clients of each test.
_MOST_POOLED = 8
# Room for the long answer to a third of them, and a little more.
UNSENT_BYTES = STALLED // 3 * (DOCUMENT.stat().st_size + 8192)
PATIENT_S = 100.0  # longer than any test takes


class Keyed:
    """A service that needs a key, and one key."""

    def __init__(self, folder: Path) -> None:
        self.key, _ = KeyFile(folder / "api_keys.json").create("alice")
        self.settings: dict[str, Any] = {"DATA_DIR": str(folder), "MAX_STREAMS": "2"}
        self.citu: Citu
        self.path = ""  # of its Unix socket

    @property
    def port(self) -> int:
        return self.citu.port

    def head(self, length: int, *more: str, key: bool = True, path: str = RUN) -> bytes:
        """The head of a POST with a body of `length` bytes."""
        lines = [f"POST {path} HTTP/1.1", "Host: citu", f"Content-Length: {length}", *more]
        if key:
            lines.append(f"X-API-Key: {self.key}")
        return "\r\n".join([*lines, "", ""]).encode()

    def ask(self) -> int:
        """The status of a statement that somebody else asks meanwhile."""
        status, _ = post_json(self.port, RUN, ONE, **{"X-API-Key": self.key})
        return status


@pytest.fixture(scope="module")
def keyed(demo_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    """It waits for its clients as long as they like."""
    folder = tmp_path_factory.mktemp("patient")
    keyed = Keyed(folder)
    configuration = impatient(folder, head_s=PATIENT_S, body_s=PATIENT_S, stall_s=PATIENT_S)
    with configuration.open("a") as file:
        file.write(f"Impatient.unsent_bytes = {UNSENT_BYTES}\n")
        file.write(f"bind = [bind, {f'unix:{folder}/socket'!r}]\n")
    keyed.path = str(folder / "socket")
    with serving_by_gunicorn(
        configuration, folder / "log", DATABASE_URL=demo_url, **keyed.settings
    ) as keyed.citu:
        assert keyed.ask() == 200
        yield keyed


@pytest.fixture(scope="module")
def hasty(demo_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    """Its deadlines are short."""
    folder = tmp_path_factory.mktemp("hasty")
    keyed = Keyed(folder)
    configuration = impatient(folder, head_s=0.3, body_s=0.5, stall_s=0.5)
    with serving_by_gunicorn(
        configuration, folder / "log", DATABASE_URL=demo_url, **keyed.settings
    ) as keyed.citu:
        yield keyed


def _open(port: int, data: bytes, *, host: str = "127.0.0.1") -> socket.socket:
    client = socket.create_connection((host, port), 60)
    client.sendall(data)
    return client


def _lazy(port: int, data: bytes) -> socket.socket:
    """A client that does not read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(data)
    return client


def _rest(client: socket.socket) -> bytes:
    """All that the service still sends until it closes the connection."""
    received = bytearray()
    with suppress(ConnectionResetError):
        while data := client.recv(65536):
            received += data
    return bytes(received)


def _answers(received: bytes) -> list[tuple[int, dict[str, Any]]]:
    """Status and envelope of each answer; interim ones have none."""
    found = []
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        line, *headers = head.decode().split("\r\n")
        named = {
            name.lower(): value for name, _, value in (header.partition(": ") for header in headers)
        }
        length = int(named.get("content-length", 0))
        found.append((int(line.split()[1]), json.loads(received[:length] or b"{}")))
        received = received[length:]
    return found


def _answer(port: int, data: bytes) -> tuple[int, dict[str, Any]]:
    """The only answer to what is sent, after which the service closes the connection."""
    with _open(port, data) as client:
        (answer,) = _answers(_rest(client))
    return answer


# ------------------------------------------------------------------------------
# whoever stalls holds no thread


@pytest.mark.slow
def test_stalled_connections_keep_nobody_out_and_leave_nothing_behind(keyed: Keyed) -> None:
    """Heads and bodies that never get whole, and answers that nobody takes."""
    worker = keyed.citu.worker()
    assert [keyed.ask() for _ in range(3)] == [200] * 3
    descriptors = descriptor_count(worker)
    with ExitStack() as held:
        for number in range(STALLED // 3):
            held.enter_context(_open(keyed.port, HALF_HEAD[: 1 + number % len(HALF_HEAD)]))
            held.enter_context(_open(keyed.port, keyed.head(60_000) + b"{" * number))
            held.enter_context(_lazy(keyed.port, BIG * 20))
        assert [keyed.ask() for _ in range(20)] == [200] * 20
        assert get_json(keyed.port, "/health")[0] == 200
        assert descriptor_count(worker) >= STALLED, "all are still open"
        assert thread_count(worker) < STALLED // 3
    eventually(lambda: descriptor_count(worker) <= descriptors + _MOST_POOLED)


def test_connections_reset_at_any_moment_leave_nothing_behind(keyed: Keyed) -> None:
    worker = keyed.citu.worker()
    assert keyed.ask() == 200
    descriptors = descriptor_count(worker)
    whole = keyed.head(len(json.dumps(ONE))) + json.dumps(ONE).encode()
    for end in range(0, len(whole) + 1, 3):
        client = _open(keyed.port, whole[:end])
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    assert keyed.ask() == 200
    eventually(lambda: descriptor_count(worker) <= descriptors + _MOST_POOLED)


@pytest.mark.parametrize("kind", ["head", "body", "chunks"])
def test_a_request_has_a_deadline_as_a_whole(kind: str, hasty: Keyed) -> None:
    """However often a byte comes."""
    chunked = hasty.head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    begun = {
        "head": HALF_HEAD,
        "body": hasty.head(60_000),
        "chunks": chunked + b"fff0\r\n",
    }
    with _open(hasty.port, begun[kind]) as client:
        client.settimeout(0.02)
        received = _drip(client)
    ((status, envelope),) = _answers(received)
    assert (status, envelope["code"]) == (408, 408)
    assert envelope["data"]["error_type"] == "request_timeout"


def _drip(client: socket.socket) -> bytes:
    """Sends a byte whenever nothing comes; returns what came until the service closed."""
    received = b""
    while True:
        try:
            data = client.recv(65536)
        except TimeoutError:
            client.sendall(b"x")
            continue
        except ConnectionResetError:
            return received
        if not data:
            return received
        received += data


def test_who_takes_nothing_of_an_answer_is_dropped(hasty: Keyed) -> None:
    worker = hasty.citu.worker()
    assert get_json(hasty.port, "/health")[0] == 200
    descriptors = descriptor_count(worker)
    with ExitStack() as held:
        for _ in range(20):
            held.enter_context(_lazy(hasty.port, BIG * 20))
        eventually(lambda: hasty.citu.log.read_text().count("nothing for too long") == 20, 60)
        eventually(lambda: descriptor_count(worker) <= descriptors + _MOST_POOLED)
    assert "Traceback" not in hasty.citu.log.read_text()


@pytest.mark.slow
def test_answers_that_wait_are_bounded_all_together(keyed: Keyed) -> None:
    """Those who have taken longest are dropped first."""
    with ExitStack() as held:
        for number in itertools.count():
            if "took too little for too long" in keyed.citu.log.read_text():
                break
            # How much of an answer the kernel leaves waiting depends on where it begins.
            held.enter_context(_lazy(keyed.port, MIDDLE * (number % 7) + BIG * 20))
            assert get_json(keyed.port, "/health")[0] == 200  # not faster than they are answered
        assert keyed.ask() == 200


def test_while_all_threads_are_busy_refusals_and_health_are_answered(
    demo_url: str, tmp_path: Path
) -> None:
    keyed = Keyed(tmp_path)
    configuration = impatient(tmp_path)
    with configuration.open("a") as file:
        file.write("threads = 1\n")
    with (
        OpenAiServer(lambda _request: Reply("hello")) as model,
        serving_by_gunicorn(
            configuration, tmp_path / "log", model=model, DATABASE_URL=demo_url, **keyed.settings
        ) as keyed.citu,
    ):
        gate = Gate()
        body = json.dumps(CHAT).encode()
        with (
            scripted(model, Reply("hello", gate=gate)),
            _open(keyed.port, keyed.head(len(body), path=SYNC) + body) as asking,
        ):
            assert gate.reached.wait(60)
            assert get_json(keyed.port, "/health")[0] == 200
            assert post_json(keyed.port, RUN, ONE)[0] == 401
            gate.open()
            assert asking.recv(12) == b"HTTP/1.1 200"


# ------------------------------------------------------------------------------
# the key is judged before the body is read


@pytest.mark.parametrize("more", [[], ["Expect: 100-continue"]])
def test_a_request_without_a_key_is_refused_before_its_body(more: list[str], keyed: Keyed) -> None:
    status, envelope = _answer(keyed.port, keyed.head(60_000, *more, key=False))
    assert (status, envelope["data"]["error_type"]) == (401, "unauthorized")


def test_a_refusal_speaks_the_language_of_a_body_that_comes_at_once(keyed: Keyed) -> None:
    body = b'{"sql": "SELECT 1", "lang": "zh"}'
    head = keyed.head(len(body), "Connection: close", key=False)
    assert "需要 API 密钥" in _answer(keyed.port, head + body)[1]["data"]["error"]


def test_who_waits_to_be_told_to_go_on_is_told(keyed: Keyed) -> None:
    body = json.dumps(ONE).encode()
    head = keyed.head(len(body), "Expect: 100-continue", "Connection: close")
    with _open(keyed.port, head) as client:
        assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        ((status, _),) = _answers(_rest(client))
    assert status == 200


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_body_that_is_too_large_is_refused_at_once(framing: str, keyed: Keyed) -> None:
    data = keyed.head(10_000_000)
    if framing == "chunks":
        data = data.replace(b"Content-Length: 10000000", b"Transfer-Encoding: chunked")
        data += b"fffff\r\nabc"
    status, envelope = _answer(keyed.port, data)
    assert (status, envelope["code"]) == (400, 400)
    assert envelope["data"]["error_type"] == "invalid_request"


# ------------------------------------------------------------------------------
# requests in any pieces


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_bytes_that_come_one_by_one_are_a_request(framing: str, keyed: Keyed) -> None:
    body = json.dumps(ONE).encode()
    data = keyed.head(len(body), "Connection: close") + body
    if framing == "chunks":
        chunks = b"".join(b"1;x=y\r\n%c\r\n" % byte for byte in body) + b"0\r\nT: r\r\n\r\n"
        head = keyed.head(0, "Connection: close")
        data = head.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + chunks
    with _open(keyed.port, b"") as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in data:
            client.sendall(bytes([byte]))
        ((status, envelope),) = _answers(_rest(client))
    assert status == 200
    assert envelope["data"]["query_result"]["rows"] == [[1]]


def test_pipelined_requests_are_answered_in_turn(keyed: Keyed) -> None:
    body = json.dumps(ONE).encode()
    data = (keyed.head(len(body)) + body + HEALTH) * 10
    with _open(keyed.port, data + b"nonsense\r\n\r\n") as client:
        statuses = [status for status, _ in _answers(_rest(client))]
    assert statuses == [200] * 20 + [400]


def test_a_client_may_end_its_side_when_all_is_sent(keyed: Keyed) -> None:
    with _open(keyed.port, HEALTH * 3) as client:
        client.shutdown(socket.SHUT_WR)
        assert [status for status, _ in _answers(_rest(client))] == [200] * 3
    with _open(keyed.port, HALF_HEAD) as client:
        client.shutdown(socket.SHUT_WR)
        assert _rest(client) == b""


def test_a_unix_socket_is_served_in_the_same_way(keyed: Keyed) -> None:
    body = json.dumps(ONE).encode()
    with ExitStack() as held:
        for _ in range(30):
            stalled = held.enter_context(socket.socket(socket.AF_UNIX))
            stalled.connect(keyed.path)
            stalled.sendall(HALF_HEAD)
        client = held.enter_context(socket.socket(socket.AF_UNIX))
        client.connect(keyed.path)
        client.sendall(keyed.head(len(body)) + body + keyed.head(9, key=False))
        assert [status for status, _ in _answers(_rest(client))] == [200, 401]


def test_idle_connections_are_kept_and_serve_again(keyed: Keyed) -> None:
    with ExitStack() as held:
        clients = [held.enter_context(_open(keyed.port, HEALTH)) for _ in range(200)]
        for client in clients:
            assert _until(client, b'"ok"}}').startswith(b"HTTP/1.1 200")
        for client in clients:
            client.sendall(HEALTH)
            assert _until(client, b'"ok"}}').startswith(b"HTTP/1.1 200")


def _until(client: socket.socket, end: bytes) -> bytes:
    received = b""
    while not received.endswith(end):
        received += client.recv(65536)
    return received


# ------------------------------------------------------------------------------
# what is no request


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"Host: citu.example:8084\r\n", 200),
        (b"Host: my_service\r\n", 200),
        (b"Host: [2001:db8::1]:80\r\n", 200),
        (b"Host: citu:\r\n", 200),
        (b"", 400),
        (b"Host:\r\n", 400),
        (b"Host: a b\r\n", 400),
        (b"Host: user@citu\r\n", 400),
        (b"Host: citu/path\r\n", 400),
        (b"Host: citu:http\r\n", 400),
        (b"Host: citu:65536\r\n", 400),
        (b"Host: [2001:db8:::1]\r\n", 400),
        (b"Host: \xe5\xba\x97\r\n", 400),
        (b"Host: citu\r\nHost: citu\r\n", 400),
    ],
)
def test_a_request_names_one_host(host: bytes, status: int, keyed: Keyed) -> None:
    data = b"GET /health HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n"
    found, envelope = _answer(keyed.port, data)
    assert (found, envelope["code"]) == (status, status)
    if status == 400:
        assert "Host" in envelope["data"]["error"]


def test_the_old_protocol_names_no_host(keyed: Keyed) -> None:
    assert _answer(keyed.port, b"GET /health HTTP/1.0\r\n\r\n")[0] == 200


_LINE = b"GET /health?%s HTTP/1.1\r\nHost: citu\r\nConnection: close\r\n\r\n"
_LINE_OVERHEAD = len("GET /health? HTTP/1.1")


@pytest.mark.parametrize(
    ("data", "status", "error_type"),
    [
        (b"nonsense\r\n\r\n", 400, "invalid_request"),
        (b"\r\n\r\n", 400, "invalid_request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "invalid_request"),
        (b"\x00" * 20, 400, "invalid_request"),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + HEALTH, 400, "invalid_request"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "invalid_request"),
        (b"GET /health HTTP/1.1\nHost: citu\n\n", 400, "invalid_request"),
        (b"GET /health HTTP/1.1\r\nHost: citu\r\n folded\r\n\r\n", 400, "invalid_request"),
        (HEALTH[:-2] + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400, "invalid_request"),
        (
            HEALTH[:-2] + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            "invalid_request",
        ),
        (HEALTH[:-2] + b"Content-Length: -1\r\n\r\n", 400, "invalid_request"),
        (HEALTH[:-2] + b"Transfer-Encoding: br\r\n\r\n", 501, "invalid_request"),
        (HEALTH[:-2] + b"Expect: miracles\r\n\r\n", 417, "invalid_request"),
        (HEALTH[:-2] + b"A: b\r\n" * 100 + b"\r\n", 431, "headers_too_large"),
        (HEALTH[:-2] + b"A: " + b"b" * 9000 + b"\r\n\r\n", 431, "headers_too_large"),
        (HEALTH[:-2] + (b"A: " + b"b" * 8000 + b"\r\n") * 9 + b"\r\n", 431, "headers_too_large"),
        (HEALTH[:-2] + b"A: " + b"b" * 70_000, 431, "headers_too_large"),
        (_LINE % (b"a" * (8191 - _LINE_OVERHEAD)), 414, "uri_too_long"),
        (b"GET /" + b"a" * 9000, 414, "uri_too_long"),
    ],
    ids=range(19),
)
def test_what_is_no_request_is_refused_in_the_envelope(
    data: bytes, status: int, error_type: str, keyed: Keyed
) -> None:
    found, envelope = _answer(keyed.port, data)
    assert (found, envelope["code"], envelope["success"]) == (status, status, False)
    assert envelope["data"]["error_type"] == error_type
    assert get_json(keyed.port, "/health")[0] == 200


@pytest.mark.parametrize(
    "data",
    [
        _LINE % (b"a" * (8190 - _LINE_OVERHEAD)),
        LAST_HEALTH[:-2] + b"A: b\r\n" * 98 + b"\r\n",
        LAST_HEALTH[:-2] + (b"A: " + b"b" * 8000 + b"\r\n") * 8 + b"\r\n",
        b"\r\n" + LAST_HEALTH,
        LAST_HEALTH[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0;=\r\n\r\n",
    ],
    ids=["line", "headers", "head", "empty line", "broken chunks that nobody reads"],
)
def test_what_is_just_a_request_is_answered(data: bytes, keyed: Keyed) -> None:
    assert _answer(keyed.port, data)[0] == 200


# ------------------------------------------------------------------------------
# connections of one address


def test_an_address_has_so_many_connections(demo_url: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"DATABASE_URL": demo_url, "MAX_CONNECTIONS_PER_ADDRESS": "5"}
    with serving(tmp_path / "log", **settings) as citu, ExitStack() as held:
        clients = [held.enter_context(_open(citu.port, HALF_HEAD)) for _ in range(5)]
        with socket.create_connection(("127.0.0.1", citu.port), 60) as refused:
            ((status, envelope),) = _answers(_rest(refused))
        assert (status, envelope["code"]) == (429, 429)
        assert envelope["data"]["error_type"] == "too_many_connections"
        other = socket.create_connection(("127.0.0.1", citu.port), 60, ("127.0.0.2", 0))
        with other:
            other.sendall(LAST_HEALTH)
            assert _answers(_rest(other))[0][0] == 200
        clients[0].close()
        eventually(lambda: _is_let_in(citu.port))


def _is_let_in(port: int) -> bool:
    with _open(port, LAST_HEALTH) as client:
        return _answers(_rest(client))[0][0] == 200


def test_behind_a_proxy_requests_count_for_the_client_that_it_names(
    demo_url: str, tmp_path: Path
) -> None:
    keyed = Keyed(tmp_path)
    settings = {"MAX_CONNECTIONS_PER_ADDRESS": "5", "TRUSTED_PROXIES": "1", **keyed.settings}
    named = "X-Forwarded-For: 198.51.100.9, {}"
    body = json.dumps(ONE).encode()
    with (
        serving(tmp_path / "log", DATABASE_URL=demo_url, **settings) as keyed.citu,
        ExitStack() as held,
    ):
        for _ in range(10):  # the proxy itself may have more
            held.enter_context(_open(keyed.port, HALF_HEAD))
        for _ in range(5):
            client = _open(keyed.port, keyed.head(9, named.format("203.0.113.7")))
            held.enter_context(client)
        head = keyed.head(len(body), named.format("203.0.113.7"), "Connection: close")
        status, envelope = eventually(lambda: _unless_let_in(keyed.port, head + body))
        assert (status, envelope["data"]["error_type"]) == (429, "too_many_connections")
        head = keyed.head(len(body), named.format("203.0.113.8"), "Connection: close")
        assert _answer(keyed.port, head + body)[0] == 200


def _unless_let_in(port: int, data: bytes) -> tuple[int, dict[str, Any]] | None:
    """The refusal; None while the service has not read what others sent before."""
    status, envelope = _answer(port, data)
    return None if status == 200 else (status, envelope)


# ------------------------------------------------------------------------------
# encrypted connections


@pytest.mark.slow
def test_encrypted_connections_are_waited_for_in_the_same_way(
    demo_url: str, tmp_path: Path
) -> None:
    keyed = Keyed(tmp_path)
    certificate = tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        + ["-subj", "/CN=localhost", "-keyout", certificate, "-out", certificate],
        check=True,
        capture_output=True,
    )
    configuration = impatient(tmp_path, head_s=1.0)
    with configuration.open("a") as file:
        file.write(f"certfile = keyfile = {str(certificate)!r}\n")
    context = ssl.create_default_context(cafile=certificate)
    with (
        serving_by_gunicorn(
            configuration, tmp_path / "log", DATABASE_URL=demo_url, **keyed.settings
        ) as keyed.citu,
        ExitStack() as held,
    ):
        silent = [held.enter_context(_open(keyed.port, b"\x16\x03\x01")) for _ in range(30)]
        plain = _open(keyed.port, b"")
        with context.wrap_socket(plain, server_hostname="localhost") as client:
            body = json.dumps(ONE).encode()
            client.sendall(keyed.head(len(body)) + body[:5])
            client.sendall(body[5:])
            client.sendall(BIG)
            client.sendall(HALF_HEAD)
            statuses = [status for status, _ in _answers(_rest(client))]
        assert statuses == [200, 200, 408]
        assert [_rest(client) for client in silent] == [b""] * 30
