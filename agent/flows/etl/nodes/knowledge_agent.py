"""Collects what is known of the tables that the request is about."""

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_experience import references_of
from agent.flows.etl.draft_making import binding_of
from agent.flows.etl.known_tables import known_tables
from agent.flows.etl.state import EtlState, EtlUpdate
from common.values import Catalog, Table
from etl.schemas.requirement import UserIntent


async def knowledge_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the tables that the request names, with their joins and rules, and similar drafts."""
    context = runtime.context
    catalog = await context.database.catalog()
    intent = (await binding_of(state, context)).analysis.intent
    tables, gaps = _named(intent, catalog) if intent is not None else ([], [])
    known = known_tables(catalog, tables, gaps)
    learnt = await context.experience.recalled(state["question"], catalog)
    known = known.model_copy(update={"references": references_of(learnt)})
    return {"knowledge": known.model_dump(mode="json"), "execution_path": ["knowledge_agent"]}


def _named(intent: UserIntent, catalog: Catalog) -> tuple[list[Table], list[str]]:
    """Return the tables of the intent's sources, and the names of those that are not there."""
    tables: dict[tuple[str, str], Table] = {}
    gaps: list[str] = []
    for source in intent.data_sources:
        schema, _, name = source.table_name.rpartition(".")
        wanted = source.schema_name or schema or None
        found = catalog.by_name.get(name, ())
        fitting = [table for table in found if wanted in (None, table.schema)]
        tables |= {table.key: table for table in fitting}
        if not fitting:
            gaps.append(source.table_name)
    return list(tables.values()), gaps
