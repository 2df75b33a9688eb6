"""Runs outlive connections and workers: two processes over one store, clients cut off, workers
killed.
"""

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import stable
from tests.support.http_stream import Stream, get_json, post_json
from tests.support.live import Citu, Watch, eventually, serving, thread_count
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import ASK, CHAT, ROWS, STREAM, SYNC, scripted
from tests.support.redis_server import redis_server
from tests.support.survey.survey_flow import COUNT_SCHEMA, SURVEY

TALK = Reply(pieces=["One ", "two ", "three."])
RUNS = "/api/v0/runs"
# However busy the machine is, no worker that lives is declared dead; those that are killed have a
# short lease. It is `there` that looks for them, so its own lease is short as well, and nobody else
# who looks lives long.
LONG_LEASE, SHORT_LEASE = {"RUN_LEASE_S": "60"}, {"RUN_LEASE_S": "1"}
SURVEY_TOO = "tests/support/survey/serve.py"  # with a second flow


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    """Redis of the test environment, or one of our own; skips where there is neither."""
    if url := os.environ.get("CITU_TEST_REDIS_URL"):
        yield url
        return
    with redis_server() as server:
        yield server.url


@pytest.fixture(scope="module", params=["postgresql", "redis"])
def store(request: pytest.FixtureRequest, app_database_url: str) -> dict[str, str]:
    """The settings of a store."""
    if request.param == "postgresql":
        return {"APP_DATABASE_URL": app_database_url}
    return {"REDIS_URL": request.getfixturevalue("redis_url")}


@pytest.fixture(scope="module")
def one_more(
    store: dict[str, str],
    model: OpenAiServer,
    database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., AbstractContextManager[Citu]]:
    """One more process over the same store."""
    settings = {"DATABASE_URL": database, "PING_INTERVAL_S": "0.2", **LONG_LEASE, **store}
    return lambda **changes: serving(
        tmp_path_factory.mktemp("citu") / "log",
        model=model,
        program=SURVEY_TOO,
        **settings | changes,
    )


@pytest.fixture
def start(one_more: Callable[..., AbstractContextManager[Citu]]) -> Iterator[Callable[..., Citu]]:
    """Starts a process that ends with the test; those that wait for nothing take time as well."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(one_more(**changes))


FLOW_NAMES = ("ask", "survey", "tool_loop", "tool_graph")


@pytest.fixture(params=FLOW_NAMES)
def hello(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A question to each flow that is answered with talk."""
    return {**CHAT, "agent": request.param}


@pytest.fixture(scope="module")
def here(one_more: Callable[..., AbstractContextManager[Citu]]) -> Iterator[Citu]:
    with one_more() as citu:
        yield citu


@pytest.fixture(scope="module")
def there(one_more: Callable[..., AbstractContextManager[Citu]]) -> Iterator[Citu]:
    with one_more(**SHORT_LEASE) as citu:
        yield citu


def blocks(stream: Stream) -> list[str]:
    """The frames still to come, as they are on the wire; pings left out."""
    found = []
    while block := stream.next_block():
        if not block.startswith(":"):
            found.append(block)
    return found


def begun(stream: Stream, count: int) -> list[str]:
    """The next blocks, pings left out."""
    found: list[str] = []
    while len(found) < count:
        block = stream.next_block()
        assert block, "the stream has ended"
        found += [] if block.startswith(":") else [block]
    return found


def follow(citu: Citu, run_id: str, query: str = "", **headers: str) -> list[str]:
    """The frames of a run, from the beginning or after an event."""
    with Stream(
        citu.port, f"{RUNS}/{run_id}/events{query}", None, method="GET", **headers
    ) as stream:
        assert stream.status == 200
        return blocks(stream)


def run_id_of(block: str) -> str:
    return block.partition("id: ")[2].partition(":")[0]


def state(citu: Citu, run_id: str, query: str = "") -> dict[str, Any]:
    status, envelope = get_json(citu.port, f"{RUNS}/{run_id}{query}")
    assert status == 200, envelope
    found: dict[str, Any] = envelope["data"]
    return found


# ------------------------------------------------------------------------------
# seen again


def test_another_process_shows_the_same_bytes_from_any_event_on(
    hello: dict[str, Any], here: Citu, there: Citu, model: OpenAiServer
) -> None:
    with scripted(model, TALK), Stream(here.port, STREAM, hello) as stream:
        live = blocks(stream)
    retry, *frames = live
    run_id = run_id_of(frames[0])
    for citu in (here, there):
        assert follow(citu, run_id) == live
        for read in range(1, len(frames)):
            assert follow(citu, run_id, f"?after={read}") == [retry, *frames[read:]]
        last_id = {"Last-Event-ID": f"{run_id}:{len(frames) - 1}"}
        assert follow(citu, run_id, **last_id) == [retry, frames[-1]]
        with Stream(
            citu.port, f"{RUNS}/{run_id}/events?after={len(frames)}", None, method="GET"
        ) as stream:
            assert stream.status == 204, "an EventSource stops asking"


def test_a_client_cut_off_at_any_event_goes_on_elsewhere(
    hello: dict[str, Any], here: Citu, there: Citu, model: OpenAiServer
) -> None:
    read, length = 1, 2
    while read < length:
        with scripted(model, TALK):  # the run may only ask the model after its client has left
            with Stream(here.port, STREAM, {**hello, "on_disconnect": "continue"}) as stream:
                retry, *seen = begun(stream, read + 1)
            run_id = run_id_of(seen[0])
            rest = follow(there, run_id, f"?after={run_id}:{read}")
        assert [retry, *seen, *rest[1:]] == follow(there, run_id)
        terminal = json.loads(rest[-1].partition("data: ")[2])
        assert terminal["data"]["response"] == "One two three."
        read, length = read + 1, len(seen) + len(rest) - 1


def test_a_run_is_followed_live_from_another_process(
    hello: dict[str, Any], here: Citu, there: Citu, model: OpenAiServer
) -> None:
    gate = Gate()
    with (
        scripted(model, Reply(pieces=["One ", gate, "two."])),
        Stream(here.port, STREAM, hello) as stream,
    ):
        told = begun(stream, 3)
        run_id = run_id_of(told[1])
        with Stream(there.port, f"{RUNS}/{run_id}/events", None, method="GET") as elsewhere:
            assert begun(elsewhere, 3) == told
            assert state(there, run_id)["state"] == "running"
            gate.open()
            assert blocks(elsewhere) == blocks(stream)


def test_the_state_holds_the_sync_answer(here: Citu, there: Citu, model: OpenAiServer) -> None:
    with scripted(model, ROWS, Reply("There are 3.")):
        status, answer = post_json(here.port, SYNC, ASK)
    assert status == 200
    found = state(there, answer["data"]["run_id"])
    assert (found["state"], found["result"], found["question"]) == (
        "completed",
        answer,
        ASK["question"],
    )
    assert found["conversation_id"] == answer["data"]["conversation_id"]


def test_the_stream_ends_as_the_sync_endpoint_answers(hello: dict[str, Any], here: Citu) -> None:
    _, whole = post_json(here.port, SYNC, hello)
    with Stream(here.port, STREAM, hello) as stream:
        last = list(stream.events())[-1]
    assert (last["data"]["type"], whole["data"]["type"]) == (
        "completed",
        last["data"]["response_type"],
    )
    assert stable(last) == stable(whole)


def test_who_is_somebody_else_sees_no_run(
    hello: dict[str, Any], here: Citu, there: Citu, model: OpenAiServer
) -> None:
    _, answer = post_json(here.port, SYNC, {**hello, "user_id": "alice"})
    run_id = answer["data"]["run_id"]
    assert state(there, run_id, "?user_id=alice")["state"] == "completed"
    for citu in (here, there):
        for path in (f"{RUNS}/{run_id}?user_id=bob", f"{RUNS}/{run_id}/events", f"{RUNS}/run_00"):
            status, envelope = get_json(citu.port, path)
            assert (status, envelope["data"]["error_type"]) == (404, "not_found")
        status, _ = post_json(citu.port, f"{RUNS}/{run_id}/cancel", {"user_id": "bob"})
        assert status == 404


@pytest.mark.parametrize("query", ["?after=x", "?after=-1", "?after=run_other:1"])
def test_an_event_that_can_not_be_is_said_to_be(query: str, here: Citu) -> None:
    status, envelope = get_json(here.port, f"{RUNS}/run_00/events{query}")
    assert (status, envelope["data"]["field"]) == (400, "after")


# ------------------------------------------------------------------------------
# stopped


@pytest.mark.parametrize("elsewhere", [False, True], ids=["by its own process", "by another"])
def test_a_run_is_cancelled_by_its_id_and_lets_go_of_its_key(
    hello: dict[str, Any], elsewhere: bool, here: Citu, there: Citu, model: OpenAiServer
) -> None:
    gate, by = Gate(), there if elsewhere else here
    key = {"Idempotency-Key": f"k-4-{hello['agent']}-{elsewhere}"}
    with (
        scripted(model, Reply(pieces=["One ", gate])),
        Stream(here.port, STREAM, hello, **key) as stream,
    ):
        run_id = run_id_of(begun(stream, 2)[1])
        assert gate.reached.wait(60)
        status, envelope = post_json(by.port, f"{RUNS}/{run_id}/cancel", {})
        assert (status, envelope["data"]["state"]) == (200, "cancelled")
        assert envelope["data"]["result"]["data"]["error_type"] == "cancelled"
        assert model.requests[-1].disconnected.wait(60)
        assert json.loads(blocks(stream)[-1].partition("data: ")[2])["code"] == 499
    status, envelope = post_json(here.port, f"{RUNS}/{run_id}/cancel", {})
    assert (status, envelope["data"]["state"]) == (200, "cancelled"), (
        "there is nothing left to cancel"
    )
    status, envelope = post_json(there.port, SYNC, hello, **key)
    assert (status, envelope["data"]["response"]) == (200, "hello")


@pytest.mark.parametrize(
    ("on_disconnect", "end"), [("cancel", "cancelled"), ("continue", "completed")]
)
def test_what_becomes_of_a_run_whose_client_leaves(
    hello: dict[str, Any],
    on_disconnect: str,
    end: str,
    here: Citu,
    there: Citu,
    model: OpenAiServer,
) -> None:
    gate = Gate()
    with scripted(model, Reply(pieces=["One ", gate, "two."])):
        with Stream(here.port, STREAM, {**hello, "on_disconnect": on_disconnect}) as stream:
            run_id = run_id_of(begun(stream, 2)[1])
            assert gate.reached.wait(60)
        if on_disconnect == "cancel":
            assert model.requests[-1].disconnected.wait(60)
        gate.open()
        follow(there, run_id)
    assert state(there, run_id)["state"] == end


def test_who_looks_on_does_not_change_what_was_wished(
    hello: dict[str, Any], here: Citu, model: OpenAiServer
) -> None:
    gate = Gate()
    with scripted(model, Reply(pieces=["One ", gate])):
        with Stream(here.port, STREAM, {**hello, "on_disconnect": "cancel"}) as stream:
            run_id = run_id_of(begun(stream, 2)[1])
            assert gate.reached.wait(60)
            with Stream(here.port, f"{RUNS}/{run_id}/events", None, method="GET") as onlooker:
                stream.close()
                assert run_id_of(begun(onlooker, 2)[1]) == run_id
                assert not model.requests[-1].disconnected.is_set(), "somebody watches"
        assert model.requests[-1].disconnected.wait(60)
    follow(here, run_id)
    assert state(here, run_id)["state"] == "cancelled"


def begun_in_all_flows(
    citu: Citu, model: OpenAiServer, stack: ExitStack, **more: Any
) -> list[Stream]:
    """A stream of a run in each flow, whose model has said one word and says no more."""
    streams = []
    for name in FLOW_NAMES:
        gate = Gate()
        stack.enter_context(scripted(model, Reply(pieces=["One ", gate])))
        stream = Stream(citu.port, STREAM, {**CHAT, "agent": name, **more})
        streams.append(stack.enter_context(stream))
        assert gate.reached.wait(60)
    return streams


def test_the_runs_of_a_killed_worker_end(
    start: Callable[..., Citu], there: Citu, model: OpenAiServer
) -> None:
    doomed = start(**SHORT_LEASE)
    with ExitStack() as stack:
        streams = begun_in_all_flows(doomed, model, stack)
        all_seen = [begun(stream, 3) for stream in streams]
        os.kill(doomed.worker(), signal.SIGKILL)
        for stream, seen in zip(streams, all_seen, strict=True):
            seen += blocks(stream)
    for seen in all_seen:
        run_id = run_id_of(seen[1])
        replayed = follow(there, run_id)
        assert replayed[: len(seen)] == seen, "nothing that was seen is lost"
        terminal = json.loads(replayed[-1].partition("data: ")[2])
        assert (terminal["code"], terminal["data"]["error_type"]) == (500, "internal_error")
        assert terminal["data"]["retryable"]
        assert state(there, run_id)["state"] == "error"
        assert [block.partition("\n")[0] for block in replayed[1:]] == [
            f"id: {run_id}:{number}" for number in range(1, len(replayed))
        ]


def test_runs_of_a_process_that_is_stopped_say_so(
    start: Callable[..., Citu], there: Citu, model: OpenAiServer
) -> None:
    stopped = start()
    with ExitStack() as stack:
        streams = begun_in_all_flows(stopped, model, stack, on_disconnect="continue")
        run_ids = [run_id_of(begun(stream, 2)[1]) for stream in streams]
        for stream in streams:
            stream.close()
        stopped.signal(signal.SIGINT)
        stopped.process.wait(30)
    for run_id in run_ids:
        result = state(there, run_id)["result"]
        assert (result["code"], result["data"]["retryable"]) == (499, True)


# ------------------------------------------------------------------------------
# asked once more


def test_the_same_key_is_the_same_run(
    hello: dict[str, Any], here: Citu, there: Citu, model: OpenAiServer
) -> None:
    before, key = len(model.requests), {"Idempotency-Key": f"k-1-{hello['agent']}"}
    first = post_json(here.port, SYNC, hello, **key)
    for citu in (here, there):
        assert post_json(citu.port, SYNC, hello, **key) == first
        with Stream(citu.port, STREAM, hello, **key) as stream:
            run_id = first[1]["data"]["run_id"]
            assert blocks(stream) == follow(citu, run_id)
    assert len(model.requests) == before + 1
    status, envelope = post_json(
        there.port, SYNC, {**hello, "lang": "zh"}, **{"Idempotency-Key": f"k-1-{hello['agent']}"}
    )
    assert (status, envelope["data"]["error_type"]) == (422, "idempotency_key_reused")
    other = post_json(there.port, SYNC, {**hello, "user_id": "bob"}, **key)
    assert other[1]["data"]["run_id"] != run_id, "keys are a user's own"


def test_a_run_in_flight_is_joined_by_its_key(
    hello: dict[str, Any], here: Citu, there: Citu, model: OpenAiServer
) -> None:
    gate, key = Gate(), {"Idempotency-Key": f"k-2-{hello['agent']}"}
    with (
        scripted(model, Reply(pieces=["One ", gate, "two."])),
        Stream(here.port, STREAM, hello, **key) as first,
        Stream(there.port, STREAM, hello, **key) as second,
        Stream(here.port, STREAM, hello, **key) as third,
    ):
        assert gate.reached.wait(60)
        told = begun(first, 2)
        for citu in (here, there):
            status, envelope = post_json(citu.port, SYNC, hello, **key)
            assert (status, envelope["data"]["error_type"]) == (409, "conflict")
            assert envelope["data"]["run_id"] == run_id_of(told[1])
        gate.open()
        told += blocks(first)
        assert blocks(second) == told
        assert blocks(third) == told


def test_a_client_that_comes_back_with_its_key_finds_its_run(
    hello: dict[str, Any], here: Citu, there: Citu, model: OpenAiServer
) -> None:
    gate, key = Gate(), {"Idempotency-Key": f"k-3-{hello['agent']}"}
    with scripted(model, Reply(pieces=["One ", gate, "two."])):
        with Stream(here.port, STREAM, hello, **key) as stream:
            seen = begun(stream, 3)
            assert gate.reached.wait(60)
        with Stream(
            there.port, STREAM, hello, **key, **{"Last-Event-ID": f"{run_id_of(seen[1])}:2"}
        ) as stream:
            gate.open()
            rest = blocks(stream)
    assert [*seen, *rest[1:]] == follow(here, run_id_of(seen[1]))
    with Stream(
        there.port, STREAM, hello, **key, **{"Last-Event-ID": f"{run_id_of(seen[1])}:9999"}
    ) as stream:
        assert blocks(stream) == [*seen, *rest[1:]], "it has no such event, so all are shown"


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 256])
def test_a_key_that_is_none_is_refused(hello: dict[str, Any], key: str, here: Citu) -> None:
    connection = HTTPConnection("127.0.0.1", here.port, timeout=30)
    connection.request(
        "POST", SYNC, json.dumps(hello), {"Idempotency-Key": key.encode().decode("latin-1")}
    )
    envelope = json.loads(connection.getresponse().read())
    connection.close()
    assert (envelope["code"], envelope["data"]["field"]) == (400, "Idempotency-Key")


def test_every_answer_is_one_turn(
    hello: dict[str, Any], here: Citu, there: Citu, model: OpenAiServer
) -> None:
    ask = {**hello, "conversation_id": f"c-turns-{hello['agent']}"}
    with scripted(model, Reply("Hi."), TALK):
        post_json(here.port, SYNC, ask)
        with Stream(there.port, STREAM, {**ask, "question": "and?"}) as stream:
            blocks(stream)
    status, told = get_json(there.port, f"/api/v0/conversations/{ask['conversation_id']}")
    assert status == 200
    assert [(turn["question"], turn["response"]) for turn in told["data"]["turns"]] == [
        ("hello", "Hi."),
        ("and?", "One two three."),
    ]


# ------------------------------------------------------------------------------
# waiting for the user


SURVEY_ASK = {"question": SURVEY, "agent": "survey"}


def asked_by(citu: Citu, run_id: str) -> dict[str, Any]:
    """What the run asks, seen from that process."""
    found = state(citu, run_id)
    assert (found["state"], found["result"]) == ("waiting", None)
    assert found["question"] == SURVEY
    question: dict[str, Any] = found["waiting_for"]
    return question


def answer(
    citu: Citu, run_id: str, interrupt_id: str, given: Any, **more: Any
) -> tuple[int, dict[str, Any]]:
    status, envelope = post_json(
        citu.port,
        f"{RUNS}/{run_id}/resume",
        {"interrupt_id": interrupt_id, "answer": given, **more},
    )
    return status, envelope["data"]


def begin_survey(citu: Citu, **more: Any) -> tuple[str, list[str]]:
    """A run that waits, and the frames it has sent."""
    with Stream(citu.port, STREAM, {**SURVEY_ASK, **more}) as stream:
        seen = blocks(stream)
    return run_id_of(seen[1]), seen


def kinds(frames: list[str]) -> list[str]:
    return [
        json.loads(frame.partition("data: ")[2])["data"]["type"]
        for frame in frames
        if "data: " in frame
    ]


def test_a_run_asks_twice_and_goes_on_wherever_the_answer_comes_in(here: Citu, there: Citu) -> None:
    run_id, seen = begin_survey(here, conversation_id="c-survey")
    assert kinds(seen) == ["progress", "question"]
    last = json.loads(seen[-1].partition("data: ")[2])
    assert (last["code"], last["success"]) == (200, True)
    first = asked_by(there, run_id)
    assert first == {
        key: last["data"][key] for key in ("interrupt_id", "kind", "prompt", "choices")
    }
    assert (first["kind"], first["choices"]) == ("choice", ["n", "name"])
    with Stream(
        there.port, f"{RUNS}/{run_id}/events?after={len(seen) - 1}", None, method="GET"
    ) as stream:
        assert stream.status == 204, "nothing follows until there is an answer"

    status, told = answer(there, run_id, first["interrupt_id"], "name")
    assert (status, told["state"]) == (202, "running")
    more = follow(there, run_id, f"?after={len(seen) - 1}")
    assert kinds(more) == ["progress", "progress", "progress", "question"]
    second = asked_by(here, run_id)
    assert second["schema"] == COUNT_SCHEMA
    assert second["interrupt_id"] != first["interrupt_id"]

    assert answer(here, run_id, second["interrupt_id"], 2)[0] == 202
    whole = follow(here, run_id)
    assert kinds(whole)[-1] == "completed"
    assert whole == follow(there, run_id)
    assert whole[: len(seen)] == seen
    assert [block.partition("\n")[0] for block in whole[1:]] == [
        f"id: {run_id}:{n}" for n in range(1, len(whole))
    ]
    result = state(there, run_id)["result"]
    assert result["data"]["response"] == "gauge 1, gauge 2"
    _, conversation = get_json(there.port, "/api/v0/conversations/c-survey")
    assert [turn["response"] for turn in conversation["data"]["turns"]] == ["gauge 1, gauge 2"]
    for interrupt_id in (first["interrupt_id"], second["interrupt_id"]):
        assert answer(there, run_id, interrupt_id, "n")[0] == 409


def test_the_sync_endpoint_answers_with_the_question(here: Citu, there: Citu) -> None:
    status, envelope = post_json(here.port, SYNC, SURVEY_ASK, **{"Idempotency-Key": "survey"})
    data = envelope["data"]
    assert (status, data["type"], data["prompt"]) == (200, "question", "Which column?")
    again = post_json(there.port, SYNC, SURVEY_ASK, **{"Idempotency-Key": "survey"})
    assert again == (status, envelope), "a waiting run keeps its key"
    assert answer(there, data["run_id"], data["interrupt_id"], "n")[0] == 202


def test_a_wrong_answer_is_refused_and_the_run_waits_on(here: Citu, there: Citu) -> None:
    run_id, _ = begin_survey(here)
    asked = asked_by(here, run_id)
    for body, field in (
        ({"answer": "n"}, "interrupt_id"),
        ({"interrupt_id": asked["interrupt_id"]}, "answer"),
        ({"interrupt_id": asked["interrupt_id"], "answer": "price"}, "answer"),
        ({"interrupt_id": asked["interrupt_id"], "answer": ["n"]}, "answer"),
    ):
        status, envelope = post_json(there.port, f"{RUNS}/{run_id}/resume", body)
        assert (status, envelope["data"]["field"]) == (400, field)
    assert answer(there, run_id, "other-1", "n")[0] == 404
    assert answer(there, run_id, asked["interrupt_id"], "n", user_id="bob")[0] == 404
    assert answer(there, "run_00", asked["interrupt_id"], "n")[0] == 404
    assert asked_by(there, run_id) == asked
    assert answer(there, run_id, asked["interrupt_id"], "n")[0] == 202
    follow(there, run_id)
    for wrong in (0, 4, "2", None, True, 1.5):
        status, data = answer(here, run_id, asked_by(here, run_id)["interrupt_id"], wrong)
        assert (status, data["field"]) == (400, "answer")


def test_of_two_answers_at_once_one_is_taken(here: Citu, there: Citu) -> None:
    run_id, _ = begin_survey(here)
    interrupt_id = asked_by(here, run_id)["interrupt_id"]
    with ThreadPoolExecutor(6) as pool:
        given = [
            pool.submit(answer, citu, run_id, interrupt_id, column)
            for citu, column in ((here, "n"), (there, "name"), (here, "n")) * 2
        ]
        statuses = sorted(one.result()[0] for one in given)
    assert statuses == [202, *[409] * 5]
    follow(here, run_id)
    assert answer(here, run_id, asked_by(here, run_id)["interrupt_id"], 1)[0] == 202
    follow(there, run_id)
    assert state(there, run_id)["result"]["data"]["response"] in ("1", "gauge 1")


ODD_ANSWERS = (
    b"",
    b"null",
    b"[]",
    b"{",
    b"[" * 5000,
    b"\xff",
    b'{"interrupt_id": 1}',
    b'{"interrupt_id": "@"}',
)
UNUSABLE = (
    b'"\\u0000"',
    b'"\\ud800"',
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"[" * 900 + b"]" * 900,
    b"9" * 5000,
    b'{"a":1}',
)


def test_no_odd_body_takes_the_question_or_the_place(start: Callable[..., Citu]) -> None:
    small = start(MAX_STREAMS="1")
    run_id, _ = begin_survey(small)
    asked = asked_by(small, run_id)
    name = asked["interrupt_id"].encode()
    odd = [body.replace(b"@", name) for body in ODD_ANSWERS]
    odd += [b'{"interrupt_id": "' + name + b'", "answer": ' + value + b"}" for value in UNUSABLE]
    odd += [b'{"interrupt_id": "' + name + b'", "answer": "n", "answer": 1}', b"x" * 70_000]
    for body in odd:
        connection = HTTPConnection("127.0.0.1", small.port, timeout=30)
        connection.request("POST", f"{RUNS}/{run_id}/resume", body)  # without a content type
        response = connection.getresponse()
        envelope = json.loads(response.read())
        connection.close()
        assert (response.status, envelope["data"]["error_type"]) == (400, "invalid_request"), body[
            :100
        ]
    status, _ = get_json(small.port, f"{RUNS}/{run_id}/resume")
    assert status == 405
    assert asked_by(small, run_id) == asked
    assert answer(small, run_id, asked["interrupt_id"], "n")[0] == 202
    eventually(
        lambda: state(small, run_id)["state"] == "waiting"
    )  # to follow it takes the place that the run has


def test_without_a_place_an_answer_is_not_taken(
    start: Callable[..., Citu], model: OpenAiServer
) -> None:
    small, gate = start(MAX_STREAMS="1"), Gate()
    run_id, _ = begin_survey(small)
    asked = asked_by(small, run_id)
    with scripted(model, Reply(pieces=["One ", gate])), Stream(small.port, STREAM, CHAT) as stream:
        begun(stream, 2)
        assert gate.reached.wait(60)
        status, data = answer(small, run_id, asked["interrupt_id"], "n")
        assert (status, data["error_type"]) == (503, "too_many_streams")
        assert asked_by(small, run_id) == asked
        gate.open()
        blocks(stream)
    assert answer(small, run_id, asked["interrupt_id"], "n")[0] == 202


def test_a_key_outlives_the_runs_own_time_while_it_waits(
    start: Callable[..., Citu], there: Citu
) -> None:
    hasty, key = start(RUN_TTL_S="1"), {"Idempotency-Key": "waits-for-long"}
    first = post_json(hasty.port, SYNC, SURVEY_ASK, **key)
    _, other = post_json(hasty.port, SYNC, {**CHAT, "agent": "survey"})
    eventually(lambda: get_json(there.port, f"{RUNS}/{other['data']['run_id']}")[0] == 404)
    run_id, asked = first[1]["data"]["run_id"], first[1]["data"]["interrupt_id"]
    assert post_json(there.port, SYNC, SURVEY_ASK, **key) == first
    assert answer(there, run_id, asked, "n")[0] == 202
    follow(there, run_id)
    again = post_json(hasty.port, SYNC, SURVEY_ASK, **key)[1]["data"]
    assert (again["run_id"], again["prompt"]) == (run_id, "How many of n?")


def test_runs_that_wait_hold_no_place_and_no_thread(start: Callable[..., Citu]) -> None:
    small = start(MAX_STREAMS="2")
    before = thread_count(small.worker())
    waiting = [begin_survey(small)[0] for _ in range(24)]
    assert thread_count(small.worker()) - before < len(waiting) / 2, "pools fill up, and no more"
    for run_id in waiting[::6]:
        assert answer(small, run_id, asked_by(small, run_id)["interrupt_id"], "n")[0] == 202
        eventually(partial(_is_followed, small, run_id))


def _is_followed(citu: Citu, run_id: str) -> bool:
    """Follow the run to its end; false when there is no place for that now."""
    with Stream(citu.port, f"{RUNS}/{run_id}/events", None, method="GET") as stream:
        assert stream.status in (200, 503)
        return stream.status == 200 and list(stream.events()) != []


def test_a_waiting_run_is_cancelled_from_anywhere(here: Citu, there: Citu) -> None:
    run_id, seen = begin_survey(here)
    asked = asked_by(there, run_id)
    status, envelope = post_json(there.port, f"{RUNS}/{run_id}/cancel", {})
    assert (status, envelope["data"]["state"]) == (200, "cancelled")
    assert kinds(follow(here, run_id)) == [*kinds(seen), "error"]
    assert answer(here, run_id, asked["interrupt_id"], "n")[0] == 409


def test_a_killed_worker_takes_no_waiting_run_and_no_answer_with_it(
    start: Callable[..., Citu], there: Citu, model: OpenAiServer
) -> None:
    doomed = start()
    run_id, _ = begin_survey(doomed)
    asked = asked_by(there, run_id)
    os.kill(doomed.worker(), signal.SIGKILL)
    assert answer(there, run_id, asked["interrupt_id"], "n")[0] == 202
    follow(there, run_id)
    assert answer(there, run_id, asked_by(there, run_id)["interrupt_id"], 3)[0] == 202
    follow(there, run_id)
    assert state(there, run_id)["result"]["data"]["response"] == "1, 2, 3"


def test_a_worker_that_is_stopped_leaves_the_answer_it_works_on_to_another(
    start: Callable[..., Citu], there: Citu, database: str, admin_url: str
) -> None:
    stopped = start(RUN_LEASE_S="1", DRAIN_S="0.5")
    run_id, _ = begin_survey(stopped)
    assert answer(stopped, run_id, asked_by(stopped, run_id)["interrupt_id"], "name")[0] == 202
    seen = follow(stopped, run_id)
    lock, watch = Watch(admin_url, database), Watch(admin_url, database)
    try:
        lock.query("BEGIN; LOCK TABLE gauge; SELECT 1")
        assert answer(stopped, run_id, asked_by(stopped, run_id)["interrupt_id"], 2)[0] == 202
        with Stream(
            stopped.port, f"{RUNS}/{run_id}/events?after={len(seen) - 1}", None, method="GET"
        ) as stream:
            eventually(lambda: watch.running("gauge"))
            stopped.signal(signal.SIGTERM)
            assert "completed" not in kinds(blocks(stream))
        stopped.process.wait(30)
    finally:
        lock.close()
        watch.close()
    assert kinds(follow(there, run_id))[-1] == "completed"
    assert state(there, run_id)["result"]["data"]["response"] == "gauge 1, gauge 2"


def test_a_log_of_it_all_has_no_fault(here: Citu, there: Citu) -> None:
    for citu in (here, there):
        faults = [
            line for line in Path(citu.log).read_text().splitlines() if '"level":"ERROR"' in line
        ]
        assert faults == []
