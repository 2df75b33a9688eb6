"""Webhooks: what is told, how it is signed, and what happens when nobody takes it."""

import asyncio
import hashlib
import hmac
import json
import logging
import os
import queue
import threading
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.extensions.points import EndedRun
from agent.question import Question
from agent.webhooks.operator_events import OperatorEvents
from agent.webhooks.webhook_sender import WebhookSender
from app_config import ConfigurationError, Settings
from common.actor import Actor
from tests.support.asking import Asking
from tests.support.openai_server import OpenAiServer, Reply, openai_server

__all__ = ["openai_server"]

SECRET = "a long secret text"
PATIENT_S = 60


class Receiver:
    """The operator's address: gives the scripted statuses, then 200."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.statuses: deque[int] = deque()
        self.requests: queue.Queue[tuple[Mapping[str, str], bytes]] = queue.Queue()

    def next(self) -> dict[str, Any]:
        """Wait for the next request; return its body, whose signature was checked."""
        headers, body = self.requests.get(timeout=PATIENT_S)
        at, given = (part.partition("=")[2] for part in headers["X-Citu-Signature"].split(","))
        signed = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256)
        assert given == signed.hexdigest()
        told: dict[str, Any] = json.loads(body)
        assert headers["X-Citu-Event"] == told["event"]
        return told


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            operator.requests.put((dict(self.headers), body))
            self.send_response(operator.statuses.popleft() if operator.statuses else 200)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        operator = Receiver(f"http://127.0.0.1:{server.server_port}/hook")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield operator
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def sent(url: str, *events: str) -> None:
    """Send events until all are taken or given up."""

    async def main() -> None:
        sender = WebhookSender(url, SECRET, pauses_s=(0.01, 0.01, 0.01))
        for event in events:
            sender.send(event, {"said": "好"})
        assert sender._sending is not None
        await sender._sending
        await sender.aclose()

    asyncio.run(main())


def test_what_is_not_taken_comes_again_with_its_id_and_then_the_next(receiver: Receiver) -> None:
    receiver.statuses.extend([503, 429, 200])
    sent(receiver.url, "first", "second")
    tries = [receiver.next() for _ in range(4)]
    assert [one["event"] for one in tries] == ["first", "first", "first", "second"]
    assert len({one["id"] for one in tries}) == 2
    assert tries[0]["data"] == {"said": "好"}


@pytest.mark.parametrize("status", [400, 302])
def test_a_refusal_is_final_and_no_redirect_is_followed(
    receiver: Receiver, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.statuses.append(status)
    sent(receiver.url, "refused", "next")
    assert [receiver.next()["event"] for _ in range(2)] == ["refused", "next"]
    assert f"was not taken: refused: status {status}" in caplog.text


def test_nobody_there_is_given_up_and_too_many_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with receiving() as gone:
        pass
    with caplog.at_level(logging.WARNING):
        sent(gone.url, *(f"event {number}" for number in range(102)))
    assert "dropped, because 100 wait: event 1" in caplog.text
    assert "not taken: event 101: ConnectError" in caplog.text


Say = Callable[[asyncio.StreamWriter], Awaitable[None]]


async def silent(_: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def never_done(writer: asyncio.StreamWriter) -> None:
    """Begin an answer whose head goes on for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def garbage(writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff no HTTP at all\r\n\r\n")


async def endless_body(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")


@asynccontextmanager
async def saying(script: deque[Say]) -> AsyncIterator[str]:
    """Serve connections by the script's ways, one each, the last again and again."""

    serving: set[asyncio.Task[Any] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        with suppress(ConnectionError, EOFError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            await (script.popleft() if len(script) > 1 else script[0])(writer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for task in serving:  # since Python 3.12 the end of a server waits for its connections
            if task is not None:
                task.cancel()


@pytest.mark.parametrize("way", [silent, never_done, garbage])
def test_a_receiver_that_gives_no_answer_holds_up_neither_events_nor_the_end(
    way: Say, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        script = deque([way, endless_body])
        async with saying(script) as url, saying(deque([way])) as bad_url:
            sender = WebhookSender(url, SECRET, pauses_s=(0.01,) * 100, timeout_s=0.3)
            for event in ("first", "second"):
                sender.send(event, {})
            assert sender._sending is not None
            async with asyncio.timeout(PATIENT_S):
                await sender._sending
            assert way not in script
            waiting = WebhookSender(bad_url, SECRET, timeout_s=PATIENT_S)
            waiting.send("third", {})
            await asyncio.sleep(0)
            async with asyncio.timeout(PATIENT_S / 2):
                await waiting.aclose()

    asyncio.run(main())
    assert "was not taken" not in caplog.text


def test_the_secret_and_the_address_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="WEBHOOK_SECRET"):
        Asking(Settings(), webhook_url="https://example.com")
    for setting, value in (("WEBHOOK_URL", "example.com"), ("WEBHOOK_SECRET", "short")):
        with pytest.raises(ConfigurationError, match=setting):
            Settings.from_env({setting: value})


def test_spent_budgets_and_bad_feedback_are_told(
    demo_url: str, openai_server: OpenAiServer, receiver: Receiver, tmp_path: Path
) -> None:
    openai_server.default = lambda _: Reply("Ha.")
    budgets = tmp_path / "budgets.yaml"
    budgets.write_text("each_user: {tokens: 1}")
    user = uuid.uuid4().hex
    body = {"question": "Tell me a joke", "routing_mode": "chat_direct", "user_id": user}
    settings = Settings(database_url=demo_url, app_database_url=os.environ["APP_DATABASE_URL"])
    hook = {"webhook_url": receiver.url, "webhook_secret": SECRET}
    with Asking(settings, openai_server, budgets_file=str(budgets), **hook) as asking:
        run_id = asking.sync(body)[1]["data"]["run_id"]
        said = {"run_id": run_id, "rating": "unsatisfied", "user_id": user}
        assert asking.client.post("/api/v0/feedback", json=said).status_code == 200
        assert receiver.next()["data"] == said
        for _ in range(2):
            assert asking.sync(body)[0] == 429
        assert asking.client.post("/api/v0/feedback", json=said).status_code == 200
        told = [receiver.next() for _ in range(2)]
    assert told[0]["event"] == "budget_exhausted"
    assert told[0]["data"] == {"user_id": user}
    assert told[1]["event"] == "bad_feedback"


def ended(events: OperatorEvents, *error_types: str | None, flow: str = "ask") -> None:
    async def main() -> None:
        for error_type in error_types:
            await events.after_question(Question("sales"), EndedRun(error_type, 1.0, flow))

    asyncio.run(main())


def test_failures_that_pile_up_are_told_once_until_they_pass() -> None:
    told: list[Any] = []
    events = OperatorEvents(lambda event, data: told.append((event, data)))
    ended(events, *["llm_unavailable"] * 19, *["invalid_request"] * 5)
    assert len(told) == 1
    event, data = told[0]
    assert event == "error_rate"
    assert data == {"failed": 19, "questions": 20, "error_types": {"llm_unavailable": 19}}
    ended(events, *[None] * 50, *["internal_error"] * 24)
    assert len(told) == 1
    ended(events, "query_timeout")
    assert told[1][1]["error_types"] == {"internal_error": 24, "query_timeout": 1}


def test_a_spent_budget_is_told_once_in_each_day_of_its_time_zone() -> None:
    told: list[Any] = []
    zone = ZoneInfo("Asia/Shanghai")
    events = OperatorEvents(lambda event, data: told.append(data["user_id"]), zone)

    async def main(*times: str) -> None:
        for moment in times:
            question = Question("sales", actor=Actor("ann"), asked_at=f"2026-01-01T{moment}Z")
            await events.after_question(question, EndedRun("budget_exhausted", 1.0, "ask"))

    asyncio.run(main("01:00", "15:59"))
    assert told == ["ann"]
    asyncio.run(main("16:00", "15:59", "17:00"))
    assert told == ["ann", "ann"]


def test_a_report_that_fails_is_told_and_a_question_is_not() -> None:
    told: list[Any] = []
    events = OperatorEvents(lambda event, data: told.append((event, data)))
    ended(events, "query_timeout", None)
    assert told == []
    ended(events, None, "query_timeout", flow="workflow")
    assert [(event, data["report"]) for event, data in told] == [("report_failed", "sales")]
