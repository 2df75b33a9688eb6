"""The steps of the loop."""

import asyncio
from datetime import date

from langgraph.runtime import Runtime

from agent.flows.tool_loop.state import ToolLoopState, ToolLoopUpdate
from agent.token_batches import emitting
from agent.tools.answer import ToolAnswer, completed_body, found_so_far, limit_warning
from agent.tools.dialogue import Dialogue, reply_to
from agent.tools.session import LimitReached
from agent.tools.tool_context import ToolAgentContext, prepared_question, with_experience
from agent.tools.transcript import complete_exchange
from common.errors import PromptTooLong
from common.text import Text
from llm import ToolOffer

FLOW = "tool_loop"
Node = Runtime[ToolAgentContext]

_NO_ROOM = Text(
    "对话已超出大模型的上下文长度。", "The conversation no longer fits into the model's context."
)


async def prepare(
    state: ToolLoopState,  # noqa: ARG001 - the name LangGraph wants
    runtime: Node,
) -> ToolLoopUpdate:
    """Gather what is known of the question, and write how the conversation with the model begins.

    Raises:
        DatabaseUnavailable, QueryTimeout: the catalogue can't be read.
    """
    context = runtime.context
    beginning = await prepared_question(context)
    inquiry = await with_experience(beginning.inquiry, context)
    prompt = await context.first_prompts.write(inquiry, FLOW)
    return {
        "inquiry": inquiry,
        "warnings": list(beginning.warnings),
        "dialogue": Dialogue.begin(prompt),
        "execution_path": ["prepare"],
    }


async def think(state: ToolLoopState, runtime: Node) -> ToolLoopUpdate:
    """Ask the model once: it calls tools, or it answers.

    Raises:
        LlmUnavailable: it can't be reached, or gives nothing usable.
    """
    session = runtime.context.session
    done = ToolLoopUpdate(execution_path=["think"])
    try:
        replied = await reply_to(
            state["dialogue"], session, _offer(runtime.context), runtime.context.write
        )
    except LimitReached as reached:
        return {**done, "limit": reached.text}
    except PromptTooLong:
        if not session.found:
            raise

        return {**done, "limit": _NO_ROOM}

    update: ToolLoopUpdate = {**done, "reply": replied.reply, "dialogue": replied.dialogue}
    if replied.reply.tool_calls and (limit := session.limit_before_model()) is not None:
        update["limit"] = limit  # no reply could tell what comes of these calls
        session.leave_out(replied.reply.tool_calls, runtime.context.registry)

    return update


async def use_tools(state: ToolLoopState, runtime: Node) -> ToolLoopUpdate:
    """Run the calls of the reply in order; those that a limit leaves out get a result too."""
    session, registry = runtime.context.session, runtime.context.registry
    reply = state["reply"]
    offered = {tool.name for tool in registry.allowed(session.question.actor)}
    update = ToolLoopUpdate(execution_path=["use_tools"], failures=0)
    texts_by_call: dict[str, str] = {}
    for number, call in enumerate(reply.tool_calls):
        if (limit := session.limit_before_tool()) is not None:
            update["limit"] = limit
            session.leave_out(reply.tool_calls[number:], registry)
            break

        result = await session.call(call, registry, runtime.context.write, offered)
        texts_by_call[call.id] = result.text
        update["failures"] += result.error_type is not None
        if result.found is not None:
            update["sql"] = result.found.sql

    update["dialogue"] = state["dialogue"].with_exchange(complete_exchange(reply, texts_by_call))
    return update


async def finalize(state: ToolLoopState, runtime: Node) -> ToolLoopUpdate:
    """Make the answer's body; at a limit, rules put the results so far into words."""
    context, inquiry = runtime.context, state["inquiry"]
    text = state["dialogue"].told
    warnings = state["warnings"]
    path = [*state["execution_path"], "finalize"]
    if "limit" in state:
        warnings = [limit_warning(state["limit"], inquiry.lang), *warnings]
        with emitting(context.session.question.stream_tokens, context.write) as emit:
            text = await found_so_far(inquiry, context.session, context.rules, text, emit)

    ended = ToolAnswer(text, inquiry, path, warnings)
    return {
        "answer": await asyncio.to_thread(
            completed_body, ended, context.session, today=date.today()
        ),
        "execution_path": ["finalize"],
    }


def _offer(context: ToolAgentContext) -> ToolOffer | None:
    """Return the tools that the actor may call; the last possible reply may call none.

    No later reply could tell what came of such a call.
    """
    tools = tuple(
        tool.definition for tool in context.registry.allowed(context.session.question.actor)
    )
    if not tools:
        return None

    return ToolOffer(tools, choice="none" if context.session.is_last_model_call else "auto")
