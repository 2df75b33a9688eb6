"""First step: reads the catalogue, the conversation and the values that the question names."""

from agent.flows.tool_graph.context import GraphRuntime
from agent.flows.tool_graph.state import ToolGraphState, ToolGraphUpdate
from agent.tools.tool_context import begun


async def initialize(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:  # noqa: ARG001 - the name LangGraph wants
    """Gather what is known of the question, or ends it when nothing may be used for it.

    Raises:
        DatabaseUnavailable, QueryTimeout: the catalogue can't be read.
    """
    context = runtime.context
    known = await begun(context.given)
    update: ToolGraphUpdate = {
        "inquiry": known.inquiry,
        "warnings": list(known.warnings),
        "execution_path": ["initialize"],
    }
    limit = context.session.limit_before_model()
    return update if limit is None else {**update, "limit": limit}
