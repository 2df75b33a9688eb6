"""All tools there are, and who may use them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.analysis.analysing import Analyst
from agent.extensions.loading import ExtensionError, extensions_of
from agent.extensions.points import Provided
from agent.learnt_drafts import DraftsOf
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
from agent.tools.registry import ArgumentTransform
from agent.tools.run_sql import run_sql_tool
from agent.tools.schema_tools import SchemaReader, schema_tools
from agent.tools.search_values import search_values_tool
from agent.tools.statistics_tool import statistics_tool
from agent.tools.tool import Tool
from agent.tools.tool_groups import GroupsOf, regrouped
from knowledge.values.value_search import ValueSearch

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


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
        own: the operator's own tools.
    """

    schema: SchemaReader
    values: ValueSearch
    memory: Memory
    views_of: ViewsOf
    drafts_of: DraftsOf
    analyst: Analyst
    export_max_rows: int
    groups: GroupsOf = field(default_factory=dict)
    own: Sequence[Tool[Any]] = ()


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

RESERVED_NAMES = (*TOOL_NAMES, "get_schema", "generate_sql", "execute_current_sql")
"""Names that no tool of an operator may have: flows have tools of these names too."""


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
        *services.own,
    )
    tool_names = (*TOOL_NAMES, *(tool.name for tool in services.own))
    return regrouped(tools, services.groups, tool_names)


def argument_transforms(provided: Provided) -> tuple[ArgumentTransform, ...]:
    """Return the transforms that `ARGUMENT_TRANSFORMS` names.

    Raises:
        ExtensionError: one can't be used.
    """
    addresses = provided.settings.argument_transforms
    return extensions_of("ARGUMENT_TRANSFORMS", addresses, ArgumentTransform, provided)


def own_tools(provided: Provided) -> tuple[Tool[Any], ...]:
    """Return the tools that `OWN_TOOLS` names.

    Raises:
        ExtensionError: one can't be used, or has another's name.
    """
    tools: tuple[Tool[Any], ...] = extensions_of(
        "OWN_TOOLS", provided.settings.own_tools, Tool, provided
    )
    taken = set(RESERVED_NAMES)
    for tool in tools:
        if not _TOOL_NAME.fullmatch(tool.name):
            raise ExtensionError(
                f"OWN_TOOLS: {tool.name!r} is no tool's name: 1 to 64 letters, digits, _ or -."
            )
        if tool.name in taken:
            raise ExtensionError(f"OWN_TOOLS: there is a tool named {tool.name} already.")

        taken.add(tool.name)

    return tools
