"""The four routing modes, and the decisions on the graph's edges."""

from collections.abc import Awaitable, Callable
from typing import Literal

from agent.ask.context import Context
from agent.ask.state import Update
from common.inquiry import Inquiry
from common.text import Text
from common.values import Classification, QuestionType, Thought

Classify = Callable[[Inquiry, Context], Awaitable[Thought[Classification]]]

# Below this confidence the rules are guessing, so that asking a model is worth the time.
SURE = 0.6

_DIRECT: dict[QuestionType, Text] = {
    "DATABASE": Text("按路由模式直接查询数据库", "Sent to the database by the routing mode"),
    "CHAT": Text("按路由模式直接对话", "Answered as chat by the routing mode"),
}
_NO_MODEL = Text(
    "未配置大模型，问题由离线规则分类。", "No language model is configured; the question was classified by rules."
)


def _direct(question_type: QuestionType) -> Classify:
    async def classify(inquiry: Inquiry, _context: Context) -> Thought[Classification]:
        reason = _DIRECT[question_type].to(inquiry.lang)
        return Thought(Classification(question_type, 1.0, "direct", reason))

    return classify


async def _hybrid(inquiry: Inquiry, context: Context) -> Thought[Classification]:
    thought = await context.rules.classify(inquiry)
    if thought.value.confidence >= SURE or not context.has_model:
        return thought
    return await context.skills.classify(inquiry)


async def _llm_only(inquiry: Inquiry, context: Context) -> Thought[Classification]:
    thought = await context.skills.classify(inquiry)
    if context.has_model:
        return thought
    return Thought(thought.value, thought.usage, (*thought.warnings, _NO_MODEL.to(inquiry.lang)))


ROUTING_MODES: dict[str, Classify] = {
    "hybrid": _hybrid,
    "llm_only": _llm_only,
    "database_direct": _direct("DATABASE"),
    "chat_direct": _direct("CHAT"),
}

SETTLED_BY_EXAMPLES = frozenset({"hybrid"})
"""Modes in which a question that an example answers is one about the data, whatever else it may look like."""


def after_classification(update: Update) -> QuestionType:
    """The type of question that classify_question found."""
    return update["classification"].question_type


def after_sql_generation(update: Update) -> Literal["continue_execution", "return_to_user"]:
    """Executes only proven SQL; everything else goes back to the user, never to chat."""
    return "continue_execution" if update["sql_generation_success"] else "return_to_user"
