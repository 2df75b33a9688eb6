"""Helpers of the nodes that answer pending calls, in the order of the reply."""

from agent.flows.tool_graph.context import GraphRuntime
from agent.flows.tool_graph.state import ToolGraphState, ToolGraphUpdate
from agent.tools.tool import ToolResult
from llm import ToolCall


async def answered(
    call: ToolCall, state: ToolGraphState, runtime: GraphRuntime, depends_on: str = ""
) -> ToolResult:
    """Run the call and return its result.

    A tool is only run if the model was offered it, and it may still be called: an earlier call of
    the same reply may have changed that.

    Args:
        depends_on: see `ToolSession.call`.
    """
    context = runtime.context
    offered = state["offered"] & {tool.name for tool in context.offered()}
    return await context.session.call(
        call, context.registry, context.given.write, offered, depends_on
    )


def written(state: ToolGraphState, node: str, results: tuple[ToolResult, ...]) -> ToolGraphUpdate:
    """The update of a node that has answered the first of the pending calls."""
    done, pending = state["pending"][: len(results)], state["pending"][len(results) :]
    told = {call.id: result.text for call, result in zip(done, results, strict=True)}
    return {
        "results": {**state["results"], **told},
        "pending": pending,
        "steps": results,
        "execution_path": [node],
    }
