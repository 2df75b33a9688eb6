"""Vanna's clients before two real workers: connections break, requests come to either worker, and
the service stops.
"""

import json
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.http_stream import Stream, post_json
from tests.support.live import GAUGES, Citu, impatient, serving_by_gunicorn
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import scripted
from tests.support.vanna_client import VannaPage, chunks_of_stream, read

SSE, POLL = "/api/vanna/v2/chat_sse", "/api/vanna/v2/chat_poll"


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@pytest.fixture
def citu(
    model: OpenAiServer, make_database: Callable[[str], str], tmp_path: Path
) -> Iterator[Citu]:
    settings = {
        "DATABASE_URL": make_database(GAUGES),
        "ROUTING_MODE": "chat_direct",
        "AUDIT_LOG": "off",
    }
    with serving_by_gunicorn(
        impatient(tmp_path), tmp_path / "log", model=model, workers="2", **settings
    ) as citu:
        yield citu


def test_broken_connections_and_the_end(citu: Citu, model: OpenAiServer) -> None:
    gate, body = Gate(), {"message": "hello, cut", "conversation_id": "c", "request_id": "1"}
    with scripted(model, Reply(pieces=["Hel", gate, "lo"])):
        with Stream(citu.port, SSE, body) as stream:
            stream.next_block()
            assert gate.reached.wait(60)
        with ThreadPoolExecutor() as clients:  # one of them most likely at the other worker
            again = [clients.submit(post_json, citu.port, POLL, body) for _ in range(4)]
            gate.open()
    for answer in again:
        status, whole = answer.result()
        assert (status, VannaPage(read(json.dumps(chunk)) for chunk in whole["chunks"]).texts) == (
            200,
            ["Hello"],
        )
    assert sum("hello, cut" in json.dumps(request.messages) for request in model.requests) == 1

    gate = Gate()
    with (
        scripted(model, Reply(pieces=["Hel", gate, "lo"])),
        Stream(citu.port, SSE, {"message": "hello, end"}) as stream,
    ):
        blocks = [stream.next_block()]
        assert gate.reached.wait(60)
        citu.signal(signal.SIGTERM)
        while block := stream.next_block():
            blocks.append(block)
    page = VannaPage(chunks_of_stream("\n\n".join(blocks)))
    assert page.texts[0] == "Hel"
    assert page.status["status"] == "error"
    assert page.buttons == {"Try again": "hello, end"}
    assert page.is_ready
