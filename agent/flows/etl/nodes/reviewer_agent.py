"""Reviews the plan; an error keeps it from being built."""

import asyncio
from functools import partial
from typing import cast

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_making import bound_intent, rules_draft
from agent.flows.etl.roles.reviewer_role import reviewed
from agent.flows.etl.routing import after_review
from agent.flows.etl.state import EtlState, EtlUpdate
from common.errors import CituError, CostExceeded
from common.ports import Database
from etl.planning.draft_model import Draft
from etl.planning.plan_review import review
from etl.rendering.one_query import one_query
from etl.schemas.plan import ReviewResult


async def reviewer_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the review, and that the run ends when the plan failed for good.

    Of a model's plan the rules review what is theirs; its SQL is reviewed when it is submitted.
    """
    context = runtime.context
    bound = await bound_intent(state, context)
    rules = await rules_draft(state, context)
    is_expensive = await _is_expensive(rules, context.database)
    reviewing = partial(review, rules, bound, state["lang"], is_expensive=is_expensive)
    own = await asyncio.to_thread(reviewing)
    findings = await reviewed(state, context, _of_plan(own, state))
    attempts = state.get("attempts", {})
    update: EtlUpdate = {
        "review": findings.model_dump(mode="json"),
        "attempts": {**attempts, "review": attempts.get("review", 0) + 1},
        "execution_path": ["reviewer_agent"],
    }
    if after_review(cast(EtlState, {**state, **update})) == "failed":
        update["status"] = "failed"

    return context.with_model_usage(update, state)


def _of_plan(review: ReviewResult, state: EtlState) -> ReviewResult:
    """Return the issues at nodes of the plan at hand."""
    names = [node["name"] for node in state["plan"]["nodes"]]
    issues = [issue for issue in review.issues if issue.node in names]
    return review.model_copy(update={"issues": issues})


async def _is_expensive(draft: Draft, database: Database) -> bool:
    """Tell whether the datasource's planner finds the draft beyond its limits.

    What can't be planned there, because of a type or of too many tables, is not estimated.
    """
    sql = await asyncio.to_thread(one_query, draft)
    try:
        await database.explain(sql)
    except CostExceeded:
        return True
    except CituError:
        return False

    return False
