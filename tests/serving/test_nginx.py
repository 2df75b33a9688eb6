"""Streams through a real nginx that buffers, compresses and cuts silent connections, as reverse
proxies do.
"""

import gzip
import http.client
import json
import shutil
import signal
import socket
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from tests.support.chat_socket import chatting, texts
from tests.support.http_stream import Stream, get_json, post_json
from tests.support.live import GAUGES, Citu, eventually, free_port, serving
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import CHAT, STREAM, SYNC, scripted

RUNS = "/api/v0/runs"
PROXY_READ_S = 1  # nginx cuts a connection on which nothing comes for so long

# Everything that could hold an event back is on: response buffering (nginx's default), compression
# of every type.
CONFIGURATION = """
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    proxy_buffering on;
    proxy_read_timeout {timeout}s;
    gzip on;
    gzip_types *;
    gzip_min_length 1;
    gzip_proxied any;
    proxy_set_header Host $host;
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host $host;
    server {{
        listen 127.0.0.1:{old};
        location / {{ proxy_pass http://127.0.0.1:{citu}; }}
    }}
    server {{
        listen 127.0.0.1:{new};
        location / {{
            proxy_pass http://127.0.0.1:{citu};
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }}
        location = /api/vanna/v2/chat_websocket {{
            proxy_pass http://127.0.0.1:{citu};
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection "upgrade";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_read_timeout 60s;
        }}
    }}
}}
"""


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@pytest.fixture(scope="module")
def citu(
    model: OpenAiServer,
    make_database: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Citu]:
    if shutil.which("nginx") is None:
        pytest.skip("there is no nginx here")
    log = tmp_path_factory.mktemp("citu") / "log"
    with serving(
        log, model=model, DATABASE_URL=make_database(GAUGES), PING_INTERVAL_S="0.2"
    ) as citu:
        yield citu


@pytest.fixture(scope="module")
def ports(citu: Citu, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """Where nginx listens, by the version of HTTP it speaks to the service."""
    folder = tmp_path_factory.mktemp("nginx")
    folder.chmod(0o755)
    old, new = free_port(), free_port()
    configuration = CONFIGURATION.format(
        folder=folder, old=old, new=new, citu=citu.port, timeout=PROXY_READ_S
    )
    (folder / "nginx.conf").write_text(configuration)
    command = [
        "nginx",
        "-p",
        str(folder),
        "-c",
        str(folder / "nginx.conf"),
        "-e",
        str(folder / "error.log"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _listens(new) or _ended(process, folder))
        yield {"1.0": old, "1.1": new}
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


@pytest.fixture(params=["1.0", "1.1"])
def port(request: pytest.FixtureRequest, ports: dict[str, int]) -> int:
    return ports[request.param]


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _ended(process: "subprocess.Popen[bytes]", folder: Path) -> bool:
    assert process.poll() is None, (folder / "error.log").read_text()
    return False


def next_frame(stream: Stream) -> str:
    while not (block := stream.next_block()).startswith("id:"):
        assert block, "the stream has ended"
    return block


def rest(stream: Stream) -> list[str]:
    found = []
    while block := stream.next_block():
        found += [block] if block.startswith("id:") else []
    return found


def data_of(block: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(block.partition("data: ")[2])["data"]
    return found


def run_of(block: str) -> str:
    return block.partition("id: ")[2].partition(":")[0]


def test_each_frame_arrives_before_the_next_is_made(
    port: int, citu: Citu, model: OpenAiServer
) -> None:
    gates = [Gate(), Gate(), Gate()]
    pieces: list[str | float | bytes | Gate] = [
        "One",
        gates[0],
        " two",
        gates[1],
        " three",
        gates[2],
        ".",
    ]
    with scripted(model, Reply(pieces=pieces)), Stream(port, STREAM, CHAT) as stream:
        assert stream.status == 200
        seen: list[str] = []
        for gate, said in zip(gates, ["One", "One two", "One two three"], strict=True):
            while "".join(data_of(block).get("text", "") for block in seen) != said:
                seen.append(next_frame(stream))
            assert gate.reached.wait(60)
            gate.open()
        seen += rest(stream)
    with Stream(citu.port, f"{RUNS}/{run_of(seen[0])}/events", None, method="GET") as straight:
        assert rest(straight) == seen


def test_a_silent_stream_is_kept_open(port: int, model: OpenAiServer) -> None:
    gate = Gate()
    with scripted(model, Reply("hello", gate=gate)), Stream(port, STREAM, CHAT) as stream:
        assert gate.reached.wait(60)
        pings = 0
        while pings < 2 * PROXY_READ_S / 0.2:  # twice as long as nginx waits for a byte
            block = stream.next_block()
            assert block, "nginx has cut it off"
            pings += block == ": ping"
        gate.open()
        assert data_of(rest(stream)[-1])["type"] == "completed"


def test_compressed_frames_arrive_one_by_one_too(port: int, model: OpenAiServer) -> None:
    gate = Gate()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with scripted(model, Reply(pieces=["One", gate, " two."])):
        connection.request("POST", STREAM, json.dumps(CHAT), {"Accept-Encoding": "gzip"})
        response = connection.getresponse()
        unpack = (
            zlib.decompressobj(wbits=31) if response.headers["Content-Encoding"] == "gzip" else None
        )
        text = b""
        while b"One" not in text:
            data = response.read1(65536)
            assert data, text
            text += unpack.decompress(data) if unpack else data
        assert gate.reached.wait(60)
        gate.open()
        data = response.read()
        text += unpack.decompress(data) if unpack else data
    connection.close()
    assert b'"completed"' in text


def test_a_sync_answer_may_be_compressed(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", SYNC, json.dumps(CHAT), {"Accept-Encoding": "gzip"})
    response = connection.getresponse()
    assert response.headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(response.read()))["data"]["response"] == "hello"
    connection.close()


@pytest.mark.parametrize("path", [SYNC, STREAM])
def test_a_client_that_leaves_nginx_stops_the_model(
    path: str, port: int, model: OpenAiServer
) -> None:
    gate = Gate()
    with scripted(model, Reply("hello", gate=gate)):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("POST", path, json.dumps(CHAT))
        assert gate.reached.wait(60)
        connection.close()
        assert model.requests[-1].disconnected.wait(60)


def test_a_stream_is_resumed_through_it(port: int, model: OpenAiServer) -> None:
    gate = Gate()
    with scripted(model, Reply(pieces=["One", gate, " two."])):
        with Stream(port, STREAM, {**CHAT, "on_disconnect": "continue"}) as stream:
            seen = [next_frame(stream) for _ in range(2)]
            assert gate.reached.wait(60)
        run_id = run_of(seen[0])
        last_id = {"Last-Event-ID": f"{run_id}:2"}
        with Stream(port, f"{RUNS}/{run_id}/events", None, method="GET", **last_id) as stream:
            gate.open()
            later = rest(stream)
    with Stream(port, f"{RUNS}/{run_id}/events", None, method="GET") as stream:
        assert rest(stream) == seen + later


def test_a_client_that_reads_byte_by_byte_reads_the_same(port: int, model: OpenAiServer) -> None:
    body = json.dumps(CHAT).encode()
    request = f"POST {STREAM} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(request)
        text = b""
        while byte := client.recv(1):
            text += byte
    blocks = [
        block
        for block in text.partition(b"\r\n\r\n")[2].decode().split("\n\n")
        if block.startswith("id:")
    ]
    with Stream(port, f"{RUNS}/{run_of(blocks[0])}/events", None, method="GET") as stream:
        assert rest(stream) == blocks


def test_a_websocket_goes_through(ports: dict[str, int], model: OpenAiServer) -> None:
    gate, port = Gate(), ports["1.1"]
    replies = (Reply("SELECT n FROM gauge"), Reply(pieces=["One", gate, " two."]))
    with scripted(model, *replies), chatting(port, origin=f"http://127.0.0.1:{port}") as chat:
        chat.send("how many gauges")
        frames = [chat.frame()]
        while "One" not in texts(frames):
            frames.append(chat.frame())
        assert gate.reached.wait(60)
        gate.open()
        assert "One two." in texts(frames + chat.frames())
    with pytest.raises(InvalidStatus) as refused, chatting(port, origin="https://evil.example"):
        pass
    assert refused.value.response.status_code == 403


def test_errors_come_through_unchanged(port: int, citu: Citu) -> None:
    for status, (path, body) in {
        400: (STREAM, {"question": ""}),
        404: (f"{RUNS}/run_00/cancel", {}),
    }.items():
        found = post_json(port, path, body)
        assert found[0] == status == post_json(citu.port, path, body)[0]
        assert found[1]["data"]["request_id"]
    assert get_json(port, "/health")[0] == 200
