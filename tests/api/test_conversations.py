"""Conversations over HTTP, on both stores: listed, read, named, cleared and forgotten by their user
alone.
"""

import json
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.access.key_file import KeyFile
from app_config import Settings
from common.runtime import run
from common.values import Turn
from store import RunEnd, RunHead, RunWrite
from tests.support.api_schemas import check_schema
from tests.support.asking import Asking
from tests.support.effort import tries
from tests.support.redis_server import redis_server

LIST = "/api/v0/conversations"


@pytest.fixture(scope="module", params=["postgresql", "redis"])
def asking(request: pytest.FixtureRequest, demo_url: str) -> Iterator[Asking]:
    if request.param == "postgresql":
        with Asking(Settings(database_url=demo_url)) as asking:
            yield asking
        return
    with (
        redis_server() as server,
        Asking(Settings(database_url=demo_url), redis_url=server.url) as asking,
    ):
        yield asking


@pytest.fixture
def user() -> str:
    """A new user."""
    return f"用户 {secrets.token_hex(4)}"


def call(
    asking: Asking, method: str, path: str, body: dict[str, Any] | None = None, **query: Any
) -> tuple[int, dict[str, Any]]:
    """Status and data."""
    response = asking.client.open(path, method=method, json=body, query_string=query)
    envelope = json.loads(response.get_data())
    assert (envelope["code"], envelope["success"]) == (
        response.status_code,
        response.status_code == 200,
    )
    assert ("Retry-After" in response.headers) == (response.status_code == 503)
    return response.status_code, envelope["data"]


def read(asking: Asking, path: str, schema: str, **query: Any) -> dict[str, Any]:
    """The data of an answer, which must be a success and match its schema."""
    code, data = call(asking, "GET", path, **query)
    assert code == 200, data
    check_schema(schema, data)
    return data


def listed(asking: Asking, **query: Any) -> dict[str, Any]:
    return read(asking, LIST, "ConversationList", **query)


def shown(asking: Asking, conversation_id: str, **query: Any) -> dict[str, Any]:
    return read(asking, f"{LIST}/{conversation_id}", "ConversationPage", **query)


def keep(asking: Asking, user: str, conversation_id: str, *questions: str) -> None:
    """Turns as runs leave them, one second apart."""
    for number, question in enumerate(questions):
        asked_at = f"2026-01-01T00:00:{number:02}.000Z"
        run_id = f"run_{secrets.token_hex(8)}"
        head = RunHead(run_id, user, conversation_id, question, "zh", "worker", asked_at)
        turn = Turn(run_id, question, "CHAT", "hybrid", f"{question}!", asked_at)
        write = RunWrite(head, end=RunEnd("completed", turn))
        run(asking.services.store.runs.write([write]), timeout_s=10)


def titles(data: dict[str, Any]) -> list[str]:
    return [conversation["title"] for conversation in data["conversations"]]


def questions(data: dict[str, Any]) -> list[str]:
    return [turn["question"] for turn in data["turns"]]


# ------------------------------------------------------------------------------
# reading


def test_what_was_asked_is_found_again(asking: Asking, user: str) -> None:
    _, first = asking.sync({"question": "查询各服务区的营业收入排行", "user_id": user})
    conversation_id = first["data"]["conversation_id"]
    asking.sync({"question": "你好", "user_id": user, "conversation_id": conversation_id})

    page = shown(asking, conversation_id, user_id=user)
    data_turn, chat_turn = page["turns"]
    answer = first["data"]
    assert page["conversation"] == listed(asking, user_id=user)["conversations"][0]
    assert page["conversation"]["title"] == "各服务区的营业收入排行"
    assert page["conversation"]["turn_count"] == 2
    assert page["next_cursor"] is None
    assert data_turn["run_id"] == answer["run_id"]
    assert (data_turn["response"], data_turn["sql"]) == (answer["response"], answer["sql"])
    assert (data_turn["question_type"], data_turn["routing_mode"]) == ("DATABASE", "hybrid")
    result = answer["query_result"]
    assert (data_turn["columns"], data_turn["row_count"]) == (
        result["columns"],
        result["row_count"],
    )
    assert data_turn["rows"] == result["rows"]
    for key in ("totals", "conditions", "labels", "units"):
        assert data_turn[key] == result[key]
    assert data_turn["chart"] == answer["chart"]
    assert (chat_turn["question"], chat_turn["question_type"]) == ("你好", "CHAT")
    assert (chat_turn["sql"], chat_turn["row_count"], chat_turn["columns"], chat_turn["rows"]) == (
        None,
        None,
        [],
        [],
    )


def test_what_a_question_was_understood_as_is_kept_and_not_shown(asking: Asking, user: str) -> None:
    conversation_id = f"c_{secrets.token_hex(4)}"
    asked = [
        "最大的店铺",
        "月租金",
        "revenue by service area last month",
        "only the top 3",
        "in 浙江省",
    ]
    answers = []
    for question in asked:
        body = {"question": question, "user_id": user, "conversation_id": conversation_id}
        answers.append(asking.sync(body)[1]["data"])
    assert answers[0]["sql_generation_failed"] is True
    assert "ORDER BY monthly_rent DESC" in answers[1]["sql"] and "shop_name" in answers[1]["sql"]
    assert all(
        part in answers[4]["sql"]
        for part in ("LIMIT 3", "浙江省", "INTERVAL '1 month'", "service_area_name")
    )
    kept = run(asking.services.store.conversations.recent(user, conversation_id, 10), timeout_s=10)
    assert [sorted(turn.understood or ()) for turn in kept] == [
        ["pending", "version"], *[["query", "version"]] * 4
    ]  # fmt: skip
    assert "understood" not in json.dumps([answers, shown(asking, conversation_id, user_id=user)])


def test_a_question_without_a_user_is_nobody_s(asking: Asking) -> None:
    _, envelope = asking.sync({"question": "你好"})
    conversation_id = envelope["data"]["conversation_id"]
    assert conversation_id in [
        conversation["conversation_id"]
        for conversation in listed(asking, limit=100)["conversations"]
    ]
    assert call(asking, "GET", f"{LIST}/{conversation_id}", user_id="somebody")[0] == 404


def test_conversations_are_paged_to_the_end(asking: Asking, user: str) -> None:
    for number in range(5):
        keep(asking, user, f"c{number}", *["q"] * (number + 1))  # the later ones were updated later

    found: list[str] = []
    cursor: dict[str, str] = {}
    sizes = []
    while True:
        page = listed(asking, user_id=user, limit=2, **cursor)
        found += [conversation["conversation_id"] for conversation in page["conversations"]]
        sizes.append(len(page["conversations"]))
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}

    assert found == ["c4", "c3", "c2", "c1", "c0"]
    assert sizes == [2, 2, 1]


def test_turns_are_paged_back_to_the_first(asking: Asking, user: str) -> None:
    keep(asking, user, "c", *"abcde")

    latest = shown(asking, "c", user_id=user, limit=2)
    middle = shown(asking, "c", user_id=user, limit=2, cursor=latest["next_cursor"])
    first = shown(asking, "c", user_id=user, limit=2, cursor=middle["next_cursor"])

    assert [questions(page) for page in (latest, middle, first)] == [["d", "e"], ["b", "c"], ["a"]]
    assert first["next_cursor"] is None


def test_twenty_at_once_unless_told(asking: Asking, user: str) -> None:
    for number in range(21):
        keep(asking, user, f"c{number}", "q")
    keep(asking, user, "long", *["q"] * 21)
    assert len(listed(asking, user_id=user)["conversations"]) == 20
    assert len(listed(asking, user_id=user, limit=100)["conversations"]) == 22
    assert len(shown(asking, "long", user_id=user)["turns"]) == 20


# ------------------------------------------------------------------------------
# changing


def test_a_long_question_makes_a_title_of_one_line(asking: Asking, user: str) -> None:
    question = "hello\n" * 100
    body = {
        "question": question,
        "conversation_id": "c",
        "user_id": user,
        "routing_mode": "chat_direct",
    }
    assert asking.sync(body)[0] == 200
    assert titles(listed(asking, user_id=user)) == ["hello " * 8 + "hello…"]
    code, data = call(asking, "GET", f"{LIST}/c", user_id=user)
    assert (code, data["turns"][0]["question"]) == (200, question.strip())


def test_a_title_is_given_and_kept(asking: Asking, user: str) -> None:
    keep(asking, user, "c", "a")
    code, data = call(asking, "PATCH", f"{LIST}/c", {"title": " 营收 🚀\t", "user_id": user})
    assert (code, data) == (200, {"conversation_id": "c", "title": "营收 🚀"})
    keep(asking, user, "c", "b")
    assert titles(listed(asking, user_id=user)) == ["营收 🚀"]


def test_a_cleared_conversation_keeps_its_title_and_goes_on(asking: Asking, user: str) -> None:
    keep(asking, user, "c", "a", "b")
    call(asking, "PATCH", f"{LIST}/c", {"title": "mine", "user_id": user})

    code, data = call(asking, "DELETE", f"{LIST}/c/turns", user_id=user)

    assert (code, data) == (200, {"conversation_id": "c", "turn_count": 0})
    page = shown(asking, "c", user_id=user)
    assert (questions(page), page["conversation"]["turn_count"]) == ([], 0)
    keep(asking, user, "c", "z")
    assert questions(shown(asking, "c", user_id=user)) == ["z"]
    assert titles(listed(asking, user_id=user)) == ["mine"]


def test_deleting_forgets_one_or_all_of_a_user_s(asking: Asking, user: str) -> None:
    other = f"{user} too"
    for conversation_id in ("a", "b", "c"):
        keep(asking, user, conversation_id, conversation_id)
    keep(asking, other, "a", "theirs")

    assert call(asking, "DELETE", f"{LIST}/a", user_id=user) == (200, {"deleted": 1})
    assert call(asking, "GET", f"{LIST}/a", user_id=user)[0] == 404
    assert sorted(titles(listed(asking, user_id=user))) == ["b", "c"]
    assert call(asking, "DELETE", LIST, user_id=user) == (200, {"deleted": 2})
    assert call(asking, "DELETE", LIST, user_id=user) == (200, {"deleted": 0})
    assert listed(asking, user_id=user)["conversations"] == []
    assert titles(listed(asking, user_id=other)) == ["theirs"]


# ------------------------------------------------------------------------------
# errors

ONE_CONVERSATION: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "", None),
    ("PATCH", "", {"title": "x"}),
    ("DELETE", "", None),
    ("DELETE", "/turns", None),
]


def call_as(
    asking: Asking, user: str, method: str, path: str, body: dict[str, Any] | None
) -> tuple[int, dict[str, Any]]:
    """As `user`, said in the body where there is one."""
    if body is None:
        return call(asking, method, path, user_id=user)
    return call(asking, method, path, {**body, "user_id": user})


@pytest.mark.parametrize(("method", "tail", "body"), ONE_CONVERSATION)
def test_another_user_s_is_as_unknown_as_none(
    asking: Asking, user: str, method: str, tail: str, body: dict[str, Any] | None
) -> None:
    keep(asking, user, "theirs", "secret")

    theirs = call_as(asking, "intruder", method, f"{LIST}/theirs{tail}", body)
    unknown = call_as(asking, "intruder", method, f"{LIST}/nobody{tail}", body)

    assert theirs[0] == 404
    assert _stable(theirs, "theirs") == _stable(unknown, "nobody")
    assert questions(shown(asking, "theirs", user_id=user)) == ["secret"]
    assert titles(listed(asking, user_id=user)) == ["secret"]


def _stable(answer: tuple[int, dict[str, Any]], name: str) -> str:
    code, data = answer
    kept = {key: value for key, value in data.items() if key not in ("request_id", "timestamp")}
    return json.dumps([code, kept], sort_keys=True).replace(name, "…")


@pytest.mark.parametrize("path", [LIST, f"{LIST}/c"])
@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        *(
            ("limit", value, "1 to 100")
            for value in ("0", "101", "-1", "1.5", "x", "", "１", "1000")
        ),
        *(
            ("cursor", value, "next_cursor")
            for value in ("x", "0", "bm8", "' OR 1=1", "漢", "9" * 40)
        ),
        ("cursor", "", "1 to 256"),
        ("cursor", "c" * 257, "1 to 256"),
        ("user_id", "", "1 to 256"),
        ("user_id", "u\0", "1 to 256"),
        ("lang", "fr", "one of zh, en"),
    ],
)
def test_a_wrong_query_is_named(
    asking: Asking, path: str, field: str, value: str, allowed: str
) -> None:
    keep(asking, "anonymous", "c", "q")
    query: dict[str, Any] = {field: value}
    code, data = call(asking, "GET", path, **query)
    assert (code, data["error_type"], data["field"]) == (400, "invalid_request", field)
    assert allowed in data["error"]


@settings(
    max_examples=tries(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=60))
def test_a_made_up_cursor_is_no_fault(asking: Asking, cursor: str) -> None:
    code, data = call(asking, "GET", LIST, cursor=cursor, user_id="nobody")
    assert code == 200 or (code, data["field"]) == (400, "cursor")


@pytest.mark.parametrize(
    "title", [None, 7, "", " \n ", "x" * 201, "two\nlines", "a\0", "a\x1b[0m", "a\u2028b", ["x"]]
)
def test_a_wrong_title_is_named(asking: Asking, user: str, title: Any) -> None:
    keep(asking, user, "c", "q")
    code, data = call(asking, "PATCH", f"{LIST}/c", {"title": title, "user_id": user})
    assert (code, data["error_type"], data["field"]) == (400, "invalid_request", "title")
    assert "1 to 200" in data["error"]
    assert titles(listed(asking, user_id=user)) == ["q"]


def test_the_longest_title_fits(asking: Asking, user: str) -> None:
    keep(asking, user, "c", "q")
    assert call(asking, "PATCH", f"{LIST}/c", {"title": "长" * 200, "user_id": user})[0] == 200
    assert titles(listed(asking, user_id=user)) == ["长" * 200]


@pytest.mark.parametrize("given_id", ["a b", "漢", "x" * 129, "a\n"])
def test_an_impossible_id_is_named(asking: Asking, given_id: str) -> None:
    for method, tail, body in ONE_CONVERSATION:
        code, data = call(asking, method, f"{LIST}/{quote(given_id)}{tail}", body)
        assert (code, data["field"]) == (400, "conversation_id")
        assert "1 to 128" in data["error"]


@pytest.mark.parametrize(
    ("query", "accepted", "says"),
    [
        ({}, "", "There is no conversation"),
        ({}, "zh-CN,zh;q=0.9", "没有会话"),
        ({"lang": "zh"}, "en", "没有会话"),
        ({"lang": "en"}, "zh", "There is no conversation"),
    ],
)
def test_the_language(asking: Asking, query: dict[str, str], accepted: str, says: str) -> None:
    response = asking.client.get(
        f"{LIST}/none", query_string=query, headers={"Accept-Language": accepted}
    )
    assert says in json.loads(response.get_data())["data"]["error"]


def test_a_key_s_user_sees_its_own_whatever_the_request_says(demo_url: str, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "api_keys.json")
    user = f"alice {secrets.token_hex(4)}"
    alice, bob = (
        {"Authorization": f"Bearer {keys.create(name)[0]}"} for name in (user, f"not {user}")
    )
    with Asking(Settings(database_url=demo_url), data_dir=str(tmp_path)) as asking:

        def data(path: str, headers: dict[str, str], **query: str) -> dict[str, Any]:
            envelope = json.loads(
                asking.client.get(path, headers=headers, query_string=query).get_data()
            )
            return {**envelope["data"], "code": envelope["code"]}

        asking.client.post(
            "/api/v0/ask_agent", json={"question": "你好", "conversation_id": "c"}, headers=alice
        )

        assert titles(data(LIST, alice)) == ["你好"]
        assert titles(data(LIST, bob, user_id=user)) == []
        assert data(f"{LIST}/c", bob, user_id=user)["error_type"] == "not_found"
        assert asking.client.delete(LIST, headers=bob).status_code == 200
        assert questions(data(f"{LIST}/c", alice, user_id="bob")) == ["你好"]
        assert data(LIST, {})["code"] == 401


# ------------------------------------------------------------------------------
# the store is down

EVERY_REQUEST = [
    ("GET", LIST, None),
    ("DELETE", LIST, None),
    *((method, f"{LIST}/c{tail}", body) for method, tail, body in ONE_CONVERSATION),
    *(("GET", f"/api/v0/knowledge/{what}", None) for what in ("examples", "lessons", "export")),
]


def expect_unavailable(asking: Asking) -> None:
    for method, path, body in EVERY_REQUEST:
        code, data = call(asking, method, path, body)
        assert (code, data["error_type"], data["retryable"]) == (503, "store_unavailable", True), (
            method,
            path,
        )
    code, envelope = asking.sync({"question": "服务区有多少个"})
    assert code == 200
    assert envelope["data"]["query_result"]["row_count"] == 1
    assert envelope["data"]["warnings"]


def test_without_postgresql_questions_are_still_answered(demo_url: str) -> None:
    unreachable = "postgresql://nobody@127.0.0.1:1/none"
    with Asking(Settings(database_url=demo_url), app_database_url=unreachable) as asking:
        expect_unavailable(asking)


def test_without_redis_questions_are_still_answered(demo_url: str) -> None:
    with (
        redis_server() as server,
        Asking(Settings(database_url=demo_url), redis_url=server.url) as asking,
    ):
        keep(asking, "anonymous", "c", "q")
        server.stop(signal.SIGKILL)
        expect_unavailable(asking)
        server.start()
        assert call(asking, "GET", LIST)[0] == 200
