"""The flow `tool_graph`: what a scripted model is offered and sent, what the audit log notes, and
how questions end.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.tools.run_sql import RunSql
from agent.tools.tool import Arguments, Tool, ToolContext
from api.access.key_file import KeyFile
from app_config import Settings
from common.errors import Forbidden
from common.text import Text
from tests.support.asking import SYNC, Asking, shared_askings, stable
from tests.support.effort import tries
from tests.support.http_stream import Stream, post_json
from tests.support.live import GONE_S, Citu, Watch, eventually, serving
from tests.support.openai_replies import Called, Gate, Reply, Request
from tests.support.openai_server import OpenAiServer, take_violations
from tests.support.questions import STREAM
from tests.support.redis_server import redis_server
from tests.support.tool_scripts import EXECUTING, calling, following, generating, querying, results

COUNT = "SELECT count(*) AS n FROM gauge"
NAMES = "SELECT name FROM gauge ORDER BY name"
ASK = {"question": "how many gauges are there", "agent": "tool_graph", "lang": "en"}
VIRTUAL = {"query_schema_metadata", "generate_sql", "execute_current_sql"}


@pytest.fixture(scope="module")
def audit_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "logs" / "audit.jsonl"


@pytest.fixture(scope="module")
def askings(database: str, audit_path: Path) -> Iterator[Callable[..., Asking]]:
    with shared_askings(
        Settings(database_url=database, llm_max_retries=0, audit_log=str(audit_path))
    ) as askings:
        yield askings


class Told:
    """What became of one question.

    Attributes:
        data: the data of its last event.
        requests: that the model received.
        audit: lines of the log.
    """

    def __init__(
        self, code: int, data: dict[str, Any], requests: list[Request], audit: list[dict[str, Any]]
    ) -> None:
        self.code = code
        self.data = data
        self.requests = requests
        self.audit = audit

    @property
    def offers(self) -> list[set[str]]:
        """The virtual tools that each request with tools offered."""
        return [
            VIRTUAL.intersection(request.tool_names)
            for request in self.requests
            if "tools" in request.params
        ]

    @property
    def results(self) -> dict[str, str]:
        """What the last request says of all calls."""
        return results(self.requests[-1])

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The audit log's lines about calls of the model."""
        return [
            line
            for line in self.audit
            if line["source"] == "tool" and line["tool"] != "save_memory"
        ]

    @property
    def statements(self) -> list[dict[str, Any]]:
        """The audit log's lines about statements."""
        return [line for line in self.audit if "sql" in line]


Tell = Callable[..., Told]


@pytest.fixture
def tell(askings: Callable[..., Asking], model: OpenAiServer, audit_path: Path) -> Tell:
    """Asks a question; the model follows the script."""

    def told(
        replies: Sequence[Reply],
        sql: str = COUNT,
        body: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Told:
        model.default = following(replies, sql)
        first = len(model.requests)
        code, envelope = askings(model, **changes).sync({**ASK, **(body or {})})
        data, requests = envelope["data"], model.requests[first:]
        for request in requests:
            assert "run_sql" not in request.tool_names
        lines = (
            map(json.loads, audit_path.read_text("utf-8").splitlines())
            if audit_path.exists()
            else ()
        )
        return Told(
            code, data, requests, [line for line in lines if line["run_id"] == data["run_id"]]
        )

    return told


# ------------------------------------------------------------------------------
# a simple question


def test_a_simple_question_takes_three_calls_of_the_model(tell: Tell) -> None:
    told = tell(querying(COUNT, "There are 3 gauges."))
    assert told.code == 200
    assert (told.data["response"], told.data["sql"], told.data["agent"]) == (
        "There are 3 gauges.",
        COUNT,
        "tool_graph",
    )
    assert told.data["query_result"]["rows"] == [[3]]
    assert told.data["usage"]["llm_calls"] == len(told.requests) == 3
    assert told.data["execution_path"] == [
        *("start", "initialize", "memory_search", "think", "generate_sql"),
        *("think", "execute_sql", "save_memory", "think", "finalize"),
    ]


def test_conversation_takes_one_call_of_the_model(tell: Tell) -> None:
    told = tell([Reply("Hello!")], body={"question": "hello"})
    assert (told.data["response"], told.data["response_type"], len(told.requests)) == (
        "Hello!",
        "CHAT",
        1,
    )
    assert told.audit == []


def test_a_statement_that_the_model_does_not_write_is_written_in_a_prompt_of_its_own(
    tell: Tell,
) -> None:
    told = tell(
        [
            Reply(calls=[generating(None, "Number of gauges")]),
            Reply(calls=[EXECUTING]),
            Reply("3."),
        ],
        COUNT,
    )
    fresh = told.requests[1]
    assert "tools" not in fresh.params
    assert {message["role"] for message in fresh.messages} == {"system", "user"}
    assert "Number of gauges" in fresh.question
    assert told.data["sql"] == COUNT
    assert told.data["usage"]["llm_calls"] == 4
    assert told.data["usage"]["prompt_tokens"] == sum(
        len(json.dumps(request.messages)) // 4 for request in told.requests
    )


def test_the_verdict_says_what_to_mend(tell: Tell) -> None:
    told = tell([Reply(calls=[generating("SELECT nam FROM gauge")]), *querying(NAMES)])
    wrong = told.requests[1].messages[-1]["content"]
    assert wrong.startswith("syntax_error:")
    assert "name" in wrong.split("look similar:")[1]


@pytest.mark.parametrize(
    "sql", ["DELETE FROM gauge", "SELECT 1; SELECT 2", "SELECT rolname FROM pg_authid"]
)
def test_a_refused_statement_is_never_offered_for_execution(sql: str, tell: Tell) -> None:
    told = tell(
        [Reply(calls=[generating(sql)]), Reply(calls=[EXECUTING]), Reply("That is not possible.")]
    )
    assert "execute_current_sql" not in set().union(*told.offers)
    assert [line["verdict"] for line in told.statements] == ["refused"]


def test_a_model_that_fails_to_write_a_statement_is_told_to_write_it_itself(tell: Tell) -> None:
    replies = [Reply(calls=[generating(None)]), *querying(COUNT, "3.")]
    told = tell(replies, "NO_SQL: missing_database_info: there are no such tables")
    assert (
        told.requests[2]
        .messages[-1]["content"]
        .startswith("no_sql: missing_database_info: there are no such")
    )
    assert (told.data["response"], told.data["usage"]["llm_calls"]) == ("3.", 5)


def test_the_planner_s_estimate_is_no_source_of_figures(tell: Tell) -> None:
    estimate = (
        tell(querying(COUNT)).requests[1].messages[-1]["content"].split("cost ")[1].split(",")[0]
    )
    told = tell(querying(COUNT, f"There are 3, at a cost of {estimate}."))
    assert [figure["figure"] for figure in told.data["figures"]] == ["3"]
    assert estimate in told.data["warnings"][0]


def test_the_stream_shows_steps_rows_and_the_text_of_the_answer_alone(
    askings: Callable[..., Asking], model: OpenAiServer
) -> None:
    replies = querying(COUNT, "There are 3 gauges here.")
    model.default = following([Reply("Let me look.", calls=replies[0].calls), *replies[1:]])
    events = [event["data"] for event in askings(model).stream(ASK)]
    last = events[-1]
    assert (
        "".join(event["text"] for event in events if event["type"] == "token") == last["response"]
    )
    shown = [(event["name"], event["status"]) for event in events if event["type"] == "tool"]
    assert shown == [
        (name, status)
        for name in ("generate_sql", "execute_current_sql")
        for status in ("running", "done")
    ]
    (rows,) = (event for event in events if event["type"] == "result")
    assert (rows["sql"], rows["query_result"]["rows"]) == (COUNT, [[3]])
    assert [source["call_id"] for source in last["sources"]] == [rows["call_id"]]
    done = [
        event["node"]
        for event in events
        if event["type"] == "progress" and event["status"] == "done"
    ]
    assert ["start", *done] == last["execution_path"]


# ------------------------------------------------------------------------------
# invariants


def test_i1_no_request_offers_run_sql_and_a_call_of_it_runs_nothing(tell: Tell) -> None:
    told = tell([calling("run_sql", sql=COUNT), Reply("I can't.")])
    assert told.statements == []
    assert [(line["tool"], line["verdict"]) for line in told.calls] == [("run_sql", "refused")]


def test_i2_tools_are_offered_by_state(tell: Tell) -> None:
    told = tell(querying(COUNT))
    before = {"query_schema_metadata", "generate_sql"}
    assert told.offers == [before, VIRTUAL, before]


def test_i2_without_a_schema_there_is_nothing_to_generate(tell: Tell) -> None:
    """A budget in which not even one table fits."""
    asked = [calling("query_schema_metadata", tables=["gauge"]), *querying(COUNT)]
    told = tell(asked, schema_tokens=1)
    assert told.offers[:2] == [{"query_schema_metadata"}, {"query_schema_metadata", "generate_sql"}]
    assert told.data["query_result"]["rows"] == [[3]]
    early = tell([Reply(calls=[generating(COUNT)]), Reply("No.")], schema_tokens=1)
    assert "can't be called now" in early.requests[1].messages[-1]["content"]
    assert [line["verdict"] for line in early.calls] == ["refused"]


def test_i2_a_call_outside_the_offer_runs_nothing(tell: Tell) -> None:
    """Also where an earlier call of the same reply has just made it possible."""
    told = tell([Reply(calls=[generating(COUNT), EXECUTING, EXECUTING]), Reply("Wait.")])
    assert [call["verdict"] for call in told.calls] == ["executed", "refused", "refused"]
    assert told.statements == []


def test_i2_what_was_refused_may_be_called_once_it_is_offered(tell: Tell) -> None:
    told = tell(
        [Reply(calls=[generating(COUNT), EXECUTING]), Reply(calls=[EXECUTING]), Reply("3.")]
    )
    assert told.data["query_result"]["rows"] == [[3]]
    looking = calling("query_schema_metadata", tables=["gauge"])
    told = tell([Reply(calls=[generating(COUNT)]), looking, *querying(COUNT)], schema_tokens=1)
    assert told.data["query_result"]["rows"] == [[3]]


def test_i2_a_statement_that_is_given_up_is_not_run(tell: Tell) -> None:
    """It was offered with the reply, whose first call has replaced it by one that is refused."""
    told = tell(
        [
            Reply(calls=[generating(COUNT)]),
            Reply(calls=[generating("SELECT x FROM gauge"), EXECUTING]),
            Reply("No."),
        ]
    )
    assert [call["verdict"] for call in told.calls] == ["executed", "failed", "refused"]
    assert [(line["sql"], line["verdict"]) for line in told.statements] == [
        ("SELECT x FROM gauge", "refused")
    ]


def test_i3_each_statement_has_one_line_with_run_call_and_tool(tell: Tell) -> None:
    told = tell(
        [
            Reply(calls=[generating("SELECT nothing FROM gauge")]),
            Reply(calls=[generating("SELECT 1 / (n - n) AS x FROM gauge")]),
            Reply(calls=[EXECUTING]),
            *querying(COUNT),
        ]
    )
    assert [(line["tool"], line["verdict"], line["sql"]) for line in told.statements] == [
        ("generate_sql", "refused", "SELECT nothing FROM gauge"),
        ("execute_current_sql", "failed", "SELECT 1 / (n - n) AS x FROM gauge"),
        ("execute_current_sql", "executed", COUNT),
    ]
    called = {
        call["id"]
        for request in told.requests
        for message in request.messages
        for call in message.get("tool_calls", ())
    }
    assert {line["call_id"] for line in told.audit} == called
    assert {line["tool"] for line in told.calls} == {"generate_sql", "execute_current_sql"}


def test_i4_mixed_calls_of_one_reply_get_one_result_each_in_its_order(tell: Tell) -> None:
    mixed = [
        Called("describe_table", {"table": "gauge"}),
        generating(COUNT),
        Called("no_such_tool"),
        Called("query_schema_metadata", {"words": "gauge"}),
        Called("search_schema", {"words": "gauge"}),
        Called("describe_table", '{"table": '),
        generating(NAMES),
    ]
    told = tell([Reply(calls=mixed), Reply(calls=[EXECUTING]), Reply("Done.")])
    _system, _user, asked, *answered = told.requests[1].messages
    assert [one["tool_call_id"] for one in answered] == [call["id"] for call in asked["tool_calls"]]
    assert [line["tool"] for line in told.calls] == [
        *(call.name for call in mixed),
        "execute_current_sql",
    ]
    assert told.data["sql"] == NAMES, "the statement that was put up last"
    assert told.data["usage"]["llm_calls"] == 3


ENDLESS = {
    "agent_model_calls": (4, "model calls"),
    "agent_tool_calls": (5, "tool calls"),
    "agent_tokens": (3_000, "tokens"),
    "agent_timeout_s": (1e-9, "seconds"),
}


@pytest.mark.parametrize("setting", ENDLESS)
def test_i5_endless_callers_stop_at_each_limit(setting: str, tell: Tell) -> None:
    most, word = ENDLESS[setting]
    looking = [calling("query_schema_metadata", words=f"gauge {place}") for place in range(50)]
    told = tell([*querying(COUNT)[:2], *looking], **{setting: most})
    assert told.code == 200
    assert f"{most:g} {word}" in told.data["warnings"][-1]
    if setting == "agent_timeout_s":
        assert (told.requests, told.audit) == ([], [])
        return
    assert told.data["query_result"]["rows"] == [[3]], "what was found so far"
    assert "3" in told.data["response"]
    run = [line for line in told.calls if line["error_type"] != "limit_reached"]
    used = {"agent_model_calls": len(told.requests), "agent_tool_calls": len(run)}
    assert used.get(setting, most) == most
    assert "think" in told.data["execution_path"][-2:]


def test_i5_the_prompt_of_its_own_counts_as_a_call_of_the_model(tell: Tell) -> None:
    told = tell(
        [Reply(calls=[generating(None, f"Step {place}")]) for place in range(9)],
        agent_model_calls=4,
    )
    assert len(told.requests) == 4
    assert "4 model calls" in told.data["warnings"][-1]


def test_i5_calls_beyond_the_limit_are_not_run(tell: Tell) -> None:
    many = [Called("describe_table", {"table": f"t{place}"}) for place in range(9)]
    told = tell([Reply(calls=many)], agent_tool_calls=4)
    assert [line["error_type"] for line in told.calls] == ["not_found"] * 4 + ["limit_reached"] * 5
    assert len(told.requests) == 1


def test_i5_the_limits_of_calls_end_a_question_before_langgraph_does(tell: Tell) -> None:
    """Each call is followed by as many nodes as there can be."""
    calls = [EXECUTING, Called("describe_table", {"table": "gauge"})] * 6
    told = tell([Reply(calls=calls)], agent_tool_calls=40)
    assert told.code == 200
    assert "40 tool calls" in told.data["warnings"][0]
    assert told.data["execution_path"].count("save_memory") == 20


def test_i6_the_same_call_is_not_run_twice(tell: Tell) -> None:
    again = [generating(COUNT), generating(COUNT)]
    told = tell(
        [Reply(calls=again), Reply(calls=[EXECUTING, EXECUTING]), Reply(calls=again), Reply("3.")]
    )
    ran = [line["tool"] for line in told.calls if line["error_type"] != "repeated"]
    assert ran == ["generate_sql", "execute_current_sql"]
    assert len(told.calls) == 6
    assert len(told.statements) == 1
    pointed = [text for text in told.results.values() if "same as" in text]
    assert len(told.results) == 6
    assert len(pointed) == 4


def test_i6_a_repeated_call_puts_its_statement_up_again(tell: Tell) -> None:
    told = tell(
        [
            *(Reply(calls=[generating(sql)]) for sql in (COUNT, NAMES, COUNT)),
            Reply(calls=[EXECUTING]),
            Reply("3"),
        ]
    )
    assert [line["sql"] for line in told.statements] == [COUNT]


def test_i6_a_statement_is_run_once_whatever_it_is_put_up_for(tell: Tell) -> None:
    again = [
        Reply(calls=[generating(COUNT, "once")]),
        Reply(calls=[EXECUTING]),
        Reply(calls=[generating(COUNT, "more")]),
    ]
    told = tell([*again, Reply(calls=[EXECUTING]), Reply("3.")])
    first = told.requests[2].messages[-1]["tool_call_id"]
    assert f"run by the call {first}" in told.requests[3].messages[-1]["content"]
    assert "execute_current_sql" not in told.offers[3]
    assert [line["verdict"] for line in told.statements] == ["executed"]


@pytest.fixture(scope="module", params=["postgresql", "redis"])
def store(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The settings of a store."""
    if request.param == "postgresql":
        yield {}
        return
    with redis_server() as server:
        yield {"redis_url": server.url}


def test_i7_no_call_crosses_turns(tell: Tell, store: dict[str, str]) -> None:
    body = {"conversation_id": "graph-turns"}
    tell(querying(COUNT, "There are 3 gauges."), body=body, **store)
    told = tell([Reply("As I said.")], body={**body, "question": "and again?"}, **store)
    (request,) = told.requests
    assert [message["role"] for message in request.messages] == ["system", "user"]
    for kept in (ASK["question"], COUNT, "There are 3 gauges."):
        assert kept in request.messages[1]["content"]
    assert "generate_sql {" not in request.messages[1]["content"]


@pytest.mark.parametrize(
    "unusable", [Reply(""), Reply(" \n"), Reply("<think>hm</think>"), Reply(None)]
)
def test_i9_an_unusable_reply_is_asked_for_once_more(
    unusable: Reply, askings: Any, model: OpenAiServer
) -> None:
    asking = askings(model)
    code, envelope = asking.sync(ASK, unusable, Reply("Hello."))
    assert (code, envelope["data"]["response"]) == (200, "Hello.")
    first = len(model.requests)
    code, envelope = asking.sync(ASK, *[unusable] * 5)
    assert (code, envelope["data"]["error_type"], envelope["data"]["node"]) == (
        503,
        "llm_unavailable",
        "think",
    )
    assert len(model.requests) == first + 2
    model.forget_replies()


# ------------------------------------------------------------------------------
# transforms and groups


def test_transforms_of_run_sql_hold_for_statements_however_they_are_written(
    tell: Tell, askings: Callable[..., Asking], model: OpenAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def without_names(
        tool: Tool[Any], arguments: Arguments, _context: ToolContext
    ) -> Arguments:
        if isinstance(arguments, RunSql):
            assert tool.name == "run_sql"
            if "name" in arguments.sql:
                raise Forbidden(Text("不允许", "Not this"))
            return arguments.model_copy(update={"sql": f"{arguments.sql} WHERE n < 3"})
        return arguments

    monkeypatch.setattr(askings(model).services.tools, "_transforms", (without_names,))
    replies = [
        Reply(calls=[generating(NAMES)]),
        Reply(calls=[generating(None)]),
        Reply(calls=[EXECUTING]),
        Reply("2."),
    ]
    told = tell(replies, COUNT)
    assert told.requests[1].messages[-1]["content"] == "forbidden: Not this"
    assert told.data["query_result"]["rows"] == [[2]]
    assert [line["sql"] for line in told.statements] == [f"{COUNT} WHERE n < 3"]


@pytest.mark.parametrize(
    ("tool_groups", "groups", "offered"),
    [
        ("run_sql: analysts", ("guests",), {"query_schema_metadata"}),
        ("run_sql: analysts", ("analysts",), {"query_schema_metadata", "generate_sql"}),
        ("run_sql:", ("analysts",), {"query_schema_metadata"}),
        ("search_schema: analysts", ("guests",), {"generate_sql"}),
        ("describe_table: analysts", ("analysts",), {"query_schema_metadata", "generate_sql"}),
    ],
)
def test_virtual_tools_are_for_those_who_may_use_the_real_ones(
    tool_groups: str,
    groups: tuple[str, ...],
    offered: set[str],
    askings: Callable[..., Asking],
    model: OpenAiServer,
    tmp_path: Path,
) -> None:
    key, _ = KeyFile(tmp_path / "api_keys.json").create("dora", groups=groups)
    asking = askings(model, data_dir=str(tmp_path), tool_groups=tool_groups)
    model.default = following(
        [Reply(calls=[generating(COUNT)]), Reply(calls=[EXECUTING]), Reply("Done.")]
    )
    first = len(model.requests)
    response = asking.client.post(SYNC, json=ASK, headers={"Authorization": f"Bearer {key}"})
    assert response.status_code == 200
    requests = model.requests[first:]
    assert VIRTUAL.intersection(requests[0].tool_names) == offered
    told = list(results(requests[-1]).values())
    if "generate_sql" in offered:
        assert response.get_json()["data"]["query_result"]["rows"] == [[3]]
    else:
        assert all(text.startswith("There is no such tool.") for text in told)


# ------------------------------------------------------------------------------
# memory


def kept(asking: Asking, user: str) -> dict[str, str]:
    """SQL by question of the candidates of a user."""
    page = asking.client.get(f"/api/v0/knowledge/examples?user_id={user}").get_json()
    items = [example for example in page["data"]["examples"] if example["author"] == user]
    assert {(item["trust"], item["source"]) for item in items} <= {("candidate", "agent")}
    return {item["question"]: item["sql"] for item in items}


def test_a_statement_that_ran_is_a_candidate_and_is_not_reused(
    tell: Tell, askings: Callable[..., Asking], model: OpenAiServer
) -> None:
    who = {"user_id": "ann", "lang": "en"}
    tell(querying(NAMES, "Three."), body={**who, "question": "what are the names of all gauges"})
    assert kept(askings(model), "ann") == {"what are the names of all gauges": NAMES}
    told = tell([Reply("x")], body={**who, "question": "what are the names of all gauges"})
    assert NAMES not in str(told.requests[0].messages)
    ask = tell(
        [Reply(COUNT)],
        COUNT,
        {**who, "question": "what are the names of all gauges", "agent": "ask"},
    )
    assert ask.data.get("generation_method") != "verified_example"


def test_of_several_statements_each_answers_its_instruction(
    tell: Tell, askings: Callable[..., Asking], model: OpenAiServer
) -> None:
    steps = [
        (COUNT, "how many gauges are there in total"),
        (NAMES, "what are the names of the gauges"),
    ]
    replies = [
        Reply(calls=[call]) for sql, said in steps for call in (generating(sql, said), EXECUTING)
    ]
    tell(
        [*replies, Reply("Done.")],
        body={"user_id": "bob", "question": "tell me all about the gauges"},
    )
    assert kept(askings(model), "bob") == {said: sql for sql, said in steps}


@pytest.mark.parametrize(
    ("replies", "changes"),
    [
        (querying(COUNT), {"learning": False}),
        (querying("SELECT name FROM gauge WHERE n < 0"), {}),
        ([*querying(COUNT)[:2], Reply("")], {}),
    ],
    ids=["nothing is learnt", "nothing was found", "the question failed"],
)
def test_no_candidate(
    replies: list[Reply],
    changes: dict[str, Any],
    tell: Tell,
    askings: Callable[..., Asking],
    model: OpenAiServer,
) -> None:
    told = tell(replies, body={"user_id": "cleo"}, **changes)
    assert "save_memory" in (told.data.get("execution_path") or ["save_memory"])
    assert kept(askings(model, **changes), "cleo") == {}


# ------------------------------------------------------------------------------
# cancellation


@pytest.fixture(scope="module")
def service(
    model: OpenAiServer, database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Citu]:
    log = tmp_path_factory.mktemp("service") / "log"
    with serving(
        log, model=model, DATABASE_URL=database, AUDIT_LOG="off", PING_INTERVAL_S="0.1"
    ) as citu:
        yield citu


def test_i8_a_cancelled_question_stops_its_sql_and_asks_no_further(
    service: Citu, watch: Watch, model: OpenAiServer
) -> None:
    model.default = following(querying("SELECT n FROM endless"))
    first = len(model.requests)
    with Stream(service.port, STREAM, ASK) as stream:
        events = stream.events()
        run_id = next(events)["data"]["run_id"]
        eventually(lambda: watch.running("endless"))
        assert post_json(service.port, f"/api/v0/runs/{run_id}/cancel", {})[0] in (200, 202)
        assert list(events)[-1]["data"]["error_type"] == "cancelled"
    eventually(lambda: not watch.running("endless"), GONE_S)
    assert len(model.requests) == first + 2


def test_i8_a_client_that_leaves_stops_the_model(service: Citu, model: OpenAiServer) -> None:
    gate = Gate()
    model.default = following(
        [Reply(calls=[generating(COUNT)]), Reply(calls=[EXECUTING], gate=gate)]
    )
    first = len(model.requests)
    with Stream(service.port, STREAM, ASK):
        assert gate.reached.wait(60)
    assert model.requests[-1].disconnected.wait(GONE_S)
    assert len(model.requests) == first + 2


# ------------------------------------------------------------------------------
# any conversation

SQL = st.sampled_from(
    [COUNT, NAMES, "SELECT nam FROM gauge", "SELECT 1 / (n - n) FROM gauge", "DROP TABLE gauge", ""]
)
TEXTS = st.sampled_from(["gauge", "GAUGE", "no_such", "", "x" * 300, "'; --"])
CALLS = st.one_of(
    st.builds(generating, SQL | st.none(), TEXTS),
    st.just(EXECUTING),
    st.builds(lambda sql: Called("run_sql", {"sql": sql}), SQL),
    st.builds(lambda words: Called("query_schema_metadata", {"words": words}), TEXTS),
    st.builds(
        lambda tables: Called("query_schema_metadata", {"tables": tables}),
        st.lists(TEXTS, max_size=8),
    ),
    st.builds(
        Called,
        st.sampled_from(["describe_table", "search_schema"]),
        st.builds(lambda one: {"table": one}, TEXTS),
    ),
    st.builds(
        Called,
        st.sampled_from(["", "no_such_tool", "generate_sql", "execute_current_sql", "a.b", "查询"]),
    ),
    st.builds(
        Called,
        st.sampled_from(["generate_sql", "execute_current_sql"]),
        st.sampled_from(["{", "[1]", "null"]),
    ),
)
REPLIES = st.one_of(
    st.builds(
        lambda calls, text: Reply(text, calls=calls), st.lists(CALLS, min_size=1, max_size=4), TEXTS
    ),
    st.builds(Reply, st.sampled_from(["There are 3.", "", "<think>x</think>"])),
)
MADE_ID = re.compile(r"call_[0-9a-f]{32}")


def shared(envelope: dict[str, Any]) -> str:
    """What two answers to the same question share: ids of calls that Citu made are named by their
    order.
    """
    names: dict[str, str] = {}
    return MADE_ID.sub(
        lambda one: names.setdefault(one[0], f"made {len(names)}"), json.dumps(stable(envelope))
    )


@settings(
    max_examples=tries(10),  # each is two questions
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(replies=st.lists(REPLIES, min_size=1, max_size=6))
def test_any_calls_end_in_an_answer_or_a_typed_error(
    replies: list[Reply], askings: Callable[..., Asking], model: OpenAiServer
) -> None:
    """The model's server refuses whatever breaks the protocol."""
    model.default = following(replies, COUNT)
    asking = askings(model, agent_model_calls=5, agent_tool_calls=9)
    first = len(model.requests)
    code, answer = asking.sync(ASK)
    asked, data = model.requests[first:], answer["data"]
    assert (code == 200 and data["response"]) or data["error_type"] == "llm_unavailable"
    assert len(asked) <= 5
    assert "run_sql" not in {name for request in asked for name in request.tool_names}
    assert shared(asking.stream(ASK)[-1]) == shared(answer)
    assert take_violations() == []
