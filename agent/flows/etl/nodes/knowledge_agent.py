"""Collects what is known of the tables that the request is about."""

from typing import cast

from agent.flows.etl.context import EtlContext, EtlRuntime
from agent.flows.etl.draft_experience import references_of
from agent.flows.etl.draft_making import binding_of
from agent.flows.etl.etl_texts import NOT_REMEMBERED
from agent.flows.etl.roles.knowledge_role import retrieved
from agent.flows.etl.state import EtlState, EtlUpdate, Json
from common.errors import StoreUnavailable
from common.values import Catalog, Table
from etl.assets.known_tables import known_tables
from etl.schemas.requirement import UserIntent

_AGENT = "etl"


async def knowledge_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the tables that the request names, with their joins and rules, and similar drafts."""
    context = runtime.context
    catalog = await context.database.catalog()
    earlier, warnings = await _earlier(state, context)
    state = cast(EtlState, {**state, "earlier": earlier})
    intent = (await binding_of(state, context)).analysis.intent
    tables, gaps = _named(intent, catalog) if intent is not None else ([], [])
    knowledge = known_tables(catalog, tables, gaps)
    added, missing = await retrieved(state, context, catalog, knowledge)
    if added or missing:
        together = list({table.key: table for table in (*tables, *added)}.values())
        knowledge = known_tables(catalog, together, list(dict.fromkeys((*gaps, *missing))))

    learnt = await context.experience.recalled(state["question"], catalog)
    knowledge = knowledge.model_copy(update={"references": references_of(learnt)})
    update: EtlUpdate = {
        "earlier": earlier,
        "knowledge": knowledge.model_dump(mode="json"),
        "warnings": warnings,
        "execution_path": ["knowledge_agent"],
    }
    return context.with_model_usage(update, state)


async def _earlier(state: EtlState, context: EtlContext) -> tuple[Json, list[str]]:
    """Return the intent that a follow-up changes, and what was chosen before; and warnings."""
    if state["given_intent"] is not None:
        return {}, []

    try:
        turns = await context.recall()
    except StoreUnavailable:
        return {}, [NOT_REMEMBERED.to(state["lang"])]

    earlier: Json = {}
    decisions: dict[tuple[str, str], Json] = {}
    for turn in turns:
        understood = turn.understood or {}
        if understood.get("agent") != _AGENT:
            continue

        earlier = {"intent": understood["intent"]}
        for decision in understood.get("decisions", ()):
            decisions[decision["kind"], decision["topic"]] = decision

    return {**earlier, "decisions": list(decisions.values())}, []


def _named(intent: UserIntent, catalog: Catalog) -> tuple[list[Table], list[str]]:
    """Return the tables of the intent's sources, and the names of those that are not there."""
    tables: dict[tuple[str, str], Table] = {}
    gaps: list[str] = []
    for source in intent.data_sources:
        schema, _, name = source.table_name.rpartition(".")
        schema_name = source.schema_name or schema or None
        tables_of_name = catalog.by_name.get(name, ())
        fitting = [table for table in tables_of_name if schema_name in (None, table.schema)]
        tables |= {table.key: table for table in fitting}
        if not fitting:
            gaps.append(source.table_name)

    return list(tables.values()), gaps
