"""Asks the model what to do next, or goes on with the calls of its latest reply."""

from agent.token_batches import emitting
from agent.tool_graph.context import GraphContext, GraphRuntime
from agent.tool_graph.state import State, Update
from agent.tools.session import LimitReached
from agent.tools.transcript import Transcript, closed
from common.llm import Completion, ToolOffer


async def think(state: State, runtime: GraphRuntime) -> Update:
    """One call of the model, unless calls of its latest reply are open: each gets its result before it is asked again.

    Raises:
        LlmUnavailable: the model can't be reached, or has had no usable reply twice.
    """
    context = runtime.context
    if state.get("pending"):
        return _with_limit({"execution_path": ["think"], "pending": state["pending"]}, context)
    transcript = _continued(state)
    offered = context.offered()
    offer = ToolOffer(tuple(tool.definition for tool in offered)) if offered else None
    try:
        reply = await _asked(state, runtime, transcript, offer)
    except LimitReached as reached:
        return {"limit": reached.text, "execution_path": ["think"]}
    update: Update = {"transcript": transcript, "reply": reply, "execution_path": ["think"]}
    if not reply.tool_calls:
        return {**update, "text": reply.text}
    names = offer.names if offer is not None else frozenset()
    return _with_limit({**update, "pending": reply.tool_calls, "results": {}, "offered": names}, context)


def _with_limit(update: Update, context: GraphContext) -> Update:
    """The update before calls are made, with the limit that forbids them if there is one."""
    limit = context.session.limit_before_tool()
    return update if limit is None else {**update, "limit": limit}


def _continued(state: State) -> Transcript:
    """The conversation with the latest reply and the results of its calls."""
    if "reply" not in state:
        return state["transcript"]
    return state["transcript"].with_exchange(closed(state["reply"], state["results"]))


async def _asked(state: State, runtime: GraphRuntime, transcript: Transcript, offer: ToolOffer | None) -> Completion:
    with emitting(state["wants_tokens"], runtime.stream_writer) as emit:
        return await runtime.context.session.ask(transcript, offer, emit)
