"""Reviews the plan; an error keeps it from being built."""

import asyncio
from typing import cast

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_making import bound_intent, rules_draft
from agent.flows.etl.roles.reviewer_role import reviewed
from agent.flows.etl.routing import after_review
from agent.flows.etl.state import EtlState, EtlUpdate
from etl.planning.plan_review import review
from etl.schemas.plan import ReviewResult


async def reviewer_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the review, and that the run ends when the plan failed for good.

    Of a model's plan the rules review what is theirs; its SQL is reviewed when it is handed in.
    """
    context = runtime.context
    bound = await bound_intent(state, context)
    rules = await rules_draft(state, context)
    own = await asyncio.to_thread(review, rules, bound, state["lang"])
    found = await reviewed(state, context, _of_plan(own, state))
    attempts = state.get("attempts", {})
    update: EtlUpdate = {
        "review": found.model_dump(mode="json"),
        "attempts": {**attempts, "review": attempts.get("review", 0) + 1},
        "execution_path": ["reviewer_agent"],
    }
    if after_review(cast(EtlState, {**state, **update})) == "failed":
        update["status"] = "failed"
    return context.with_use(update, state)


def _of_plan(found: ReviewResult, state: EtlState) -> ReviewResult:
    """Return the issues at nodes of the plan at hand."""
    names = [node["name"] for node in state["plan"]["nodes"]]
    issues = [issue for issue in found.issues if issue.node in names]
    return found.model_copy(update={"issues": issues})
