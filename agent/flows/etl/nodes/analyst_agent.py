"""Binds what the request says to the catalogue; what is open or not possible is said."""

from dataclasses import asdict

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_making import binding_of
from agent.flows.etl.state import MOST_CLARIFICATIONS, EtlState, EtlUpdate


async def analyst_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the analysis, and how the run ends when it can't go on."""
    if "status" in state:  # the user gave the request up
        return {"execution_path": ["analyst_agent"]}
    result = await binding_of(state, runtime.context)
    analysis = result.analysis
    update: EtlUpdate = {
        "analysis": analysis.model_dump(mode="json"),
        "decisions": [asdict(decision) for decision in result.decisions],
        "execution_path": ["analyst_agent"],
    }
    if analysis.impossible:
        update["status"] = "not_possible"
    elif analysis.ambiguities and not _may_ask(state):
        update["status"] = "needs_input"
    return update


def _may_ask(state: EtlState) -> bool:
    asked = state.get("attempts", {}).get("clarify", 0)
    return bool(state["options"].get("interactive", True)) and asked < MOST_CLARIFICATIONS
