"""Clients that leave, deadlines and signals end the model call and the SQL.

Over real sockets: the service as a process, PostgreSQL, and a scripted model that sees its callers
leave.
"""

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import make_server

from agent.bootstrap import bootstrap
from app_config import Settings
from common.runtime import run
from tests.support.http_stream import PING_S, Stream, get_json, post_json
from tests.support.live import (
    GONE_S,
    Citu,
    Watch,
    children,
    descriptor_count,
    eventually,
    impatient,
    is_alive,
    serving,
    serving_by_gunicorn,
    thread_count,
)
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import (
    ASK,
    CHAT,
    ENDLESS,
    OTHER_PROTOCOLS,
    ROWS,
    STREAM,
    SYNC,
    error_of,
    last,
    scripted,
    send,
)
from unified_api import create_app


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@pytest.fixture(scope="module")
def narrow(
    model: OpenAiServer, database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Citu]:
    """A service with one place: a question that keeps it blocks all others."""
    log = tmp_path_factory.mktemp("narrow") / "log"
    with serving(
        log,
        model=model,
        DATABASE_URL=database,
        MAX_STREAMS="1",
        PING_INTERVAL_S=str(PING_S),
        ROUTING_MODE="database_direct",
    ) as citu:
        yield citu


@pytest.fixture(scope="module")
def wide(
    model: OpenAiServer, database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Citu]:
    log = tmp_path_factory.mktemp("wide") / "log"
    with serving(
        log, model=model, DATABASE_URL=database, MAX_STREAMS="50", CALLER_SHARE="1"
    ) as citu:
        yield citu


def _has_place(port: int) -> bool:
    status, _ = post_json(port, SYNC, CHAT)
    assert status in (200, 503, 504)
    return status == 200


def _nothing_is_left(citu: Citu, watch: Watch) -> None:
    """The slot is free, and no SQL runs for a client that has left."""
    eventually(lambda: _has_place(citu.port), GONE_S)
    assert not watch.running("endless")


# ------------------------------------------------------------------------------
# clients that leave


@pytest.mark.parametrize("path", [SYNC, STREAM])
def test_a_client_that_leaves_stops_the_model(
    path: str, narrow: Citu, watch: Watch, model: OpenAiServer
) -> None:
    gate = Gate()
    with scripted(model, Reply("SELECT 1", gate=gate)), send(narrow.port, path, ASK):
        assert gate.reached.wait(60)
    assert model.requests[-1].disconnected.wait(GONE_S)
    _nothing_is_left(narrow, watch)


@pytest.mark.parametrize("after", [b"", b"\r\n"], ids=["", "with a line break behind the body"])
@pytest.mark.parametrize("path", [SYNC, STREAM])
def test_a_client_that_leaves_stops_the_sql(
    path: str, after: bytes, narrow: Citu, watch: Watch, model: OpenAiServer
) -> None:
    with scripted(model, ENDLESS), send(narrow.port, path, ASK, after):
        eventually(lambda: watch.running("endless"))
    eventually(lambda: not watch.running("endless"), GONE_S)
    _nothing_is_left(narrow, watch)


@pytest.mark.parametrize("protocol", OTHER_PROTOCOLS)
def test_a_client_of_another_protocol_that_leaves_stops_the_sql(
    protocol: str, narrow: Citu, watch: Watch, model: OpenAiServer
) -> None:
    path, body = OTHER_PROTOCOLS[protocol]
    with scripted(model, ENDLESS), send(narrow.port, path, body):
        eventually(lambda: watch.running("endless"))
    eventually(lambda: not watch.running("endless"), GONE_S)
    _nothing_is_left(narrow, watch)


def test_a_client_that_leaves_stops_its_own_sql(narrow: Citu, watch: Watch) -> None:
    with send(narrow.port, "/api/v0/sql/run", {"sql": "SELECT n FROM endless"}):
        eventually(lambda: watch.running("endless"))
    eventually(lambda: not watch.running("endless"), GONE_S)
    _nothing_is_left(narrow, watch)


HOLDS: dict[str, Callable[[Gate], tuple[Reply, ...]]] = {
    "while the model writes SQL": lambda gate: (Reply("SELECT 1", gate=gate),),
    "while SQL runs": lambda _: (ENDLESS,),
    "while the model summarizes": lambda gate: (
        ROWS,
        Reply(pieces=["There ", "are ", "three ", gate, "gauges."]),
    ),
    "never held": lambda _: (ROWS, Reply("There are three gauges.")),
}


@pytest.mark.parametrize("hold", HOLDS)
def test_a_stream_may_be_left_after_any_event(
    hold: str, narrow: Citu, watch: Watch, model: OpenAiServer
) -> None:
    """Leaves after 0, 1, 2, … events, until the run is held (pings come instead) or over."""
    left_after = 0
    while _leaves_after(left_after, HOLDS[hold], narrow, watch, model):
        _nothing_is_left(narrow, watch)
        left_after += 1
    _nothing_is_left(narrow, watch)
    assert left_after >= 3, "there were events to leave after"


def _leaves_after(
    count: int,
    hold: Callable[[Gate], tuple[Reply, ...]],
    citu: Citu,
    watch: Watch,
    model: OpenAiServer,
) -> bool:
    """Tell whether there were so many events."""
    gate, first = Gate(), len(model.requests)
    with scripted(model, *hold(gate)), Stream(citu.port, STREAM, ASK) as stream:
        found = stream.read_events(
            count, lambda: gate.reached.is_set() or bool(watch.running("endless"))
        )
    if gate.reached.is_set():
        eventually(
            lambda: any(request.disconnected.is_set() for request in model.requests[first:]), GONE_S
        )
    return found


@pytest.mark.parametrize("path", [SYNC, STREAM])
def test_a_run_may_go_on_without_its_client(
    path: str, wide: Citu, watch: Watch, model: OpenAiServer
) -> None:
    """Two clients leave at once; when the run that ends with its client has ended, the other run
    goes on.
    """
    summarizing = Gate()
    watch.close_gate()
    with scripted(model, Reply("SELECT n FROM gated"), ENDLESS, Reply("three", gate=summarizing)):
        try:
            with send(wide.port, path, {**ASK, "on_disconnect": "continue"}):
                eventually(lambda: watch.running("gated"))
                with send(wide.port, path, ASK):
                    eventually(lambda: watch.running("endless"))
            eventually(lambda: not watch.running("endless"), GONE_S)
            assert watch.running("gated")
        finally:
            watch.open_gate()
        assert summarizing.reached.wait(60), "the rows came, and the model is asked for the summary"
    assert not model.requests[-1].disconnected.is_set()
    summarizing.open()


@pytest.mark.slow
def test_two_hundred_clients_leave_nothing_behind(
    wide: Citu, watch: Watch, model: OpenAiServer
) -> None:
    worker = wide.worker()
    eventually(lambda: _all_places_are_free(wide.port))
    before = _descriptors(worker, model)
    for _ in range(4):
        with scripted(model, *[Reply("SELECT 1", gate=Gate()), ENDLESS] * 25):
            _ask_and_leave(wide.port, 50, watch)
        eventually(lambda: _all_places_are_free(wide.port))
    pool = Settings().database_pool_size
    # Each connection takes three: the server's socket, and the pair that libpq's end stands in for
    # it.
    eventually(lambda: _descriptors(worker, model) <= before + 3 * (pool + 1) + 10)
    executor = min(
        32, (os.cpu_count() or 1) + 4
    )  # asyncio's default; ten more for the loop, libuv and others
    assert thread_count(worker) <= 50 + 16 + executor + 10, "as many as its pools may have"
    assert watch.connections() <= pool + 1, "one is the other service's"
    assert wide.worker() == worker, "nobody had to be replaced"


def _descriptors(worker: int, model: OpenAiServer) -> int:
    """Descriptors that are no connections to the model, of which the client keeps some."""
    return descriptor_count(worker) - len(model.open_connections)


def _ask_and_leave(port: int, count: int, watch: Watch) -> None:
    """Many clients at once, sync and streaming; all leave when some of their SQL runs."""
    clients = [send(port, (SYNC, STREAM)[number % 2], ASK) for number in range(count)]
    eventually(lambda: watch.running("endless"))
    for client in clients:
        client.close()
    eventually(lambda: not watch.running("endless"), GONE_S)


def _all_places_are_free(port: int) -> bool:
    """Fifty at once are answered, none refused."""
    clients = [send(port, SYNC, CHAT) for _ in range(50)]
    answers = []
    for client in clients:
        with client:
            answers.append(client.recv(12))
    return all(answer == b"HTTP/1.1 200" for answer in answers)


def test_no_task_outlives_its_client(database: str, model: OpenAiServer, watch: Watch) -> None:
    """Served by this process, whose tasks can be counted."""
    settings = Settings(
        database_url=database,
        app_database_url=os.environ["APP_DATABASE_URL"],
        openai_api_key="test",
        openai_base_url=model.url,
        max_streams=20,
        caller_share=1.0,
        llm_max_retries=0,
    )
    services = bootstrap(settings)
    server = make_server("127.0.0.1", 0, create_app(settings, services), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        assert _has_place(server.server_port)
        tasks = run(_task_count(), 10)
        with scripted(model, *[Reply("SELECT 1", gate=Gate()), ENDLESS] * 10):
            _ask_and_leave(server.server_port, 20, watch)
        eventually(lambda: run(_task_count(), 10) <= tasks)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        run(_closed(services), 10)


async def _task_count() -> int:
    return len(asyncio.all_tasks())


async def _closed(services: Any) -> None:
    await services.aclose()


# ------------------------------------------------------------------------------
# deadlines


@pytest.fixture(scope="module")
def hasty(
    model: OpenAiServer, database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Citu]:
    """A question has 1.5 s."""
    log = tmp_path_factory.mktemp("hasty") / "log"
    with serving(
        log, model=model, DATABASE_URL=database, REQUEST_TIMEOUT_S="1.5", MAX_STREAMS="4"
    ) as citu:
        eventually(lambda: _has_place(citu.port))
        yield citu


@pytest.mark.parametrize("path", [SYNC, STREAM])
def test_the_deadline_of_a_request_stops_the_model(
    path: str, hasty: Citu, model: OpenAiServer
) -> None:
    with scripted(model, Reply("SELECT 1", gate=Gate())):
        envelope = last(hasty.port, path, ASK)
    assert error_of(envelope) == (504, "query_timeout", True, "agent_sql_generation")
    assert model.requests[-1].disconnected.wait(GONE_S)


@pytest.mark.parametrize("path", [SYNC, STREAM])
def test_the_deadline_of_a_request_stops_the_sql(
    path: str, hasty: Citu, watch: Watch, model: OpenAiServer
) -> None:
    with scripted(model, ENDLESS):
        envelope = last(hasty.port, path, ASK)
    assert error_of(envelope) == (504, "query_timeout", True, "agent_sql_execution")
    eventually(lambda: not watch.running("endless"), GONE_S)


# ------------------------------------------------------------------------------
# signals


@dataclass
class _Held:
    """Three questions that run: one waits for the model, two for SQL."""

    streams: list[Stream]
    sync: socket.socket

    def ends(self) -> list[dict[str, Any]]:
        """The last event each stream gets; the sync answer's envelope last."""
        last = [list(stream.events())[-1] for stream in self.streams]
        answer = b"".join(iter(lambda: self.sync.recv(65536), b""))
        return [*last, json.loads(answer.partition(b"\r\n\r\n")[2])]


@contextmanager
def _held(citu: Citu, watch: Watch, model: OpenAiServer) -> Iterator[_Held]:
    gate = Gate()
    with scripted(model, Reply("SELECT 1", gate=gate), ENDLESS, ENDLESS), ExitStack() as stack:
        streams = [stack.enter_context(Stream(citu.port, STREAM, ASK))]
        assert gate.reached.wait(60)
        streams.append(stack.enter_context(Stream(citu.port, STREAM, ASK)))
        sync = stack.enter_context(send(citu.port, SYNC, ASK))
        eventually(lambda: len(watch.running("endless")) == 2)
        yield _Held(streams, sync)


def test_ctrl_c_stops_what_runs(
    database: str, watch: Watch, model: OpenAiServer, tmp_path: Path
) -> None:
    with serving(tmp_path / "log", model=model, DATABASE_URL=database) as citu:
        _stops_everything(citu, signal.SIGINT, watch, model)


def test_sigterm_stops_what_does_not_end_by_itself(
    database: str, watch: Watch, model: OpenAiServer, tmp_path: Path
) -> None:
    with serving_by_gunicorn(
        impatient(tmp_path), tmp_path / "log", model=model, DATABASE_URL=database
    ) as citu:
        _stops_everything(citu, signal.SIGTERM, watch, model)


def _stops_everything(
    citu: Citu, number: signal.Signals, watch: Watch, model: OpenAiServer
) -> None:
    worker = citu.worker()
    with _held(citu, watch, model) as held:
        citu.signal(number)
        ends = {error_of(envelope)[:3] for envelope in held.ends()}
        assert ends == {(499, "cancelled", True)}
        eventually(lambda: not watch.running("endless"), GONE_S)
    assert citu.process.wait(GONE_S) == 0
    assert not is_alive(worker)
    assert "SIGKILL" not in citu.log.read_text(), "the worker ended by itself"


def _answers(port: int) -> tuple[int, int]:
    """Return the states of `/ready` and of a question."""
    return get_json(port, "/ready")[0], post_json(port, SYNC, CHAT)[0]


def test_streams_go_on_over_a_reload_and_a_stop_that_probes_see_at_once(
    database: str, model: OpenAiServer, tmp_path: Path
) -> None:
    with serving_by_gunicorn(
        impatient(tmp_path, drain_s=120), tmp_path / "log", model=model, DATABASE_URL=database
    ) as citu:
        for number, answers in ((signal.SIGHUP, (200, 200)), (signal.SIGTERM, (503, 200))):
            worker, gate = citu.worker(), Gate()
            with (
                scripted(model, Reply(pieces=["One ", gate, "two."])),
                Stream(citu.port, STREAM, CHAT) as stream,
            ):
                assert gate.reached.wait(60)
                citu.signal(number)
                eventually(lambda: _answers(citu.port) == answers)  # noqa: B023 - called now
                assert [_answers(citu.port) for _ in range(4)] == [answers] * 4
                assert is_alive(worker)
                gate.open()
                assert list(stream.events())[-1]["data"]["response"] == "One two."
            eventually(lambda: not is_alive(worker))  # noqa: B023 - called now
        assert citu.process.wait(GONE_S) == 0


def test_a_killed_worker_is_replaced_and_a_worker_without_master_ends(
    database: str, watch: Watch, model: OpenAiServer, tmp_path: Path
) -> None:
    with serving_by_gunicorn(
        impatient(tmp_path), tmp_path / "log", model=model, DATABASE_URL=database
    ) as citu:
        first = citu.worker()
        with _held(citu, watch, model) as held:
            os.kill(first, signal.SIGKILL)
            held.sync.settimeout(10)
            assert held.sync.recv(1) == b"", "the client is not left waiting"
            eventually(lambda: not watch.running("endless"), GONE_S + 2)
        second = eventually(
            lambda: next((pid for pid in children(citu.process.pid) if pid != first), None)
        )
        assert post_json(citu.port, SYNC, CHAT)[0] == 200
        with _held(citu, watch, model):
            citu.signal(signal.SIGKILL)
            eventually(lambda: not watch.running("endless"))
        eventually(lambda: not is_alive(second))


# --------------------------------------------------------------------------------------- clients
# that only half-close


@pytest.mark.parametrize("path", [SYNC, STREAM])
def test_a_client_that_has_sent_all_may_say_so_and_read(
    path: str, narrow: Citu, model: OpenAiServer
) -> None:
    """`shutdown(SHUT_WR)` looks like leaving until the client is sent something."""
    gate = Gate()
    with (
        scripted(model, Reply("SELECT n FROM gauge", gate=gate), Reply("Three.")),
        send(narrow.port, path, ASK) as raw,
    ):
        raw.shutdown(socket.SHUT_WR)
        assert gate.reached.wait(60)
        assert not model.requests[-1].disconnected.wait(2.0), "it has not left"
        gate.open()
        answer = b"".join(iter(lambda: raw.recv(65536), b"")).decode()
    assert '"Three."' in answer
    assert answer.count('"response"') == 1


@pytest.mark.parametrize("path", [SYNC, STREAM])
def test_a_client_that_half_closes_and_leaves_later_has_left(
    path: str, narrow: Citu, watch: Watch, model: OpenAiServer
) -> None:
    with scripted(model, ENDLESS), send(narrow.port, path, ASK) as raw:
        raw.shutdown(socket.SHUT_WR)
        eventually(lambda: watch.running("endless"))
    eventually(lambda: not watch.running("endless"), 5.0 + GONE_S)
    _nothing_is_left(narrow, watch)
