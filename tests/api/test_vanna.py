"""Vanna's chat protocol over HTTP: answers, repeated requests, clients that leave, mistakes, keys,
limits, feedback.
"""

import itertools
import json
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from agent.bootstrap import FLOWS
from api.access.key_file import KeyFile
from api.vanna import chat_service as talk
from app_config import Settings
from tests.support.api_schemas import check_schema
from tests.support.asking import SYNC, Asking
from tests.support.live import GAUGES, eventually
from tests.support.openai_replies import Called, Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.survey.survey_flow import SURVEY, SurveyFlow
from tests.support.tool_scripts import following, querying
from tests.support.vanna_client import Chunk, VannaPage, chunks_of_stream, read

SSE, POLL = "/api/vanna/v2/chat_sse", "/api/vanna/v2/chat_poll"
RANKING = "查询各服务区的营业收入排行"
STARTER = {
    "message": "",
    "conversation_id": "1-a",
    "request_id": "1-b",
    "metadata": {"starter_ui_request": True},
}


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@pytest.fixture(scope="module")
def ruled(demo_url: str) -> Iterator[Asking]:
    """Answers by rules, with one place: a request that keeps it blocks all others."""
    with Asking(Settings(database_url=demo_url, max_streams=1)) as asking:
        yield asking


@pytest.fixture(scope="module")
def gauges(make_database: Callable[[str], str]) -> str:
    return make_database(GAUGES)


@pytest.fixture(scope="module")
def talking(gauges: str, model: OpenAiServer) -> Iterator[Asking]:
    """Talks by the scripted model, and has a flow that asks its user back."""
    settings = Settings(
        database_url=gauges,
        routing_mode="chat_direct",
        max_streams=4,
        caller_share=1.0,
        ping_interval_s=0.05,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.bootstrap.FLOWS", [*FLOWS, SurveyFlow])
        with Asking(settings, model) as asking:
            yield asking


_numbers = iter(range(1, 10_000))


def message(text: str, **more: Any) -> dict[str, Any]:
    """A request as the web component sends it, of a conversation of its own."""
    number = next(_numbers)
    names = {"conversation_id": f"conv_{number}", "request_id": f"1700000000000-{number}"}
    return {"message": text, **names, "metadata": {}, **more}


def post(asking: Asking, path: str, body: Any, **headers: str) -> TestResponse:
    return asking.client.post(path, json=body, headers=headers, buffered=True)


def get(asking: Asking, path: str, **headers: str) -> Any:
    """The data of another endpoint."""
    return asking.client.get(path, headers=headers, buffered=True).get_json()["data"]


def chunks(asking: Asking, body: dict[str, Any], path: str = SSE, **headers: str) -> list[Chunk]:
    """The chunks of an answer that began."""
    response = post(asking, path, body, **headers)
    assert response.status_code == 200, response.get_data(as_text=True)
    if path == SSE:
        assert response.content_type == "text/event-stream; charset=utf-8"
        return chunks_of_stream(response.get_data(as_text=True))
    return chunks_of(response)


def chunks_of(response: TestResponse) -> list[Chunk]:
    """The chunks of a `ChatResponse`."""
    body = json.loads(response.get_data())
    check_schema("ChatResponse" if response.status_code == 200 else "ChatRefusal", body)
    found = [read(json.dumps(chunk)) for chunk in body["chunks"]]
    assert body["total_chunks"] == len(found)
    assert {(one["conversation_id"], one["request_id"]) for one in found} <= {
        (body["conversation_id"], body["request_id"])
    }
    return found


def page(asking: Asking, body: dict[str, Any], path: str = SSE, **headers: str) -> VannaPage:
    shown = VannaPage(chunks(asking, body, path, **headers))
    assert shown.is_ready
    return shown


# ------------------------------------------------------------------------------
# answers


@pytest.mark.parametrize("path", [SSE, POLL])
@pytest.mark.parametrize(
    ("language", "word"), [("zh-CN,en;q=0.5", "您好"), ("en", "Hello"), ("", "Hello")]
)
def test_the_first_request_is_greeted_with_questions_to_ask(
    path: str, language: str, word: str, ruled: Asking
) -> None:
    headers = {"Accept-Language": language} if language else {}
    greeting = page(ruled, STARTER, path, **headers)
    assert greeting.texts[0].startswith(word)
    listed = get(ruled, "/api/v0/examples", **headers)["examples"]
    assert list(greeting.buttons.values()) == listed
    assert ruled.client.get("/api/v0/conversations/1-a").status_code == 404, "a greeting is no turn"


@pytest.mark.parametrize(
    "body", [{"message": ""}, {"message": " \n", "metadata": {}}, {"message": "", "metadata": None}]
)
def test_a_blank_message_is_greeted(body: dict[str, Any], ruled: Asking) -> None:
    assert page(ruled, body).texts


@pytest.mark.parametrize("path", [SSE, POLL])
def test_an_answer_has_the_rows_of_the_other_endpoints(path: str, ruled: Asking) -> None:
    _, envelope = ruled.sync({"question": RANKING})
    data, body = envelope["data"], message(RANKING)
    shown = page(ruled, body, path)
    (table,) = shown.all("dataframe")
    assert [list(row.values()) for row in table["data"]] == data["query_result"]["rows"]
    label, unit = data["query_result"]["labels"][1], data["query_result"]["units"][1]
    assert table["columns"][1] == f"{label}（{unit}）"
    assert (shown.texts, shown.sql) == ([data["response"]], [data["sql"]])
    (chart,) = shown.all("chart")
    assert chart["layout"]["title"]["text"] == data["chart"]["title"]
    assert [task["status"] for task in shown.tasks] == ["completed"] * 4
    assert [task["title"] for task in shown.tasks] == [
        "分析问题类型",
        "生成SQL查询",
        "执行数据查询",
        "整理结果",
    ]


def test_the_stream_is_as_clients_of_vanna_read_it(ruled: Asking) -> None:
    body = message(RANKING)
    response = post(ruled, SSE, body)
    assert response.headers["X-Accel-Buffering"] == "no"
    assert "no-cache" in response.headers["Cache-Control"]
    lines = response.get_data(as_text=True).split("\n")
    assert all(line == "" or line.startswith("data: ") for line in lines)
    ids = {
        (one["conversation_id"], one["request_id"]) for one in chunks_of_stream("\n".join(lines))
    }
    assert ids == {(body["conversation_id"], body["request_id"])}


def test_a_client_that_names_nothing_is_told_the_names(ruled: Asking) -> None:
    found = chunks(ruled, {"message": RANKING})
    ((conversation_id, request_id),) = {
        (one["conversation_id"], one["request_id"]) for one in found
    }
    assert conversation_id.startswith("citu_")
    assert request_id
    assert ruled.client.get(f"/api/v0/conversations/{conversation_id}").status_code == 200


def test_a_model_s_words_come_while_it_writes_them(talking: Asking, model: OpenAiServer) -> None:
    model.replies(Reply(pieces=["Hel", 0.1, "lo <b>", 0.1, "you</b>"]))
    texts = [
        chunk["rich"]
        for chunk in chunks(talking, message("hello"))
        if chunk["rich"]["type"] == "text"
    ]
    assert texts[0]["data"]["content"] == "Hel"
    assert [text["lifecycle"] for text in texts] == ["create", *["replace"] * (len(texts) - 1)]
    assert texts[-1]["data"] == {
        **texts[0]["data"],
        "content": "Hello <b>you</b>",
        "markdown": False,
    }


def test_columns_and_values_of_a_query_keep_their_names_and_digits(
    gauges: str, model: OpenAiServer
) -> None:
    sql = """SELECT 9007199254740993 AS "<", '<b>' || n AS "<" FROM gauge ORDER BY n LIMIT 1"""
    model.replies(Reply(sql), Reply("One."))
    with Asking(Settings(database_url=gauges, routing_mode="database_direct"), model) as asking:
        (table,) = page(asking, message("the first gauge")).all("dataframe")
    assert table["columns"] == ["＜", "＜ (2)"]
    assert list(table["data"][0].values()) == ["9007199254740993", "<b>1"]


COUNTED = "SELECT count(*) AS n FROM gauge"


@pytest.mark.parametrize("path", [SSE, POLL])
@pytest.mark.parametrize(
    ("agent", "replies"),
    [
        (
            "tool_loop",
            [Reply("I count.", calls=[Called("run_sql", {"sql": COUNTED})]), Reply("3 gauges.")],
        ),
        ("tool_graph", querying(COUNTED, "3 gauges.")),
    ],
)
def test_steps_of_tool_agents_are_shown(
    agent: str, replies: list[Reply], path: str, gauges: str, model: OpenAiServer
) -> None:
    before, model.default = model.default, following(replies)
    with Asking(Settings(database_url=gauges), model, agent=agent) as asking:
        found = chunks(asking, message("how many gauges are there?"), path)
    model.default = before
    shown = VannaPage(found)
    assert shown.is_ready
    assert shown.all("status_card")[-1]["status"] == "completed"
    (table,) = shown.all("dataframe")
    assert list(table["data"][0].values()) == [3]
    assert (shown.sql, shown.texts[-1]) == ([COUNTED], "3 gauges.")
    kinds = [part["type"] for part in shown.parts]
    assert kinds.index("dataframe") < len(kinds) - 1 - kinds[::-1].index("text"), (
        "the answer comes below its rows"
    )


@pytest.mark.parametrize("path", [SSE, POLL])
def test_an_error_of_a_run_is_shown(path: str, ruled: Asking) -> None:
    found = chunks(ruled, message("DROP TABLE shop"), path)
    shown = VannaPage(found)
    assert shown.is_ready
    assert shown.status["status"] == "error"
    assert "DROP" in shown.texts[-1]
    assert [one["error"]["error_type"] for one in found if "error" in one] == ["forbidden_keywords"]


# ------------------------------------------------------------------------------
# conversations


@pytest.mark.parametrize(
    "name", ["conv_1a2b3c4d", "1700000000000-k3j5h", "我的对话 #1", "a b", "x" * 256]
)
def test_any_name_is_a_conversation_of_its_user(name: str, ruled: Asking) -> None:
    first = message("top 3 service areas by revenue", conversation_id=name, user_id="ann")
    assert len(page(ruled, first).all("dataframe")[0]["data"]) == 3
    follow_up = message("the top 5", conversation_id=name)
    assert not page(ruled, {**follow_up, "user_id": "bea"}).all("dataframe"), (
        "nobody else's conversation"
    )
    shown = page(ruled, {**follow_up, "user_id": "ann"})
    assert len(shown.all("dataframe")[0]["data"]) == 5
    listed = get(ruled, "/api/v0/conversations?user_id=ann")["conversations"]
    assert listed[0]["turn_count"] == 2
    ruled.client.delete("/api/v0/conversations?user_id=ann")


def test_a_button_goes_on_with_the_conversation(ruled: Asking) -> None:
    body = message("top 3 service areas by revenue")
    shown = page(ruled, body)
    while "the top 10" not in shown.buttons:  # an answer does not wait for its follow-ups
        shown = page(ruled, body := message(body["message"]))
    again = message(shown.buttons["the top 10"], conversation_id=body["conversation_id"])
    assert len(page(ruled, again).all("dataframe")[0]["data"]) == 10


def test_a_button_answers_what_was_asked_back(ruled: Asking) -> None:
    body = message("3月的营业收入是多少")
    asked = page(ruled, body)
    assert not asked.all("dataframe")
    label, choice = list(asked.buttons.items())[0]
    assert label == choice
    answered = page(ruled, message(choice, conversation_id=body["conversation_id"]))
    assert "amount" in answered.sql[0]


def test_a_run_that_asks_back_is_answered_by_messages(
    talking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talking.services.runs._runner, "_default", "survey")
    asked = page(talking, message(SURVEY))
    assert asked.texts == ["Which column?"]
    assert list(asked.buttons) == ["n", "name"]
    answer = message(asked.buttons["name"])
    counted = page(talking, answer)
    assert counted.texts[0].startswith("How many of name?\n")
    reply = counted.texts[0].split(": ", 1)[1].replace("<your answer>", "{}")
    assert "integer" in page(talking, message(reply.format("many"))).texts[-1], (
        "the answer has another form"
    )
    assert page(talking, message(reply.format("2"))).texts == ["gauge 1, gauge 2"]
    # The client asks once more, because its connection broke while the run went on.
    assert page(talking, answer, POLL).texts[-1] == "gauge 1, gauge 2"


# ------------------------------------------------------------------------------------- repeated
# requests, lost clients


def asked_of(model: OpenAiServer, text: str) -> int:
    """How often the model was asked a question."""
    return sum(text in json.dumps(request.messages) for request in model.requests)


def left(asking: Asking, body: dict[str, Any], gate: Gate) -> None:
    """Asks by the stream, and leaves when the model writes."""
    response = asking.client.post(SSE, json=body)
    stream = response.iter_encoded()
    next(stream)
    assert gate.reached.wait(60)
    response.close()


def test_who_is_cut_off_gets_the_answer_of_the_same_run(
    talking: Asking, model: OpenAiServer
) -> None:
    gate, body = Gate(), message("hello, cut off", conversation_id="cut")
    model.replies(Reply(pieces=["Hel", gate, "lo"]))
    left(talking, body, gate)
    threading.Timer(0.2, gate.open).start()
    found = chunks(talking, body, POLL)
    assert VannaPage(found).texts == ["Hello"]
    assert VannaPage(found).is_ready
    turns = get(talking, "/api/v0/conversations/cut")["turns"]
    assert [turn["question"] for turn in turns] == ["hello, cut off"]
    assert page(talking, body, POLL).texts == page(talking, body, SSE).texts == ["Hello"], (
        "as often as one likes"
    )


def test_a_repeated_request_takes_away_what_the_client_may_have(ruled: Asking) -> None:
    body = message(RANKING)
    first = VannaPage(chunks(ruled, body))
    twice = VannaPage(chunks(ruled, body, POLL))
    assert [part["data"] for part in twice.parts] == [part["data"] for part in first.parts]
    for chunk in chunks(ruled, body, POLL):
        first.show(chunk)
    assert first.parts == twice.parts


def shown_of(page: VannaPage) -> list[tuple[str, str]]:
    """The parts of an answer; follow-ups are left out, because an answer does not wait for them."""
    shown = [part for part in page.parts if not part["id"].endswith("-follow_ups")]
    return [(part["type"], part["data"].get("content", "")) for part in shown]


def test_a_stream_may_break_at_any_byte(demo_url: str) -> None:
    chance = random.Random(7)
    with Asking(Settings(database_url=demo_url, max_streams=4)) as asking:
        whole = {
            text: shown_of(page(asking, message(text)))
            for text in (RANKING, "DROP TABLE shop", "hello")
        }
        for _ in range(15):
            text = chance.choice(list(whole))
            body = message(text)
            response = asking.client.post(SSE, json=body)
            sent = b"".join(itertools.islice(response.iter_encoded(), chance.randrange(10)))
            response.close()
            lines = sent[: chance.randint(0, len(sent))].decode(errors="ignore").split("\n")[:-1]
            cut_off = VannaPage(read(line[6:]) for line in lines if line and line != "data: [DONE]")
            for chunk in chunks(asking, body, POLL):
                cut_off.show(chunk)
            assert shown_of(cut_off) == whole[text]
            assert cut_off.is_ready
            assert len({part["id"] for part in cut_off.parts}) == len(cut_off.parts), (
                "nothing is shown twice"
            )


def test_who_does_not_come_back_stops_the_run(
    talking: Asking, model: OpenAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk, "GRACE_S", 0.05)
    gate = Gate()
    model.replies(Reply(pieces=["Hel", gate, "lo"]))
    left(talking, message("hello, gone"), gate)
    assert model.requests[-1].disconnected.wait(60)


def test_who_can_not_come_back_stops_the_run_at_once(talking: Asking, model: OpenAiServer) -> None:
    gate = Gate()
    model.replies(Reply(pieces=["Hel", gate, "lo"]))
    left(talking, {"message": "hello, unnamed"}, gate)
    assert model.requests[-1].disconnected.wait(talk.GRACE_S / 2)


def test_a_name_belongs_to_one_question_of_one_user(ruled: Asking) -> None:
    body = message("top 3 service areas by revenue")
    run_ids = {chunks(ruled, body, user_id)[0]["run_id"] for user_id in (SSE, POLL)}
    assert len(run_ids) == 1
    other = chunks(ruled, {**body, "user_id": "bea"})
    assert other[0]["run_id"] not in run_ids
    response = post(ruled, SSE, {**body, "message": "top 5 service areas by revenue"})
    assert response.status_code == 422
    assert json.loads(response.get_data())["data"]["error_type"] == "idempotency_key_reused"
    same = post(ruled, SYNC, {"question": RANKING}, **{"Idempotency-Key": str(body["request_id"])})
    assert same.status_code == 200, "keys of other endpoints are others"


# ------------------------------------------------------------------------------
# mistakes

MISTAKES: list[tuple[Any, str | None]] = [
    ([], None),
    ("text", None),
    ({}, "message"),
    ({"message": None}, "message"),
    ({"message": 1}, "message"),
    ({"message": "a\0b"}, "message"),
    ({"message": "x" * 2001}, "message"),
    ({"message": "hi", "conversation_id": 7}, "conversation_id"),
    ({"message": "hi", "conversation_id": "x" * 257}, "conversation_id"),
    ({"message": "hi", "request_id": ["1"]}, "request_id"),
    ({"message": "hi", "request_id": "a\0"}, "request_id"),
    ({"message": "hi", "metadata": "x"}, "metadata"),
    ({"message": "hi", "user_id": 1}, "user_id"),
]


@pytest.mark.parametrize("path", [SSE, POLL])
@pytest.mark.parametrize(("body", "field"), MISTAKES, ids=repr)
def test_a_mistake_is_told_in_both_shapes(
    body: Any, field: str | None, path: str, ruled: Asking
) -> None:
    response = post(ruled, path, body)
    assert response.status_code == 400
    assert json.loads(response.get_data())["data"].get("field") == field
    refusal_is_shown(response, "invalid_request")


def refusal_is_shown(response: TestResponse, error_type: str) -> None:
    """The body is the envelope of all errors, and shows the error to clients of Vanna."""
    envelope = json.loads(response.get_data())
    assert (envelope["code"], envelope["success"]) == (response.status_code, False)
    assert envelope["data"]["error_type"] == error_type
    shown = VannaPage(chunks_of(response))
    assert shown.status["status"] == "error"
    assert shown.texts == [f"❌ {envelope['data']['error']}"]


def test_what_is_no_json_is_told_so(ruled: Asking) -> None:
    for data in (b"", b"{", b"\xff", b"[" * 5000):
        response = ruled.client.post(SSE, data=data, content_type="application/json", buffered=True)
        assert response.status_code == 400
        refusal_is_shown(response, "invalid_request")


def test_a_full_service_says_so_and_no_place_is_lost(talking: Asking, model: OpenAiServer) -> None:
    gates = [Gate() for _ in range(4)]
    model.replies(*(Reply("hello", gate=gate) for gate in gates))
    streams = [talking.client.post(SSE, json={"message": f"hello {number}"}) for number in range(4)]
    bodies = [stream.iter_encoded() for stream in streams]
    for body, gate in zip(bodies, gates, strict=True):
        next(body)
        assert gate.reached.wait(60)
    refused = post(talking, SSE, message("hello"))
    assert refused.status_code == 503
    assert refused.headers["Retry-After"]
    refusal_is_shown(refused, "too_many_streams")
    for stream, gate in zip(streams, gates, strict=True):
        stream.close()
        gate.open()
    eventually(lambda: post(talking, SSE, {"message": ""}).status_code == 200)
    for _ in range(5):
        assert page(talking, message("hello")).texts


# ------------------------------------------------------------------------------
# who may ask


@pytest.fixture(scope="module")
def keyed(
    demo_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Asking, dict[str, str]]]:
    """Callers have keys, and may ask twice a minute."""
    folder = tmp_path_factory.mktemp("keyed")
    keys = KeyFile(folder / "api_keys.json")
    texts = {name: keys.create(name)[0] for name in ("ann", "bea", "cyd")}
    settings = Settings(
        database_url=demo_url,
        data_dir=str(folder),
        rate_limit="2/minute",
        cors_origins="https://chat.example",
    )
    with Asking(settings) as asking:
        yield asking, {name: f"Bearer {text}" for name, text in texts.items()}


def test_a_key_is_needed(keyed: tuple[Asking, dict[str, str]]) -> None:
    asking, _ = keyed
    for path in (SSE, POLL):
        refused = post(asking, path, STARTER)
        assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        refusal_is_shown(refused, "unauthorized")


def test_each_question_counts_once(keyed: tuple[Asking, dict[str, str]]) -> None:
    asking, keys = keyed
    ann = {"Authorization": keys["ann"]}
    question = message("how many shops are there?")
    for body in (
        question,
        question,
        question,
        message("how many companies are there?"),
    ):
        assert chunks(asking, body, **ann), "repetitions do not count"
    third = message("how many service areas are there?")
    for _ in range(2):
        refused = post(asking, SSE, third, **ann)
        assert refused.status_code == 429
        refusal_is_shown(refused, "rate_limited")
    assert chunks(asking, {**third, "user_id": "ann"}, Authorization=keys["bea"]), (
        "bea's own limit, and her own names"
    )


def test_pages_of_listed_origins_may_ask(keyed: tuple[Asking, dict[str, str]]) -> None:
    asking, keys = keyed
    headers = {"Origin": "https://chat.example", "Access-Control-Request-Method": "POST"}
    asked = asking.client.options(
        SSE, headers={**headers, "Access-Control-Request-Headers": "authorization,content-type"}
    )
    assert asked.headers["Access-Control-Allow-Origin"] == "https://chat.example"
    answer = post(asking, POLL, STARTER, Origin="https://chat.example", Authorization=keys["cyd"])
    assert answer.headers["Access-Control-Allow-Origin"] == "https://chat.example"
    assert (
        "Access-Control-Allow-Origin"
        not in post(
            asking, POLL, STARTER, Origin="https://x.example", Authorization=keys["cyd"]
        ).headers
    )


# ------------------------------------------------------------------------------
# feedback


def learnt_by(asking: Asking, user_id: str) -> list[str]:
    """The questions of a user's examples."""
    examples = get(asking, "/api/v0/knowledge/examples?limit=100")["examples"]
    return [example["question"] for example in examples if example["author"] == user_id]


def test_a_thumb_teaches(ruled: Asking) -> None:
    ask = message("top 3 service areas by revenue", user_id="thumb")
    thumbs, said = (
        page(ruled, ask).buttons,
        {"conversation_id": ask["conversation_id"], "user_id": "thumb"},
    )
    thanks = page(ruled, message(thumbs["👍 Good answer"], **said))
    assert thanks.texts == ["Thank you for the feedback!"]
    assert learnt_by(ruled, "thumb") == [ask["message"]]
    page(ruled, message(thumbs["👎 Wrong answer"], **said), POLL)
    assert learnt_by(ruled, "thumb") == []


def test_feedback_on_nothing_is_shown_as_an_error(ruled: Asking) -> None:
    shown = page(ruled, message("/feedback good run_unknown"))
    assert shown.status["status"] == "error"


def test_a_greeting_needs_no_database(tmp_path: Path) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:9/none"
    with Asking(
        Settings(data_dir=str(tmp_path), database_url=nowhere), app_database_url=nowhere
    ) as asking:
        greeting = page(asking, STARTER)
        assert (len(greeting.texts), greeting.buttons) == (1, {})
        failed = page(asking, message("how many shops?"))
        assert failed.status["status"] == "error"
        assert list(failed.buttons) == ["Try again"]
