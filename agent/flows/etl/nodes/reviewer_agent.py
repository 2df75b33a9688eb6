"""Reviews the plan; an error keeps it from being built."""

import asyncio
from typing import cast

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_making import bound_intent, draft_of
from agent.flows.etl.routing import after_review
from agent.flows.etl.state import EtlState, EtlUpdate
from etl.planning.plan_review import review


async def reviewer_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the review, and that the run ends when the plan failed for good."""
    bound = await bound_intent(state, runtime.context)
    draft = await draft_of(state, runtime.context)
    found = await asyncio.to_thread(review, draft, bound, state["lang"])
    attempts = state.get("attempts", {})
    update: EtlUpdate = {
        "review": found.model_dump(mode="json"),
        "attempts": {**attempts, "review": attempts.get("review", 0) + 1},
        "execution_path": ["reviewer_agent"],
    }
    if after_review(cast(EtlState, {**state, **update})) == "failed":
        update["status"] = "failed"
    return update
