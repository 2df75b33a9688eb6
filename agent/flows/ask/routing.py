"""The four routing modes, and the decisions on the graph's edges."""

from collections.abc import Awaitable, Callable
from typing import Literal

from agent.flows.ask.context import AskContext
from agent.flows.ask.state import AskUpdate
from common.inquiry import Inquiry
from common.text import Text
from common.values import Classification, QuestionType, SkillResult

Classify = Callable[[Inquiry, AskContext], Awaitable[SkillResult[Classification]]]

# Below this confidence the rules are guessing, so that asking a model is worth the time.
SURE = 0.6

_DIRECT: dict[QuestionType, Text] = {
    "DATABASE": Text("按路由模式直接查询数据库", "Sent to the database by the routing mode"),
    "CHAT": Text("按路由模式直接对话", "Answered as chat by the routing mode"),
}
_NO_MODEL = Text(
    "未配置大模型，问题由离线规则分类。",
    "No language model is configured; the question was classified by rules.",
)


def _always(question_type: QuestionType) -> Classify:
    """Return a classifier that gives this type, whatever is asked."""

    async def classify(inquiry: Inquiry, _context: AskContext) -> SkillResult[Classification]:
        reason = _DIRECT[question_type].to(inquiry.lang)
        return SkillResult(Classification(question_type, 1.0, "direct", reason))

    return classify


async def _hybrid(inquiry: Inquiry, context: AskContext) -> SkillResult[Classification]:
    by_rules = await context.rules.classify(inquiry)
    if by_rules.value.confidence >= SURE or not context.has_model:
        return by_rules

    return await context.skills.classify(inquiry)


async def _llm_only(inquiry: Inquiry, context: AskContext) -> SkillResult[Classification]:
    result = await context.skills.classify(inquiry)
    if context.has_model:
        return result

    warnings = (*result.warnings, _NO_MODEL.to(inquiry.lang))
    return SkillResult(result.value, result.usage, warnings)


ROUTING_MODES: dict[str, Classify] = {
    "hybrid": _hybrid,
    "llm_only": _llm_only,
    "database_direct": _always("DATABASE"),
    "chat_direct": _always("CHAT"),
}

SETTLED_BY_EXAMPLES = frozenset({"hybrid"})
"""Modes in which a question that an example answers counts as one about the data."""


def after_classification(update: AskUpdate) -> QuestionType:
    """Return the type of question that classify_question found."""
    return update["classification"].question_type


def after_sql_generation(update: AskUpdate) -> Literal["continue_execution", "return_to_user"]:
    """Execute only proven SQL; everything else goes back to the user, never to chat."""
    if update["sql_generation_success"]:
        return "continue_execution"

    return "return_to_user"
