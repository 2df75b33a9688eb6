"""Binds what the request says to the catalogue; what is open or not possible is said."""

from dataclasses import asdict

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_experience import meaning_of
from agent.flows.etl.draft_making import binding_of
from agent.flows.etl.learnt_decisions import learnt_decisions, with_decisions
from agent.flows.etl.roles.analyst_role import analysed
from agent.flows.etl.state import MOST_CLARIFICATIONS, EtlState, EtlUpdate


async def analyst_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the analysis, and how the run ends when it can't go on."""
    if "status" in state:  # the user gave the request up
        return {"execution_path": ["analyst_agent"]}

    context = runtime.context
    if "meaning" not in state:
        asked = (await binding_of(state, context)).analysis
        meaning = meaning_of(asked, state["question"])
        decided = await learnt_decisions(meaning, state, context)
        state = {**state, "meaning": meaning, "decided": decided}

    reading = await analysed(state, context)
    result = await binding_of(state, context)
    analysis = with_decisions(reading, state["decided"], state["lang"])
    update: EtlUpdate = {
        "meaning": state["meaning"],
        "decided": state["decided"],
        "analysis": analysis.model_dump(mode="json"),
        "decisions": [asdict(choice) for choice in result.chosen],
        "execution_path": ["analyst_agent"],
    }
    if analysis.impossible:
        update["status"] = "not_possible"
    elif analysis.ambiguities and not _may_ask(state):
        update["status"] = "needs_input"

    return runtime.context.with_model_usage(update, state)


def _may_ask(state: EtlState) -> bool:
    asked = state.get("attempts", {}).get("clarify", 0)
    return bool(state["options"].get("interactive", True)) and asked < MOST_CLARIFICATIONS
