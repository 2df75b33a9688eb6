"""Writes the SQL of each model."""

import asyncio

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_making import code_of, draft_of
from agent.flows.etl.state import EtlState, EtlUpdate


async def developer_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the models' SQL, in the order in which they are built."""
    draft = await draft_of(state, runtime.context)
    code = await asyncio.to_thread(code_of, draft)
    return {"code": code, "execution_path": ["developer_agent"]}
