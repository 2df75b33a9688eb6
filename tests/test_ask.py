"""Both ask endpoints on every path a question can take: the sync answer and the stream say the same."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent.ask.faces import FACES
from app_config import Settings
from tests.asking import Asking, shared_askings, stable
from tests.openai_replies import Reply
from tests.openai_server import OpenAiServer

RANKING = "查询各服务区的营业收入排行"
ROWS_SQL = "SELECT company_id, company_name FROM company ORDER BY company_id LIMIT 3"
ONE_SQL = "SELECT count(*) AS n FROM shop"
EMPTY_SQL = "SELECT company_name FROM company WHERE company_id < 0"
DATABASE = ["start", "classify", "agent_sql_generation", "agent_sql_execution", "format_response"]


@dataclass(frozen=True)
class Scenario:
    """One path a question can take.

    Attributes:
        replies: what the model says, in order; None: no model is configured.
        path: the execution path the answer reports.
        calls: model calls the answer reports (errors report none).
        has: keys of the terminal body with their values.
    """

    name: str
    body: dict[str, Any]
    path: list[str]
    replies: tuple[Reply, ...] | None = ()
    settings: dict[str, Any] = field(default_factory=dict)
    code: int = 200
    calls: int = 0
    has: dict[str, Any] = field(default_factory=dict)


def _asked(question: str = RANKING, **fields: Any) -> dict[str, Any]:
    return {"question": question, "routing_mode": "database_direct", **fields}


FAILING_SQL = "SELECT 1 / (count(*) - count(*)) FROM shop"  # PostgreSQL plans it


def _failed(happened: str) -> list[str]:
    return ["start", "classify", "agent_sql_generation", happened, "format_response"]


SCENARIOS = [
    Scenario(
        "rows", _asked(), DATABASE, (Reply(ROWS_SQL), Reply("三家公司。")), calls=2, has={"summary": "三家公司。"}
    ),
    Scenario("one value needs no summary call", _asked(), DATABASE, (Reply(ONE_SQL),), calls=1),
    Scenario("no rows", _asked(), DATABASE, (Reply(EMPTY_SQL),), calls=1, has={"summary": None}),
    Scenario(
        "summary switched off",
        _asked(),
        DATABASE,
        (Reply(ROWS_SQL),),
        {"enable_result_summary": False},
        calls=1,
        has={"summary": None, "response": "查询执行完成，共返回 3 条记录。"},
    ),
    Scenario(
        "summary fails",
        _asked(),
        DATABASE,
        (Reply(ROWS_SQL), Reply(status=401)),
        calls=2,
        has={"warnings": ["大模型不可用，本回答由离线规则生成。"]},
    ),
    Scenario(
        "fenced", _asked(), DATABASE, (Reply(f"好的：\n```sql\n{ONE_SQL};\n```\n完毕"),), calls=1, has={"sql": ONE_SQL}
    ),
    Scenario(
        "repaired once",
        _asked(),
        [*DATABASE[:3], "sql_repair_success", *DATABASE[3:]],
        (Reply("SELECT no_such_column FROM shop"), Reply(ONE_SQL)),
        calls=2,
        has={"sql_repair_applied": True, "sql": ONE_SQL},
    ),
    Scenario(
        "repair fails",
        _asked(),
        _failed("sql_repair_failed"),
        (Reply("SELECT no_such_column FROM shop"), Reply("SELECT neither FROM shop")),
        code=422,
        has={"error_type": "syntax_error", "retryable": False, "node": "agent_sql_generation"},
    ),
    Scenario(
        "repair has no statement",
        _asked(),
        _failed("sql_repair_failed"),
        (Reply("SELECT no_such_column FROM shop"), Reply("我不知道怎么修复。")),
        code=422,
        has={"error_type": "syntax_error"},
    ),
    Scenario(
        "repair switched off",
        _asked(),
        _failed("sql_validation_failed"),
        (Reply("SELECT no_such_column FROM shop"),),
        {"enable_auto_repair": False},
        code=422,
        has={"error_type": "syntax_error"},
    ),
    Scenario(
        "did you mean",
        _asked(),
        _failed("sql_repair_failed"),
        (Reply("SELECT shop_nme FROM shop"), Reply("SELECT s.shopname FROM shop s")),
        code=422,
        has={
            "suggestions": ["s.shop_name"],
            "error": "SQL语法或结构错误: column s.shopname does not exist。您是不是要找：s.shop_name？",
        },
    ),
    Scenario(
        "did you mean, without EXPLAIN",
        _asked(),
        DATABASE[:3],
        (Reply("SELECT * FROM shops"),),
        {"enable_syntax_validation": False},
        code=422,
        has={"suggestions": ["shop"], "node": "agent_sql_execution"},
    ),
    Scenario(
        "a literal that is not stored",
        _asked(),
        DATABASE,
        (Reply("SELECT count(*) FROM shop s WHERE s.category = '餐饮业' AND NOT s.is_deleted"),),
        calls=1,
        has={
            "sql": "SELECT count(*) FROM shop s WHERE s.category = '餐饮' AND NOT s.is_deleted",
            "warnings": ["category 中没有“餐饮业”，已改按“餐饮”查询。"],
            "sql_repair_applied": False,
        },
    ),
    Scenario(
        "no more than four model calls, whatever needs mending",
        _asked("各类别的店铺", routing_mode="llm_only"),
        [*DATABASE[:3], "sql_repair_success", *DATABASE[3:]],
        (
            Reply('{"type": "DATABASE", "confidence": 0.9, "reason": "查数据"}'),
            Reply("SELECT shop_nme FROM shop WHERE category = '餐饮业' LIMIT 2"),
            Reply("SELECT shop_name FROM shop WHERE category = '餐饮业' LIMIT 2"),
            Reply("两家店铺。"),
        ),
        calls=4,
        has={
            "sql": "SELECT shop_name FROM shop WHERE category = '餐饮' LIMIT 2",
            "summary": "category 中没有“餐饮业”，已改按“餐饮”查询。\n两家店铺。",
            "sql_repair_applied": True,
        },
    ),
    Scenario(
        "a literal that is not stored stays when repairs are switched off",
        _asked(),
        DATABASE,
        (Reply("SELECT shop_id FROM shop WHERE category = '餐饮业'"),),
        {"enable_auto_repair": False},
        calls=1,
        has={"sql": "SELECT shop_id FROM shop WHERE category = '餐饮业'", "warnings": []},
    ),
    Scenario(
        "too expensive",
        _asked(),
        _failed("sql_validation_failed"),
        (Reply("SELECT count(*) FROM daily_revenue a, daily_revenue b"),),
        {"max_plan_cost": 1_000_000},
        code=422,
        has={"error_type": "cost_exceeded", "node": "agent_sql_generation"},
    ),
    Scenario(
        "forbidden is not repaired",
        _asked(),
        _failed("forbidden_keywords_failed"),
        (Reply("DELETE FROM shop"),),
        code=403,
        has={"error_type": "forbidden_keywords", "node": "agent_sql_generation"},
    ),
    Scenario(
        "two statements",
        _asked(),
        _failed("forbidden_keywords_failed"),
        (Reply("SELECT 1; DROP TABLE shop"),),
        code=403,
        has={"error_type": "forbidden_keywords"},
    ),
    Scenario(
        "system catalogue",
        _asked(),
        _failed("forbidden_keywords_failed"),
        (Reply("SELECT rolname FROM pg_catalog.pg_authid"),),
        code=403,
        has={"error_type": "forbidden_object"},
    ),
    Scenario(
        "a repair may not write either",
        _asked(),
        _failed("forbidden_keywords_failed"),
        (Reply("SELECT no_such_column FROM shop"), Reply("UPDATE shop SET shop_name = ''")),
        code=403,
        has={"error_type": "forbidden_keywords"},
    ),
    Scenario(
        "every check switched off still refuses a write",
        _asked(),
        [*DATABASE[:3]],
        (Reply("DELETE FROM shop"),),
        {"enable_forbidden_check": False, "enable_syntax_validation": False},
        code=403,
        has={"error_type": "forbidden_keywords", "node": "agent_sql_execution"},
    ),
    Scenario(
        "prose is never executed",
        _asked(),
        _failed("sql_generation_failed"),
        (Reply("Select the shops you are interested in, and I will help."),),
        calls=1,
        has={"sql_generation_failed": True, "failure_reason": "llm_explanation"},
    ),
    Scenario(
        "the model says what is missing",
        _asked(),
        _failed("sql_generation_failed"),
        (Reply("NO_SQL: missing_database_info: 数据库中没有员工信息。"),),
        calls=1,
        has={"sql_generation_failed": True, "failure_reason": "missing_database_info"},
    ),
    Scenario(
        "fails while running, repairs switched off",
        _asked(),
        DATABASE[:3],
        (Reply(FAILING_SQL),),
        {"enable_auto_repair": False},
        code=422,
        has={"error_type": "syntax_error", "node": "agent_sql_execution"},
    ),
    Scenario(
        "fails while running and is repaired once",
        _asked(),
        [*DATABASE[:4], "sql_repair_success", *DATABASE[4:]],
        (Reply(FAILING_SQL), Reply(ONE_SQL)),
        calls=2,
        has={"sql_repair_applied": True, "sql": ONE_SQL},
    ),
    Scenario(
        "fails while running, also after its repair",
        _asked(),
        [*DATABASE[:4], "sql_repair_failed", *DATABASE[4:]],
        (Reply(FAILING_SQL), Reply("SELECT CAST(shop_name AS integer) FROM shop")),
        code=422,
        has={"error_type": "syntax_error", "retryable": False, "node": "agent_sql_execution"},
    ),
    Scenario(
        "the repair of what failed while running is refused",
        _asked(),
        [*DATABASE[:4], "forbidden_keywords_failed", *DATABASE[4:]],
        (Reply(FAILING_SQL), Reply("DELETE FROM shop")),
        code=403,
        has={"error_type": "forbidden_keywords", "node": "agent_sql_execution"},
    ),
    Scenario(
        "what was repaired before it ran is not repaired again",
        _asked(),
        [*DATABASE[:3], "sql_repair_success"],
        (Reply("SELECT no_such_column FROM shop"), Reply(FAILING_SQL)),
        code=422,
        has={"error_type": "syntax_error", "node": "agent_sql_execution"},
    ),
    Scenario(
        "runs too long",
        _asked(),
        DATABASE[:3],
        (Reply("SELECT count(*) FROM daily_revenue a CROSS JOIN daily_revenue b CROSS JOIN daily_revenue c"),),
        {"statement_timeout_s": 0.3},
        code=504,
        has={"error_type": "query_timeout", "retryable": True, "node": "agent_sql_execution"},
    ),
    Scenario(
        "chat",
        _asked("你好", routing_mode="chat_direct"),
        ["start", "classify", "agent_chat", "format_response"],
        (Reply("你好！有什么可以帮您？"),),
        calls=1,
        has={"response": "你好！有什么可以帮您？", "response_type": "CHAT"},
    ),
    Scenario(
        "the model classifies",
        _asked("店铺一共有几家", routing_mode="llm_only"),
        DATABASE,
        (Reply('{"type": "DATABASE", "confidence": 0.93, "reason": "查数据"}'), Reply(ONE_SQL)),
        calls=2,
        has={
            "routing_mode_used": "llm_only",
            "classification_info": {
                "question_type": "DATABASE",
                "confidence": 0.93,
                "method": "llm",
                "reason": "查数据",
            },
        },
    ),
    Scenario(
        "talk that mentions the data is the model's to classify",
        {"question": "我昨天路过了一个服务区"},
        ["start", "classify", "agent_chat", "format_response"],
        (Reply('{"type": "CHAT", "confidence": 0.9, "reason": "闲聊"}'), Reply("听起来不错。")),
        calls=2,
        has={"response": "听起来不错。", "response_type": "CHAT"},
    ),
    Scenario(
        "a question that the rules have no query for is the model's to classify",
        {"question": "哪些服务区的营收占比高得反常"},
        DATABASE,
        (Reply('{"type": "DATABASE", "confidence": 0.9, "reason": "查数据"}'), Reply(ONE_SQL)),
        calls=2,
    ),
    Scenario(
        "a question that the rules have a query for needs no model to be classified",
        {"question": "店铺一共有几家"},
        DATABASE,
        (Reply(ONE_SQL),),
        calls=1,
        has={"response_type": "DATABASE"},
    ),
    Scenario("model down, rules answer", _asked("店铺有多少家"), DATABASE, (Reply(status=401),), calls=1),
    Scenario(
        "model down, rules have no answer",
        _asked("为什么天空是蓝色的"),
        DATABASE[:2],
        (Reply(status=401),),
        code=503,
        has={"error_type": "llm_unavailable", "node": "agent_sql_generation"},
    ),
    Scenario("offline ranking", {"question": RANKING}, DATABASE, None, has={"routing_mode_source": "configuration"}),
    Scenario(
        "offline chat",
        {"question": "你好"},
        ["start", "classify", "agent_chat", "format_response"],
        None,
        has={"response_type": "CHAT"},
    ),
    Scenario(
        "offline request to write",
        _asked("删除所有服务区"),
        _failed("forbidden_keywords_failed"),
        None,
        code=403,
        has={"error_type": "forbidden_keywords"},
    ),
]


@pytest.fixture(scope="module")
def settings(demo_url: str) -> Settings:
    return Settings(database_url=demo_url, llm_max_retries=0)


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer() as server:
        yield server


@pytest.fixture(scope="module")
def askings(settings: Settings) -> Iterator[Callable[..., Asking]]:
    with shared_askings(settings) as askings:
        yield askings


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_sync_and_stream_end_the_same(scenario: Scenario, askings: Callable[..., Asking], model: OpenAiServer) -> None:
    replies = scenario.replies or ()
    asking = askings(None if scenario.replies is None else model, **scenario.settings)
    code, answer = asking.sync(scenario.body, *replies)
    events = asking.stream(scenario.body, *replies)
    last = events[-1]

    assert (code, answer["code"], answer["success"]) == (scenario.code, scenario.code, scenario.code == 200)
    assert stable(last) == stable(answer)
    _check_body(answer["data"], scenario)
    _check_stream(events)


def _check_body(data: dict[str, Any], scenario: Scenario) -> None:
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
    assert [event["id"] for event in events] == [f"{run_id}:{number + 1}" for number in range(len(events))]
    assert len({event["data"]["conversation_id"] for event in events}) == 1
    _check_progress([event["data"] for event in events if event["data"]["type"] == "progress"])


def _check_progress(steps: list[dict[str, Any]]) -> None:
    """Every step runs, then is done or has failed, before the next one runs."""
    assert [step["status"] for step in steps[::2]] == ["running"] * (len(steps) // 2)
    assert {step["status"] for step in steps[1::2]} <= {"done", "failed"}
    assert [step["node"] for step in steps[::2]] == [step["node"] for step in steps[1::2]]
    assert steps[0]["node"] == "classify_question"
    for step in steps:
        shown = FACES[step["node"]]
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
    events = scripted.stream(_asked(lang="en"), *replies)
    tokens = [event["data"]["text"] for event in events if event["data"]["type"] == "token"]
    assert len(tokens) > 1
    assert "".join(tokens) == events[-1]["data"]["summary"] == "There are three companies here."
    quiet = scripted.stream(_asked(lang="en", stream_tokens=False), *replies)
    assert [event for event in quiet if event["data"]["type"] == "token"] == []
    assert stable(quiet[-1]) == stable(events[-1]), "only the tokens are missing"


def test_a_model_that_speaks_in_letters_makes_few_events(scripted: Asking) -> None:
    text = "There are three companies here. " * 500
    events = scripted.stream(_asked(lang="en"), Reply(ROWS_SQL), Reply(pieces=[*text]))
    tokens = [event["data"]["text"] for event in events if event["data"]["type"] == "token"]
    assert "".join(tokens) == events[-1]["data"]["summary"] == text.strip()
    assert len(tokens) < len(text) / 20


def test_the_steps_of_a_data_question_are_seen_in_order(offline: Asking) -> None:
    events = offline.stream({"question": RANKING})
    steps = [(data["node"], data["status"]) for event in events if (data := event["data"])["type"] == "progress"]
    nodes = ["classify_question", "agent_sql_generation", "agent_sql_execution", "format_response"]
    assert steps == [(node, status) for node in nodes for status in ("running", "done")]
    assert events[0]["message"] == "正在执行: 分析问题类型"
    generated = next(event["data"] for event in events if event["data"].get("details", "").startswith("SQL生成成功"))
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
    response = scripted.client.post("/api/v0/ask_agent", json=_asked())
    assert b"[12345678901234567890.123456789,0.10]" in response.get_data()


def test_an_answer_with_a_very_long_number_is_read_again(scripted: Asking, model: OpenAiServer) -> None:
    answer = scripted.sync(_asked(), Reply("SELECT trunc(10::numeric ^ 5000) AS x"))[1]
    assert answer["data"]["query_result"]["rows"] == [["1" + "0" * 5000]], answer
    kept = scripted.client.get(f"/api/v0/runs/{answer['data']['run_id']}")
    assert kept.status_code == 200
    assert kept.json is not None
    assert kept.json["data"]["result"] == answer


def test_an_answer_whose_values_were_cut_says_so(scripted: Asking) -> None:
    data = scripted.sync(_asked(), Reply("SELECT shop_id, repeat('x', 5000000) AS body FROM shop"), Reply("好"))[1][
        "data"
    ]
    assert data["query_result"]["cut_columns"] == ["body"], data
    assert any("body" in warning and "截短" in warning for warning in data["warnings"])
    data = scripted.sync(_asked(), Reply("SELECT repeat('x', 500000) AS body FROM shop LIMIT 1"))[1]["data"]
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
        (b'{"question": "' + b"x" * 70_000 + b'"}', "too large"),
    ],
)
def test_bad_bodies_are_refused_before_any_stream(offline: Asking, path: str, data: bytes, says: str) -> None:
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
    response = offline.client.open(path, method=method.upper(), data=b"[1]", content_type="application/json")
    assert response.status_code == 400
    assert response.json is not None
    error = response.json["data"]["error"]
    assert field in json.loads(error[error.index("{") : error.rindex("}") + 1])
