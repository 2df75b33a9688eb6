"""Both ask endpoints on every path a question can take: the sync answer and the stream say the
same.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent.flows.ask.labels import LABELS
from app_config import Settings
from tests.support.ask_scenarios import (
    RANKING,
    ROWS_SQL,
    SCENARIOS,
    AskScenario,
    asked_body,
)
from tests.support.asking import Asking, shared_askings, stable
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer


@pytest.fixture(scope="module")
def settings(demo_url: str) -> Settings:
    return Settings(database_url=demo_url, llm_max_retries=0)


@pytest.fixture(scope="module")
def askings(settings: Settings) -> Iterator[Callable[..., Asking]]:
    with shared_askings(settings) as askings:
        yield askings


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_sync_and_stream_end_the_same(
    scenario: AskScenario, askings: Callable[..., Asking], model: OpenAiServer
) -> None:
    replies = scenario.replies or ()
    asking = askings(None if scenario.replies is None else model, **scenario.settings)
    code, answer = asking.sync(scenario.body, *replies)
    events = asking.stream(scenario.body, *replies)
    last = events[-1]

    assert (code, answer["code"], answer["success"]) == (
        scenario.code,
        scenario.code,
        scenario.code == 200,
    )
    assert stable(last) == stable(answer)
    _check_body(answer["data"], scenario)
    _check_stream(events)


def _check_body(data: dict[str, Any], scenario: AskScenario) -> None:
    assert {key: data.get(key) for key in scenario.has} == scenario.has
    if scenario.code == 200:
        assert data["type"] == data["response_type"]
        assert data["execution_path"] == scenario.path
        assert data["usage"]["llm_calls"] == scenario.calls
        assert data["response"]
    else:
        assert data["type"] == "error"
        assert data["error"]
        assert data["request_id"]
        assert data["state_summary"]["execution_path"] == scenario.path


def _check_stream(events: list[dict[str, Any]]) -> None:
    kinds = [event["data"]["type"] for event in events]
    assert set(kinds[:-1]) <= {"progress", "token"}
    assert kinds[-1] in ("completed", "error")
    run_id = events[-1]["data"]["run_id"]
    assert [event["id"] for event in events] == [
        f"{run_id}:{number + 1}" for number in range(len(events))
    ]
    assert len({event["data"]["conversation_id"] for event in events}) == 1
    _check_progress([event["data"] for event in events if event["data"]["type"] == "progress"])


def _check_progress(steps: list[dict[str, Any]]) -> None:
    """Every step runs, then is done or has failed, before the next one runs."""
    assert [step["status"] for step in steps[::2]] == ["running"] * (len(steps) // 2)
    assert {step["status"] for step in steps[1::2]} <= {"done", "failed"}
    assert [step["node"] for step in steps[::2]] == [step["node"] for step in steps[1::2]]
    assert steps[0]["node"] == "classify_question"
    for step in steps:
        shown = LABELS[step["node"]]
        assert (step["icon"], step["display_name"]) == (shown.icon, shown.display_name.zh)
        assert step["details"]
        assert step["sub_status"]
        assert step["state_summary"]["current_step"] == (
            shown.running if step["status"] == "running" else shown.done
        ) or (step["status"] == "failed")


@pytest.fixture(scope="module")
def offline(settings: Settings) -> Iterator[Asking]:
    with Asking(settings) as asking:
        yield asking


@pytest.fixture(scope="module")
def scripted(settings: Settings, model: OpenAiServer) -> Iterator[Asking]:
    with Asking(settings, model) as asking:
        yield asking


def test_the_text_is_streamed_while_it_is_written(scripted: Asking) -> None:
    replies = (Reply(ROWS_SQL), Reply("There are three companies here."))
    events = scripted.stream(asked_body(lang="en"), *replies)
    tokens = [event["data"]["text"] for event in events if event["data"]["type"] == "token"]
    assert len(tokens) > 1
    assert "".join(tokens) == events[-1]["data"]["summary"] == "There are three companies here."
    quiet = scripted.stream(asked_body(lang="en", stream_tokens=False), *replies)
    assert [event for event in quiet if event["data"]["type"] == "token"] == []
    assert stable(quiet[-1]) == stable(events[-1]), "only the tokens are missing"


def test_a_model_that_speaks_in_letters_makes_few_events(scripted: Asking) -> None:
    text = "There are three companies here. " * 500
    events = scripted.stream(asked_body(lang="en"), Reply(ROWS_SQL), Reply(pieces=[*text]))
    tokens = [event["data"]["text"] for event in events if event["data"]["type"] == "token"]
    assert "".join(tokens) == events[-1]["data"]["summary"] == text.strip()
    assert len(tokens) < len(text) / 20


def test_the_steps_of_a_data_question_are_seen_in_order(offline: Asking) -> None:
    events = offline.stream({"question": RANKING})
    steps = [
        (data["node"], data["status"])
        for event in events
        if (data := event["data"])["type"] == "progress"
    ]
    nodes = ["classify_question", "agent_sql_generation", "agent_sql_execution", "format_response"]
    assert steps == [(node, status) for node in nodes for status in ("running", "done")]
    assert events[0]["message"] == "正在执行: 分析问题类型"
    generated = next(
        event["data"]
        for event in events
        if event["data"].get("details", "").startswith("SQL生成成功")
    )
    assert generated["state_summary"]["sql"] == events[-1]["data"]["sql"]


def test_answers_follow_the_language(offline: Asking) -> None:
    _, chinese = offline.sync({"question": "店铺有多少家"})
    _, english = offline.sync({"question": "店铺有多少家", "lang": "en"})
    _, by_question = offline.sync({"question": "how many shops are there"})
    assert chinese["message"] == "处理完成"
    assert english["message"] == by_question["message"] == "Done"
    results = [one["data"]["query_result"] for one in (chinese, english, by_question)]
    assert results[0]["rows"] == results[1]["rows"]
    assert results[1] == results[2]
    assert (results[0]["labels"], results[1]["labels"]) == (["店铺数量"], ["number of shops"])


def test_a_conversation_id_is_kept_or_made(offline: Asking) -> None:
    _, given = offline.sync({"question": "你好", "conversation_id": "my-1"})
    assert given["data"]["conversation_id"] == "my-1"
    _, made = offline.sync({"question": "你好"})
    _, again = offline.sync({"question": "你好"})
    assert made["data"]["conversation_id"].startswith("citu_2")
    assert made["data"]["conversation_id"] != again["data"]["conversation_id"]


def test_exact_decimals_reach_the_client(scripted: Asking, model: OpenAiServer) -> None:
    model.replies(Reply("SELECT 12345678901234567890.123456789 AS x, 0.10 AS y"), Reply("x"))
    response = scripted.client.post("/api/v0/ask_agent", json=asked_body())
    assert b"[12345678901234567890.123456789,0.10]" in response.get_data()


def test_an_answer_with_a_very_long_number_is_read_again(
    scripted: Asking, model: OpenAiServer
) -> None:
    answer = scripted.sync(asked_body(), Reply("SELECT trunc(10::numeric ^ 5000) AS x"))[1]
    assert answer["data"]["query_result"]["rows"] == [["1" + "0" * 5000]], answer
    kept = scripted.client.get(f"/api/v0/runs/{answer['data']['run_id']}")
    assert kept.status_code == 200
    assert kept.json is not None
    assert kept.json["data"]["result"] == answer


def test_an_answer_whose_values_were_cut_says_so(scripted: Asking) -> None:
    data = scripted.sync(
        asked_body(), Reply("SELECT shop_id, repeat('x', 5000000) AS body FROM shop"), Reply("好")
    )[1]["data"]
    assert data["query_result"]["cut_columns"] == ["body"], data
    assert any("body" in warning and "截短" in warning for warning in data["warnings"])
    data = scripted.sync(
        asked_body(), Reply("SELECT repeat('x', 500000) AS body FROM shop LIMIT 1")
    )[1]["data"]
    assert len(data["query_result"]["rows"][0][0]) == 500_000
    assert len(data["response"]) < 1000


@pytest.mark.parametrize("path", ["/api/v0/ask_agent", "/api/v0/ask_agent_stream"])
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "JSON object"),
        (b"question=x", "JSON object"),
        (b"[1]", "JSON object"),
        (b'{"question": "\xff"}', "JSON object"),
        (b'{"question": ""}', "blank"),
        (b'{"question": "x", "routing_mode": "fast"}', "routing_mode"),
        (b'{"question": "' + b"x" * 200_000 + b'"}', "too large"),
    ],
)
def test_bad_bodies_are_refused_before_any_stream(
    offline: Asking, path: str, data: bytes, says: str
) -> None:
    response = offline.client.post(path, data=data, content_type="application/json")
    assert response.status_code == 400
    assert response.json is not None
    assert response.json["data"]["error_type"] == "invalid_request"
    assert says in response.json["data"]["error"]


_ITEM = "/api/v0/knowledge/examples/00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("post", "/api/v0/ask_agent", "question"),
        ("post", "/api/v0/sql/run", "sql"),
        ("post", "/api/v0/sql/validate", "sql"),
        ("post", "/api/v0/feedback", "rating"),
        ("post", "/api/v0/runs/r/resume", "interrupt_id"),
        ("post", "/api/v0/runs/r/cancel", "user_id"),
        ("post", "/api/v0/runs/r/analyze", "what"),
        ("patch", "/api/v0/conversations/c", "title"),
        ("post", f"{_ITEM}/approve", "trust"),
    ],
)
def test_what_is_no_object_is_answered_with_a_body_that_the_endpoint_takes(
    offline: Asking, method: str, path: str, field: str
) -> None:
    response = offline.client.open(
        path, method=method.upper(), data=b"[1]", content_type="application/json"
    )
    assert response.status_code == 400
    assert response.json is not None
    error = response.json["data"]["error"]
    assert field in json.loads(error[error.index("{") : error.rindex("}") + 1])
