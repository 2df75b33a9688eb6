"""Step 2 of conversation: an answer without a query."""

from dataclasses import replace

from langgraph.runtime import Runtime

from agent.ask.about_result import Analysis, last_sql
from agent.ask.context import Context, emitter, inquiry_of
from agent.ask.offers import splits
from agent.ask.state import State, Update
from common.errors import DatabaseUnavailable, QueryTimeout
from common.inquiry import Inquiry
from common.values import Catalog


async def agent_chat(state: State, runtime: Runtime[Context]) -> Update:
    """Writes the answer, and emits it piece by piece. Of a question about the last result, computes first."""
    try:
        catalog = await runtime.context.database.catalog()
    except (DatabaseUnavailable, QueryTimeout):
        catalog = Catalog(())
    inquiry = inquiry_of(state, catalog)
    analysis = await _analysis(state, inquiry, runtime.context)
    with emitter(state, runtime) as emit:
        thought = await runtime.context.skills.chat(replace(inquiry, findings=analysis.sentences(inquiry.lang)), emit)
    return {
        "chat_response": thought.value,
        "findings": analysis.findings,
        "follow_ups": await splits(inquiry, runtime.context.database),
        "usage": thought.usage,
        "warnings": [*analysis.warnings, *thought.warnings],
        "execution_path": ["agent_chat"],
    }


async def _analysis(state: State, inquiry: Inquiry, context: Context) -> Analysis:
    what, sql = state["classification"].analysis, last_sql(inquiry)
    return await context.analyse(sql, what, inquiry.lang) if what and sql else Analysis()
