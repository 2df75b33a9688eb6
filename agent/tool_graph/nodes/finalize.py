"""Last step: makes the answer's body from what was said and found."""

from datetime import date

from agent.token_batches import emitting
from agent.tool_graph.context import GraphRuntime
from agent.tool_graph.nodes.save_memory import keep_candidates
from agent.tool_graph.state import State, Update
from agent.tools.answer import Ended, completed_body, found_so_far, limit_warning


async def finalize(state: State, runtime: GraphRuntime) -> Update:
    """Writes `answer` into the state; at a limit, its words are what the results so far say, by rules."""
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
    ended = Ended(text, inquiry, [*state["execution_path"], "finalize"], warnings)
    return {"answer": completed_body(ended, session, today=date.today()), "execution_path": ["finalize"]}
