"""Citu over AG-UI: its events beside those of the other endpoints, and mistakes. The protocol's own
client is in `test_protocol_clients.py`.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app_config import Settings
from tests.support.asking import Asking
from tests.support.live import GAUGES
from tests.support.openai_replies import Called, Reply
from tests.support.openai_server import OpenAiServer

RANKING = "查询各服务区的营业收入排行"


@pytest.fixture(scope="module")
def ruled(demo_url: str) -> Iterator[Asking]:
    with Asking(Settings(database_url=demo_url)) as asking:
        yield asking


def events(asking: Asking, question: str, **more: Any) -> list[dict[str, Any]]:
    message = {"id": "1", "role": "user", "content": question}
    body = {"threadId": "t", "runId": "r", "messages": [message], **more}
    with asking.client.post("/api/agui", json=body) as response:
        assert response.status_code == 200, response.get_data()
        text = response.get_data().decode()
    lines = [line for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_an_answer_is_that_of_the_other_endpoints(ruled: Asking) -> None:
    for question in (RANKING, "revenue by service area", "你好", "xyzzy of plugh"):
        found = events(ruled, question)
        _, envelope = ruled.sync({"question": question})
        expected = envelope["data"]
        (state,) = [one["snapshot"] for one in found if one["type"] == "STATE_SNAPSHOT"]
        for name in ("response", "sql", "query_result", "warnings", "choices", "chart"):
            assert state.get(name) == expected.get(name), name
        deltas = [one["delta"] for one in found if one["type"] == "TEXT_MESSAGE_CONTENT"]
        assert "".join(deltas) == expected["response"]
        assert found[-1]["outcome"] == {"type": "success"}


def test_calls_of_tools_have_arguments_results_and_rows(
    make_database: Callable[[str], str],
) -> None:
    query = Called("run_sql", {"sql": "SELECT name FROM gauge ORDER BY 1"})
    replies = iter([Reply(calls=[query]), Reply("gauge 1")])
    with OpenAiServer(lambda _: next(replies, Reply("gauge 1"))) as model:
        settings = Settings(database_url=make_database(GAUGES))
        with Asking(settings, model) as asking:
            found = events(asking, "which gauges?", forwardedProps={"agent": "tool_loop"})
    kinds = [one["type"] for one in found]
    begun = kinds.index("TOOL_CALL_START")
    assert found[begun]["toolCallName"] == "run_sql"
    assert "SELECT name" in json.loads(found[begun + 1]["delta"])["sql"]
    assert kinds[begun + 2] == "TOOL_CALL_END"
    (result,) = [one for one in found if one["type"] == "TOOL_CALL_RESULT"]
    assert result["toolCallId"] == found[begun]["toolCallId"]
    (rows,) = [one["value"] for one in found if one["type"] == "CUSTOM"]
    assert rows["query_result"]["rows"][0] == ["gauge 1"]


def test_a_fault_of_the_program_ends_the_run_visibly(
    ruled: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is as the translator takes it.
    monkeypatch.setattr("api.agui.agui_endpoint.stored_event", lambda _: None)
    assert [event["type"] for event in events(ruled, "你好")] == ["RUN_STARTED", "RUN_ERROR"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "RunAgentInput"),
        ({"runId": "r", "messages": []}, "threadId"),
        ({"threadId": "t", "messages": []}, "runId"),
        ({"threadId": "t", "runId": "r"}, "messages"),
        ({"threadId": "t", "runId": "r", "messages": [{"role": "assistant"}]}, "messages"),
        ({"threadId": "t", "runId": "r", "resume": [{}]}, "interruptId"),
        (
            {
                "threadId": "t",
                "runId": "r",
                "messages": [{"role": "user", "content": "x"}],
                "forwardedProps": {"user_id": "x" * 257},
            },
            "user_id",
        ),
        ({"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": 7}]}, "messages"),
        ({"threadId": "t", "runId": "r", "resume": [{}, {}]}, "resume"),
        (
            {
                "threadId": "t",
                "runId": "r",
                "messages": [{"role": "user", "content": "x"}],
                "forwardedProps": {"agent": "nobody"},
            },
            "agent",
        ),
    ],
)
def test_mistakes_are_refused_before_a_stream_begins(body: Any, said: str, ruled: Asking) -> None:
    response = ruled.client.post("/api/agui", json=body, buffered=True)
    assert response.status_code == 400
    assert said in response.get_json()["data"]["error"]
