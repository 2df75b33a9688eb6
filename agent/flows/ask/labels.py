"""How each step of the graph is shown: names, icons and details, in both languages.

Presentation is data beside the graph: nodes don't know it, and a new node needs one more entry in
`LABELS`.
"""

from collections.abc import Mapping

from agent.flows.ask.state import AskUpdate
from agent.flows.flow import StepDescription, StepLabel
from common.errors import CituError
from common.text import Text
from common.values import Classification, PlanEstimate

# How much SQL the details show; the whole statement is in state_summary.
_SQL_EXCERPT_CHARS = 50


_METHODS = {
    "rule_based_strong_business": Text("规则（明确的业务词）", "rules (clear business terms)"),
    "rule_based_medium_business": Text("规则（业务词）", "rules (business terms)"),
    "rule_based_follow_up": Text("规则（追问）", "rules (a follow-up)"),
    "rule_based_chat": Text("规则（对话）", "rules (conversation)"),
    "rule_based_default": Text("规则（默认）", "rules (by default)"),
    "llm": Text("大模型", "the language model"),
    "verified_example": Text("已验证的示例", "a verified example"),
    "direct": Text("路由模式", "the routing mode"),
}


def _classified(update: AskUpdate) -> StepDescription:
    classification: Classification = update["classification"]
    method = _METHODS.get(classification.method, Text(classification.method, classification.method))
    question_type, confidence = classification.question_type, f"{classification.confidence:.2f}"
    return StepDescription(
        Text(
            f"问题类型: {question_type} (置信度: {confidence})",
            f"Question type: {question_type} (confidence: {confidence})",
        ),
        Text(f"分类方法: {method.zh}", f"Classified by {method.en}"),
    )


def _generated(update: AskUpdate) -> StepDescription:
    if not update["sql_generation_success"]:
        return _not_generated(update)

    excerpt = " ".join(update["sql"].split())
    if len(excerpt) > _SQL_EXCERPT_CHARS:
        excerpt = excerpt[:_SQL_EXCERPT_CHARS] + "…"

    proven = Text("验证通过，准备执行", "Proven valid, ready to run")
    if update.get("reused"):
        proven = Text(
            "沿用已验证的示例，验证通过，准备执行",
            "From a verified example, proven valid, ready to run",
        )
    if update.get("sql_repair_applied"):
        proven = Text("修复一次后验证通过，准备执行", "Valid after one repair, ready to run")

    return StepDescription(
        Text(f"SQL生成成功: {excerpt}", f"SQL written: {excerpt}"),
        _with_estimate(proven, update.get("plan")),
    )


def _with_estimate(text: Text, plan: PlanEstimate | None) -> Text:
    if plan is None or not plan.is_shown:
        return text

    return Text(
        f"{text.zh}（预计 {plan.rows:,} 行，成本 {plan.total_cost:,.0f}）",
        f"{text.en} (estimate: {plan.rows:,} rows, cost {plan.total_cost:,.0f})",
    )


def _refused(error: CituError) -> StepDescription:
    return StepDescription(
        Text(f"验证未通过: {error.error_type}", f"Not accepted: {error.error_type}"), error.text
    )


def _not_generated(update: AskUpdate) -> StepDescription:
    if "error" in update:
        return _refused(update["error"])

    prompt = update["user_prompt"]
    return StepDescription(Text("未能生成SQL", "No SQL could be written"), Text(prompt, prompt))


def _executed(update: AskUpdate) -> StepDescription:
    if "error" in update:
        return _refused(update["error"])

    count = update["query_result"].row_count
    sub_status = Text("查询执行完成", "The query has run")
    if update.get("sql_repair_applied"):
        sub_status = Text("SQL修复一次后执行完成", "The SQL was mended once and has run")
    elif "sql" in update:
        sub_status = Text(
            "没有符合的记录，已改按相近的值查询",
            "Nothing matched; asked again with the nearest stored value",
        )
    elif "summary" in update:
        sub_status = Text("摘要已生成", "The summary is written")

    return StepDescription(
        Text(
            f"查询完成，返回 {count} 行数据",
            f"The query returned {count} {'row' if count == 1 else 'rows'}",
        ),
        sub_status,
    )


def _has_failed(update: AskUpdate) -> bool:
    return "error" in update or update.get("sql_generation_success") is False


def _chatted(_update: AskUpdate) -> StepDescription:
    return StepDescription(
        Text("回答已生成", "The answer is written"), Text("对话模式", "Conversation")
    )


def _formatted(_update: AskUpdate) -> StepDescription:
    return StepDescription(
        Text("响应结果已整理", "The answer is put together"), Text("完成", "Done")
    )


LABELS: Mapping[str, StepLabel] = {
    "classify_question": StepLabel(
        Text("分析问题类型", "Understanding the question"),
        "🤔",
        "classifying",
        "classified",
        StepDescription(
            Text("正在判断是数据问题还是对话", "Is it about the data, or conversation?"),
            Text("分析中", "Analysing"),
        ),
        _classified,
    ),
    "agent_sql_generation": StepLabel(
        Text("生成SQL查询", "Writing SQL"),
        "🔧",
        "sql_generating",
        "sql_generated",
        StepDescription(
            Text("正在生成并验证SQL", "Writing and proving the SQL"), Text("生成中", "Writing")
        ),
        _generated,
        _has_failed,
    ),
    "agent_sql_execution": StepLabel(
        Text("执行数据查询", "Running the query"),
        "⚙️",
        "sql_executing",
        "sql_executed",
        StepDescription(
            Text("正在执行查询", "Running the query read-only"), Text("执行中", "Running")
        ),
        _executed,
        _has_failed,
    ),
    "agent_chat": StepLabel(
        Text("思考回答", "Thinking"),
        "💭",
        "chatting",
        "chatted",
        StepDescription(
            Text("正在处理您的问题", "Writing an answer"), Text("对话模式", "Conversation")
        ),
        _chatted,
    ),
    "format_response": StepLabel(
        Text("整理结果", "Putting the answer together"),
        "📝",
        "formatting",
        "formatted",
        StepDescription(
            Text("正在格式化响应结果", "Formatting the answer"), Text("即将完成", "Almost done")
        ),
        _formatted,
    ),
}
