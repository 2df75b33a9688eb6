"""The draft that the rules make where a model made none."""

from agent.flows.etl.context import EtlContext
from agent.flows.etl.draft_making import code_of, rules_draft
from agent.flows.etl.state import EtlState, EtlUpdate


async def rules_fallback(state: EtlState, context: EtlContext) -> EtlUpdate:
    """Return the rules' plan and SQL, which need no model."""
    draft = await rules_draft(state, context)
    return {
        "plan": draft.plan.model_dump(mode="json"),
        "plan_method": "rules",
        "code": code_of(draft),
        "execution_path": [],
    }
