"""Plans the models of the draft."""

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_making import draft_of
from agent.flows.etl.state import EtlState, EtlUpdate


async def architect_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the plan of the models that the intent needs."""
    draft = await draft_of(state, runtime.context)
    return {"plan": draft.plan.model_dump(mode="json"), "execution_path": ["architect_agent"]}
