"""Binds what the request says to the catalogue; what is open or not possible is said."""

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.roles.analyst_role import analysed
from agent.flows.etl.state import MOST_CLARIFICATIONS, EtlState, EtlUpdate


async def analyst_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the analysis, and how the run ends when it can't go on."""
    if "status" in state:  # the user gave the request up
        return {"execution_path": ["analyst_agent"]}
    analysis = await analysed(state, runtime.context)
    update: EtlUpdate = {
        "analysis": analysis.model_dump(mode="json"),
        "execution_path": ["analyst_agent"],
    }
    if analysis.impossible:
        update["status"] = "not_possible"
    elif analysis.ambiguities and not _may_ask(state):
        update["status"] = "needs_input"
    return runtime.context.with_use(update, state)


def _may_ask(state: EtlState) -> bool:
    asked = state.get("attempts", {}).get("clarify", 0)
    return bool(state["options"].get("interactive", True)) and asked < MOST_CLARIFICATIONS
