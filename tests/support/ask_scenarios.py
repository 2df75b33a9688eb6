"""Every path that a question can take through the ask flow."""

from dataclasses import dataclass, field
from typing import Any

from tests.support.openai_replies import Reply

RANKING = "查询各服务区的营业收入排行"
ROWS_SQL = "SELECT company_id, company_name FROM company ORDER BY company_id LIMIT 3"
ONE_SQL = "SELECT count(*) AS n FROM shop"
EMPTY_SQL = "SELECT company_name FROM company WHERE company_id < 0"
DATABASE = ["start", "classify", "agent_sql_generation", "agent_sql_execution", "format_response"]


@dataclass(frozen=True)
class AskScenario:
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


def asked_body(question: str = RANKING, **fields: Any) -> dict[str, Any]:
    return {"question": question, "routing_mode": "database_direct", **fields}


FAILING_SQL = "SELECT 1 / (count(*) - count(*)) FROM shop"  # PostgreSQL plans it


def failed_path(happened: str) -> list[str]:
    return ["start", "classify", "agent_sql_generation", happened, "format_response"]


SCENARIOS = [
    AskScenario(
        "rows",
        asked_body(),
        DATABASE,
        (Reply(ROWS_SQL), Reply("三家公司。")),
        calls=2,
        has={"summary": "三家公司。"},
    ),
    AskScenario(
        "one value needs no summary call", asked_body(), DATABASE, (Reply(ONE_SQL),), calls=1
    ),
    AskScenario(
        "no rows", asked_body(), DATABASE, (Reply(EMPTY_SQL),), calls=1, has={"summary": None}
    ),
    AskScenario(
        "summary switched off",
        asked_body(),
        DATABASE,
        (Reply(ROWS_SQL),),
        {"enable_result_summary": False},
        calls=1,
        has={"summary": None, "response": "查询执行完成，共返回 3 条记录。"},
    ),
    AskScenario(
        "summary fails",
        asked_body(),
        DATABASE,
        (Reply(ROWS_SQL), Reply(status=401)),
        calls=2,
        has={"warnings": ["大模型不可用，本回答由离线规则生成。"]},
    ),
    AskScenario(
        "fenced",
        asked_body(),
        DATABASE,
        (Reply(f"好的：\n```sql\n{ONE_SQL};\n```\n完毕"),),
        calls=1,
        has={"sql": ONE_SQL},
    ),
    AskScenario(
        "repaired once",
        asked_body(),
        [*DATABASE[:3], "sql_repair_success", *DATABASE[3:]],
        (Reply("SELECT no_such_column FROM shop"), Reply(ONE_SQL)),
        calls=2,
        has={"sql_repair_applied": True, "sql": ONE_SQL},
    ),
    AskScenario(
        "repair fails",
        asked_body(),
        failed_path("sql_repair_failed"),
        (Reply("SELECT no_such_column FROM shop"), Reply("SELECT neither FROM shop")),
        code=422,
        has={"error_type": "syntax_error", "retryable": False, "node": "agent_sql_generation"},
    ),
    AskScenario(
        "repair has no statement",
        asked_body(),
        failed_path("sql_repair_failed"),
        (Reply("SELECT no_such_column FROM shop"), Reply("我不知道怎么修复。")),
        code=422,
        has={"error_type": "syntax_error"},
    ),
    AskScenario(
        "repair switched off",
        asked_body(),
        failed_path("sql_validation_failed"),
        (Reply("SELECT no_such_column FROM shop"),),
        {"enable_auto_repair": False},
        code=422,
        has={"error_type": "syntax_error"},
    ),
    AskScenario(
        "did you mean",
        asked_body(),
        failed_path("sql_repair_failed"),
        (Reply("SELECT shop_nme FROM shop"), Reply("SELECT s.shopname FROM shop s")),
        code=422,
        has={
            "suggestions": ["s.shop_name"],
            "error": (
                "SQL语法或结构错误: column s.shopname does not exist。您是不是要找：s.shop_name？"
            ),
        },
    ),
    AskScenario(
        "did you mean, without EXPLAIN",
        asked_body(),
        DATABASE[:3],
        (Reply("SELECT * FROM shops"),),
        {"enable_syntax_validation": False},
        code=422,
        has={"suggestions": ["shop"], "node": "agent_sql_execution"},
    ),
    AskScenario(
        "a literal that is not stored",
        asked_body(),
        DATABASE,
        (Reply("SELECT count(*) FROM shop s WHERE s.category = '餐饮业' AND NOT s.is_deleted"),),
        calls=1,
        has={
            "sql": "SELECT count(*) FROM shop s WHERE s.category = '餐饮' AND NOT s.is_deleted",
            "warnings": ["category 中没有“餐饮业”，已改按“餐饮”查询。"],
            "sql_repair_applied": False,
        },
    ),
    AskScenario(
        "no more than four model calls, whatever needs mending",
        asked_body("各类别的店铺", routing_mode="llm_only"),
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
    AskScenario(
        "a literal that is not stored stays when repairs are switched off",
        asked_body(),
        DATABASE,
        (Reply("SELECT shop_id FROM shop WHERE category = '餐饮业'"),),
        {"enable_auto_repair": False},
        calls=1,
        has={"sql": "SELECT shop_id FROM shop WHERE category = '餐饮业'", "warnings": []},
    ),
    AskScenario(
        "too expensive",
        asked_body(),
        failed_path("sql_validation_failed"),
        (Reply("SELECT count(*) FROM daily_revenue a, daily_revenue b"),),
        {"max_plan_cost": 1_000_000},
        code=422,
        has={"error_type": "cost_exceeded", "node": "agent_sql_generation"},
    ),
    AskScenario(
        "forbidden is not repaired",
        asked_body(),
        failed_path("forbidden_keywords_failed"),
        (Reply("DELETE FROM shop"),),
        code=403,
        has={"error_type": "forbidden_keywords", "node": "agent_sql_generation"},
    ),
    AskScenario(
        "two statements",
        asked_body(),
        failed_path("forbidden_keywords_failed"),
        (Reply("SELECT 1; DROP TABLE shop"),),
        code=403,
        has={"error_type": "forbidden_keywords"},
    ),
    AskScenario(
        "system catalogue",
        asked_body(),
        failed_path("forbidden_keywords_failed"),
        (Reply("SELECT rolname FROM pg_catalog.pg_authid"),),
        code=403,
        has={"error_type": "forbidden_object"},
    ),
    AskScenario(
        "a repair may not write either",
        asked_body(),
        failed_path("forbidden_keywords_failed"),
        (Reply("SELECT no_such_column FROM shop"), Reply("UPDATE shop SET shop_name = ''")),
        code=403,
        has={"error_type": "forbidden_keywords"},
    ),
    AskScenario(
        "every check switched off still refuses a write",
        asked_body(),
        [*DATABASE[:3]],
        (Reply("DELETE FROM shop"),),
        {"enable_forbidden_check": False, "enable_syntax_validation": False},
        code=403,
        has={"error_type": "forbidden_keywords", "node": "agent_sql_execution"},
    ),
    AskScenario(
        "prose is never executed",
        asked_body(),
        failed_path("sql_generation_failed"),
        (Reply("Select the shops you are interested in, and I will help."),),
        calls=1,
        has={"sql_generation_failed": True, "failure_reason": "llm_explanation"},
    ),
    AskScenario(
        "the model says what is missing",
        asked_body(),
        failed_path("sql_generation_failed"),
        (Reply("NO_SQL: missing_database_info: 数据库中没有员工信息。"),),
        calls=1,
        has={"sql_generation_failed": True, "failure_reason": "missing_database_info"},
    ),
    AskScenario(
        "fails while running, repairs switched off",
        asked_body(),
        DATABASE[:3],
        (Reply(FAILING_SQL),),
        {"enable_auto_repair": False},
        code=422,
        has={"error_type": "syntax_error", "node": "agent_sql_execution"},
    ),
    AskScenario(
        "fails while running and is repaired once",
        asked_body(),
        [*DATABASE[:4], "sql_repair_success", *DATABASE[4:]],
        (Reply(FAILING_SQL), Reply(ONE_SQL)),
        calls=2,
        has={"sql_repair_applied": True, "sql": ONE_SQL},
    ),
    AskScenario(
        "fails while running, also after its repair",
        asked_body(),
        [*DATABASE[:4], "sql_repair_failed", *DATABASE[4:]],
        (Reply(FAILING_SQL), Reply("SELECT CAST(shop_name AS integer) FROM shop")),
        code=422,
        has={"error_type": "syntax_error", "retryable": False, "node": "agent_sql_execution"},
    ),
    AskScenario(
        "the repair of what failed while running is refused",
        asked_body(),
        [*DATABASE[:4], "forbidden_keywords_failed", *DATABASE[4:]],
        (Reply(FAILING_SQL), Reply("DELETE FROM shop")),
        code=403,
        has={"error_type": "forbidden_keywords", "node": "agent_sql_execution"},
    ),
    AskScenario(
        "what was repaired before it ran is not repaired again",
        asked_body(),
        [*DATABASE[:3], "sql_repair_success"],
        (Reply("SELECT no_such_column FROM shop"), Reply(FAILING_SQL)),
        code=422,
        has={"error_type": "syntax_error", "node": "agent_sql_execution"},
    ),
    AskScenario(
        "runs too long",
        asked_body(),
        DATABASE[:3],
        (
            Reply(
                "SELECT count(*) FROM daily_revenue a CROSS JOIN daily_revenue b CROSS "
                "JOIN daily_revenue c"
            ),
        ),
        {"statement_timeout_s": 0.3},
        code=504,
        has={"error_type": "query_timeout", "retryable": True, "node": "agent_sql_execution"},
    ),
    AskScenario(
        "chat",
        asked_body("你好", routing_mode="chat_direct"),
        ["start", "classify", "agent_chat", "format_response"],
        (Reply("你好！有什么可以帮您？"),),
        calls=1,
        has={"response": "你好！有什么可以帮您？", "response_type": "CHAT"},
    ),
    AskScenario(
        "the model classifies",
        asked_body("店铺一共有几家", routing_mode="llm_only"),
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
    AskScenario(
        "talk that mentions the data is the model's to classify",
        {"question": "我昨天路过了一个服务区"},
        ["start", "classify", "agent_chat", "format_response"],
        (Reply('{"type": "CHAT", "confidence": 0.9, "reason": "闲聊"}'), Reply("听起来不错。")),
        calls=2,
        has={"response": "听起来不错。", "response_type": "CHAT"},
    ),
    AskScenario(
        "a question that the rules have no query for is the model's to classify",
        {"question": "哪些服务区的营收占比高得反常"},
        DATABASE,
        (Reply('{"type": "DATABASE", "confidence": 0.9, "reason": "查数据"}'), Reply(ONE_SQL)),
        calls=2,
    ),
    AskScenario(
        "a question that the rules have a query for needs no model to be classified",
        {"question": "店铺一共有几家"},
        DATABASE,
        (Reply(ONE_SQL),),
        calls=1,
        has={"response_type": "DATABASE"},
    ),
    AskScenario(
        "model down, rules answer",
        asked_body("店铺有多少家"),
        DATABASE,
        (Reply(status=401),),
        calls=1,
    ),
    AskScenario(
        "model down, rules have no answer",
        asked_body("为什么天空是蓝色的"),
        DATABASE[:2],
        (Reply(status=401),),
        code=503,
        has={"error_type": "llm_unavailable", "node": "agent_sql_generation"},
    ),
    AskScenario(
        "offline ranking",
        {"question": RANKING},
        DATABASE,
        None,
        has={"routing_mode_source": "configuration"},
    ),
    AskScenario(
        "offline chat",
        {"question": "你好"},
        ["start", "classify", "agent_chat", "format_response"],
        None,
        has={"response_type": "CHAT"},
    ),
    AskScenario(
        "offline request to write",
        asked_body("删除所有服务区"),
        failed_path("forbidden_keywords_failed"),
        None,
        code=403,
        has={"error_type": "forbidden_keywords"},
    ),
]
