"""Second step: what was learnt that may help, and how the conversation with the model begins."""

from agent.tool_graph.context import GraphRuntime
from agent.tool_graph.state import State, Update
from agent.tools.context import remembered
from agent.tools.dialogue import Dialogue

FLOW = "tool_graph"


async def memory_search(state: State, runtime: GraphRuntime) -> Update:
    """Writes the beginning.

    A schema that it shows whole is known from here on; of a larger one it shows the part that the question is about,
    and the model has to look the tables up that it wants to query.
    """
    given, workbench = runtime.context.given, runtime.context.workbench
    inquiry = await remembered(state["inquiry"], given)
    opening = await given.openings.write(inquiry, FLOW)
    workbench.inquiry = inquiry
    if opening.has_whole_schema:
        workbench.was_shown_tables()
    return {"inquiry": inquiry, "dialogue": Dialogue.begin(opening), "execution_path": ["memory_search"]}
