"""The services of one question in a flow with tools, and what is known of the question before a
model is asked.
"""

from dataclasses import dataclass, replace

from agent.experience import NOTHING_LEARNT, Recollection
from agent.progress import Write, shown_to_nobody
from agent.question import Question, Recall, nothing_before
from agent.thinking import Skills
from agent.tools.first_prompt import FirstPrompts
from agent.tools.registry import ToolRegistry
from agent.tools.session import ToolSession
from agent.value_lookup import LookUp, nothing_stored
from common.errors import StoreUnavailable
from common.inquiry import Inquiry
from common.ports import Database
from common.text import Text
from common.values import Turn

_NO_HISTORY = Text(
    "会话存储暂时不可用，本次回答没有参考之前的对话。",
    "The conversation store is unavailable; this answer does not know the earlier turns.",
)
_NO_ROUTING = Text(
    "{fields} 已忽略：所选智能体自行决定查询什么。",
    "{fields} had no effect: the chosen agent decides by itself what to query.",
)


@dataclass(frozen=True)
class ToolAgentContext:
    """The services that LangGraph hands to the nodes.

    Attributes:
        session: asks the model and calls tools, within the limits of this question.
        registry: all tools.
        database: as the actor may see it, for the catalogue and for judging statements; audited.
        skills: writes SQL with the model.
        rules: puts rows into words when the model can't.
        first_prompts: write how the conversation with the model begins.
        recall: gives the earlier turns of the conversation.
        experience: gives what has been learnt for the question.
        look_up: finds stored values that the question names.
        write: shows tokens, calls and rows while the question is answered.
    """

    session: ToolSession
    registry: ToolRegistry
    database: Database
    skills: Skills
    rules: Skills
    first_prompts: FirstPrompts
    recall: Recall = nothing_before
    experience: Recollection = NOTHING_LEARNT
    look_up: LookUp = nothing_stored
    write: Write = shown_to_nobody


@dataclass(frozen=True)
class PreparedQuestion:
    """A question with what is known of it, and warnings about what could not be known."""

    inquiry: Inquiry
    warnings: tuple[str, ...] = ()


async def prepared_question(context: ToolAgentContext) -> PreparedQuestion:
    """Return the question with the catalogue, the earlier turns and the stored values that it
    names.

    Raises:
        DatabaseUnavailable, QueryTimeout: the catalogue can't be read.
    """
    question = context.session.question
    history, warnings = await _history(context)
    inquiry = Inquiry(
        question.question,
        question.answer_lang,
        await context.database.catalog(),
        table=question.table,
        context_type=question.context_type,
        history=history,
    )
    found_values = await context.look_up(inquiry, False)
    return PreparedQuestion(
        replace(inquiry, found_values=found_values), (*_ignored(question), *warnings)
    )


async def with_experience(inquiry: Inquiry, context: ToolAgentContext) -> Inquiry:
    """Return the question with what has been learnt that may help; counts a use of each example,
    which the model is shown.
    """
    experience = await context.experience.recalled(inquiry)
    context.experience.used(experience.examples)
    return replace(inquiry, experience=experience)


def _ignored(question: Question) -> tuple[str, ...]:
    """Warn of fields of the request that only matter where questions are routed."""
    values = {"routing_mode": question.routing_mode, "context_type": question.context_type}
    fields = [name for name, value in values.items() if value is not None]
    named = Text("、".join(fields), " and ".join(fields)).to(question.answer_lang)
    if fields:
        return (_NO_ROUTING.to(question.answer_lang).format(fields=named),)

    return ()


async def _history(context: ToolAgentContext) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
    """Return the earlier turns, or a warning when the store fails: the question is still answered
    then.
    """
    try:
        return await context.recall(), ()
    except StoreUnavailable:
        return (), (_NO_HISTORY.to(context.session.question.answer_lang),)
