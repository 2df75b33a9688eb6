"""Writes the SQL of each model."""

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.roles.developer_role import developed
from agent.flows.etl.state import EtlState, EtlUpdate


async def developer_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the models' SQL, in the order in which they are built."""
    context = runtime.context
    update = await developed(state, context)
    update["execution_path"] = ["developer_agent"]
    return context.with_model_usage(update, state)
