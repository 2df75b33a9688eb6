"""One caller at work does not keep the others from answers: connections, model calls, questions and
sockets, over HTTP, with real PostgreSQL.

Callers' statements and model calls are held by gates, so the others' answers come while they are at
work, however slow the machine is.
"""

import json
import select
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from api.access.key_file import KeyFile
from tests.support.chat_socket import chatting
from tests.support.http_stream import Stream, get_json, post_json
from tests.support.live import GAUGES, GONE_S, Citu, Watch, eventually, serving
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import CHAT, ROWS, STREAM, SYNC, scripted

RUN = "/api/v0/sql/run"
STREAMS, POOL, MODEL_CALLS = 6, 4, 4
# Its first 300 rows, more than an answer has, come at once.
SERIES = """
CREATE VIEW slow_series AS
    SELECT n FROM generate_series(1, 1000) AS n WHERE n <= 300 OR pg_sleep(600) IS NOT NULL;
"""
Headers = dict[str, str]


@pytest.fixture(scope="module")
def database(make_database: Callable[[str], str]) -> str:
    return make_database(GAUGES + SERIES)


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@contextmanager
def _citu(folder: Path, database: str, model: OpenAiServer, **changes: str) -> Iterator[Citu]:
    settings = {
        "DATABASE_URL": database,
        "ALLOW_ANONYMOUS": "true",
        "TRUSTED_PROXIES": "1",
        "MAX_STREAMS": str(STREAMS),
        "MAX_SOCKETS": "2",
        "DATABASE_POOL_SIZE": str(POOL),
        "LLM_MAX_IN_FLIGHT": str(MODEL_CALLS),
        "ENABLE_RESULT_SUMMARY": "false",
        "LLM_MAX_RETRIES": "0",
        **changes,
    }
    with serving(folder / "log", model=model, **settings) as citu:
        yield citu


@pytest.fixture(scope="module")
def citu(
    database: str, model: OpenAiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Citu]:
    with _citu(tmp_path_factory.mktemp("fair"), database, model) as citu:
        yield citu


def by(address: str) -> Headers:
    """Headers of a request that came through the trusted proxy."""
    return {"X-Forwarded-For": address}


GREEDY = [by(f"198.51.100.{number}, 192.0.2.1") for number in range(100)]
"""One caller who claims to be many: only the last address is the proxy's word."""
OTHER = by("192.0.2.2")


def send(
    port: int, path: str, body: dict[str, Any], headers: Headers, *, method: str = "POST"
) -> socket.socket:
    """Asks without waiting for the answer."""
    data = json.dumps(body).encode() if body else b""
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(
        f"{method} {path} HTTP/1.1\r\nHost: citu\r\n{head}"
        f"Content-Length: {len(data)}\r\n\r\n".encode()
        + data
    )
    return client


def answer(client: socket.socket) -> tuple[int, dict[str, Any]]:
    """Status and body of a short answer."""
    found = b""
    while b"\r\n\r\n" not in found or not found.rstrip().endswith(b"}"):
        piece = client.recv(65536)
        assert piece, found
        found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body[body.index(b"{") :])


@contextmanager
def gated(watch: Watch) -> Iterator[None]:
    """Statements that read `gated` wait in the block."""
    watch.close_gate()
    try:
        yield
    finally:
        watch.open_gate()


# ------------------------------------------------------------------------------
# shares


def test_a_caller_with_a_hundred_statements_leaves_connections_and_questions_to_others(
    citu: Citu, watch: Watch
) -> None:
    with gated(watch), ExitStack() as open_sockets:
        held = [send(citu.port, RUN, {"sql": "SELECT n FROM gated"}, GREEDY[0])]
        open_sockets.enter_context(held[0])
        eventually(lambda: watch.running("gated"))
        clients = [
            open_sockets.enter_context(
                send(citu.port, RUN, {"sql": "SELECT n FROM gated"}, GREEDY[number])
            )
            for number in range(1, 100)
        ]
        refusals = _first_answers(clients, 100 - STREAMS // 2)
        assert {(code, data["data"]["error_type"]) for code, data in refusals} == {
            (503, "too_many_streams")
        }
        assert all(data["data"]["retry_after_s"] for _, data in refusals)
        assert {data["data"]["error"] for _, data in refusals} == {
            f"You have {STREAMS // 2} questions running, as many as one caller may; "
            "try again when one has ended."
        }
        eventually(lambda: len(watch.running("gated")) == POOL // 2)
        for _ in range(5):
            code, body = post_json(citu.port, RUN, {"sql": "SELECT 1 AS n"}, **OTHER)
            assert (code, body["data"]["query_result"]["rows"]) == (200, [[1]])
        assert len(watch.running("gated")) == POOL // 2, "the others are still at work"
        status, ready = get_json(citu.port, "/ready")
        assert (status, ready["data"]["database"]["status"]) == (200, "ok")
    eventually(lambda: post_json(citu.port, RUN, {"sql": "SELECT 1"}, **GREEDY[7])[0] == 200)


def _first_answers(clients: list[socket.socket], count: int) -> list[tuple[int, dict[str, Any]]]:
    """The first answers that come, whichever clients get them."""
    found: list[tuple[int, dict[str, Any]]] = []
    waiting = list(clients)
    while len(found) < count:
        ready, _, _ = select.select(waiting, [], [], 20)
        assert ready, f"{len(found)} answers came"
        for client in ready:
            waiting.remove(client)
            found.append(answer(client))
    return found


def test_a_caller_with_slow_model_calls_leaves_some_to_others(
    database: str, model: OpenAiServer, tmp_path: Path
) -> None:
    gate = Gate()
    with (
        _citu(tmp_path, database, model, LLM_MAX_IN_FLIGHT="2") as citu,
        scripted(model, Reply("slow", gate=gate)),
        ExitStack() as open_sockets,
    ):
        for number in range(STREAMS // 2):
            open_sockets.enter_context(send(citu.port, SYNC, CHAT, GREEDY[number]))
            assert gate.reached.wait(60)
        before = len(model.requests)
        code, body = post_json(citu.port, SYNC, CHAT, **OTHER)
        assert (code, body["data"]["response"]) == (200, "hello")
        assert len(model.requests) == before + 1, "the greedy caller's next calls wait"
        gate.open()


def test_streams_and_sockets_have_shares(citu: Citu, model: OpenAiServer) -> None:
    gate = Gate()
    with scripted(model, *[Reply("slow", gate=gate)] * (STREAMS // 2)), ExitStack() as streams:
        for number in range(STREAMS // 2):
            stream = streams.enter_context(Stream(citu.port, STREAM, CHAT, **GREEDY[number]))
            assert stream.status == 200
        refused = Stream(citu.port, STREAM, CHAT, **GREEDY[50])
        assert (refused.status, refused.headers["retry-after"]) == (503, "2")
        refused.close()
        with chatting(citu.port, X_Forwarded_For=GREEDY[51]["X-Forwarded-For"]) as chat:
            with (
                pytest.raises(Exception, match="503"),
                chatting(citu.port, X_Forwarded_For=GREEDY[52]["X-Forwarded-For"]),
            ):
                pass
            frames = chat.ask("hello")
            assert frames[0]["error"]["error_type"] == "too_many_streams", "a message is a question"
            with chatting(citu.port, X_Forwarded_For="192.0.2.2") as others_chat:
                assert "error" not in others_chat.ask("")[0]
        gate.open()


def test_a_key_is_one_caller_whichever_users_it_names(
    database: str, model: OpenAiServer, watch: Watch, tmp_path: Path
) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    app = {"X-API-Key": keys.create("app", acts_for_others=True)[0]}
    ann = {"X-API-Key": keys.create("ann")[0]}
    with (
        _citu(tmp_path, database, model, API_KEYS_FILE=str(tmp_path / "keys.json")) as citu,
        gated(watch),
        ExitStack() as clients,
    ):
        for number in range(STREAMS // 2):
            body = {"sql": "SELECT n FROM gated", "user_id": f"user_{number}"}
            clients.enter_context(send(citu.port, RUN, body, app | by(f"192.0.2.{number}")))
        eventually(lambda: len(watch.running("gated")) == POOL // 2)
        one_more = {"sql": "SELECT 1", "user_id": "nobody_yet"}
        code, refused = eventually(
            lambda: next(
                (
                    found
                    for found in [post_json(citu.port, RUN, one_more, **app)]
                    if found[0] == 503
                ),
                None,
            )
        )
        assert refused["data"]["error_type"] == "too_many_streams"
        assert post_json(citu.port, RUN, {"sql": "SELECT 1"}, **ann)[0] == 200


def test_one_slot_of_everything_serves_everybody_in_turn(
    database: str, model: OpenAiServer, watch: Watch, tmp_path: Path
) -> None:
    single = {"DATABASE_POOL_SIZE": "1", "LLM_MAX_IN_FLIGHT": "1"}
    with _citu(tmp_path, database, model, **single) as citu, ExitStack() as clients:
        with scripted(model, ROWS):
            question = {"question": "how many gauges", "routing_mode": "database_direct"}
            assert post_json(citu.port, SYNC, question, **OTHER)[0] == 200
        with gated(watch):
            waiting = [
                clients.enter_context(
                    send(citu.port, RUN, {"sql": "SELECT n FROM gated"}, GREEDY[number])
                )
                for number in range(2)
            ]
            eventually(lambda: watch.running("gated"))
            waiting.append(clients.enter_context(send(citu.port, RUN, {"sql": "SELECT 1"}, OTHER)))
        assert [answer(client)[0] for client in waiting] == [200] * 3


# ------------------------------------------------------------------------------
# clients that leave


def _answered(citu: Citu, model: OpenAiServer, sql: str) -> str:
    """The id of a run whose answer is this SQL's."""
    question = {"question": "how many gauges", "routing_mode": "database_direct"}
    with scripted(model, Reply(sql)):
        code, body = post_json(citu.port, SYNC, question, **OTHER)
    assert code == 200, body
    return str(body["data"]["run_id"])


WAITS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "run": ("POST", RUN, {"sql": "SELECT n FROM gated"}),
    "analyze": ("POST", "/api/v0/runs/{run_id}/analyze", {"what": ["describe"]}),
    "export's first rows": ("GET", "/api/v0/runs/{run_id}/export", {}),
    "poll": ("POST", "/api/vanna/v2/chat_poll", {"message": "how many gauges"}),
    "sse": ("POST", "/api/vanna/v2/chat_sse", {"message": "how many gauges"}),
}


@pytest.mark.parametrize("way", WAITS)
def test_who_leaves_ends_the_sql(way: str, citu: Citu, watch: Watch, model: OpenAiServer) -> None:
    method, path, body = WAITS[way]
    run_id = _answered(citu, model, "SELECT n FROM gated")
    with gated(watch), scripted(model, Reply("SELECT n FROM gated")):
        with send(citu.port, path.format(run_id=run_id), body, OTHER, method=method):
            eventually(lambda: watch.running("gated"))
        eventually(lambda: not watch.running("gated"), GONE_S)


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        *((kind, "at once") for kind in ("csv", "json", "xlsx")),
        ("csv", "by a reset"),
        ("csv", "in two steps"),
    ],
)
def test_who_leaves_an_export_ends_its_sql_while_rows_are_computed(
    kind: str, way: str, citu: Citu, watch: Watch, model: OpenAiServer
) -> None:
    run_id = _answered(citu, model, "SELECT n FROM slow_series")
    path = f"/api/v0/runs/{run_id}/export?format={kind}"
    with send(citu.port, path, {}, OTHER, method="GET") as client:
        eventually(lambda: watch.running("FROM citu"))
        if way == "by a reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        received = _all_that_came(client)
        if way == "in two steps":
            client.shutdown(socket.SHUT_WR)
            client.settimeout(10)
            assert client.recv(100), "a byte of the file asks whether somebody reads"
            assert watch.running("FROM citu")
        assert received.startswith(b"HTTP/1.1 200")
    eventually(lambda: not watch.running("FROM citu"), GONE_S)


def _all_that_came(client: socket.socket) -> bytes:
    """What waits to be read, so that closing the socket sends nothing but its end."""
    client.settimeout(0.2)
    found = b""
    with suppress(TimeoutError):
        while piece := client.recv(65536):
            found += piece
    return found
