"""Asks the model what to do next, or goes on with the calls of its latest reply."""

from agent.flows.tool_graph.context import GraphRuntime, ToolGraphContext
from agent.flows.tool_graph.state import ToolGraphState, ToolGraphUpdate
from agent.tools.dialogue import Dialogue, ModelReply, reply_to
from agent.tools.session import LimitReached
from agent.tools.transcript import closed
from common.errors import PromptTooLong
from common.text import Text
from llm import ToolOffer

_NO_ROOM = Text(
    "对话已超出大模型的上下文长度。", "The conversation no longer fits into the model's context."
)


async def think(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Ask the model once, unless calls of its latest reply still wait for their results.

    Raises:
        LlmUnavailable: the model can't be reached, or gives nothing usable.
    """
    context = runtime.context
    if state.get("pending"):
        return _before_calls({"pending": state["pending"], "execution_path": ["think"]}, context)
    done, offer = ToolGraphUpdate(execution_path=["think"]), _offer(context)
    try:
        replied = await reply_to(_so_far(state), context.session, offer, context.given.write)
    except LimitReached as reached:
        return {**done, "limit": reached.text}
    except PromptTooLong:
        if not context.session.found:
            raise
        return {**done, "limit": _NO_ROOM}
    return _replied(
        {**done, "dialogue": replied.dialogue, "reply": replied.reply}, replied, offer, context
    )


def _so_far(state: ToolGraphState) -> Dialogue:
    """The dialogue with the latest reply and the results of its calls."""
    if "reply" not in state:
        return state["dialogue"]
    return state["dialogue"].with_exchange(closed(state["reply"], state["results"]))


def _offer(context: ToolGraphContext) -> ToolOffer | None:
    """Return the tools that may be called now; the last possible reply may call none.

    No later reply could tell what came of such a call.
    """
    tools = tuple(tool.definition for tool in context.offered())
    if not tools:
        return None
    return ToolOffer(tools, choice="none" if context.session.is_last_model_call else "auto")


def _replied(
    update: ToolGraphUpdate, replied: ModelReply, offer: ToolOffer | None, context: ToolGraphContext
) -> ToolGraphUpdate:
    calls = replied.reply.tool_calls
    if not calls:
        return {**update, "is_answered": True}
    update |= {
        "pending": calls,
        "results": {},
        "offered": offer.names if offer is not None else frozenset(),
    }
    limit = context.session.limit_before_model()  # no reply could tell what comes of these calls
    return _before_calls(update, context) if limit is None else {**update, "limit": limit}


def _before_calls(update: ToolGraphUpdate, context: ToolGraphContext) -> ToolGraphUpdate:
    """The update before calls are made, with the limit that forbids them if there is one."""
    limit = context.session.limit_before_tool()
    return update if limit is None else {**update, "limit": limit}
