"""Citu over the Model Context Protocol: answers, questions back, rights, mistakes, keys."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.types import ElicitResult

from agent.bootstrap import FLOWS
from api.access.key_file import KeyFile
from api.access.shared_key import kept_key
from api.mcp.sealed_state import InvalidState, StateSeal
from app_config import Settings
from common.actor import Actor
from databases.demo import SEMANTIC_FILE
from llm.tokens import estimated_tokens
from tests.support.asking import Asking
from tests.support.http_stream import Stream
from tests.support.live import GAUGES, eventually
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import scripted
from tests.support.survey.survey_flow import SURVEY, SurveyFlow
from tests.support.wsgi_server import serving_app

RANKING = "查询各服务区的营业收入排行"
VERSION = "2026-07-28"
KEYS = "io.modelcontextprotocol/"
_ids = itertools.count(1)


def request_of(
    method: str, params: dict[str, Any] | None = None, *, can_ask: bool = False, **meta: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of the newer era: body and headers."""
    capabilities: dict[str, Any] = {"elicitation": {}} if can_ask else {}
    about = {f"{KEYS}protocolVersion": VERSION, f"{KEYS}clientCapabilities": capabilities, **meta}
    params = {**(params or {}), "_meta": about}
    headers = {"MCP-Protocol-Version": VERSION, "Mcp-Method": method}
    name = params.get("uri" if method == "resources/read" else "name")
    if name is not None:
        headers["Mcp-Name"] = name
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}, headers


def sent(
    asking: Asking, method: str, params: dict[str, Any] | None = None, **more: Any
) -> tuple[int, dict[str, Any]]:
    """Status and reply of a request."""
    extra = more.pop("headers", {})
    body, headers = request_of(method, params, **more)
    response = asking.client.post("/mcp", json=body, headers=headers | extra, buffered=True)
    reply = response.get_json()
    assert reply["id"] == body["id"]
    return response.status_code, reply


def called(
    asking: Asking, tool: str, more: dict[str, Any] | None = None, /, **arguments: Any
) -> dict[str, Any]:
    """The result of a tool."""
    params = {"name": tool, "arguments": arguments, **(more or {})}
    status, reply = sent(asking, "tools/call", params)
    assert status == 200, reply
    result: dict[str, Any] = reply["result"]
    assert result["resultType"] == "complete"
    return result


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@pytest.fixture(scope="module")
def ruled(demo_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    data = tmp_path_factory.mktemp("mcp")
    settings = Settings(
        database_url=demo_url,
        data_dir=str(data),
        semantic_file=str(SEMANTIC_FILE),
        tool_groups="run_sql: analysts",
    )
    with Asking(settings) as asking:
        yield asking


@pytest.fixture(scope="module")
def workers(
    make_database: Callable[[str], str],
    model: OpenAiServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Asking, Asking]]:
    """Two workers of one service, which has a flow that asks its user back."""
    settings = Settings(
        database_url=make_database(GAUGES),
        data_dir=str(tmp_path_factory.mktemp("mcp")),
        routing_mode="chat_direct",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.bootstrap.FLOWS", [*FLOWS, SurveyFlow])
        with Asking(settings, model) as first, Asking(settings, model) as second:
            yield first, second


@pytest.fixture
def surveying(workers: tuple[Asking, Asking]) -> Asking:
    """Return one of the workers."""
    return workers[0]


# ------------------------------------------------------------------------------
# answers


@pytest.mark.parametrize("question", [RANKING, "revenue by service area", "你好", "xyzzy of plugh"])
def test_an_answer_is_that_of_the_other_endpoints(question: str, ruled: Asking) -> None:
    result = called(ruled, "ask", question=question)
    _, envelope = ruled.sync({"question": question})
    given, expected = result["structuredContent"], envelope["data"]
    for name in ("response", "sql", "query_result", "warnings", "choices", "chart"):
        assert given.get(name) == expected.get(name), name
    text = result["content"][0]["text"]
    assert expected["response"] in text
    if expected.get("sql"):
        assert expected["sql"] in text
        assert str(expected["query_result"]["rows"][0][0]) in text


def test_results_are_what_tools_say(ruled: Asking) -> None:
    _, reply = sent(ruled, "tools/list")
    tools = {tool["name"]: tool for tool in reply["result"]["tools"]}
    assert "run_sql" not in tools, "its group is analysts"
    assert len(tools) == 6
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools.values())
    answer = called(ruled, "ask", question=RANKING)["structuredContent"]
    run_id = answer["run_id"]
    results = {
        "ask": answer,
        "search_schema": called(ruled, "search_schema", words="营业收入")["structuredContent"],
        "describe_table": called(ruled, "describe_table", table="company")["structuredContent"],
        "statistics": called(ruled, "statistics", run_id=run_id)["structuredContent"],
        "export": called(ruled, "export", run_id=run_id, format="xlsx")["structuredContent"],
        "list_reports": called(ruled, "list_reports")["structuredContent"],
    }
    assert results.keys() == tools.keys()
    for name, tool in tools.items():
        Draft202012Validator.check_schema(tool["inputSchema"])
        Draft202012Validator(tool["outputSchema"]).validate(results[name])
        said = tool["outputSchema"]["properties"].keys() & results[name].keys()
        assert said, f"{name} says nothing that it promises"
    path = results["export"]["url"].partition("://")[2].partition("/")[2]
    assert ruled.client.get(f"/{path}", buffered=True).data.startswith(b"PK")


def test_a_follow_up_keeps_its_conversation(ruled: Asking) -> None:
    first = called(ruled, "ask", question=RANKING)["structuredContent"]
    offered = first["follow_ups"][0]
    second = called(ruled, "ask", question=offered, conversation_id=first["conversation_id"])
    turns = ruled.client.get(
        f"/api/v0/conversations/{first['conversation_id']}", buffered=True
    ).get_json()["data"]["turns"]
    assert [turn["question"] for turn in turns] == [RANKING, offered]
    assert second["structuredContent"]["conversation_id"] == first["conversation_id"]


def test_documents_are_listed_read_and_completed(ruled: Asking) -> None:
    run_id = called(ruled, "ask", question=RANKING)["structuredContent"]["run_id"]
    _, listed = sent(ruled, "resources/list")
    read = [resource["uri"] for resource in listed["result"]["resources"]]
    kinds = ["answer", "schema", "metrics", "reports"]
    assert [uri.rpartition("/")[2] for uri in read] == kinds
    of_run = [f"citu://runs/{run_id}", f"citu://runs/{run_id}/rows.csv"]
    for uri in [*read, "citu://default/tables/company", *of_run]:
        status, reply = sent(ruled, "resources/read", {"uri": uri})
        assert status == 200, reply
        (contents,) = reply["result"]["contents"]
        assert contents["uri"] == uri
        assert contents["text"]
    ref = {"type": "ref/resource", "uri": "citu://{database}/tables/{table}"}
    argument = {"name": "table", "value": "COMP"}
    _, reply = sent(ruled, "completion/complete", {"ref": ref, "argument": argument})
    assert reply["result"]["completion"]["values"] == ["company"]


def test_reports_are_prompts_whose_text_asks_for_them(ruled: Asking) -> None:
    _, listed = sent(ruled, "prompts/list")
    (prompt,) = listed["result"]["prompts"]
    _, got = sent(ruled, "prompts/get", {"name": prompt["name"]})
    question = got["result"]["messages"][0]["content"]["text"]
    (report,) = called(ruled, "list_reports")["structuredContent"]["reports"]
    assert report["question"] == question
    assert called(ruled, "ask", question=question)["structuredContent"]["sql"]


def test_a_report_that_can_not_be_run_says_so_and_why(
    make_database: Callable[[str], str], tmp_path: Path
) -> None:
    """It stays in the lists with its reason, to those who may see its data, and under its name."""
    semantics = tmp_path / "semantics.yaml"
    semantics.write_text(
        "version: 1\nreports:\n  heaviest:\n    sql: SELECT max(weight) FROM parcel\n"
        "  oldest:\n    sql: SELECT min(sent_on) FROM parcel\n",
        "utf-8",
    )
    url = make_database(
        "CREATE TABLE parcel (id int PRIMARY KEY, weight int); INSERT INTO parcel VALUES (1, 5)"
    )
    settings = Settings(
        database_url=url, semantic_file=str(semantics), data_dir=str(tmp_path), audit_log="off"
    )
    with Asking(settings) as asking:
        asking.sync({"question": "how many parcels are there"})  # reads the catalogue
        reports = called(asking, "list_reports")["structuredContent"]["reports"]
        assert ["problem" in report for report in reports] == [False, True]
        assert "sent_on" in reports[1]["problem"]
        _, listed = sent(asking, "prompts/list")
        assert [prompt["name"] for prompt in listed["result"]["prompts"]] == ["heaviest"]
        _, envelope = asking.sync({"question": "/report", "lang": "en"})
        assert envelope["data"]["response"] == "- heaviest\n- oldest (can't be used now)"
        assert envelope["data"]["follow_ups"] == ["heaviest"]
        _, envelope = asking.sync({"question": "oldest", "lang": "en"})
        said = envelope["data"]["response"]
        assert said.startswith("The report oldest can't be used now: ")
        assert "sent_on" in said
        _, envelope = asking.sync({"question": "heaviest"})
        assert envelope["data"]["query_result"]["rows"] == [[5]]


# ------------------------------------------------------------------------------
# the protocol's own client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_asks_and_shows_steps(mode: str, ruled: Asking) -> None:
    async def asked(port: int) -> tuple[Any, list[str], str]:
        steps: list[str] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            steps.append(message or "")

        async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
            result = await client.call_tool("ask", {"question": RANKING}, progress_callback=note)
            return result, steps, client.protocol_version

    with serving_app(ruled.client.application) as port:  # type: ignore[arg-type]
        result, steps, version = asyncio.run(asked(port))
    assert version == (VERSION if mode == "auto" else "2025-11-25")
    assert not result.is_error
    assert result.structured_content["sql"]
    assert any("生成SQL查询" in step for step in steps)


def test_the_official_client_puts_a_question_before_its_user(surveying: Asking) -> None:
    asked: list[str] = []

    async def answered(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        answer = "name" if params.message == "Which column?" else 2
        field = params.requested_schema["properties"]["answer"]
        return ElicitResult(
            action="accept", content={"answer": answer if "enum" in field else str(answer)}
        )

    async def run(port: int) -> Any:
        address = f"http://127.0.0.1:{port}/mcp"
        async with Client(address, elicitation_callback=answered) as client:
            return await client.call_tool("ask", {"question": SURVEY, "agent": "survey"})

    with serving_app(surveying.client.application) as port:  # type: ignore[arg-type]
        result = asyncio.run(run(port))
    assert asked == ["Which column?", "How many of name?"], result
    assert result.content[0].text == "gauge 1, gauge 2"


# ------------------------------------------------------------------------------
# questions back


def waiting(surveying: Asking) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of a call that asked back, and its result."""
    params = {"name": "ask", "arguments": {"question": SURVEY, "agent": "survey"}}
    _, reply = sent(surveying, "tools/call", params, can_ask=True)
    assert reply["result"]["resultType"] == "input_required"
    return params, reply["result"]


def answer(text: str) -> dict[str, Any]:
    return {"answer": {"action": "accept", "content": {"answer": text}}}


def test_a_client_that_cannot_ask_gets_the_question_as_the_result(surveying: Asking) -> None:
    first = called(surveying, "ask", question=SURVEY, agent="survey")
    fields = first["structuredContent"]
    assert "name" in fields["choices"]
    assert fields["answer_to"] in first["content"][0]["text"]
    second = called(surveying, "ask", question="name", answer_to=fields["answer_to"])
    answer_to = second["structuredContent"]["answer_to"]
    third = called(surveying, "ask", question="1", answer_to=answer_to)
    assert third["structuredContent"]["response"] == "gauge 1"
    # The same call again, as after a broken connection, is the same answer.
    again = called(surveying, "ask", question="1", answer_to=answer_to)
    assert again["structuredContent"]["response"] == "gauge 1"


def test_a_state_opens_nothing_but_the_call_it_belongs_to(
    workers: tuple[Asking, Asking],
) -> None:
    surveying, other_worker = workers
    params, asked = waiting(surveying)
    state = asked["requestState"]
    flipped = ("A" if state[-1] != "A" else "B") + state[1:]
    other = {"name": "ask", "arguments": {"question": "another"}}
    for given in (
        {**params, "requestState": flipped},
        {**params, "requestState": ""},
        {**params, "requestState": 7},
        {**other, "requestState": state},
    ):
        more = {**given, "inputResponses": answer("name")}
        status, reply = sent(surveying, "tools/call", more, can_ask=True)
        assert (status, reply["error"]["code"]) == (400, -32602)
    more = {**params, "requestState": state, "inputResponses": {}}
    _, reply = sent(surveying, "tools/call", more, can_ask=True)
    assert reply["result"]["resultType"] == "input_required", "asked again"
    more["inputResponses"] = answer("name")
    _, reply = sent(other_worker, "tools/call", more, can_ask=True)
    assert "How many" in json.dumps(reply["result"]["inputRequests"])
    more["inputResponses"] = answer("id")
    _, reply = sent(surveying, "tools/call", more, can_ask=True)
    assert reply["result"]["_meta"]["citu/error"]["error_type"] == "conflict", "replayed"


def test_a_state_is_bound_to_its_user_and_expires(tmp_path: Path) -> None:
    key = kept_key(tmp_path / "folder/key")
    assert kept_key(tmp_path / "folder/key") == key
    assert (tmp_path / "folder/key").stat().st_mode & 0o077 == 0
    seal, call = StateSeal(lambda: key, 60), {"name": "ask"}
    text = seal.sealed(Actor("alice"), call, {"answer_to": "run_1:2"})
    assert seal.opened(Actor("alice"), call, text) == {"answer_to": "run_1:2"}
    for opening, actor in (
        (seal, Actor("bob")),
        (StateSeal(lambda: "another key", 60), Actor("alice")),
        (StateSeal(lambda: key, -1), Actor("alice")),
    ):
        with pytest.raises(InvalidState):
            opening.opened(actor, call, text)


def test_who_declines_ends_the_run(surveying: Asking) -> None:
    params, asked = waiting(surveying)
    declined = {"inputResponses": {"answer": {"action": "decline"}}}
    more = {**params, "requestState": asked["requestState"], **declined}
    _, reply = sent(surveying, "tools/call", more, can_ask=True)
    assert reply["result"]["isError"]
    _, reply = sent(
        surveying, "tools/call", {**more, "inputResponses": answer("name")}, can_ask=True
    )
    assert "cancelled" in reply["result"]["content"][0]["text"]


# ------------------------------------------------------------------------------
# rights, refusals, mistakes


def test_tools_have_the_groups_and_the_guard_of_the_service(demo_url: str, tmp_path: Path) -> None:
    settings = Settings(
        database_url=demo_url, data_dir=str(tmp_path), tool_groups="run_sql: analysts"
    )
    keys = KeyFile(settings.api_keys_path)
    analyst, _ = keys.create("ann", groups=("analysts",))
    other, _ = keys.create("bob")
    with Asking(settings) as asking:
        body, headers = request_of("tools/list")
        assert asking.client.post("/mcp", json=body, headers=headers).status_code == 401

        named = {"Authorization": f"Bearer {analyst}"}
        all_tools = sent(asking, "tools/list", headers=named)[1]["result"]["tools"]
        assert len(all_tools) == 7
        assert estimated_tokens(json.dumps(all_tools)) <= 1_500

        def run(key: str, sql: str) -> dict[str, Any]:
            params = {"name": "run_sql", "arguments": {"sql": sql}}
            named = {"Authorization": f"Bearer {key}"}
            return sent(asking, "tools/call", params, headers=named)[1]

        assert run(other, "SELECT 1")["error"]["message"].startswith("Unknown tool: run_sql")
        assert run(analyst, "SELECT 1")["result"]["structuredContent"]["query_result"]["rows"]
        refused = run(analyst, "DELETE FROM company")["result"]
        assert refused["isError"]
        assert refused["_meta"]["citu/error"]["error_type"] == "forbidden_keywords"
        # A page of another site may not use the key that it was given.
        foreign = {"Authorization": f"Bearer {analyst}", "Origin": "https://evil.example"}
        response = asking.client.post("/mcp", json=body, headers=headers | foreign, buffered=True)
        assert response.status_code == 403
        # An answer belongs to who asked.
        named = {"Authorization": f"Bearer {analyst}"}
        params = {"name": "ask", "arguments": {"question": RANKING}}
        run_id = sent(asking, "tools/call", params, headers=named)[1]["result"][
            "structuredContent"
        ]["run_id"]
        named = {"Authorization": f"Bearer {other}"}
        _, reply = sent(asking, "resources/read", {"uri": f"citu://runs/{run_id}"}, headers=named)
        assert reply["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("ask", {}, "question is missing"),
        ("ask", {"question": "  "}, "question"),
        ("ask", {"question": "x", "agent": "nobody"}, "agent"),
        ("ask", {"question": "x", "database": "nobody"}, "database"),
        ("ask", {"question": "x", "sql": "SELECT 1"}, "There is no argument sql"),
        ("ask", {"question": "x", "answer_to": "run_1"}, "answer_to"),
        ("ask", {"question": "x", "answer_to": "run_" + "0" * 24 + ":1"}, "not_found"),
        ("describe_table", {"table": "nobody"}, "not_found"),
        ("search_schema", {"words": "x", "limit": 1000}, "limit"),
        ("search_schema", {"words": 7}, "words is not valid"),
        ("statistics", {"run_id": "nobody"}, "not_found"),
        ("export", {"run_id": "run_1", "format": "exe"}, "format"),
    ],
)
def test_mistakes_are_told_to_the_model(
    tool: str, arguments: dict[str, Any], said: str, ruled: Asking
) -> None:
    result = called(ruled, tool, **arguments)
    assert result["isError"]
    assert said in result["content"][0]["text"]


def test_pages_of_other_sites_may_not_call_it(ruled: Asking) -> None:
    body, headers = request_of("tools/list")
    headers["Origin"] = "https://evil.example"
    response = ruled.client.post("/mcp", json=body, headers=headers, buffered=True)
    assert response.status_code == 403


def test_what_is_no_request_is_refused(ruled: Asking) -> None:
    def refused(data: bytes) -> tuple[int, int]:
        response = ruled.client.post("/mcp", data=data, buffered=True)
        return response.status_code, response.get_json()["error"]["code"]

    assert refused(b"{") == (400, -32700)
    assert refused(b"[]") == (400, -32600)
    assert refused(b'{"jsonrpc": "2.0", "id": true, "method": "ping"}') == (400, -32600)
    assert refused(b'{"jsonrpc": "2.0", "id": null, "method": "ping"}') == (400, -32600)
    assert refused(b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}') == (404, -32601)
    note = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'
    assert ruled.client.post("/mcp", data=note).status_code == 202
    assert ruled.client.get("/mcp").status_code == 405


def test_a_client_that_leaves_ends_the_model_call(surveying: Asking, model: OpenAiServer) -> None:
    gate = Gate()
    arguments = {"question": "hello", "conversation_id": "left"}
    body, headers = request_of(
        "tools/call", {"name": "ask", "arguments": arguments}, progressToken="p"
    )
    accept = {"Accept": "application/json, text/event-stream"}

    def ended() -> Any:
        response = surveying.client.get("/api/v0/conversations/left", buffered=True)
        turns = response.get_json()["data"].get("turns")
        return turns and turns[0]

    with (
        serving_app(surveying.client.application) as port,  # type: ignore[arg-type]
        scripted(model, Reply("hello", gate=gate)),
    ):
        with Stream(port, "/mcp", body, **headers, **accept) as stream:
            assert "notifications/progress" in stream.next_block()
            assert gate.reached.wait(60)
            stream.close()
            turn = eventually(ended)
        gate.open()
    assert turn["failure"]["error_type"] == "cancelled"
