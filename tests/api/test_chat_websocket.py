"""Questions of Vanna's clients over a WebSocket: a real service and client library, PostgreSQL, a
scripted model.
"""

import asyncio
import json
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode

from api.access.key_file import KeyFile
from app_config import Settings
from common.runtime import run
from tests.support.chat_socket import PATH, Chat, chatting, kinds, texts
from tests.support.effort import tries
from tests.support.http_stream import Stream, get_json, post_json
from tests.support.live import (
    GONE_S,
    Citu,
    Watch,
    descriptor_count,
    eventually,
    impatient,
    serving,
    serving_by_gunicorn,
    thread_count,
)
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import ENDLESS, ROWS, scripted
from tests.support.wsgi_server import serving_app
from unified_api import create_app

ASK = "how many gauges"
SSE, POLL = "/api/vanna/v2/chat_sse", "/api/vanna/v2/chat_poll"


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@pytest.fixture(scope="module")
def citu(
    model: OpenAiServer, database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Citu]:
    """A service with one place for questions."""
    log = tmp_path_factory.mktemp("citu") / "log"
    with serving(
        log, model=model, DATABASE_URL=database, MAX_STREAMS="1", ROUTING_MODE="database_direct"
    ) as citu:
        yield citu


# ------------------------------------------------------------------------------
# answers


def test_many_questions_over_one_socket(citu: Citu, model: OpenAiServer) -> None:
    with chatting(citu.port) as chat:
        greeting = chat.ask("", metadata={"starter_ui_request": True})
        assert "button_group" in kinds(greeting)
        for number in range(3):
            with scripted(model, ROWS, Reply(f"There are three gauges, {number}.")):
                frames = chat.ask(ASK, conversation_id="conv_1", request_id=f"request {number}")
            assert f"There are three gauges, {number}." in texts(frames)
            assert "dataframe" in kinds(frames)
            assert {(frame["conversation_id"], frame["request_id"]) for frame in frames} == {
                ("conv_1", f"request {number}")
            }


def test_the_completion_is_where_both_kinds_of_clients_look_for_it(citu: Citu) -> None:
    with chatting(citu.port) as chat:
        *before, last = chat.ask("", conversation_id="c", request_id="r")
    assert (last["type"], last["data"], last["rich"]["type"]) == (
        "completion",
        {"status": "done"},
        "completion",
    )
    assert (last["conversation_id"], last["request_id"]) == ("c", "r")
    assert all("type" not in frame and frame["rich"]["type"] != "completion" for frame in before)


def test_the_chunks_are_those_of_the_stream(citu: Citu, model: OpenAiServer) -> None:
    with scripted(model, ROWS, Reply("three")), Stream(citu.port, SSE, {"message": ASK}) as stream:
        blocks = list(iter(stream.next_block, ""))
    streamed = [
        json.loads(block.removeprefix("data: ")) for block in blocks if block.startswith("data: {")
    ]
    with scripted(model, ROWS, Reply("three")), chatting(citu.port) as chat:
        frames = chat.ask(ASK)[:-1]
    assert [set(frame) for frame in frames] == [set(chunk) for chunk in streamed]
    assert texts(frames) == texts(streamed)
    assert Counter(kinds(frames)) == Counter(kinds(streamed))


def test_pieces_come_while_the_model_writes(citu: Citu, model: OpenAiServer) -> None:
    gate = Gate()
    with (
        scripted(model, ROWS, Reply(pieces=["Three", gate, " gauges."])),
        chatting(citu.port) as chat,
    ):
        chat.send(ASK)
        frames = [chat.frame()]
        while "Three" not in texts(frames):
            frames.append(chat.frame())
        assert gate.reached.wait(60)
        gate.open()
        assert "Three gauges." in texts(frames + chat.frames())


@pytest.mark.parametrize(
    "message",
    ["nonsense", "[]", "5", "{}", '{"message": 5}', "[" * 60000, '{"message": "\\ud800"}'],
)
def test_what_is_no_request_is_one_error_frame_and_the_socket_stays(
    message: str, citu: Citu
) -> None:
    with chatting(citu.port) as chat:
        chat.connection.send(message)
        error = chat.frame()
        assert (error["type"], error["error"]["error_type"]) == ("error", "invalid_request")
        assert error["data"]["message"] == error["error"]["error"]
        assert error["data"]["message"] in error["rich"]["data"]["content"]
        assert kinds(chat.ask(""))[-1] == "completion"


def test_a_failed_question_shows_its_error_and_completes(citu: Citu, model: OpenAiServer) -> None:
    with scripted(model, Reply("DROP TABLE gauge")), chatting(citu.port) as chat:
        frames = chat.ask(ASK)
    assert [frame["error"]["error_type"] for frame in frames if "error" in frame] == [
        "forbidden_keywords"
    ]
    assert any(text.startswith("❌") for text in texts(frames))


def test_a_question_takes_a_place_and_an_open_socket_takes_none(
    citu: Citu, model: OpenAiServer
) -> None:
    gate = Gate()
    with (
        ExitStack() as sockets,
        scripted(model, Reply("SELECT n FROM gauge", gate=gate), Reply("three")),
    ):
        first, second = (sockets.enter_context(chatting(citu.port)) for _ in range(2))
        first.send(ASK)
        assert gate.reached.wait(60)
        refused = second.ask(ASK)
        assert (refused[0]["type"], refused[0]["error"]["error_type"]) == (
            "error",
            "too_many_streams",
        )
        gate.open()
        assert "dataframe" in kinds(first.frames())
        with scripted(model, ROWS, Reply("three")):
            assert "dataframe" in kinds(second.ask(ASK))


# ------------------------------------------------------------------------------
# leaving


def test_a_client_that_leaves_stops_the_sql(citu: Citu, watch: Watch, model: OpenAiServer) -> None:
    with scripted(model, ENDLESS), chatting(citu.port) as chat:
        chat.send(ASK)
        eventually(lambda: watch.running("endless"))
    eventually(lambda: not watch.running("endless"), GONE_S)
    _has_place(citu, model)


def test_a_client_that_leaves_stops_the_model(citu: Citu, model: OpenAiServer) -> None:
    gate = Gate()
    with scripted(model, Reply("SELECT 1", gate=gate)), chatting(citu.port) as chat:
        chat.send(ASK)
        assert gate.reached.wait(60)
    assert model.requests[-1].disconnected.wait(GONE_S)
    _has_place(citu, model)


def _has_place(citu: Citu, model: OpenAiServer) -> None:
    with scripted(model, *[ROWS, Reply("three")] * 20), chatting(citu.port) as chat:
        eventually(lambda: "dataframe" in kinds(chat.ask(ASK)), GONE_S)


def test_a_named_request_goes_on_for_a_while_and_is_joined(citu: Citu, model: OpenAiServer) -> None:
    gate, first = Gate(), len(model.requests)
    named = {"conversation_id": "conv_2", "request_id": "named"}
    with scripted(model, ROWS, Reply(pieces=["Three", gate, "."])):
        with chatting(citu.port) as chat:
            chat.send(ASK, **named)
            assert gate.reached.wait(60)
        polled: list[Any] = []
        poll = threading.Thread(
            target=lambda: polled.append(
                eventually(lambda: _joined(citu, {"message": ASK, **named}))
            )
        )
        poll.start()
        gate.open()
        poll.join()
    assert "Three." in texts(polled[0]["chunks"])
    assert len(model.requests) - first == 2, "the question was answered once"


def _joined(citu: Citu, body: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to a poll, once the slot of the run is free."""
    status, answer = post_json(citu.port, POLL, body)
    return answer if status == 200 else None


# ------------------------------------------------------------------------------
# admission


class _Service:
    """A service in this process, whose database is nowhere: questions are let in or refused before
    they need it.
    """

    def __init__(self, folder: Path) -> None:
        self.keys = KeyFile(folder / "api_keys.json")
        nowhere = "postgresql://nobody@127.0.0.1:9/none"
        self.settings = Settings(
            data_dir=str(folder), audit_log="off", database_url=nowhere, app_database_url=nowhere
        )

    @contextmanager
    def on_a_port(self, **changes: Any) -> Iterator[int]:
        app = create_app(replace(self.settings, **changes))
        try:
            with serving_app(app) as port:
                yield port
        finally:
            run(_closed(app), timeout_s=10)


async def _closed(app: Any) -> None:
    await app.extensions["citu"].aclose()


@pytest.fixture
def service(tmp_path: Path) -> _Service:
    return _Service(tmp_path)


def status_of(port: int, **options: Any) -> int:
    """The status with which a handshake is answered."""
    try:
        with chatting(port, **options):
            return 101
    except InvalidStatus as refused:
        envelope = json.loads(refused.response.body or b"")
        assert envelope["code"] == refused.response.status_code
        return refused.response.status_code


def error_of(chat: Chat, message: str = ASK) -> str:
    """The type of the error that a question is answered with."""
    return next(
        str(frame["error"]["error_type"]) for frame in chat.ask(message) if "error" in frame
    )


def test_a_handshake_needs_a_key_where_there_are_keys(service: _Service) -> None:
    text, key = service.keys.create("alice")
    with service.on_a_port() as port:
        assert status_of(port) == 401
        assert status_of(port, Authorization="Bearer citu_key_wrong") == 401
        assert status_of(port, subprotocols=["citu.chat", "citu.bearer.citu_key_wrong"]) == 401
        assert status_of(port, Authorization=f"Bearer {text}") == 101
        assert status_of(port, X_API_Key=text) == 101
        with chatting(port, subprotocols=["citu.chat", f"citu.bearer.{text}"]) as chat:
            assert chat.connection.subprotocol == "citu.chat"
            assert error_of(chat) == "database_unavailable"
            service.keys.revoke(key.key_id)
            assert error_of(chat) == "unauthorized"
        assert get_json(port, f"{PATH}?api_key={text}")[0] == 401


def test_keys_made_later_close_what_was_open(service: _Service) -> None:
    with service.on_a_port() as port, chatting(port) as chat:
        assert error_of(chat) == "database_unavailable"
        service.keys.create("alice")
        assert error_of(chat) == "unauthorized"


def test_pages_of_other_sites_open_no_socket(service: _Service) -> None:
    with service.on_a_port(cors_origins="https://app.example.com") as port:
        for is_with_key in (False, True):
            given = (
                {"Authorization": f"Bearer {service.keys.create('alice')[0]}"}
                if is_with_key
                else {}
            )
            assert status_of(port, origin=f"http://127.0.0.1:{port}", **given) == 101
            assert status_of(port, origin="https://app.example.com", **given) == 101
            for foreign in (
                "https://evil.example",
                "null",
                f"http://127.0.0.1:{port}.evil.example",
            ):
                assert status_of(port, origin=foreign, **given) == 403
            assert status_of(port, Sec_Fetch_Site="cross-site", **given) == 403


def test_questions_are_counted_and_sockets_are_not(service: _Service) -> None:
    with service.on_a_port(rate_limit="3/hour") as port:
        assert [status_of(port) for _ in range(4)] == [101] * 4
        with chatting(port) as chat:
            assert "error" not in chat.ask("")[0], "its examples count like those of /examples"
            assert [error_of(chat) for _ in range(2)] == ["database_unavailable"] * 2
        with chatting(port) as chat:
            refused = chat.ask(ASK)
            assert (refused[0]["type"], refused[0]["error"]["error_type"]) == (
                "error",
                "rate_limited",
            )
            assert refused[0]["error"]["retry_after_s"] > 3000
            assert kinds(refused)[-1] == "completion"


def test_only_so_many_sockets_are_open_at_once(service: _Service) -> None:
    for most in (1, 2):  # half of them for one caller
        with service.on_a_port(max_sockets=most) as port:
            with chatting(port):
                assert status_of(port) == 503
            eventually(partial(_is_let_in, port))


def _is_let_in(port: int) -> bool:
    return status_of(port) == 101


def test_messages_may_be_as_long_as_bodies(service: _Service) -> None:
    with service.on_a_port(max_body_bytes=1000) as port, chatting(port) as chat:
        chat.connection.send("x" * 1001)
        with pytest.raises(ConnectionClosed) as closed:
            chat.frame()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


@pytest.fixture(scope="module")
def unanswering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a service in this process, whose questions all fail."""
    with _Service(tmp_path_factory.mktemp("unanswering")).on_a_port() as port:
        yield port


_NAMES = st.sampled_from(
    ["message", "conversation_id", "request_id", "metadata", "user_id", "starter_ui_request"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.dictionaries(_NAMES | st.text(max_size=5), parts, max_size=4)
    ),
)
_MESSAGES = st.dictionaries(_NAMES, _JSON, max_size=5) | _JSON
_TEXTS = _MESSAGES.map(json.dumps) | st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


@given(sent=st.lists(_TEXTS, min_size=1, max_size=4))
@settings(max_examples=tries(10))
def test_whatever_is_sent_the_next_request_is_answered(sent: list[str], unanswering: int) -> None:
    with chatting(unanswering) as chat:
        for message in sent:
            chat.connection.send(message)
        chat.send("", request_id="the last")
        found = chat.frames()
        while found[-1]["request_id"] != "the last":
            found += chat.frames()
    assert all(frame["rich"]["id"] and frame["rich"]["lifecycle"] for frame in found)


# ------------------------------------------------------------------------------
# under its own server

HANDSHAKE = (
    f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: "
    "websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
).encode()
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_a_connection_that_was_kept_open_becomes_a_socket(citu: Citu) -> None:
    with socket.create_connection(("127.0.0.1", citu.port), 10) as client:
        client.sendall(HEALTH)
        assert _until(client, b'"ok"').startswith(b"HTTP/1.1 200 ")
        client.sendall(HANDSHAKE)
        assert b" 101 " in _until(client, b"\r\n\r\n")
        client.sendall(Frame(Opcode.TEXT, b'{"message": ""}').serialize(mask=True))
        _until(client, b'"type":"completion"')


def test_what_follows_a_handshake_is_no_request(citu: Citu) -> None:
    """Neither answered nor carried out: the connection is a socket now."""
    with socket.create_connection(("127.0.0.1", citu.port), 10) as client:
        client.sendall(HANDSHAKE + b"GET /seen-by-nobody HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _until(client, b"\r\n\r\n")
        client.sendall(Frame(Opcode.CLOSE, b"").serialize(mask=True))
        assert client.recv(100) == b"\x88\x00"
    assert get_json(citu.port, "/health")[0] == 200
    assert "seen-by-nobody" not in citu.log.read_text()


def _until(client: socket.socket, end: bytes) -> bytes:
    found = b""
    while end not in found:
        data = client.recv(65536)
        assert data, found
        found += data
    return found


# ------------------------------------------------------------------------------
# the end

SOCKETS = 100
POOL = 2 + 16  # threads for two questions, and spare ones
OTHERS = 10  # the event loop's, its executor's, the server's own; far from one for each socket


def test_a_hundred_sockets_hold_no_threads_and_hear_of_the_end(
    database: str, watch: Watch, model: OpenAiServer, tmp_path: Path
) -> None:
    with serving_by_gunicorn(
        impatient(tmp_path, drain_s=1.5),
        tmp_path / "log",
        model=model,
        DATABASE_URL=database,
        MAX_STREAMS="2",
        CALLER_SHARE="1",
        ROUTING_MODE="database_direct",
    ) as citu:
        worker = citu.worker()
        with scripted(model, ENDLESS, Reply("SELECT n FROM gated"), Reply("three")):
            cut_off, finished, *idle = asyncio.run(_all_open_then_ended(citu, watch))
        assert {code for code, _ in (cut_off, finished, *idle)} == {1001}
        assert [frames for _, frames in idle] == [[]] * (SOCKETS - 2)
        assert [frame["error"]["error_type"] for frame in cut_off[1] if "error" in frame] == [
            "cancelled"
        ]
        assert "dataframe" in kinds(finished[1]), "there was time for it"
        assert {frames[-1]["type"] for _, frames in (cut_off, finished)} == {"completion"}
        eventually(lambda: not watch.running("endless"), GONE_S)
        assert citu.process.wait(GONE_S) == 0
        assert "SIGKILL" not in citu.log.read_text(), "the worker ended by itself"
        assert not Path(f"/proc/{worker}").exists()


End = tuple[int | None, list[dict[str, Any]]]
"""The code a socket was closed with, and the frames before."""


async def _all_open_then_ended(citu: Citu, watch: Watch) -> list[End]:
    """Asks over two of the sockets, and stops the service; one of the questions can be answered
    from then on.
    """
    worker = citu.worker()
    async with AsyncExitStack() as sockets:
        first = await sockets.enter_async_context(_opened(citu.port))
        others = [sockets.enter_async_context(_opened(citu.port)) for _ in range(SOCKETS - 1)]
        clients = [first, *await asyncio.gather(*others)]
        assert descriptor_count(worker) >= SOCKETS
        assert thread_count(worker) <= POOL + OTHERS
        watch.close_gate()
        for client, view in zip(clients, ("endless", "gated"), strict=False):
            await client.send(json.dumps({"message": ASK}))
            await asyncio.to_thread(eventually, lambda view=view: watch.running(view))
        ends = [asyncio.create_task(_end_of(client)) for client in clients]
        citu.signal(signal.SIGTERM)
        await ends[-1]
        watch.open_gate()
        return await asyncio.gather(*ends)


def _opened(port: int) -> connect:
    return connect(f"ws://127.0.0.1:{port}{PATH}", compression=None, open_timeout=30)


async def _end_of(client: ClientConnection) -> End:
    frames = []
    with suppress(ConnectionClosed):
        while True:
            frames.append(json.loads(await client.recv()))
    return client.close_code, frames
