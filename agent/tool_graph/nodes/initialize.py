"""First step: who asks within which limits is given; reads the catalogue, the conversation and the values named."""

from agent.tool_graph.context import GraphRuntime
from agent.tool_graph.state import State, Update
from agent.tools.context import begun


async def initialize(state: State, runtime: GraphRuntime) -> Update:  # noqa: ARG001 - the name LangGraph wants
    """Gathers what is known of the question, or ends it when nothing may be used for it.

    Raises:
        DatabaseUnavailable, QueryTimeout: the catalogue can't be read.
    """
    context = runtime.context
    known = await begun(context.given)
    update: Update = {
        "inquiry": known.inquiry,
        "warnings": list(known.warnings),
        "execution_path": ["initialize"],
    }
    limit = context.session.limit_before_model()
    return update if limit is None else {**update, "limit": limit}
