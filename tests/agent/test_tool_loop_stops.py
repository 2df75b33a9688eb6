"""Questions to `tool_loop` that are cancelled or left: SQL ends, the model is not asked again, the
next one works.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.http_stream import PING_S, Stream, post_json
from tests.support.live import GONE_S, Citu, Watch, eventually, serving
from tests.support.openai_replies import Called, Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import STREAM, SYNC, send
from tests.support.tool_scripts import following, results

CONVERSATION = "interrupted"
ASK = {"question": "how many gauges", "agent": "tool_loop", "conversation_id": CONVERSATION}


def running(*sqls: str) -> Reply:
    """A reply that runs these statements."""
    return Reply(calls=[Called("run_sql", {"sql": sql}) for sql in sqls])


ROWS, ENDLESS = "SELECT n, name FROM gauge", "SELECT n FROM endless"


@pytest.fixture(scope="module")
def citu(
    model: OpenAiServer, database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Citu]:
    log = tmp_path_factory.mktemp("citu") / "log"
    settings = {
        "DATABASE_URL": database,
        "MAX_STREAMS": "2",
        "PING_INTERVAL_S": str(PING_S),
        "LLM_MAX_RETRIES": "0",
    }
    with serving(log, model=model, **settings) as citu:
        yield citu


def is_answered(citu: Citu, model: OpenAiServer) -> bool:
    """Tell whether the next question of the conversation is answered, with calls of tools in it."""
    model.default = following([running(ROWS), Reply("There are 3.")])
    status, envelope = post_json(citu.port, SYNC, ASK)
    assert status in (200, 503), envelope
    return status == 200 and envelope["data"]["response"] == "There are 3."


def nothing_goes_on(citu: Citu, watch: Watch, model: OpenAiServer, asked: int) -> None:
    """No SQL runs, the model was not asked again, and the next question of the conversation is
    answered.
    """
    eventually(lambda: not watch.running("endless"), GONE_S)
    assert len(model.requests) == asked
    eventually(lambda: is_answered(citu, model))


def test_cancelling_a_run_ends_its_sql(citu: Citu, watch: Watch, model: OpenAiServer) -> None:
    model.default = following([running(ROWS, ENDLESS, ROWS), Reply("never")])
    with Stream(citu.port, STREAM, ASK) as stream:
        events = stream.events()
        run_id = next(events)["data"]["run_id"]
        eventually(lambda: watch.running("endless"))
        asked = len(model.requests)
        status, envelope = post_json(citu.port, f"/api/v0/runs/{run_id}/cancel", {})
        assert (status, envelope["data"]["state"]) == (200, "cancelled")
        told = list(events)
        assert told[-1]["data"]["error_type"] == "cancelled"
    assert [one["data"]["status"] for one in told if one["data"]["type"] == "tool"][-1] == "running"
    nothing_goes_on(citu, watch, model, asked)


@pytest.mark.parametrize("path", [SYNC, STREAM])
def test_a_client_that_leaves_ends_the_sql(
    path: str, citu: Citu, watch: Watch, model: OpenAiServer
) -> None:
    model.default = following([running(ENDLESS), Reply("never")])
    with send(citu.port, path, ASK):
        eventually(lambda: watch.running("endless"))
        asked = len(model.requests)
    nothing_goes_on(citu, watch, model, asked)


@pytest.mark.parametrize("before", [0, 1])
def test_a_client_that_leaves_ends_the_reply(
    before: int, citu: Citu, watch: Watch, model: OpenAiServer
) -> None:
    gate = Gate()
    held = Reply(pieces=["Let me ", gate, "see."])
    model.default = following([*[running(ROWS)] * before, held])
    with send(citu.port, STREAM, ASK):
        assert gate.reached.wait(60)
        asked = len(model.requests)
    assert model.requests[-1].disconnected.wait(GONE_S)
    nothing_goes_on(citu, watch, model, asked)


def test_a_stream_may_be_left_after_any_event(
    citu: Citu, watch: Watch, model: OpenAiServer
) -> None:
    left_after, has_more = 0, True
    while has_more:
        model.default = following([running(ROWS), running(ROWS.lower(), ENDLESS), Reply("never")])
        with Stream(citu.port, STREAM, ASK) as stream:
            has_more = stream.read_events(left_after, lambda: bool(watch.running("endless")))
        eventually(lambda: not watch.running("endless"), GONE_S)
        eventually(lambda: is_answered(citu, model))
        left_after += 1
    assert left_after > 10, "there were events to leave after"


def test_events_of_tools_are_replayed_from_any_on(citu: Citu, model: OpenAiServer) -> None:
    model.default = following([running(ROWS), Reply("There are 3.")])
    with Stream(citu.port, STREAM, ASK) as stream:
        live: list[dict[str, Any]] = list(stream.events())
    kinds = [event["data"]["type"] for event in live]
    assert kinds.count("tool") == 2
    assert kinds.count("result") == 1
    run_id = live[0]["data"]["run_id"]
    for after in range(len(live)):
        with Stream(
            citu.port, f"/api/v0/runs/{run_id}/events?after={after}", None, method="GET"
        ) as stream:
            assert list(stream.events()) == live[after:]


def test_a_run_goes_on_without_its_client_when_it_is_told_to(
    citu: Citu, watch: Watch, model: OpenAiServer
) -> None:
    gate = Gate()
    model.default = following([running(ROWS), Reply("There are 3.", gate=gate)])
    with Stream(citu.port, STREAM, {**ASK, "on_disconnect": "continue"}) as stream:
        run_id = next(stream.events())["data"]["run_id"]
        assert gate.reached.wait(60)
    gate.open()
    with Stream(citu.port, f"/api/v0/runs/{run_id}/events", None, method="GET") as stream:
        assert list(stream.events())[-1]["data"]["response"] == "There are 3."
    assert results(model.requests[-1])
