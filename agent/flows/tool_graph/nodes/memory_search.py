"""Second step: what was learnt that may help, and how the conversation with the model begins."""

from agent.flows.tool_graph.context import GraphRuntime
from agent.flows.tool_graph.state import ToolGraphState, ToolGraphUpdate
from agent.tools.dialogue import Dialogue
from agent.tools.tool_context import remembered

FLOW = "tool_graph"


async def memory_search(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Writes the beginning.

    A schema that it shows whole is known from here on; of a larger one it shows the part that the
    question is about, and the model has to look the tables up that it wants to query.
    """
    given, scratchpad = runtime.context.given, runtime.context.scratchpad
    inquiry = await remembered(state["inquiry"], given)
    prompt = await given.openings.write(inquiry, FLOW)
    scratchpad.inquiry = inquiry
    if prompt.has_whole_schema:
        scratchpad.was_shown_tables()
    return {
        "inquiry": inquiry,
        "dialogue": Dialogue.begin(prompt),
        "execution_path": ["memory_search"],
    }
