"""The steps of the loop."""

from datetime import date

from langgraph.runtime import Runtime

from agent.token_batches import emitting
from agent.tool_loop.state import State, Update
from agent.tools.answer import Ended, completed_body, found_so_far, limit_warning
from agent.tools.context import ToolAgentContext, begun, remembered
from agent.tools.dialogue import Dialogue, reply_to
from agent.tools.session import LimitReached
from agent.tools.transcript import closed
from common.errors import PromptTooLong
from common.llm import ToolOffer
from common.text import Text

FLOW = "tool_loop"
Node = Runtime[ToolAgentContext]

_NO_ROOM = Text("对话已超出大模型的上下文长度。", "The conversation no longer fits into the model's context.")


async def prepare(state: State, runtime: Node) -> Update:  # noqa: ARG001 - the name LangGraph wants
    """Gathers what is known of the question, and writes how the conversation with the model begins.

    Raises:
        DatabaseUnavailable, QueryTimeout: the catalogue can't be read.
    """
    context = runtime.context
    known = await begun(context)
    inquiry = await remembered(known.inquiry, context)
    opening = await context.openings.write(inquiry, FLOW)
    return {
        "inquiry": inquiry,
        "warnings": list(known.warnings),
        "dialogue": Dialogue.begin(opening),
        "execution_path": ["prepare"],
    }


async def think(state: State, runtime: Node) -> Update:
    """Asks the model once: it calls tools, or it answers.

    Raises:
        LlmUnavailable: it can't be reached, or gives nothing usable.
    """
    session = runtime.context.session
    done = Update(execution_path=["think"])
    try:
        replied = await reply_to(state["dialogue"], session, _offer(runtime.context), runtime.context.write)
    except LimitReached as reached:
        return {**done, "limit": reached.text}
    except PromptTooLong:
        if not session.found:
            raise
        return {**done, "limit": _NO_ROOM}
    update: Update = {**done, "reply": replied.reply, "dialogue": replied.dialogue}
    if replied.reply.tool_calls and (limit := session.limit_before_model()) is not None:
        update["limit"] = limit  # no reply could tell what comes of these calls
        session.leave_out(replied.reply.tool_calls, runtime.context.registry)
    return update


async def use_tools(state: State, runtime: Node) -> Update:
    """Runs the calls of the reply, in their order; each gets one result, also those that a limit leaves out."""
    session, registry = runtime.context.session, runtime.context.registry
    reply, offered = state["reply"], {tool.name for tool in registry.allowed(session.question.actor)}
    update = Update(execution_path=["use_tools"], failures=0)
    told: dict[str, str] = {}
    for place, call in enumerate(reply.tool_calls):
        if (limit := session.limit_before_tool()) is not None:
            update["limit"] = limit
            session.leave_out(reply.tool_calls[place:], registry)
            break
        result = await session.call(call, registry, runtime.context.write, offered)
        told[call.id] = result.text
        update["failures"] += result.error_type is not None
        if result.found is not None:
            update["sql"] = result.found.sql
    update["dialogue"] = state["dialogue"].with_exchange(closed(reply, told))
    return update


async def finalize(state: State, runtime: Node) -> Update:
    """Makes the answer's body; at a limit, its words are what the results so far say, by rules."""
    context, inquiry = runtime.context, state["inquiry"]
    text, warnings, path = state["dialogue"].told, state["warnings"], [*state["execution_path"], "finalize"]
    if "limit" in state:
        warnings = [limit_warning(state["limit"], inquiry.lang), *warnings]
        with emitting(context.session.question.stream_tokens, context.write) as emit:
            text = await found_so_far(inquiry, context.session, context.rules, text, emit)
    ended = Ended(text, inquiry, path, warnings)
    return {"answer": completed_body(ended, context.session, today=date.today()), "execution_path": ["finalize"]}


def _offer(context: ToolAgentContext) -> ToolOffer | None:
    """What the actor may call; nothing in the last reply there can be, because no other could tell what came of it."""
    tools = tuple(tool.definition for tool in context.registry.allowed(context.session.question.actor))
    if not tools:
        return None
    return ToolOffer(tools, choice="none" if context.session.is_last_model_call else "auto")
