"""Questions that ended in an error: kept in their conversation for their user, and for nothing
else, on both stores.
"""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from app_config import Settings
from tests.support.asking import STREAM, Asking, frames
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.redis_server import redis_server

RANKING = "查询各服务区的营业收入排行"
DROP = "DROP TABLE company"


@pytest.fixture(scope="module", params=["postgresql", "redis"])
def store(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Settings of where conversations are kept."""
    if request.param == "postgresql":
        yield {}
        return
    with redis_server() as server:
        yield {"redis_url": server.url}


@pytest.fixture(scope="module")
def asking(store: dict[str, Any], demo_url: str) -> Iterator[Asking]:
    with Asking(Settings(database_url=demo_url), **store) as asking:
        yield asking


@pytest.fixture
def place() -> dict[str, str]:
    """A user and a conversation that nobody has used."""
    return {
        "user_id": f"user {secrets.token_hex(4)}",
        "conversation_id": f"c_{secrets.token_hex(4)}",
        "lang": "zh",
    }


def turns_of(asking: Asking, place: dict[str, str]) -> list[dict[str, Any]]:
    query = {"user_id": place["user_id"]}
    response = asking.client.get(
        f"/api/v0/conversations/{place['conversation_id']}", query_string=query
    )
    assert response.status_code == 200, response.get_data()
    found: list[dict[str, Any]] = json.loads(response.get_data())["data"]["turns"]
    return found


def test_it_is_shown_and_does_not_come_between(asking: Asking, place: dict[str, str]) -> None:
    """Both endpoints keep it alike; what goes on from the answer before still does, one to a
    question back included.
    """
    _, refused = asking.sync({"question": DROP, **place})
    asked_back = asking.sync({"question": "最大的店铺", **place})[1]["data"]
    asking.stream({"question": DROP, **place})
    settled = asking.sync({"question": "月租金", **place})[1]["data"]
    assert "ORDER BY monthly_rent DESC" in settled["sql"]
    asking.sync({"question": RANKING, **place})
    asking.sync({"question": DROP, **place})
    first_three = asking.sync({"question": "只要前三名", **place})[1]["data"]
    assert "营业收入" in first_three["response"] and "LIMIT 3" in first_three["sql"]

    turns = turns_of(asking, place)

    assert ["failure" in turn for turn in turns] == [True, False, True, False, False, True, False]
    by_sync, by_stream, _ = (turn for turn in turns if "failure" in turn)
    assert {**by_sync, "run_id": "", "asked_at": ""} == {**by_stream, "run_id": "", "asked_at": ""}
    data = refused["data"]
    said = {key: data[key] for key in ("error_type", "error", "retryable")}
    assert by_sync["failure"] == {"message": refused["message"], **said}
    assert (by_sync["run_id"], by_sync["response"], by_sync["sql"]) == (
        data["run_id"],
        data["error"],
        DROP,
    )
    assert (by_sync["question_type"], by_sync["routing_mode"]) == (None, None)
    assert turns[1]["choices"] == asked_back["choices"]
    assert asked_back["choices"]


def test_a_conversation_may_begin_with_it(asking: Asking, place: dict[str, str]) -> None:
    asking.sync({"question": DROP, **place})
    listed = json.loads(asking.client.get("/api/v0/conversations", query_string=place).get_data())[
        "data"
    ]
    (conversation,) = listed["conversations"]
    assert (conversation["title"], conversation["turn_count"]) == (DROP, 1)


def test_a_model_is_not_told_of_it(
    store: dict[str, Any], demo_url: str, place: dict[str, str]
) -> None:
    direct = {**place, "routing_mode": "database_direct"}
    with OpenAiServer() as model, Asking(Settings(database_url=demo_url), model, **store) as asking:
        names = "SELECT company_name FROM company"
        asking.sync({"question": "列出公司的名字", **direct}, Reply(names), Reply("三家。"))
        code, _ = asking.sync({"question": "都去掉", **direct}, Reply("DELETE FROM company"))
        assert code == 403
        before = len(model.requests)
        asking.sync(
            {"question": "按名字排序", **direct}, Reply(f"{names} ORDER BY 1"), Reply("三家。")
        )
        told = json.dumps(
            [request.messages for request in model.requests[before:]], ensure_ascii=False
        )
        kept = [turn.get("failure", {}).get("error_type") for turn in turns_of(asking, place)]

    assert "列出公司的名字" in told
    assert "都去掉" not in told and "DELETE FROM" not in told
    assert kept == [None, "forbidden_keywords", None]


def test_one_that_was_stopped_says_so(
    store: dict[str, Any], demo_url: str, place: dict[str, str]
) -> None:
    gate = Gate()
    with OpenAiServer() as model, Asking(Settings(database_url=demo_url), model, **store) as asking:
        model.replies(Reply("SELECT 1", gate=gate))
        body = {"question": "列出公司的名字", "routing_mode": "database_direct", **place}
        with asking.client.post(STREAM, json=body) as response:
            events = response.iter_encoded()
            text = b""
            while b"run_id" not in text:
                text += next(events)
            run_id = next(frames(text.decode().rpartition("\n\n")[0] + "\n\n"))["data"]["run_id"]
            assert gate.reached.wait(30)
            cancelled = asking.client.post(
                f"/api/v0/runs/{run_id}/cancel", json={"user_id": place["user_id"]}
            )
            last = list(frames((text + b"".join(events)).decode()))[-1]
        gate.open()
        (turn,) = turns_of(asking, place)

    assert cancelled.status_code == 200
    assert (turn["run_id"], turn["question"]) == (run_id, body["question"])
    assert turn["failure"]["error_type"] == last["data"]["error_type"] == "cancelled"
