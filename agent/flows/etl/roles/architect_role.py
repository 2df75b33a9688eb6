"""The architect role by a model: another cut of the same intent into models."""

from typing import Any

from agent.flows.etl.context import EtlContext
from agent.flows.etl.draft_making import bound_intent
from agent.flows.etl.role_model import RoleTask
from agent.flows.etl.roles.submit_tools import invalid_submission, submit_tool
from agent.flows.etl.state import EtlState
from agent.tools.tool import Arguments
from common.text import Text
from etl.planning.draft_model import Draft
from etl.planning.proposed_plans import adopted_plan, has_variables, plan_problems
from etl.schemas.plan import ArchitecturePlan

_MOST_PROBLEMS = 8  # that the model is told at once


class SubmitPlan(Arguments):
    """The arguments of `submit_plan`."""

    plan: ArchitecturePlan


class ModelPlan:
    """The plan that a model submits."""

    def __init__(self, rules: Draft) -> None:
        self._rules = rules
        self.plan: ArchitecturePlan | None = None

    async def take(self, submission: SubmitPlan) -> str:
        """Take a plan that a draft can be made of.

        Raises:
            InvalidRequest: there is none.
        """
        problems = plan_problems(submission.plan, self._rules)
        if problems:
            raise invalid_submission(" ".join(problems[:_MOST_PROBLEMS]))

        self.plan = adopted_plan(submission.plan, self._rules)
        return "Accepted."


async def designed(
    state: EtlState, context: EtlContext, rules: Draft
) -> tuple[ArchitecturePlan, str]:
    """Return the plan, and whether the rules or a model have made it."""
    # What reads variables of the project is only written by the renderer, as the rules plan it.
    is_rules_own = any(has_variables(model) for model in rules.models)
    if context.roles is None or is_rules_own:
        return rules.plan, "rules"

    design = ModelPlan(rules)
    catalog = await context.database.catalog()
    bound = await bound_intent(state, context)
    opening = await context.roles.prompts.of_tables(
        "etl_plan",
        state,
        catalog,
        [source.table for source in bound.sources],
        intent=state["analysis"]["intent"],
        plan=rules.plan.model_dump(mode="json"),
        findings=_found(state),
    )
    tool = submit_tool(
        "submit_plan",
        Text("提交设计", "Hand in the plan"),
        "Hands in the plan: its nodes in the order in which they are built.",
        SubmitPlan,
        design.take,
    )
    task = RoleTask("architect_agent", opening, tool, lambda: design.plan is not None)
    await context.roles.model.attempt(task, state)
    if design.plan is None or design.plan == rules.plan:
        return rules.plan, "rules"

    return design.plan, "llm"


def _found(state: EtlState) -> list[dict[str, Any]]:
    """Return what the review found in the model's plan before."""
    issues: list[dict[str, Any]] = state.get("review", {}).get("issues", [])
    return issues
