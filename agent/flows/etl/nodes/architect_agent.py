"""Plans the models of the draft."""

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_making import further_step, rules_draft
from agent.flows.etl.etl_texts import PLAN_NOT_TAKEN
from agent.flows.etl.roles.architect_role import designed
from agent.flows.etl.state import MOST_REWORKS, EtlState, EtlUpdate
from etl.planning.further_models import with_further_model


async def architect_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the plan; the rules' own once reviews have failed the model's too often."""
    context = runtime.context
    rules = await rules_draft(state, context)
    plan, method = rules.plan, "rules"
    step = further_step(state)
    if step is not None:
        plan = with_further_model(rules, step).plan
    elif state.get("attempts", {}).get("review", 0) < MOST_REWORKS:
        plan, method = await designed(state, context, rules)
    elif context.roles is not None:
        context.roles.model.warn(PLAN_NOT_TAKEN)

    update: EtlUpdate = {
        "plan": plan.model_dump(mode="json"),
        "plan_method": method,
        "execution_path": ["architect_agent"],
    }
    return context.with_model_usage(update, state)
