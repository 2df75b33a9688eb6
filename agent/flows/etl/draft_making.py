"""Binds and drafts what a request wants.

The state holds JSON alone, so each leg does it again; within a leg the context remembers it.
"""

import asyncio
import json
from collections.abc import Mapping
from datetime import date

from sqlglot import exp

from agent.flows.etl.context import EtlContext
from agent.flows.etl.state import EtlState, Json
from common.errors import Conflict
from common.text import Text
from etl.binding.intent_binding import BindingOptions, BindingResult, bind_intent
from etl.clauses.request_analysis import analysed_sentence
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft
from etl.planning.drafting import make_draft
from etl.planning.user_sql import with_user_sql
from etl.rendering.select_rendering import render_select
from etl.schemas.requirement import UserIntent
from postgres.identifiers import quoted

_CHANGED = Text(
    "数据源的表结构在处理过程中发生了变化，请重新提交请求。",
    "The tables of the datasource changed meanwhile; send the request again.",
)


async def binding_of(state: EtlState, context: EtlContext) -> BindingResult:
    """Return the request as bound to what the caller may see, or what is open."""
    answers = answers_of(state)
    key = json.dumps(answers, sort_keys=True)
    memory = context.memory
    if key not in memory.bindings:
        memory.bindings[key] = await _bound(state, answers, context)
    return memory.bindings[key]


def answers_of(state: EtlState) -> dict[str, str]:
    """Return what decided what was open, by ids: examples, and before them the user."""
    decided = [*state.get("decided", []), *state.get("clarifications", [])]
    return {one["id"]: one["answer"] for one in decided}


async def _bound(state: EtlState, answers: Mapping[str, str], context: EtlContext) -> BindingResult:
    catalog = await context.database.catalog()
    given = state["options"]
    options = BindingOptions(
        time_zone=given.get("time_zone") or context.time_zone,
        today=date.fromisoformat(given["today"]),
        materialization=given.get("materialization"),
        lang=state["lang"],
    )
    if state["given_intent"] is None:
        return await analysed_sentence(state["question"], catalog, answers, options)
    intent = UserIntent.model_validate(state["given_intent"])
    return await asyncio.to_thread(bind_intent, intent, catalog, answers, options)


async def bound_intent(state: EtlState, context: EtlContext) -> BoundIntent:
    """Return the intent of a request that was ready to be planned.

    Raises:
        Conflict: the catalogue is another one now, and the intent does not fit it any more.
    """
    result = await binding_of(state, context)
    if result.bound is None:
        raise Conflict(_CHANGED)
    return result.bound


async def draft_of(state: EtlState, context: EtlContext) -> Draft:
    """Return the draft with what its user has changed of it.

    Raises:
        Conflict: as `bound_intent`.
        StatementRejected: what the user changed can't be taken over.
    """
    bound = await bound_intent(state, context)
    changed = {
        code["node"]: code["sql"] for code in state.get("code", []) if code["method"] == "user"
    }
    key = json.dumps(changed, sort_keys=True)
    drafts = context.memory.drafts
    if key not in drafts:
        drafts[key] = await asyncio.to_thread(_drafted, bound, changed)
    return drafts[key]


def code_of(draft: Draft) -> list[Json]:
    """Return the SQL of each model, as the rules have written it."""
    code = []
    for model in draft.models:
        sql = render_select(model.select, _plain_name, jinja=False)
        code.append({"node": model.name, "sql": sql, "method": "rules", "attempts": 1})
    return code


def _plain_name(table: exp.Table) -> str:
    """Return a model's or a table's own name, as the plan's nodes give their inputs."""
    name = quoted(table.name)
    return f"{quoted(table.db)}.{name}" if table.db else name


def _drafted(bound: BoundIntent, changed: Mapping[str, str]) -> Draft:
    return with_user_sql(make_draft(bound), changed)
