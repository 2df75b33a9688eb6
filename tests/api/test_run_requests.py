"""Requests about runs as careless or hostile clients send them: answered in the envelope, and no
place is lost.

The service has one place, so a request that keeps it blocks all others.
"""

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, cast

import psycopg2
import pytest
from werkzeug.datastructures import Headers
from werkzeug.test import TestResponse

from agent.question import Question
from agent.runs import run_service
from agent.runs.events import Event
from agent.runs.pauses import Resumption
from agent.runs.run_service import RunService, RunView
from agent.runs.runner import Runner, Show
from app_config import Settings
from common import runtime
from common.actor import ANONYMOUS
from store import EventFrame, RunRecord, Runs, RunWrite, Unkept
from store.journal import Journal
from store.record_json import key
from tests.support.asking import STREAM, SYNC, Asking, frames
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import CHAT, scripted

RUNS = "/api/v0/runs"


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@pytest.fixture(scope="module")
def asking(demo_url: str, model: OpenAiServer) -> Iterator[Asking]:
    with Asking(
        Settings(database_url=demo_url, max_streams=1, ping_interval_s=0.05), model
    ) as asking:
        yield asking


@pytest.fixture(autouse=True)
def _place_is_free_again(asking: Asking) -> Iterator[None]:
    yield
    assert call(asking, "POST", SYNC, json=CHAT).status_code == 200


def call(asking: Asking, method: str, path: str, **options: Any) -> TestResponse:
    """A whole answer, read and closed as servers do."""
    return asking.client.open(path, method=method, buffered=True, **options)


def answered(asking: Asking, **more: Any) -> str:
    """The id of a run that has ended."""
    envelope = call(asking, "POST", SYNC, json={**CHAT, **more}).get_json()
    run_id: str = envelope["data"]["run_id"]
    return run_id


def error_of(response: TestResponse) -> tuple[int, str]:
    envelope = json.loads(response.get_data())
    assert envelope["code"] == response.status_code
    return response.status_code, envelope["data"]["error_type"]


def test_a_started_run_is_named_at_once_and_followed_by_its_id(
    demo_url: str, model: OpenAiServer
) -> None:
    gate, once = Gate(), {"Idempotency-Key": "started"}
    settings = Settings(database_url=demo_url, max_streams=2, ping_interval_s=0.05)
    with (
        Asking(settings, model) as asking,
        Asking(settings) as other,
        scripted(model, Reply("hello", gate=gate)),
    ):
        started = call(asking, "POST", RUNS, json=CHAT, headers=once)
        # Another worker knows it at once, and can end it or go on with it.
        assert call(other, "GET", started.headers["Location"]).status_code == 200
        assert gate.reached.wait(60)
        gate.open()
        data = started.get_json()["data"]
        assert (started.status_code, data["state"], data["result"]) == (202, "running", None)
        assert started.headers["Location"] == f"{RUNS}/{data['run_id']}"
        whole = call(asking, "GET", f"{RUNS}/{data['run_id']}/events").get_data(as_text=True)
        assert [frame["data"]["type"] for frame in frames(whole)][-1:] == ["completed"], whole
        again = call(asking, "POST", RUNS, json=CHAT, headers=once).get_json()["data"]
        assert (again["run_id"], again["state"]) == (data["run_id"], "completed")
        assert error_of(call(asking, "POST", RUNS, json={})) == (400, "invalid_request")


ODD_IDS = ["run_0'; DROP TABLE run; --", "x" * 129, "漢", "a%00b", "a b", "%2e%2e", "run_%0a"]


@pytest.mark.parametrize("run_id", ODD_IDS)
@pytest.mark.parametrize("tail", ["", "/events", "/cancel"])
def test_an_impossible_id_is_refused(run_id: str, tail: str, asking: Asking) -> None:
    response = call(asking, "POST" if tail == "/cancel" else "GET", f"{RUNS}/{run_id}{tail}")
    assert error_of(response) in ((400, "invalid_request"), (404, "not_found"))


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE"])
def test_other_methods_take_no_place(method: str, asking: Asking) -> None:
    run_id = answered(asking)
    for path in (SYNC, STREAM, f"{RUNS}/{run_id}/events", f"{RUNS}/run_00/events"):
        response = call(asking, method, path)
        assert response.status_code < 500


@pytest.mark.parametrize(
    "last_id",
    ["", "x", "run_00:3", "7", ":", "{}:", "{}:x", "{}:-1", "{}:9999999999", "{0}:1:2", " {}:1"],
)
def test_a_last_event_id_that_is_none_of_the_run_replays_it_whole(
    last_id: str, asking: Asking
) -> None:
    run_id = answered(asking)
    events = f"{RUNS}/{run_id}/events"
    whole = call(asking, "GET", events).get_data(as_text=True)
    headers = {"Last-Event-ID": last_id.format(run_id)}
    again = call(asking, "GET", events, headers=headers).get_data(as_text=True)
    assert list(frames(again)) == list(frames(whole)) != []


def test_beyond_the_end_there_is_nothing(asking: Asking, model: OpenAiServer) -> None:
    run_id = answered(asking)
    for after in ("999", f"{run_id}:999999999"):
        assert call(asking, "GET", f"{RUNS}/{run_id}/events?after={after}").status_code == 204


def test_who_comes_back_to_the_same_address_goes_on_where_it_stopped(asking: Asking) -> None:
    run_id = answered(asking)
    path = f"{RUNS}/{run_id}/events"
    rest = list(frames(call(asking, "GET", f"{path}?after=4").get_data(as_text=True)))
    assert rest
    for after, last in ((2, 4), (4, 2)):
        headers = {"Last-Event-ID": f"{run_id}:{last}"}
        again = call(asking, "GET", f"{path}?after={after}", headers=headers)
        assert list(frames(again.get_data(as_text=True))) == rest


def test_a_run_of_which_the_store_has_lost_events_is_not_followed_for_ever(asking: Asking) -> None:
    run_id = answered(asking)
    whole = call(asking, "GET", f"{RUNS}/{run_id}/events").get_data()
    with (
        closing(psycopg2.connect(os.environ["APP_DATABASE_URL"])) as database,
        database,
        database.cursor() as cursor,
    ):
        cursor.execute("DELETE FROM citu.page WHERE run_key = %s", [key(run_id)])
        assert cursor.rowcount
    left = call(asking, "GET", f"{RUNS}/{run_id}/events").get_data()
    assert whole.startswith(left) and left.count(b"id: ") == 0


def test_a_client_that_waits_beyond_the_end_of_a_running_run_is_let_go(
    demo_url: str, model: OpenAiServer
) -> None:
    gate = Gate()
    settings = Settings(database_url=demo_url, max_streams=2, ping_interval_s=0.05)
    with Asking(settings, model) as asking, scripted(model, Reply(pieces=["One", gate])):
        stream = asking.client.post(STREAM, json=CHAT)
        blocks = stream.iter_encoded()
        run_id = (
            next(block for block in blocks if block.startswith(b"id: "))
            .decode()[4:]
            .partition(":")[0]
        )
        waiting = asking.client.get(f"{RUNS}/{run_id}/events?after=999")
        assert gate.reached.wait(60)
        gate.open()
        assert b"id: " not in waiting.get_data()
        for _ in blocks:
            pass
        stream.close()


def test_a_key_given_twice_is_refused(asking: Asking) -> None:
    headers = Headers([("Idempotency-Key", "a"), ("Idempotency-Key", "b")])
    for path in (SYNC, STREAM):
        assert call(asking, "POST", path, json=CHAT, headers=headers).status_code in (200, 400)


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b'"cancel"', b"null", b'{"user_id": 7}'])
def test_cancelling_with_a_body_that_is_none_is_refused(body: bytes, asking: Asking) -> None:
    run_id = answered(asking)
    assert error_of(call(asking, "POST", f"{RUNS}/{run_id}/cancel", data=body)) == (
        400,
        "invalid_request",
    )
    assert call(asking, "POST", f"{RUNS}/{run_id}/cancel").status_code == 200, "it needs none"


def test_a_run_outlives_its_conversation(asking: Asking, model: OpenAiServer) -> None:
    """Deleted while it runs, the conversation begins anew with its answer; deleted after, the run
    is still known.
    """
    gate, ask = Gate(), {**CHAT, "conversation_id": "c-deleted", "user_id": "eve"}
    path = "/api/v0/conversations/c-deleted?user_id=eve"
    answered(asking, **ask)
    with scripted(model, Reply("again", gate=gate)):
        got: list[TestResponse] = []
        thread = threading.Thread(target=lambda: got.append(call(asking, "POST", SYNC, json=ask)))
        thread.start()
        assert gate.reached.wait(60)
        assert call(asking, "DELETE", path).status_code == 200
        gate.open()
        thread.join(20)
    run_id = got[0].get_json()["data"]["run_id"]
    assert [turn["run_id"] for turn in call(asking, "GET", path).get_json()["data"]["turns"]] == [
        run_id
    ]
    assert call(asking, "DELETE", path).status_code == 200
    assert call(asking, "GET", path).status_code == 404
    assert (
        call(asking, "GET", f"{RUNS}/{run_id}?user_id=eve").get_json()["data"]["state"]
        == "completed"
    )
    assert call(asking, "GET", f"{RUNS}/{run_id}").status_code == 404, "nobody else's"


def test_every_way_out_gives_the_place_back(asking: Asking, model: OpenAiServer) -> None:
    key = {"Idempotency-Key": "places"}
    assert call(asking, "POST", SYNC, json=CHAT, headers=key).status_code == 200
    for path in (SYNC, STREAM):
        assert call(asking, "POST", path, json=CHAT, headers=key).get_data(), "a replay"
        reused = call(asking, "POST", path, json={**CHAT, "lang": "zh"}, headers=key)
        assert error_of(reused) == (422, "idempotency_key_reused")
        assert (
            error_of(call(asking, "POST", path, json=CHAT, headers={"Idempotency-Key": "a b"}))[0]
            == 400
        )
        assert error_of(call(asking, "POST", path, data=b"{"))[0] == 400
    assert error_of(call(asking, "GET", f"{RUNS}/run_00/events")) == (404, "not_found")
    assert error_of(call(asking, "GET", f"{RUNS}/run_00/events?after=x")) == (
        400,
        "invalid_request",
    )


def test_who_leaves_before_the_first_byte_gives_the_place_back(asking: Asking) -> None:
    run_id = answered(asking)
    for method, path in (("POST", STREAM), ("GET", f"{RUNS}/{run_id}/events")):
        asking.client.open(path, method=method, json=CHAT if method == "POST" else None).close()
        assert call(asking, "POST", SYNC, json=CHAT).status_code == 200


def test_without_a_place_everybody_is_told_at_once(asking: Asking, model: OpenAiServer) -> None:
    gate, run_id = Gate(), answered(asking)
    with scripted(model, Reply("held", gate=gate)):
        stream = asking.client.post(STREAM, json=CHAT)
        assert gate.reached.wait(60)
        for response in (
            call(asking, "POST", SYNC, json=CHAT),
            call(asking, "POST", STREAM, json=CHAT, headers={"Idempotency-Key": "full"}),
            call(asking, "GET", f"{RUNS}/{run_id}/events"),
        ):
            assert error_of(response) == (503, "too_many_streams")
            assert response.headers["Retry-After"] == "2"
        assert call(asking, "GET", f"{RUNS}/{run_id}").status_code == 200, "a look takes no slot"
        gate.open()
        assert list(frames(stream.get_data().decode()))[-1]["data"]["type"] == "completed"
        stream.close()


class Stateless:
    """A runner of graphs that keep nothing."""

    def keeps_state(self, question: Question) -> bool:
        return False

    def knows(self, flow: str) -> bool:
        return True

    def can_go_on(self, flow: str, version: str | None) -> bool:
        return True

    def beginning_of(self, question: Question) -> None:
        return None

    async def answer(
        self, question: Question, show: Show, resumed: Resumption | None = None
    ) -> None:
        async for event in self.events(question, resumed):
            show(event)

    def events(self, question: Question, resumed: Resumption | None = None) -> AsyncIterator[Event]:
        raise NotImplementedError


class Stubborn(Stateless):
    """An agent that is slow to notice that it was cancelled."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def events(
        self, question: Question, resumed: Resumption | None = None
    ) -> AsyncGenerator[Event, None]:
        while not self.gate.is_set():
            with suppress(asyncio.CancelledError):
                await self.gate.wait()
        yield Event(
            "error", "Cancelled", lambda: {"error_type": "cancelled", "retryable": False}, 499
        )


def test_who_cancels_a_run_that_ends_slowly_is_told_that_it_still_runs(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_service, "_END_S", 0.01)

    async def cancelled() -> tuple[RunView, RunView]:
        agent, store = Stubborn(), asking.services.store
        service = RunService(cast(Runner, agent), store, Journal(store), lease_s=10)
        run = service.begin(
            Question("hello"), is_watched=True, outlives_readers=False, on_end=lambda: None
        )
        view = await service.cancel(ANONYMOUS, run.head.run_id)
        agent.gate.set()
        await run.last()
        await service.aclose()
        return view, await service.look(ANONYMOUS, run.head.run_id)

    soon, late = runtime.run(cancelled(), 20)
    assert (soon.record.state, soon.last) == ("running", None)
    assert late.record.state == "cancelled"


class Brief(Stateless):
    """An agent that has answered at once."""

    async def events(
        self, question: Question, resumed: Resumption | None = None
    ) -> AsyncGenerator[Event, None]:
        yield Event(
            "error", "No", lambda: {"error_type": "forbidden_statement", "retryable": False}, 403
        )


class SlowToSay:
    """A store's runs, which confirm a write some time after it is kept."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.written, self.may_say = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    async def write(self, writes: Sequence[RunWrite]) -> Mapping[str, Unkept]:
        found = await self._runs.write(writes)
        self.written.set()
        await self.may_say.wait()
        return found


def test_a_key_is_its_runs_also_between_keeping_its_answer_and_showing_it(asking: Asking) -> None:
    async def asked_again() -> tuple[RunRecord | None, RunRecord | None, str]:
        runs = SlowToSay(asking.services.store.runs)
        store = replace(asking.services.store, runs=cast(Runs, runs))
        service = RunService(cast(Runner, Brief()), store, Journal(store), lease_s=10)
        question = Question("hello")
        first = await service.reserve_key(question, question.run_id, "body")
        run = service.begin(question, is_watched=True, outlives_readers=True, on_end=lambda: None)
        await runs.written.wait()
        second = await service.reserve_key(Question("hello"), question.run_id, "body")
        runs.may_say.set()
        await run.last()
        await service.aclose()
        return first, second, question.run_id

    first, second, run_id = runtime.run(asked_again(), 20)
    assert first is None, "it may begin"
    assert second is not None and second.head.run_id == run_id


def test_a_worker_that_hung_before_its_first_write_keeps_no_second_answer(
    asking: Asking,
) -> None:
    async def asked_again() -> tuple[RunRecord | None, Event, Event]:
        store = asking.services.store
        hung, other = (
            RunService(cast(Runner, Brief()), store, Journal(store), lease_s=0.01) for _ in range(2)
        )
        first, second = Question("hello"), Question("hello")
        await hung.reserve_key(first, first.run_id, "body")
        earlier = await other.reserve_key(second, first.run_id, "body")
        answered = other.begin(second, is_watched=True, outlives_readers=True, on_end=lambda: None)
        too_late = hung.begin(first, is_watched=True, outlives_readers=True, on_end=lambda: None)
        last = await answered.last(), await too_late.last()
        await asyncio.gather(hung.aclose(), other.aclose())
        return earlier, *last

    earlier, answered, given_up = runtime.run(asked_again(), 20)
    assert earlier is None, "the second may begin"
    assert answered.data["error_type"] == "forbidden_statement"
    assert given_up.data["error_type"] == "internal_error"
    assert given_up.data["retryable"], "then its client finds the answer of the second"


class Unspeakable(Stateless):
    """An agent of whose events one can't be rendered."""

    async def events(
        self, question: Question, resumed: Resumption | None = None
    ) -> AsyncGenerator[Event, None]:
        yield Event("progress", "Working", lambda: {"node": "a"})
        yield Event("progress", "Working", lambda: {"node": object()})
        yield Event(
            "error", "Cancelled", lambda: {"error_type": "cancelled", "retryable": False}, 499
        )


@pytest.mark.parametrize("is_watched", [True, False])
def test_an_event_that_can_not_be_rendered_ends_the_run_in_an_error(
    is_watched: bool, asking: Asking
) -> None:
    async def followed() -> tuple[list[EventFrame], int]:
        ended: list[None] = []
        store, agent = asking.services.store, cast(Runner, Unspeakable())
        service = RunService(agent, store, Journal(store), lease_s=10)
        run = service.begin(
            Question("hello"),
            is_watched=is_watched,
            outlives_readers=False,
            on_end=lambda: ended.append(None),
        )
        shown = [frame async for frame in run.follow()]
        await service.aclose()
        return shown, len(ended)

    shown, ends = runtime.run(followed(), 20)
    assert json.loads(shown[-1].data)["data"]["error_type"] == "internal_error"
    assert [frame.seq for frame in shown] == list(range(1, len(shown) + 1))
    assert ends == 1, "its slot is free again"
