"""All tools there are, and who may use them."""

from dataclasses import dataclass, field
from typing import Any

from agent.analysis.analysing import Analyst
from agent.kept_drafts import DraftsOf
from agent.tools.asset_tools import (
    ViewsOf,
    join_hints_tool,
    quality_rules_tool,
    search_assets_tool,
)
from agent.tools.chart_tool import chart_tool
from agent.tools.export_tool import export_tool
from agent.tools.lineage_tool import lineage_tool
from agent.tools.memory_tools import Memory, save_memory_tool, search_memory_tool
from agent.tools.reference_tool import reference_tool
from agent.tools.run_sql import run_sql_tool
from agent.tools.schema_tools import SchemaReader, schema_tools
from agent.tools.search_values import search_values_tool
from agent.tools.statistics_tool import statistics_tool
from agent.tools.tool import Tool
from agent.tools.tool_groups import GroupsOf, regrouped
from knowledge.values.value_search import ValueSearch


@dataclass(frozen=True)
class ToolServices:
    """The services that the tools are made from.

    Attributes:
        schema: describes catalogues.
        values: finds stored values.
        memory: what has been learnt.
        views_of: gives the views of a question's database.
        drafts_of: gives the drafts of transformations over a database.
        analyst: analyses rows.
        export_max_rows: most rows of one file.
        groups: who may use which tool, where the operator says it; tools that are not in it are for
            everyone.
    """

    schema: SchemaReader
    values: ValueSearch
    memory: Memory
    views_of: ViewsOf
    drafts_of: DraftsOf
    analyst: Analyst
    export_max_rows: int
    groups: GroupsOf = field(default_factory=dict)


KNOWLEDGE_TOOLS = (
    "search_assets",
    "get_table_lineage",
    "kg_join_hints",
    "kg_quality_rules",
    "search_reference_sql",
)
"""The tools about tables as transformations see them."""

TOOL_NAMES = (
    "run_sql",
    "search_schema",
    "describe_table",
    "search_values",
    "search_memory",
    "save_memory",
    "chart",
    "statistics",
    "export",
    *KNOWLEDGE_TOOLS,
)
"""All tools there may be; settings switch some of them off."""


def build_tools(services: ToolServices) -> tuple[Tool[Any], ...]:
    """Return the tools of this service.

    Raises:
        InvalidToolGroups: the operator names a tool that there is not.
    """
    tools: tuple[Tool[Any], ...] = (
        run_sql_tool(samples=services.schema.samples),
        *schema_tools(services.schema),
        *(
            [search_values_tool(services.values, services.schema)]
            if services.schema.samples
            else []
        ),
        search_memory_tool(services.memory),
        *([save_memory_tool(services.memory)] if services.memory.learns else []),
        chart_tool(),
        statistics_tool(services.analyst),
        export_tool(max_rows=services.export_max_rows),
        search_assets_tool(services.schema, services.drafts_of),
        lineage_tool(services.views_of, services.drafts_of),
        join_hints_tool(services.views_of),
        quality_rules_tool(samples=services.schema.samples),
        reference_tool(services.memory, services.drafts_of),
    )
    return regrouped(tools, services.groups, TOOL_NAMES)
