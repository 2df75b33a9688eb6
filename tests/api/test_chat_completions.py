"""Citu as a model: asked by OpenAI's client, and by what front ends send beside a chat."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

from agent.bootstrap import FLOWS
from api.access.key_file import KeyFile
from app_config import Settings
from tests.support.asking import Asking
from tests.support.effort import tries
from tests.support.http_stream import Stream
from tests.support.live import GAUGES, eventually
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import scripted
from tests.support.survey.survey_flow import SURVEY, SurveyFlow
from tests.support.wsgi_server import serving_app

RANKING = "查询各服务区的营业收入排行"
PATH = "/v1/chat/completions"


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello there")) as server:
        yield server


@pytest.fixture(scope="module")
def ruled(demo_url: str) -> Iterator[Asking]:
    with Asking(Settings(database_url=demo_url)) as asking:
        yield asking


@pytest.fixture(scope="module")
def client(ruled: Asking) -> Iterator[openai.OpenAI]:
    with serving_app(ruled.client.application) as port:  # type: ignore[arg-type]
        yield openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def talking(make_database: Callable[[str], str], model: OpenAiServer) -> Iterator[Asking]:
    settings = Settings(database_url=make_database(GAUGES), routing_mode="chat_direct")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.bootstrap.FLOWS", [*FLOWS, SurveyFlow])
        patch.setattr(
            "api.chat_completions.completion_requests.AGENTS",
            {"citu": "ask", "citu-survey": "survey"},
        )
        with Asking(settings, model) as asking:
            yield asking


def chat(*said: str) -> list[dict[str, str]]:
    """Messages of a chat, the user's first."""
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": text} for place, text in enumerate(said)]


def asked(asking: Asking, *said: str, model: str = "citu", **more: Any) -> dict[str, Any]:
    body = {"model": model, "messages": chat(*said), **more}
    response = asking.client.post(PATH, json=body, buffered=True)
    reply: dict[str, Any] = response.get_json()
    assert response.status_code == 200, reply
    return reply


def test_agents_are_models(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names == ["citu", "citu-tool-loop", "citu-tool-graph"]
    assert [client.models.retrieve(name).id for name in names] == names
    with pytest.raises(openai.NotFoundError, match="citu-tool-loop"):
        client.models.retrieve("gpt-5")


@pytest.mark.parametrize("question", [RANKING, "revenue by service area", "你好", "xyzzy of plugh"])
def test_an_answer_is_that_of_the_other_endpoints(
    question: str, client: openai.OpenAI, ruled: Asking
) -> None:
    messages: Any = chat(question)
    whole = client.chat.completions.create(model="citu", messages=messages)
    text = whole.choices[0].message.content or ""
    _, envelope = ruled.sync({"question": question})
    expected = envelope["data"]
    assert expected["response"] in text
    for warning in expected["warnings"]:
        assert warning in text
    if expected.get("sql"):
        assert expected["sql"] in text
        assert all(str(row[0]) in text for row in expected["query_result"]["rows"][:20])
        assert "/c/chat_" in text
    assert whole.usage is not None
    stream = client.chat.completions.create(
        model="citu", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    pieces = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(pieces) == text
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None


def test_the_official_client_reads_every_kind_of_run(
    client: openai.OpenAI, talking: Asking, model: OpenAiServer
) -> None:
    """Runs that end, fail, wait, are cut or cancelled, whole and as a stream."""
    refused: Any = chat("DELETE FROM company")
    with serving_app(talking.client.application) as port:  # type: ignore[arg-type]
        address = f"http://127.0.0.1:{port}/v1"
        other = openai.OpenAI(base_url=address, api_key="none", max_retries=0)
        for number in range(tries(2)):
            messages: Any = chat(f"hello {number}")
            whole = other.chat.completions.create(model="citu", messages=messages)
            assert whole.choices[0].message.content == "hello there"
            survey: Any = chat(f"{SURVEY}{' ' * number}")
            waiting = other.chat.completions.create(model="citu-survey", messages=survey)
            assert "Which column?" in (waiting.choices[0].message.content or "")
            with pytest.raises(openai.PermissionDeniedError):
                client.chat.completions.create(model="citu", messages=refused)
            with pytest.raises(openai.APIError):
                list(client.chat.completions.create(model="citu", messages=refused, stream=True))
            cut = other.chat.completions.create(model="citu", messages=messages, stream=True)
            assert next(iter(cut)).object == "chat.completion.chunk"
            cut.close()
            gate = Gate()
            with scripted(model, Reply(pieces=["Hel", gate, "lo"])):
                stream = other.chat.completions.create(model="citu", messages=messages, stream=True)
                run_id = next(iter(stream)).id.removeprefix("chatcmpl-")
                talking.client.post(f"/api/v0/runs/{run_id}/cancel", json={}, buffered=True)
                with pytest.raises(openai.APIError) as cancelled:
                    list(stream)
            assert cancelled.value.code == "cancelled"
            gate.open()


def test_text_comes_as_the_model_writes_it(talking: Asking, model: OpenAiServer) -> None:
    gate = Gate()
    body = {"model": "citu", "messages": chat("hello"), "stream": True}
    with (
        serving_app(talking.client.application) as port,  # type: ignore[arg-type]
        scripted(model, Reply(pieces=["Good day", gate, " to you"])),
        Stream(port, PATH, body) as stream,
    ):
        first = json.loads(stream.next_block().partition("data: ")[2])
        assert "Good" in first["choices"][0]["delta"]["content"]
        gate.open()
        rest = ""
        while block := stream.next_block():
            rest = block
        assert "[DONE]" in rest


def test_a_client_that_leaves_ends_the_model_call(talking: Asking, model: OpenAiServer) -> None:
    gate = Gate()
    body = {"model": "citu", "messages": chat("hello"), "stream": True}

    def turns() -> Any:
        response = talking.client.get("/api/v0/conversations/left_chat", buffered=True)
        return response.get_json()["data"].get("turns")

    with (
        serving_app(talking.client.application) as port,  # type: ignore[arg-type]
        scripted(model, Reply(pieces=["Hel", gate, "lo"])),
    ):
        with Stream(port, PATH, body, **{"X-Conversation-ID": "left_chat"}) as stream:
            assert gate.reached.wait(60)
            stream.close()
            (turn,) = eventually(turns)
        gate.open()
    assert turn["failure"]["error_type"] == "cancelled"


def test_a_chat_is_one_conversation_and_a_new_chat_has_no_past(ruled: Asking) -> None:
    first = asked(ruled, RANKING)["choices"][0]["message"]["content"]
    link = first.rpartition("/c/")[2].rstrip(")")
    asked(ruled, RANKING, first, "只看前3名")
    path = f"/api/v0/conversations/{link}"
    turns = ruled.client.get(path, buffered=True).get_json()["data"]["turns"]
    assert [turn["question"] for turn in turns[-2:]] == [RANKING, "只看前3名"]
    assert "LIMIT 3" in turns[-1]["sql"]
    named = {"X-OpenWebUI-Chat-Id": "a-chat-of-its-own"}
    body = {"model": "citu", "messages": chat(RANKING)}
    reply = ruled.client.post(PATH, json=body, headers=named, buffered=True).get_json()
    assert "/c/a-chat-of-its-own" in reply["choices"][0]["message"]["content"]


def test_a_run_that_asks_is_answered_by_the_next_message(talking: Asking) -> None:
    said = [SURVEY]
    for answer in ("name", "2"):
        reply = asked(talking, *said, model="citu-survey")
        said += [reply["choices"][0]["message"]["content"], answer]
    reply = asked(talking, *said, model="citu-survey")
    assert reply["choices"][0]["message"]["content"] == "gauge 1, gauge 2"


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (
            "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat "
            "history.\n<chat_history>\nUSER: revenue by area\nASSISTANT: …\n</chat_history>",
            {"title": "revenue by area"},
        ),
        (
            "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history."
            "\n<chat_history>\nUSER: x\n</chat_history>",
            {"tags": []},
        ),
        (
            "### Task:\nSuggest 3-5 relevant follow-up questions or prompts.\n<chat_history>\n"
            "USER: x\n</chat_history>",
            {"follow_ups": []},
        ),
    ],
)
def test_what_front_ends_ask_beside_a_chat_costs_no_model_call(
    prompt: str, expected: dict[str, Any], talking: Asking, model: OpenAiServer
) -> None:
    before = len(model.requests)
    reply = asked(talking, prompt)
    assert json.loads(reply["choices"][0]["message"]["content"]) == expected
    assert len(model.requests) == before
    asked(talking, "What is the title of the task?")
    assert len(model.requests) > before, "a question about titles is a question"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": chat("x")}, "model"),
        ({"model": "gpt-4", "messages": chat("x")}, "model"),
        ({"model": "citu"}, "messages"),
        ({"model": "citu", "messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"model": "citu", "messages": chat("  ")}, "messages"),
        ({"model": "citu", "messages": chat("x"), "n": 2}, "n"),
        ({"model": "citu", "messages": chat("x"), "stream": "yes"}, "stream"),
        ({"model": "citu", "messages": chat("x"), "user": {"a": 1}}, "user"),
        ({"model": "citu", "messages": chat("x" * 5000)}, "messages"),
    ],
)
def test_mistakes_are_named_in_the_shape_of_the_protocol(
    body: dict[str, Any], param: str, ruled: Asking
) -> None:
    response = ruled.client.post(PATH, json=body, buffered=True)
    assert response.status_code == 400
    error = response.get_json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request", param)


def test_a_fault_of_the_program_is_an_error(ruled: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    place = "api.chat_completions.completion_endpoints.stored_event"
    monkeypatch.setattr(place, lambda _: None)  # nothing is as the translator takes it
    response = ruled.client.post(
        PATH, json={"model": "citu", "messages": chat("你好")}, buffered=True
    )
    assert response.status_code == 500
    assert response.get_json()["error"]["code"] == "internal_error"


def test_keys_are_asked_for_and_errors_of_a_run_have_its_status(
    make_database: Callable[[str], str], model: OpenAiServer, tmp_path: Any
) -> None:
    settings = Settings(database_url=make_database(GAUGES), data_dir=str(tmp_path))
    key, _ = KeyFile(settings.api_keys_path).create("ann")
    with (
        Asking(settings, model, routing_mode="database_direct") as asking,
        serving_app(asking.client.application) as port,  # type: ignore[arg-type]
    ):
        address = f"http://127.0.0.1:{port}/v1"
        stranger = openai.OpenAI(base_url=address, api_key="wrong", max_retries=0)
        with pytest.raises(openai.AuthenticationError):
            stranger.models.list()
        known = openai.OpenAI(base_url=address, api_key=key, max_retries=0)
        with (
            scripted(model, Reply("```sql\nDELETE FROM gauge\n```")),
            pytest.raises(openai.PermissionDeniedError) as refused,
        ):
            known.chat.completions.create(
                model="citu", messages=[{"role": "user", "content": "remove all gauges"}]
            )
        assert refused.value.code == "forbidden_keywords"
