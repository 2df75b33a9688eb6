"""`get_table_lineage`: what a table or column goes into, and what it is made of."""

import asyncio

from pydantic import Field

from agent.learnt_drafts import DraftsOf
from agent.tools.asset_tools import MOST_ENTRIES, ViewsOf
from agent.tools.entry_lines import entry_lines
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult
from common.errors import NotFound
from common.text import Text
from common.values import Catalog
from etl.lineage.draft_lineage import draft_lineage, drafted_place
from etl.lineage.lineage_graph import Direction, part_of
from etl.lineage.view_lineage import qualified, view_lineage
from knowledge.language.safe_text import one_line
from knowledge.tables.schema_service import table_named

_DEEPEST = 10
_BY_DEFAULT = 3
_MOST_NAME = 80
_NO_COLUMN = Text("{} 没有字段 {}。", "{} has no column named {}.")


class TableLineageArguments(Arguments):
    """The arguments of `get_table_lineage`."""

    table: str = Field(min_length=1, description="Name of the table.")
    column: str | None = Field(default=None, description="Only by this column; null: by any.")
    direction: Direction | None = Field(default=None, description="null: both.")
    depth: int | None = Field(
        default=None,
        ge=1,
        le=_DEEPEST,
        description=f"Most steps, 1 to {_DEEPEST}; null: {_BY_DEFAULT}.",
    )


def lineage_tool(views_of: ViewsOf, drafts_of: DraftsOf) -> Tool[TableLineageArguments]:
    """Return the tool that follows tables and columns through views and kept drafts."""

    async def run(context: ToolContext, arguments: TableLineageArguments) -> ToolResult:
        question = context.question
        catalog = await context.database.catalog()
        drafts = await drafts_of(question.actor, question.database).trusted()
        drafted = await asyncio.to_thread(draft_lineage, drafts, catalog)
        column = arguments.column
        place = drafted_place(arguments.table, column, drafted)
        if place is None:
            place = _qualified_table(arguments.table, column, catalog)

        views = await views_of(question)
        # What transforms and the rights of this very call leave of the catalogue decides.
        seen = [view.among(catalog) for view in views if view.view in catalog.by_key]
        edges = await asyncio.to_thread(view_lineage, seen, catalog)
        part = part_of(
            [*edges, *drafted],
            place,
            column=column,
            direction=arguments.direction or "both",
            depth=arguments.depth or _BY_DEFAULT,
        )
        entries = [edge.model_dump(mode="json") for edge in part.edges]
        shown = entry_lines(
            entries[:MOST_ENTRIES], "No view or draft that may be read has to do with it."
        )
        left_out = len(entries) - MOST_ENTRIES
        if left_out > 0:
            shown = f"{shown}\n({left_out} further edges: ask for a column or a smaller depth.)"

        count = len(entries)
        return ToolResult(shown, Text(f"{count} 条血缘关系", f"{count} edges of lineage"))

    return Tool(
        "get_table_lineage",
        Text("查询血缘", "Table lineage"),
        "Gives which views and drafts are made of a table or column, and what they are made of.",
        TableLineageArguments,
        run,
        frozenset({EVERYONE}),
    )


def _qualified_table(name: str, column: str | None, catalog: Catalog) -> str:
    """Return the full name of a table that has the column.

    Raises:
        NotFound: there is none for the caller.
        InvalidRequest: several are called so.
    """
    table = table_named(name, catalog)
    if column is not None and table.column(column) is None:
        column_line = one_line(column, _MOST_NAME)
        zh = _NO_COLUMN.zh.format(table.name, column_line)
        raise NotFound(Text(zh, _NO_COLUMN.en.format(table.name, column_line)))

    return qualified(table)
