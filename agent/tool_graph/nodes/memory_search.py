"""Second step: what is known that may help: stored values that the question names, experience, the schema."""

from dataclasses import replace

from agent.tool_graph.context import GraphRuntime
from agent.tool_graph.state import State, Update
from agent.tools.transcript import Transcript

FLOW = "tool_graph"


async def memory_search(state: State, runtime: GraphRuntime) -> Update:  # noqa: ARG001
    """Writes the beginning of the conversation with the model.

    A schema that it shows whole is known from here on; of a larger one it shows the part that the question is about,
    and the model has to look the tables up that it wants to query.
    """
    given, workbench = runtime.context.given, runtime.context.workbench
    inquiry = workbench.inquiry
    assert inquiry is not None
    if inquiry.catalog.tables:
        inquiry = replace(inquiry, found_values=await given.look_up(inquiry, False))
        inquiry = replace(inquiry, experience=await given.experience.recalled(inquiry))
        workbench.inquiry = inquiry
    opening = await given.openings.write(inquiry, FLOW)
    workbench.knows_schema = opening.has_whole_schema and bool(inquiry.catalog.tables)
    return {"transcript": Transcript(opening.messages), "execution_path": ["memory_search"]}
