"""The nodes that answer calls: one for each virtual tool, which takes one call, and one for all other tools."""

from dataclasses import replace

from agent.tool_graph.context import GraphRuntime
from agent.tool_graph.nodes.calling import answered, written
from agent.tool_graph.routing import NODE_OF
from agent.tool_graph.state import State, Update
from agent.tools.tool import ToolResult
from common.llm import ToolCall

_READ_THE_SCHEMA = frozenset({"search_schema", "describe_table"})


async def get_schema(state: State, runtime: GraphRuntime) -> Update:
    """Describes tables."""
    result = await answered(state["pending"][0], state, runtime)
    return written(state, "get_schema", (result,))


async def generate_sql(state: State, runtime: GraphRuntime) -> Update:
    """Puts a statement up, proven by guard and EXPLAIN; the one before is given up."""
    call, workbench = state["pending"][0], runtime.context.workbench
    workbench.begins(call)
    result = await answered(call, state, runtime)
    workbench.ended(call)
    _forget_estimates(call, runtime)
    update = written(state, "generate_sql", (result,))
    if workbench.statement is not None:
        update |= {"sql": workbench.statement.sql, "plan": workbench.statement.plan}
    return update


def _forget_estimates(call: ToolCall, runtime: GraphRuntime) -> None:
    """The planner's estimates are no results: no figure of the answer may be traced to them."""
    results = runtime.context.session.results
    if call.id in results:
        results[call.id] = replace(results[call.id], text="")


async def execute_sql(state: State, runtime: GraphRuntime) -> Update:
    """Runs the statement that is proven."""
    statement = runtime.context.workbench.statement
    result = await answered(state["pending"][0], state, runtime, statement.sql if statement is not None else "")
    return written(state, "execute_sql", (result,))


async def execute_tools(state: State, runtime: GraphRuntime) -> Update:
    """Runs the calls up to the next one of a virtual tool, one after another, as far as the limits allow."""
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
            context.workbench.was_shown_tables()
    update = written(state, "execute_tools", tuple(results))
    return update if limit is None else {**update, "limit": limit}
