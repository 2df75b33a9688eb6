"""All tools there are, and who may use them."""

from dataclasses import dataclass
from typing import Any

from agent.tools.run_sql import run_sql_tool
from agent.tools.schema_tools import SchemaReader, schema_tools
from agent.tools.tool import Tool


@dataclass(frozen=True)
class ToolServices:
    """What the tools are made from.

    Attributes:
        schema: describes catalogues.
    """

    schema: SchemaReader


def build_tools(services: ToolServices) -> tuple[Tool[Any], ...]:
    """The tools of this service."""
    return (
        run_sql_tool(samples=services.schema.samples),
        *schema_tools(services.schema),
    )
