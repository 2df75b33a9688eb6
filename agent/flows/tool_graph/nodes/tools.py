"""The nodes that answer calls: one for each virtual tool, and one for all other tools."""

from dataclasses import replace

from agent.flows.tool_graph.context import GraphRuntime
from agent.flows.tool_graph.nodes.calling import answered, written
from agent.flows.tool_graph.routing import NODE_OF
from agent.flows.tool_graph.state import ToolGraphState, ToolGraphUpdate
from agent.tools.tool import ToolResult
from llm import ToolCall

_READ_THE_SCHEMA = frozenset({"search_schema", "describe_table"})


async def get_schema(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Describe the tables that the call names."""
    result = await answered(state["pending"][0], state, runtime)
    return written(state, "get_schema", (result,))


async def generate_sql(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Puts a statement up, proven by guard and EXPLAIN; the one before is given up."""
    call, scratchpad = state["pending"][0], runtime.context.scratchpad
    scratchpad.begins(call)
    result = await answered(call, state, runtime)
    scratchpad.ended(call)
    _forget_estimates(call, runtime)
    update = written(state, "generate_sql", (result,))
    if scratchpad.statement is not None:
        update |= {"sql": scratchpad.statement.sql, "plan": scratchpad.statement.plan}
    return update


def _forget_estimates(call: ToolCall, runtime: GraphRuntime) -> None:
    """The planner's estimates are no results: no figure of the answer may be traced to them."""
    results = runtime.context.session.results
    if call.id in results:
        results[call.id] = replace(results[call.id], text="")


async def execute_sql(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Runs the statement that is proven."""
    statement = runtime.context.scratchpad.statement
    result = await answered(
        state["pending"][0], state, runtime, statement.sql if statement is not None else ""
    )
    return written(state, "execute_sql", (result,))


async def execute_tools(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Run the calls before the next one of a virtual tool in order, as far as the limits allow."""
    context = runtime.context
    results: list[ToolResult] = []
    limit = None
    for call in state["pending"]:
        limit = context.session.limit_before_tool()
        if limit is not None or call.name in NODE_OF:
            break
        result = await answered(call, state, runtime)
        results.append(result)
        if call.name in _READ_THE_SCHEMA and result.error_type is None:
            context.scratchpad.was_shown_tables()
    update = written(state, "execute_tools", tuple(results))
    return update if limit is None else {**update, "limit": limit}
