"""Step 2 of conversation: an answer without a query."""

from dataclasses import replace

from langgraph.runtime import Runtime

from agent.flows.ask.about_result import ResultAnalysis, last_sql
from agent.flows.ask.context import AskContext, emitter, inquiry_of
from agent.flows.ask.follow_up_offers import splits
from agent.flows.ask.state import AskState, AskUpdate
from common.errors import DatabaseUnavailable, QueryTimeout
from common.inquiry import Inquiry
from common.values import Catalog


async def agent_chat(state: AskState, runtime: Runtime[AskContext]) -> AskUpdate:
    """Write the answer piece by piece; of the last result, compute figures first."""
    try:
        catalog = await runtime.context.database.catalog()
    except (DatabaseUnavailable, QueryTimeout):
        catalog = Catalog(())

    inquiry = inquiry_of(state, catalog)
    analysis = await _analysis(state, inquiry, runtime.context)
    with emitter(state, runtime) as emit:
        reply = await runtime.context.skills.chat(
            replace(inquiry, findings=analysis.sentences(inquiry.lang)), emit
        )

    return {
        "chat_response": reply.value,
        "findings": analysis.findings,
        "follow_ups": reply.offers or await splits(inquiry, runtime.context.database),
        "usage": reply.usage,
        "warnings": [*analysis.warnings, *reply.warnings],
        "execution_path": ["agent_chat"],
    }


async def _analysis(state: AskState, inquiry: Inquiry, context: AskContext) -> ResultAnalysis:
    kinds = state["classification"].analysis
    sql = last_sql(inquiry)
    if not kinds or not sql:
        return ResultAnalysis()

    return await context.analyse(sql, kinds, inquiry.lang)
