"""Workers and the store are restarted while questions are answered: no turn is lost or doubled, no
run hangs.

Two services of two gunicorn workers for each adapter, over a server of the tests' own. The leases
of `deployment` outlast every test: however busy the machine is, no worker that lives is declared
dead. `frail` is the one whose workers die.
"""

import asyncio
import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import count
from typing import Any

import pytest

from common.actor import ANONYMOUS
from common.logs import PACKAGES
from tests.support.http_stream import Stream, get_json, post_json
from tests.support.live import GAUGES, ROOT, Citu, children, eventually, serving_by_gunicorn
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import CHAT, STREAM, SYNC, post, scripted
from tests.support.store_servers import StoreServer

RUNS, CONVERSATIONS = "/api/v0/runs", "/api/v0/conversations"
WORKERS = 2
STORE_TIMEOUT_S = 1.0
LONG_LEASE_S, SHORT_LEASE_S = 300.0, 3.0
PIECES = ["One ", "two ", "three."]
BACK_S = 30.0  # until a restarted store is noticed and all waiting runs are kept


@dataclass(frozen=True)
class Deployment:
    """A service, and the server its store is on."""

    citu: Citu
    place: StoreServer
    model: OpenAiServer

    @property
    def port(self) -> int:
        return self.citu.port

    def workers(self) -> list[int]:
        return children(self.citu.process.pid)


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


Build = Callable[[float], AbstractContextManager[Deployment]]


@pytest.fixture(scope="module")
def build(
    place: StoreServer,
    model: OpenAiServer,
    make_database: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Build:
    """Starts a service whose runs have leases of so many seconds."""
    settings = {
        "DATABASE_URL": make_database(GAUGES),
        "DATA_DIR": str(tmp_path_factory.mktemp("data")),
        "PING_INTERVAL_S": "0.2",
        "STORE_TIMEOUT_S": str(STORE_TIMEOUT_S),
        "GUNICORN_CMD_ARGS": "--preload",  # imports once, so that new workers start at once
    }
    settings |= (
        {"REDIS_URL": place.url} if place.name == "redis" else {"APP_DATABASE_URL": place.url}
    )

    @contextmanager
    def begin(lease_s: float) -> Iterator[Deployment]:
        log = tmp_path_factory.mktemp("citu") / "log"
        more = settings | {"RUN_LEASE_S": str(lease_s)}
        with serving_by_gunicorn(
            ROOT / "gunicorn.conf.py", log, model=model, workers=str(WORKERS), **more
        ) as citu:
            deployment = Deployment(citu, place, model)
            eventually(lambda: len(deployment.workers()) == WORKERS, 30)
            eventually(lambda: _is_ready(deployment), 30)
            yield deployment

    return begin


@pytest.fixture(scope="module")
def deployment(build: Build) -> Iterator[Deployment]:
    with build(LONG_LEASE_S) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def frail(build: Build) -> Iterator[Deployment]:
    with build(SHORT_LEASE_S) as deployment:
        yield deployment


def _is_ready(deployment: Deployment) -> bool:
    try:
        return bool(
            get_json(deployment.port, "/ready")[1]["data"].get("store", {}).get("status") == "ok"
        )
    except (OSError, HTTPException):
        return False


_numbers = count()


def talk(**more: Any) -> dict[str, Any]:
    """A question in a conversation of its own."""
    return {**CHAT, "conversation_id": f"c-{next(_numbers)}", **more}


def blocks(stream: Stream) -> list[str]:
    """The frames still to come, as they are on the wire; pings and `retry:` left out."""
    found = []
    while block := stream.next_block():
        if block.startswith("id:"):
            found.append(block)
    return found


def next_frame(stream: Stream) -> str:
    while not (block := stream.next_block()).startswith("id:"):
        assert block, "the stream has ended"
    return block


def read_until(stream: Stream, seen: list[str], said: str) -> None:
    """Reads on until what the model has said, in tokens, is `said`."""
    while "".join(data_of(block)["data"].get("text", "") for block in seen) != said:
        seen.append(next_frame(stream))


def data_of(block: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(block.partition("data: ")[2])
    return found


def run_of(block: str) -> str:
    return block.partition("id: ")[2].partition(":")[0]


def replay(deployment: Deployment, run_id: str, headers: dict[str, str] | None = None) -> list[str]:
    path = f"{RUNS}/{run_id}/events"
    with Stream(deployment.port, path, None, method="GET", **(headers or {})) as stream:
        assert stream.status == 200, stream.next_block()
        return blocks(stream)


def state_of(deployment: Deployment, run_id: str) -> str:
    """The state in the store; empty while the store can't be read."""
    status, envelope = get_json(deployment.port, f"{RUNS}/{run_id}")
    return str(envelope["data"]["state"]) if status == 200 else ""


def turns_of(deployment: Deployment, conversation_id: str) -> list[str] | None:
    """The runs that are turns of a conversation; None while the store can't be read."""
    status, envelope = get_json(deployment.port, f"{CONVERSATIONS}/{conversation_id}?limit=100")
    if status == 404:
        return []
    return [turn["run_id"] for turn in envelope["data"]["turns"]] if status == 200 else None


def is_warned(envelope: dict[str, Any]) -> bool:
    return any("may not be kept" in warning for warning in envelope["data"]["warnings"])


# ------------------------------------------------------------------------------
# the store restarts


@contextmanager
def stopped(place: StoreServer, how: signal.Signals) -> Iterator[None]:
    place.stop(how)
    try:
        yield
    finally:
        place.start()


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGTERM, id="stopped", marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, id="killed"),
    ],
)
def test_no_answer_of_a_time_without_store_is_lost(
    how: signal.Signals, deployment: Deployment
) -> None:
    gate, asks = Gate(), [talk() for _ in range(5)]
    held = Reply(pieces=["One ", gate, "two ", "three."]), Reply("One two three.", gate=gate)
    with (
        ThreadPoolExecutor() as threads,
        scripted(deployment.model, *held),
        Stream(deployment.port, STREAM, asks[0]) as stream,
    ):
        begun = [next_frame(stream) for _ in range(2)]
        assert gate.reached.wait(60)
        sync = threads.submit(post_json, deployment.port, SYNC, asks[1])
        eventually(lambda: deployment.model.in_flight == 2)
        with stopped(deployment.place, how):
            gate.open()
            live = begun + blocks(stream)
            answers = [data_of(live[-1]), sync.result()[1]]
            for ask in asks[2:4]:  # begun and answered without a store
                status, envelope = post_json(deployment.port, SYNC, ask)
                assert status == 200
                answers.append(envelope)
            with Stream(deployment.port, STREAM, asks[4]) as other:
                late = blocks(other)
            answers.append(data_of(late[-1]))
            assert all(map(is_warned, answers))
    for ask, envelope in zip(asks, answers, strict=True):
        run_id = envelope["data"]["run_id"]
        eventually(lambda ask=ask: turns_of(deployment, ask["conversation_id"]), BACK_S)  # type: ignore[misc]
        assert turns_of(deployment, ask["conversation_id"]) == [run_id]
        assert state_of(deployment, run_id) == "completed"
    assert replay(deployment, run_of(live[0])) == live
    assert replay(deployment, run_of(late[0])) == late
    _answers_without_warning(deployment)


def _answers_without_warning(deployment: Deployment) -> None:
    """Waits until an answer has no warning, whichever worker gives it."""

    def is_as_before() -> bool:
        return not any(
            is_warned(post_json(deployment.port, SYNC, talk())[1]) for _ in range(2 * WORKERS)
        )

    eventually(is_as_before, BACK_S)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_run_goes_on_over_a_restart_of_the_store(
    how: signal.Signals, deployment: Deployment
) -> None:
    gate, late, ask = Gate(), Gate(), talk()
    with (
        scripted(deployment.model, Reply(pieces=["One", gate, " two", late, " three."])),
        Stream(deployment.port, STREAM, ask) as stream,
    ):
        live: list[str] = []
        read_until(stream, live, "One")
        with stopped(deployment.place, how):
            gate.open()
            read_until(stream, live, "One two")
        run_id = run_of(live[0])
        # What was shown without a store is kept while the run still goes on: others can follow it.
        eventually(lambda: _kept(deployment, run_id) >= len(live), BACK_S)
        late.open()
        live += blocks(stream)
    assert not is_warned(data_of(live[-1]))
    assert replay(deployment, run_id) == live
    assert turns_of(deployment, ask["conversation_id"]) == [run_id]


def _kept(deployment: Deployment, run_id: str) -> int:
    """How many events of a run the store has."""

    async def look() -> int:
        store = deployment.place.open()
        try:
            record = await store.runs.find(ANONYMOUS, run_id)
        finally:
            await store.aclose()
        return record.last_seq if record else 0

    return asyncio.run(look())


@pytest.mark.slow
def test_a_silent_store_is_waited_for_once(deployment: Deployment) -> None:
    asks = [talk() for _ in range(8)]
    with deployment.place.silent():
        for _ in range(4 * WORKERS):  # each worker has to find out once
            assert is_warned(post_json(deployment.port, SYNC, talk())[1])
        waits_s = []
        for number, ask in enumerate(asks):
            begun = time.monotonic()
            with Stream(
                deployment.port,
                STREAM,
                ask,
                **{"Idempotency-Key": f"silent-{deployment.place.name}-{number}"},
            ) as stream:
                assert is_warned(data_of(blocks(stream)[-1]))
            waits_s.append(time.monotonic() - begun)
    # Waiting each time, not even the quickest would be done sooner; others a busy machine delays.
    assert min(waits_s) < STORE_TIMEOUT_S
    for ask in asks:
        eventually(lambda ask=ask: turns_of(deployment, ask["conversation_id"]), BACK_S)  # type: ignore[misc]
    assert [len(turns_of(deployment, ask["conversation_id"]) or ()) for ask in asks] == [1] * len(
        asks
    )
    _answers_without_warning(deployment)


def test_a_store_that_lost_everything_learns_of_the_run_again(deployment: Deployment) -> None:
    if deployment.place.lose is None:
        pytest.skip("it doesn't lose anything")
    gate, late, ask = Gate(), Gate(), talk()
    with (
        scripted(deployment.model, Reply(pieces=["One", gate, " two", late, " three."])),
        Stream(deployment.port, STREAM, ask) as stream,
    ):
        live: list[str] = []
        read_until(stream, live, "One")
        deployment.place.lose()
        gate.open()
        read_until(stream, live, "One two")
        assert state_of(deployment, run_of(live[0])) == "running"
        eventually(
            lambda: _kept(deployment, run_of(live[0])) == len(live)
        )  # nobody waits until a piece of text is written
        deployment.place.lose()  # nothing is written between this and the end
        late.open()
        live += blocks(stream)
    assert state_of(deployment, run_of(live[0])) == "completed"
    assert replay(deployment, run_of(live[0])) == live
    assert turns_of(deployment, ask["conversation_id"]) == [run_of(live[0])]


# ------------------------------------------------------------------------------
# workers are killed


def test_a_killed_worker_s_runs_end_and_the_others_go_on(frail: Deployment) -> None:
    gate, asks = Gate(), [talk() for _ in range(6)]
    with (
        scripted(frail.model, *[Reply(pieces=["One ", gate, "two."]) for _ in asks]),
        ExitStack() as stack,
    ):
        streams = [stack.enter_context(Stream(frail.port, STREAM, ask)) for ask in asks]
        seen = [[next_frame(stream) for _ in range(3)] for stream in streams]
        eventually(lambda: frail.model.in_flight == len(asks))
        doomed = frail.workers()[0]
        os.kill(doomed, signal.SIGKILL)
        eventually(lambda: doomed not in frail.workers() and len(frail.workers()) == WORKERS, 30)
        gate.open()
        for known, stream in zip(seen, streams, strict=True):
            known += _rest(stream)
    for ask, known in zip(asks, seen, strict=True):
        run_id = run_of(known[0])
        end = _end(frail, run_id)
        replayed = replay(frail, run_id)
        is_cut_off = data_of(known[-1])["data"]["type"] not in ("completed", "error")
        assert end == ("error" if is_cut_off else "completed")
        assert replayed[: len(known)] == known
        assert len(replayed) > len(known) if is_cut_off else replayed == known
        assert turns_of(frail, ask["conversation_id"]) == [run_id]


def _rest(stream: Stream) -> list[str]:
    """The remaining whole frames of a stream that may be cut off."""
    try:
        return [block for block in blocks(stream) if "\ndata: {" in block and block.endswith("}")]
    except (OSError, HTTPException):
        return []


def _ended(deployment: Deployment, run_id: str) -> str | None:
    state = state_of(deployment, run_id)
    return state if state not in ("", "running") else None


@pytest.mark.slow
def test_workers_and_store_killed_together(frail: Deployment) -> None:
    """After that only the store knows the runs."""
    gate, ask = Gate(), talk()
    with (
        scripted(frail.model, Reply(pieces=["One", gate])),
        Stream(frail.port, STREAM, ask) as stream,
    ):
        known: list[str] = []
        read_until(stream, known, "One")
        frail.place.flush()  # a worker would write again what the store has lost
        doomed = frail.workers()
        with stopped(frail.place, signal.SIGKILL):
            for worker in doomed:
                os.kill(worker, signal.SIGKILL)
        known += _rest(stream)
    eventually(lambda: len(set(frail.workers()) - set(doomed)) == WORKERS, 30)
    eventually(lambda: _is_ready(frail), 30)
    assert _end(frail, run_of(known[0])) == "error"
    assert replay(frail, run_of(known[0]))[: len(known)] == known
    assert turns_of(frail, ask["conversation_id"]) == [run_of(known[0])]


# ------------------------------------------------------------------------------
# clients are cut off


def test_a_client_cut_off_at_any_byte_misses_nothing(deployment: Deployment) -> None:
    request = post(STREAM, talk(on_disconnect="continue"))
    with scripted(deployment.model, Reply(pieces=PIECES)):
        whole = _read(deployment, request)
    ends = [at + 2 for at in range(len(whole)) if whole.startswith(b"\n\n", at)]
    inside = [(before + after) // 2 for before, after in zip(ends, ends[1:], strict=False)]
    resumed = 0
    for size in (*ends[1:-1:3], *inside[::2]):
        with scripted(deployment.model, Reply(pieces=PIECES)):
            part = _read(deployment, post(STREAM, talk(on_disconnect="continue")), size)
            # Pings may come first; a client that is cut off within its first id can't resume.
            if "\ndata: " not in part.decode():
                continue
            known = [block for block in part.decode().split("\n\n")[:-1] if block.startswith("id:")]
            run_id = run_of(part.decode())
            last_id = known[-1].partition("\n")[0].removeprefix("id: ") if known else f"{run_id}:0"
            rest = replay(deployment, run_id, {"Last-Event-ID": last_id})
        assert known + rest == replay(deployment, run_id)
        assert data_of(rest[-1])["data"]["response"] == "".join(PIECES)
        resumed += 1
    assert resumed > 5


def _read(deployment: Deployment, request: bytes, size: int | None = None) -> bytes:
    """The body of a stream, its chunks put together, up to a number of bytes."""
    with socket.create_connection(("127.0.0.1", deployment.port), timeout=30) as client:
        client.sendall(request)
        with client.makefile("rb") as lines:
            while lines.readline().strip():
                pass
            body = b""
            while (length := int(lines.readline(), 16)) and (size is None or len(body) < size):
                body += lines.read(length)
                lines.readline()
    return body if size is None else body[:size]


# ------------------------------------------------------------------------------
# anything


@dataclass
class Told:
    """What the server told clients: completed runs by conversation, and runs by Idempotency-Key."""

    completed: dict[str, set[str]] = field(default_factory=dict)
    streams: dict[str, list[str]] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    by_key: dict[str, set[str]] = field(default_factory=dict)

    def note(self, envelope: dict[str, Any], key: str | None) -> None:
        data = envelope["data"]
        run_id = data["run_id"]
        self.runs.add(run_id)
        if envelope["code"] == 200:
            self.completed.setdefault(data["conversation_id"], set()).add(run_id)
            if key:
                self.by_key.setdefault(key, set()).add(run_id)
        elif envelope["code"] == 499:
            self.cancelled.add(run_id)


class Client:
    """Does random things one after another; shares conversations and keys with other clients."""

    def __init__(self, deployment: Deployment, seed: int, name: str) -> None:
        self._house = deployment
        self._chance = random.Random(seed)
        self._name = name
        self.told = Told()

    def act(self, times: int) -> Told:
        for _ in range(times):
            action = self._chance.choice(
                [self._ask, self._ask, self._stream, self._stream, self._leave, self._follow]
            )
            action()
        return self.told

    def _body(self, key: str | None) -> dict[str, Any]:
        # The same request for the same key.
        conversation = key or f"{self._name}-{self._chance.randrange(3)}"
        return {**CHAT, "conversation_id": conversation}

    def _key(self) -> str | None:
        return self._chance.choice([None, f"{self._name}-key-{self._chance.randrange(6)}"])

    def _ask(self) -> None:
        key = self._key()
        headers = {"Idempotency-Key": key} if key else {}
        status, envelope = post_json(self._house.port, SYNC, self._body(key), **headers)
        assert status in (200, 409, 499), envelope
        self.told.note(envelope, key)

    def _stream(self) -> None:
        key = self._key()
        headers = {"Idempotency-Key": key} if key else {}
        with Stream(self._house.port, STREAM, self._body(key), **headers) as stream:
            assert stream.status == 200
            first = next_frame(stream)
            run_id = run_of(first)
            if self._chance.random() < 0.2:
                status, envelope = post_json(self._house.port, f"{RUNS}/{run_id}/cancel", {})
                assert status in (200, 202), envelope
            frames = [first, *blocks(stream)]
        self.told.streams[run_id] = frames
        self.told.note(data_of(frames[-1]), key)

    def _leave(self) -> None:
        key = self._key()
        body = {
            **self._body(key),
            **({} if key else {"on_disconnect": self._chance.choice(["cancel", "continue"])}),
        }
        headers = {"Idempotency-Key": key} if key else {}
        with Stream(self._house.port, STREAM, body, **headers) as stream:
            frames = [next_frame(stream)]
            for _ in range(self._chance.randrange(4)):
                block = stream.next_block()
                if not block:
                    break
                frames += [block] if block.startswith("id:") else []
        self.told.runs.add(run_of(frames[0]))

    def _follow(self) -> None:
        if not self.told.runs:
            return
        run_id = self._chance.choice(sorted(self.told.runs))
        after = self._chance.randrange(4)
        with Stream(
            self._house.port, f"{RUNS}/{run_id}/events?after={after}", None, method="GET"
        ) as stream:
            assert stream.status in (200, 204)
            if stream.status == 200:
                blocks(stream)


def chaos(
    deployment: Deployment,
    seed: int,
    clients: int,
    times: int,
    faults: Callable[[random.Random], None],
) -> None:
    """Clients act at once, `faults` happen meanwhile; afterwards what they were told holds."""
    chance = random.Random(seed)

    def script(_request: object) -> Reply:
        return Reply(pieces=["One ", chance.choice([0.0, 0.01, 0.05]), "two."])

    before, deployment.model.default = deployment.model.default, script
    try:
        with ThreadPoolExecutor(clients) as threads:
            names = [
                f"{deployment.place.name}-{seed}-{number // 2}" for number in range(clients)
            ]  # two share a name
            playing: list[Future[Told]] = [
                threads.submit(Client(deployment, seed * 100 + number, name).act, times)
                for number, name in enumerate(names)
            ]
            faults(chance)
            told = [each.result() for each in playing]
    finally:
        deployment.model.default = before
    _holds(deployment, told, f"seed {seed}")


def _end(deployment: Deployment, run_id: str) -> str:
    return eventually(lambda: _ended(deployment, run_id), 30)


def _turns_with(deployment: Deployment, conversation: str, said: set[str]) -> list[str]:
    """A conversation's turns, once all that clients were told are among them."""

    def look() -> list[str] | None:
        turns = turns_of(deployment, conversation)
        return turns if turns is not None and said <= set(turns) else None

    return eventually(look, BACK_S)


def _holds(deployment: Deployment, told: list[Told], seed: str) -> None:
    ends = {run_id: _end(deployment, run_id) for each in told for run_id in each.runs}
    completed = {run_id for each in told for runs in each.completed.values() for run_id in runs}
    for run_id in completed:
        assert ends[run_id] == "completed", seed
    for conversation in {name for each in told for name in each.completed}:
        said = {run_id for each in told for run_id in each.completed.get(conversation, ())}
        turns = _turns_with(deployment, conversation, said)
        assert len(turns) == len(set(turns)), f"{seed}: a turn was doubled"
    for each in told:
        for run_id, frames in each.streams.items():
            assert replay(deployment, run_id) == frames, seed
    keys = {key for each in told for key in each.by_key}
    for key in keys:
        assert len({run_id for each in told for run_id in each.by_key.get(key, ())}) == 1, (
            f"{seed}: {key} ran twice"
        )


@pytest.mark.slow
def test_whatever_clients_do(deployment: Deployment) -> None:
    seed = int(os.environ.get("CITU_TEST_SEED") or random.randrange(10**6))
    chaos(deployment, seed, clients=6, times=8, faults=lambda _: None)


def test_a_hundred_times_the_same_request_is_one_answer(deployment: Deployment) -> None:
    asked, key = (
        len(deployment.model.requests),
        {"Idempotency-Key": f"hundred-{deployment.place.name}"},
    )
    body = talk()

    def ask(number: int) -> str:
        if number % 2:
            status, envelope = post_json(deployment.port, SYNC, body, **key)
            assert status in (200, 409), envelope
            return str(envelope["data"]["run_id"])
        with Stream(deployment.port, STREAM, body, **key) as stream:
            assert stream.status == 200, stream.next_block()
            return run_of(blocks(stream)[-1])

    # Fewer at once than one caller's share, whichever worker takes them.
    with ThreadPoolExecutor(30) as threads:
        runs = set(threads.map(ask, range(100)))
    assert len(runs) == 1
    assert len(deployment.model.requests) == asked + 1
    assert turns_of(deployment, body["conversation_id"]) == list(runs)


def test_the_log_of_it_all_is_short_and_keeps_secrets(deployment: Deployment) -> None:
    text = deployment.citu.log.read_text()
    assert deployment.place.url not in text
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    told = [line for line in lines if line["logger"].startswith(PACKAGES)]
    assert [line for line in told if line["level"] == "ERROR"] == []
    assert any(line["message"].endswith("is back") for line in told)
    about_store = [line for line in told if line["logger"].startswith("store")]
    assert len(about_store) <= 20, "not once for each question"
