"""Binds and drafts what a request wants.

The state holds JSON alone, so each leg does it again; within a leg the context remembers it.
"""

import asyncio
import json
from datetime import date

from sqlglot import exp

from agent.flows.etl.context import EtlContext
from agent.flows.etl.state import EtlState, Json
from common.errors import Conflict
from common.text import Lang, Text
from etl.binding.intent_binding import BindingOptions, BindingResult, bind_intent
from etl.binding.request_findings import UserChoice
from etl.clauses.request_analysis import EarlierTurns, analysed_sentence
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.drafting import make_draft
from etl.planning.further_models import with_further_model
from etl.planning.plan_notes import with_notes
from etl.planning.proposed_plans import planned_draft
from etl.planning.user_sql import with_user_sql
from etl.rendering.select_rendering import render_select
from etl.schemas.further_step import FurtherStep
from etl.schemas.plan import ArchitecturePlan
from etl.schemas.requirement import UserIntent
from postgres.identifiers import quoted

_CHANGED = Text(
    "数据源的表结构在处理过程中发生了变化，请重新提交请求。",
    "The tables of the datasource changed meanwhile; send the request again.",
)


async def binding_of(state: EtlState, context: EtlContext) -> BindingResult:
    """Return the request as bound to what the caller may see, or what is open."""
    answers = answers_of(state)
    intent = _intent_of(state)
    key = json.dumps([answers, intent], sort_keys=True)
    memory = context.memory
    if key not in memory.bindings:
        memory.bindings[key] = await _bind(intent, state, context)

    return memory.bindings[key]


def answers_of(state: EtlState) -> dict[str, str]:
    """Return what decided what was open, by ids: examples, and before them the user."""
    decided = [*state.get("decided", []), *state.get("clarifications", [])]
    return {decision["id"]: decision["answer"] for decision in decided}


def binding_options(state: EtlState, context: EtlContext) -> BindingOptions:
    """Return what decides beside the intent."""
    options = state["options"]
    return BindingOptions(
        time_zone=options.get("time_zone") or context.time_zone,
        today=date.fromisoformat(options["today"]),
        materialization=options.get("materialization"),
        lang=state["lang"],
    )


def _intent_of(state: EtlState) -> Json | None:
    """Return the intent as it was given, or as a model has read it; None: rules read the words."""
    analysis = state.get("analysis", {})
    if analysis.get("method") == "llm":
        read: Json = analysis["intent"]
        return read

    return state["given_intent"]


async def _bind(intent: Json | None, state: EtlState, context: EtlContext) -> BindingResult:
    """Bind the intent to the catalogue; None: the one that the rules read in the question."""
    catalog = await context.database.catalog()
    options = binding_options(state, context)
    if intent is None:
        earlier = earlier_turns(state)
        answers = answers_of(state)
        return await analysed_sentence(state["question"], catalog, answers, options, earlier)

    user_intent = UserIntent.model_validate(intent)
    return await asyncio.to_thread(bind_intent, user_intent, catalog, answers_of(state), options)


def earlier_turns(state: EtlState) -> EarlierTurns:
    """Return what the conversation has said before, as the state holds it."""
    earlier = state.get("earlier") or {}
    intent = earlier.get("intent")
    chosen = tuple(UserChoice(**decision) for decision in earlier.get("decisions", ()))
    return EarlierTurns(UserIntent.model_validate(intent) if intent else None, chosen)


async def bound_intent(state: EtlState, context: EtlContext) -> BoundIntent:
    """Return the intent of a request that was ready to be planned.

    Raises:
        Conflict: the catalogue is another one now, and the intent does not fit it any more.
    """
    result = await binding_of(state, context)
    if result.bound is None:
        raise Conflict(_CHANGED)

    return result.bound


async def rules_draft(state: EtlState, context: EtlContext) -> Draft:
    """Return the draft as the rules make it.

    Raises:
        Conflict: as `bound_intent`.
    """
    bound = await bound_intent(state, context)
    drafts = context.memory.drafts
    if "" not in drafts:
        drafts[""] = await asyncio.to_thread(_by_rules, bound, state["lang"])

    return drafts[""]


async def draft_of(state: EtlState, context: EtlContext) -> Draft:
    """Return the draft with what a model or its user has changed of it.

    Raises:
        Conflict: as `bound_intent`.
        StatementRejected: what they changed can't be taken over.
    """
    rules = await rules_draft(state, context)
    changed = {
        code["node"]: code["sql"] for code in state.get("code", []) if code["method"] != "rules"
    }
    base = unwritten_draft(state, rules)
    if base is rules and not changed:
        return rules

    key = json.dumps([state["plan"], changed], sort_keys=True)
    drafts = context.memory.drafts
    if key not in drafts:
        drafts[key] = await asyncio.to_thread(with_user_sql, base, changed)

    return drafts[key]


def unwritten_draft(state: EtlState, rules: Draft) -> Draft:
    """Return the rules' draft with what is planned beside it, which has no SQL yet."""
    plan = ArchitecturePlan.model_validate(state["plan"])
    step = further_step(state)
    if step is not None and plan.target != rules.plan.target:
        return with_further_model(rules, step)
    if state.get("plan_method") == "llm":
        return planned_draft(plan, rules)

    return rules


def further_step(state: EtlState) -> FurtherStep | None:
    """Return the step behind the intent that a model has to write, if there is one."""
    step = state.get("analysis", {}).get("further")
    if step is None:
        return None

    return FurtherStep.model_validate(step)


def code_of(draft: Draft) -> list[Json]:
    """Return the SQL of each model, as the rules have written it."""
    code = []
    for model in draft.models:
        sql = sql_of(model)
        code.append({"node": model.name, "sql": sql, "method": "rules", "attempts": 1})

    return code


def sql_of(model: DraftModel) -> str:
    """Return a model's SQL with the plain names of what it reads."""
    return render_select(model.select, _name_in_plan, jinja=False)


def _name_in_plan(table: exp.Table) -> str:
    """Return a model's or a table's own name, as the plan's nodes give their inputs."""
    name = quoted(table.name)
    return f"{quoted(table.db)}.{name}" if table.db else name


def _by_rules(bound: BoundIntent, lang: Lang) -> Draft:
    return with_notes(make_draft(bound), bound, lang)
