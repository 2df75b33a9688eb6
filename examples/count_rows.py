"""A tool of one's own: how many rows a table has.

    OWN_TOOLS=examples.count_rows:count_rows
    TOOL_GROUPS=count_rows: analysts

It asks by the caller's rights, passes guard, row rules and audit log as any statement does.
"""

from pydantic import Field

from agent.extensions.points import Provided
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult
from common.text import Text
from knowledge.tables.schema_service import table_named
from postgres.identifiers import quoted


class CountedTable(Arguments):
    """What `count_rows` takes."""

    table: str = Field(description="Name of the table.")


async def _counted(context: ToolContext, arguments: CountedTable) -> ToolResult:
    table = table_named(arguments.table, await context.database.catalog())
    result = await context.database.run(
        f"SELECT count(*) FROM {quoted(table.schema)}.{quoted(table.name)}"
    )
    count = result.rows[0][0]
    return ToolResult(f"{count} rows", Text(f"{count} 行", f"{count} rows"))


def count_rows(_provided: Provided) -> Tool[CountedTable]:
    """Return the tool; `OWN_TOOLS` names this function."""
    return Tool(
        "count_rows",
        Text("统计行数", "Count rows"),
        "Gives the number of rows of one table.",
        CountedTable,
        _counted,
        frozenset({EVERYONE}),
    )
