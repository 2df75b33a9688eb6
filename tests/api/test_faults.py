"""Faults of PostgreSQL, the model and clients: each gets its error, and the service recovers by
itself.

Over real sockets: the service as a process, a PostgreSQL server that is stopped and killed, a
scripted model.
"""

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import parse_dsn

from common.errors import DatabaseUnavailable
from common.values import Catalog
from databases.catalog.catalog import CatalogReader, Knowledge
from databases.demo.reader import READER, create_reader, grant_reading
from databases.embedded.embedded_server import EmbeddedServer
from guard import BUILTIN
from postgres.addresses import with_addresses
from postgres.connecting import PostgresLimits, connect
from postgres.connection_errors import UNREACHABLE
from tests.support.folders import reachable_folder
from tests.support.http_stream import Stream, get_json, post_json
from tests.support.live import (
    GAUGES,
    START_TIMEOUT_S,
    Citu,
    Watch,
    children,
    eventually,
    impatient,
    is_alive,
    serving,
    serving_by_gunicorn,
)
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.postgres_wire import Wire
from tests.support.questions import (
    ASK,
    CHAT,
    ENDLESS,
    ROWS,
    STREAM,
    SYNC,
    error_of,
    last,
    post,
    scripted,
)

UNANSWERABLE = {**ASK, "question": "why is the sky blue"}
COUNT = Reply("SELECT count(*) AS n FROM gauge")
DATABASE_DOWN = (503, "database_unavailable", True)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[EmbeddedServer]:
    """A PostgreSQL server that the tests may break."""
    server = EmbeddedServer.acquire(folder / "var")
    with closing(psycopg2.connect(server.admin_url)) as admin:
        admin.autocommit = True
        with admin.cursor() as cursor:
            cursor.execute("CREATE DATABASE gauges")
    with closing(psycopg2.connect(server.url("gauges", "postgres"))) as admin:
        admin.autocommit = True
        create_reader(admin)
        with admin.cursor() as cursor:
            cursor.execute(GAUGES)
        grant_reading(admin)
    yield server
    server.ensure_running()
    server.release()


@pytest.fixture(scope="module")
def wire(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with Wire(server.url("gauges", READER), tmp_path_factory.mktemp("wire")) as wire:
        yield wire


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@pytest.fixture(scope="module")
def service(
    model: OpenAiServer, wire: Wire, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Citu]:
    """A service with one connection and short time limits."""
    settings = {
        "DATABASE_URL": wire.url,
        "DATABASE_POOL_SIZE": "1",
        "DATABASE_POOL_WAIT_S": "0.3",
        "STATEMENT_TIMEOUT_S": "1.5",
        "LLM_TIMEOUT_S": "2.5",
        "LLM_MAX_RETRIES": "1",
        "PING_INTERVAL_S": "0.1",
    }
    with serving(tmp_path_factory.mktemp("service") / "log", model=model, **settings) as citu:
        # The first questions take long; what the model says later than LLM_TIMEOUT_S is not heard.
        eventually(lambda: _answers(citu, model), START_TIMEOUT_S)
        eventually(
            lambda: last(citu.port, SYNC, CHAT)["data"].get("response") == "hello", START_TIMEOUT_S
        )
        yield citu


@pytest.fixture
def watch(server: EmbeddedServer) -> Iterator[Watch]:
    with closing(Watch(server.admin_url, server.url("gauges", READER))) as watch:
        yield watch


@pytest.fixture
def citu(service: Citu, server: EmbeddedServer, wire: Wire, model: OpenAiServer) -> Iterator[Citu]:
    """The service, which must work before and after each test, with the same worker."""
    worker = service.worker()
    yield service
    wire.is_silent, wire.cancels_to_lose = False, 0
    server.ensure_running()
    eventually(lambda: _answers(service, model))
    assert service.worker() == worker, "it recovered without being replaced"


def _answers(citu: Citu, model: OpenAiServer) -> bool:
    with scripted(model, COUNT):
        status, envelope = post_json(citu.port, SYNC, ASK)
    assert status in (200, 503), envelope
    return status == 200 and envelope["data"]["query_result"]["rows"] == [[3]]


# ------------------------------------------------------------------------------
# PostgreSQL


def _postmaster(server: EmbeddedServer) -> int:
    return int((server.home / "cluster" / "postmaster.pid").read_text().split()[0])


def _stop(server: EmbeddedServer, how: signal.Signals = signal.SIGINT) -> None:
    pid = _postmaster(server)
    os.kill(pid, how)
    eventually(lambda: not is_alive(pid))


@pytest.mark.parametrize("path", [SYNC, STREAM])
def test_a_statement_that_runs_too_long_is_a_timeout(
    path: str, citu: Citu, watch: Watch, model: OpenAiServer
) -> None:
    with scripted(model, ENDLESS):
        envelope = last(citu.port, path, ASK)
    assert error_of(envelope) == (504, "query_timeout", True, "agent_sql_execution")
    eventually(lambda: not watch.running("endless"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_restart_between_two_questions_is_not_noticed(
    how: signal.Signals, citu: Citu, server: EmbeddedServer, model: OpenAiServer
) -> None:
    assert _answers(citu, model)
    _stop(server, how)
    server.ensure_running()
    assert _answers(citu, model)


def test_while_the_database_is_down_conversation_goes_on(
    citu: Citu, server: EmbeddedServer, model: OpenAiServer
) -> None:
    assert get_json(citu.port, "/ready")[0] == 200
    _stop(server)
    with scripted(model, COUNT):
        assert error_of(last(citu.port, STREAM, ASK))[:3] == DATABASE_DOWN
    with scripted(model, COUNT):
        assert error_of(last(citu.port, SYNC, ASK))[:3] == DATABASE_DOWN
    assert last(citu.port, SYNC, CHAT)["data"]["response"] == "hello"
    # `/ready` repeats its last findings for a second, and refuses clients that ask too often.
    ready = eventually(
        lambda: (said := get_json(citu.port, "/ready"))[0] == 503 and said[1]["data"]
    )
    assert (ready["database"], ready["model"]["status"]) == ({"status": "unavailable"}, "ok")
    assert get_json(citu.port, "/health")[0] == 200
    server.ensure_running()
    eventually(lambda: get_json(citu.port, "/ready")[0] == 200)


def test_a_service_begun_without_its_database_converses_and_recovers(
    server: EmbeddedServer, model: OpenAiServer, wire: Wire, tmp_path: Path
) -> None:
    """Nothing is known of the tables: gunicorn starts the application without looking for the
    database.
    """
    _stop(server)
    with serving_by_gunicorn(
        Path("gunicorn.conf.py"), tmp_path / "log", model=model, DATABASE_URL=wire.url
    ) as citu:
        assert last(citu.port, SYNC, CHAT)["data"]["response"] == "hello"
        assert error_of(last(citu.port, SYNC, ASK))[:3] == DATABASE_DOWN
        server.ensure_running()
        eventually(lambda: _answers(citu, model))


@pytest.mark.parametrize("how", ["terminated", "backend killed", "server stopped", "server killed"])
def test_a_query_cut_off_is_database_unavailable(
    how: str, citu: Citu, server: EmbeddedServer, watch: Watch, model: OpenAiServer
) -> None:
    with scripted(model, ENDLESS), Stream(citu.port, STREAM, ASK) as stream:
        (pid,) = eventually(lambda: watch.running("endless"))
        if how == "terminated":
            watch.query(f"SELECT pg_terminate_backend({pid})")
        elif how == "backend killed":
            os.kill(pid, signal.SIGKILL)
        else:
            _stop(server, signal.SIGINT if how == "server stopped" else signal.SIGKILL)
        envelope = list(stream.events())[-1]
    assert error_of(envelope) == (*DATABASE_DOWN, "agent_sql_execution")


def test_when_all_connections_are_taken_the_next_is_told_so(
    citu: Citu, watch: Watch, model: OpenAiServer
) -> None:
    watch.close_gate()
    with scripted(model, Reply("SELECT n FROM gated")), Stream(citu.port, STREAM, ASK) as stream:
        eventually(lambda: watch.running("gated"))
        with scripted(model, COUNT):
            envelope = last(citu.port, SYNC, ASK)
        assert error_of(envelope)[:3] == DATABASE_DOWN
        assert envelope["data"]["retry_after_s"] >= 1
        assert last(citu.port, SYNC, CHAT)["data"]["response"] == "hello"
        watch.open_gate()
        assert list(stream.events())[-1]["data"]["query_result"]["row_count"] == 3


def test_a_network_that_falls_silent_is_a_timeout(
    citu: Citu, wire: Wire, watch: Watch, model: OpenAiServer
) -> None:
    """Neither an answer nor an end comes: the connection is given up, and conversation goes on
    meanwhile.
    """
    with scripted(model, ENDLESS), Stream(citu.port, STREAM, ASK) as stream:
        eventually(lambda: watch.running("endless"))
        wire.is_silent = True
        envelope = list(stream.events())[-1]
    assert error_of(envelope) == (504, "query_timeout", True, "agent_sql_execution")
    assert last(citu.port, SYNC, CHAT)["data"]["response"] == "hello"


def test_a_lost_cancel_request_is_sent_again(
    citu: Citu, wire: Wire, watch: Watch, model: OpenAiServer
) -> None:
    """PostgreSQL forgets a request that overtakes the statement: it finds nothing running."""
    wire.cancels_to_lose = 2
    with scripted(model, ENDLESS), Stream(citu.port, STREAM, ASK):
        eventually(lambda: watch.running("endless"))
        (pid,) = watch.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'citu'")
    eventually(lambda: not watch.running("endless"), 2)
    assert wire.cancels_to_lose == 0
    assert watch.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'citu'") == [
        pid
    ], "still good"


def test_a_database_that_stays_silent_is_waited_for_once() -> None:
    """Later callers soon get an error about the missing catalogue, and get the catalogue as soon as
    it is read.
    """
    answer = asyncio.Event()
    knowledge = Knowledge(Catalog(()), BUILTIN)
    tries = []

    async def load() -> Knowledge:
        tries.append(1)
        if len(tries) == 1:
            raise DatabaseUnavailable(UNREACHABLE)
        await answer.wait()
        return knowledge

    async def main() -> None:
        reader = CatalogReader(load, ttl_s=60)
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable):
                await reader.get()
        assert len(tries) == 2, "the second came in vain, but what it began goes on"
        answer.set()
        assert await reader.get() is knowledge

    asyncio.run(main())


def test_a_slow_name_server_stops_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop runs on while a name is looked up; psycopg2 itself would block it."""
    asked, answer = threading.Event(), threading.Event()

    def slow(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.set()
        assert answer.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    async def main() -> None:
        source = "postgresql://nobody@slow.example:1/none"
        opening = asyncio.create_task(connect(lambda: source, PostgresLimits()))
        assert await asyncio.to_thread(asked.wait, 10)
        answer.set()
        with pytest.raises(DatabaseUnavailable):
            await opening

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    asyncio.run(main())


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("host=/tmp port=5", {"host": "/tmp", "port": "5"}),
        ("host=a", {"host": "a,a", "hostaddr": "10.0.0.1,10.0.0.2"}),
        (
            "host=a,/tmp,b port=1,2,3",
            {"host": "a,a,/tmp,b", "port": "1,1,2,3", "hostaddr": "10.0.0.1,10.0.0.2,,10.1.1.1"},
        ),
        ("host=b,missing port=1", {"host": "b", "port": "1", "hostaddr": "10.1.1.1"}),
        ("host=a hostaddr=10.9.9.9", {"host": "a", "hostaddr": "10.9.9.9"}),
        ("dbname=x", {"dbname": "x"}),
    ],
)
def test_host_names_become_addresses(
    dsn: str, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"a": ["10.0.0.1", "10.0.0.2"], "b": ["10.1.1.1"], "missing": []}

    def look_up(host: str, *_: Any, **__: Any) -> list[Any]:
        if not known[host]:
            raise socket.gaierror
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in known[host]
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert with_addresses(parse_dsn(dsn)) == expected
    with pytest.raises(psycopg2.OperationalError):
        with_addresses({"host": "missing"})


# ------------------------------------------------------------------------------
# model

SILENT = Gate()
# What the model does, and whether trying the same again may help.
MODEL_FAULTS: dict[str, tuple[Reply, bool]] = {
    "refuses the key": (Reply(status=401), False),
    "has too much to do": (Reply(status=429, headers={"Retry-After": "0"}), True),
    "asks to come back later": (Reply(status=429, headers={"Retry-After": "3600"}), True),
    "is broken": (Reply(status=500), True),
    "is silent": (Reply("SELECT 1", gate=SILENT), True),
    "sends a page": (Reply(body="<html>busy</html>"), True),
    "sends an empty object": (Reply(body={}), True),
    "breaks off": (Reply("SELECT 1", ending="disconnect"), True),
    "drips without end": (Reply("SELECT 1", repeat=True), True),
}


@pytest.mark.parametrize("fault", MODEL_FAULTS)
def test_a_model_that_fails_is_replaced_by_rules_or_named(
    fault: str, citu: Citu, model: OpenAiServer
) -> None:
    reply, is_retryable = MODEL_FAULTS[fault]
    with scripted(model, reply, reply):
        answer = last(citu.port, SYNC, {**ASK, "lang": "en"})
    assert answer["code"] == 200
    assert answer["data"]["query_result"]["rows"] == [[3]]
    assert any("offline rules" in warning for warning in answer["data"]["warnings"])
    with scripted(model, reply, reply):
        envelope = last(citu.port, STREAM, UNANSWERABLE)
    assert error_of(envelope) == (503, "llm_unavailable", is_retryable, "agent_sql_generation")


# How a summary may go wrong once its first words are out.
BROKEN_TEXTS: dict[str, Reply] = {
    "breaks off": Reply(pieces=["There ", "are "], ending="disconnect"),
    "falls silent": Reply(pieces=["There ", "are "], ending="silence"),
    "turns into garbage": Reply(pieces=["There ", "are ", b"data: }{\n\n"]),
    "drips without end": Reply(pieces=["three ", 0.01], repeat=True),
}


@pytest.mark.parametrize("fault", BROKEN_TEXTS)
def test_a_summary_that_fails_half_way_is_written_by_rules(
    fault: str, citu: Citu, model: OpenAiServer
) -> None:
    with (
        scripted(model, ROWS, BROKEN_TEXTS[fault]),
        Stream(citu.port, STREAM, {**ASK, "lang": "en"}) as stream,
    ):
        events = list(stream.events())
    assert "token" in [event["data"]["type"] for event in events]
    body = events[-1]["data"]
    assert (events[-1]["code"], body["query_result"]["row_count"]) == (200, 3)
    assert body["response"]
    assert any("offline rules" in warning for warning in body["warnings"])


def test_a_model_that_never_stops_talking_is_cut_short(citu: Citu, model: OpenAiServer) -> None:
    with (
        scripted(model, Reply(pieces=["very " * 200], repeat=True)),
        Stream(citu.port, STREAM, CHAT) as stream,
    ):
        events = list(stream.events())
    assert events[-1]["data"]["type"] == "completed"
    assert model.requests[-1].disconnected.wait(60)


# ------------------------------------------------------------------------------
# streams


def test_events_arrive_while_the_next_step_runs_and_pings_meanwhile(
    citu: Citu, model: OpenAiServer
) -> None:
    gate, other = Gate(), Gate()
    with (
        scripted(
            model,
            Reply("SELECT n, name FROM gauge", gate=gate),
            Reply(pieces=["one ", other, "two"]),
        ),
        Stream(citu.port, STREAM, ASK) as stream,
    ):
        assert stream.next_block() == "retry: 3000"
        _until_quiet(stream, ("agent_sql_generation", "running"))
        assert gate.reached.wait(60)
        gate.open()
        assert other.reached.wait(60)
        seen = _until_quiet(stream, ("agent_sql_execution", "token"))
        assert seen[0] == ("agent_sql_generation", "done")
        other.open()
        assert list(stream.events())[-1]["data"]["type"] == "completed"


def _until_quiet(stream: Stream, last: tuple[str, str]) -> list[tuple[str, str]]:
    """Node and status of the events up to `last` and a ping behind it; earlier pings are passed."""
    seen: list[tuple[str, str]] = []
    while True:
        block = stream.next_block()
        assert block, seen
        if not block.startswith(":"):
            data = json.loads(block.partition("data: ")[2])["data"]
            seen.append((data["node"], data.get("status", data["type"])))
        elif seen and seen[-1] == last:
            return seen


def test_a_slow_database_does_not_silence_the_stream(
    citu: Citu, watch: Watch, model: OpenAiServer
) -> None:
    watch.close_gate()
    with scripted(model, Reply("SELECT n FROM gated")), Stream(citu.port, STREAM, ASK) as stream:
        stream.next_block()
        _until_quiet(stream, ("agent_sql_execution", "running"))
        assert stream.next_block() == ": ping"
        watch.open_gate()
        assert list(stream.events())[-1]["data"]["type"] == "completed"


# ------------------------------------------------------------------------------
# slow clients


@pytest.fixture(scope="module")
def small(
    server: EmbeddedServer, model: OpenAiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Citu]:
    """Two places."""
    server.ensure_running()
    folder = tmp_path_factory.mktemp("small")
    settings = {
        "DATABASE_URL": server.url("gauges", READER),
        "MAX_STREAMS": "2",
        "CALLER_SHARE": "1",
        "MAX_RESULT_BYTES": "30000000",
    }
    with serving_by_gunicorn(impatient(folder), folder / "log", model=model, **settings) as citu:
        yield citu


def test_whoever_finds_no_place_is_told_at_once(small: Citu, model: OpenAiServer) -> None:
    gate = Gate()
    with scripted(model, *[Reply("SELECT 1", gate=gate)] * 2), ExitStack() as held:
        for _ in range(2):
            held.enter_context(Stream(small.port, STREAM, ASK)).next_block()
        for path in (SYNC, STREAM):
            with Stream(small.port, path, ASK) as refused:
                assert (refused.status, refused.headers["retry-after"]) == (503, "2")
                assert refused.headers["content-type"].startswith("application/json")
        assert error_of(last(small.port, SYNC, ASK)) == (503, "too_many_streams", True, None)
        assert get_json(small.port, "/health")[0] == 200
    eventually(lambda: post_json(small.port, SYNC, CHAT)[0] == 200)


@pytest.mark.slow
def test_a_client_that_stops_reading_holds_nothing(
    small: Citu, watch: Watch, model: OpenAiServer
) -> None:
    """The run ends without it; place and thread are free again when it has been waited for long
    enough.
    """
    wide = Reply("SELECT repeat('x', 100000) AS x FROM generate_series(1, 200)")
    with ExitStack() as held:
        for path in (SYNC, STREAM):
            summary = Gate()
            with scripted(model, wide, Reply("wide", gate=summary)):
                held.enter_context(_lazy(small.port, path))
                assert summary.reached.wait(60)
            summary.open()
        assert not watch.running("repeat")
        eventually(lambda: small.log.read_text().count("took or sent nothing") == 2)
        eventually(lambda: post_json(small.port, SYNC, CHAT)[0] == 200)
    assert "Traceback" not in small.log.read_text()


def test_a_client_that_drips_is_dropped_in_the_end(
    server: EmbeddedServer, model: OpenAiServer, tmp_path: Path
) -> None:
    """It never stalls, but would take hours."""
    wide = Reply("SELECT repeat('x', 100000) AS x FROM generate_series(1, 200)")
    settings = {
        "DATABASE_URL": server.url("gauges", READER),
        "MAX_STREAMS": "2",
        "CALLER_SHARE": "1",
        "MAX_RESULT_BYTES": "30000000",
    }
    # Less for the client than for the question, which may take as long as a busy machine needs.
    settings["REQUEST_TIMEOUT_S"] = "60"
    configuration = impatient(tmp_path, stall_s=60, margin_s=-54)
    with (
        serving_by_gunicorn(configuration, tmp_path / "log", model=model, **settings) as citu,
        ExitStack() as asked,
    ):
        assert post_json(citu.port, SYNC, CHAT)[0] == 200, (
            "what is slow the first time is no part of this"
        )
        asked.enter_context(scripted(model, wide, Reply("wide")))
        client = asked.enter_context(_lazy(citu.port, STREAM))
        while not (is_dropped := "too little for too long" in citu.log.read_text()) and client.recv(
            2000
        ):
            time.sleep(0.02)
        assert is_dropped or "too little for too long" in citu.log.read_text()
        eventually(lambda: post_json(citu.port, SYNC, CHAT)[0] == 200)


def _lazy(port: int, path: str) -> socket.socket:
    """A client that asks and does not read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(post(path, ASK))
    return client


def test_connections_that_are_not_closed_do_not_keep_others_out(small: Citu) -> None:
    """The server closes them and waits for the other end, but not in the thread that everybody
    needs.
    """
    with ExitStack() as held:
        for _ in range(10):
            client = held.enter_context(
                _raw(small.port, b"GET /health HTTP/1.1\r\nHost: citu\r\nConnection: close\r\n\r\n")
            )
            assert client.recv(12) == b"HTTP/1.1 200"
        client.settimeout(10)
        while client.recv(4096):
            pass
        assert get_json(small.port, "/health")[0] == 200
        assert small.worker() in children(small.process.pid)


def _raw(port: int, data: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(data)
    return client
