"""Last step: makes the answer's body from what was said and found."""

import asyncio
from datetime import date

from agent.flows.tool_graph.context import GraphRuntime
from agent.flows.tool_graph.nodes.save_memory import keep_candidates
from agent.flows.tool_graph.state import ToolGraphState, ToolGraphUpdate
from agent.token_batches import emitting
from agent.tools.answer import ToolAnswer, completed_body, found_so_far, limit_warning


async def finalize(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Write `answer` into the state; at a limit, rules put the results so far into words."""
    context, inquiry = runtime.context, state["inquiry"]
    session = context.session
    text = state["dialogue"].told if "dialogue" in state else ""
    warnings = state["warnings"]
    if "limit" in state:
        session.leave_out(state.get("pending", ()), context.registry)
        warnings = [limit_warning(state["limit"], inquiry.lang), *warnings]
        with emitting(session.question.stream_tokens, context.given.write) as emit:
            text = await found_so_far(inquiry, session, context.given.rules, text, emit)
    else:
        await keep_candidates(context)
    ended = ToolAnswer(text, inquiry, [*state["execution_path"], "finalize"], warnings)
    return {
        "answer": await asyncio.to_thread(completed_body, ended, session, today=date.today()),
        "execution_path": ["finalize"],
    }
