"""Step 2 of a data question: writes SQL and proves it safe and valid, or says why there is none.

An example that answers exactly this question gives its SQL. Otherwise: draft → guard → EXPLAIN → at
most one repair, itself guarded and explained. Errors that the user can act on go into the state;
only failures of the model, the database or time limits are raised.
"""

from dataclasses import replace

from langgraph.runtime import Runtime

from agent.experience import METHOD, ReusedExample, reused_sql
from agent.flows.ask.context import AskContext, inquiry_of
from agent.flows.ask.follow_up_offers import offer_sentence, offers_with_rows
from agent.flows.ask.sql_repair import FORBIDDEN, NOT_VALID, may_repair, repaired
from agent.flows.ask.state import AskState, AskUpdate
from common.errors import (
    CostExceeded,
    ForbiddenObject,
    ForbiddenStatement,
    InvalidSql,
    StatementRejected,
)
from common.inquiry import Inquiry
from common.values import Draft, NoSql, PlanEstimate, SkillResult, Sql, Usage
from knowledge.tables.name_suggestions import with_suggestions


async def agent_sql_generation(state: AskState, runtime: Runtime[AskContext]) -> AskUpdate:
    """Write SQL and prove it.

    Raises:
        LlmUnavailable, DatabaseUnavailable, QueryTimeout: the SQL could not be written or proven.
    """
    context = runtime.context
    inquiry = inquiry_of(state, await context.database.catalog())
    # Values may not have been looked up before the question was known to be about the data.
    if not inquiry.found_values:
        inquiry = replace(inquiry, found_values=await context.look_up(inquiry, True))
    if "reused" in state:
        example = state["reused"]
    else:
        example = await reused_sql(inquiry, context.experience, context.database)

    if example is not None:
        return _proven_before(example)
    if context.has_model:  # the rules have no use for it
        inquiry = replace(inquiry, experience=await context.experience.recalled(inquiry))

    update = await _write_sql(inquiry, context)
    return {**update, "experience": inquiry.experience, "found_values": inquiry.found_values}


async def _write_sql(inquiry: Inquiry, context: AskContext) -> AskUpdate:
    try:
        draft = await context.skills.write_sql(inquiry)
    except ForbiddenStatement as error:
        return {**_rejected_update(error), "usage": error.usage}

    is_by_rules = context.skills.name == context.rules.name
    if not is_by_rules:
        context.experience.used(inquiry.experience.examples)

    update = await _prove(draft.value, inquiry, context)
    if "sql" in update:
        update["generation_method"] = "rules" if is_by_rules else "llm"

    refusal = update.get("error")
    if isinstance(refusal, InvalidSql):
        update["error"] = with_suggestions(refusal, update["sql"], inquiry.catalog)

    return _with_cost(update, draft)


async def _prove(draft: Draft, inquiry: Inquiry, context: AskContext) -> AskUpdate:
    if isinstance(draft, NoSql):
        return await _not_written(draft, inquiry, context)

    try:
        plan = await context.validate(draft.text)
    except InvalidSql as error:
        return await _repair(draft, error, inquiry, context)
    except StatementRejected as error:
        return _rejected_update(error, draft.text)

    return _accepted_update(draft, plan)


async def _repair(
    broken: Sql, error: InvalidSql, inquiry: Inquiry, context: AskContext
) -> AskUpdate:
    if not may_repair(context):
        return _rejected_update(error, broken.text)

    repair = await repaired(broken.text, error, inquiry, context)
    if repair.error is None:
        update = _accepted_update(Sql(repair.sql), repair.plan)
        update["sql_repair_applied"] = True
        update["execution_path"] += [repair.path_entry]
    else:
        update = _rejected_update(repair.error, repair.sql, repair.path_entry)

    return {
        **update,
        "usage": repair.usage,
        "warnings": list(repair.warnings),
        "prompt_parts": repair.sizes,
    }


def _proven_before(example: ReusedExample) -> AskUpdate:
    return {
        **_accepted_update(Sql(example.sql), example.plan),
        "reused": example,
        "generation_method": METHOD,
    }


def _accepted_update(draft: Sql, plan: PlanEstimate | None) -> AskUpdate:
    update: AskUpdate = {
        "sql": draft.text,
        "sql_generation_success": True,
        "understood": draft.understood,
        "execution_path": ["agent_sql_generation"],
    }
    if plan is not None:
        update["plan"] = plan

    return update


async def _not_written(draft: NoSql, inquiry: Inquiry, context: AskContext) -> AskUpdate:
    offers = await offers_with_rows(draft, context.database)
    return {
        "sql_generation_success": False,
        "failure_reason": draft.reason,
        "user_prompt": draft.prompt + offer_sentence(offers, inquiry.lang),
        "choices": offers.choices,
        "rewrites": offers.rewrites,
        "follow_ups": offers.examples,
        "understood": draft.understood,
        "execution_path": ["agent_sql_generation", "sql_generation_failed"],
    }


def _rejected_update(
    error: StatementRejected, sql: str | None = None, path_entry: str = NOT_VALID
) -> AskUpdate:
    if isinstance(error, ForbiddenStatement | ForbiddenObject):
        path_entry = FORBIDDEN

    update: AskUpdate = {
        "sql_generation_success": False,
        "error": error,
        "execution_path": ["agent_sql_generation", path_entry],
    }
    if sql is not None:
        update["sql"] = sql
    if isinstance(error, CostExceeded) and error.plan is not None:
        update["plan"] = error.plan

    return update


def _with_cost(update: AskUpdate, reply: SkillResult[Draft]) -> AskUpdate:
    update["usage"] = update.get("usage", Usage()) + reply.usage
    update["warnings"] = [*reply.warnings, *update.get("warnings", [])]
    if reply.prompt_parts:
        update["prompt_parts"] = {
            "write_sql": dict(reply.prompt_parts),
            **update.get("prompt_parts", {}),
        }

    return update
