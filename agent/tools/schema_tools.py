"""`search_schema` and `describe_table`: what the connected database holds, as the one who asks may
see it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from pydantic import Field

from agent.question import Question
from agent.thinking.llm.rows_text import row_line
from agent.thinking.llm.schema_text import MAX_VALUES, SchemaText, within
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult
from common.learning import Example
from common.meanings import TableKey
from common.text import Text
from common.values import Catalog, Column, Table
from knowledge.index import CatalogIndex, IndexPart
from knowledge.language.safe_text import identifier, one_line
from knowledge.tables.schema_search import (
    RANKING,
    RANKING_WITHOUT_VALUES,
    SchemaSearch,
    TableMatch,
)
from knowledge.tables.schema_service import table_named
from knowledge.tables.table_vectors import Nearest
from knowledge.values.personal_data import open_values
from llm.tokens import estimated_tokens

_FOUND_BY_DEFAULT = 8
_MOST_FOUND = 30
_BUDGET = 4_000  # tokens of one result
_MOST_NAMED = 40  # tables that are only named
_MOST_WORDS = 1_000  # characters that are searched for
_MOST_VALUES = 40  # of one column, below the table's description
_MOST_VALUE_CHARS = 40
_MOST_REFERENCES = 30  # of other tables to this one


class SearchSchema(Arguments):
    """The arguments of `search_schema`."""

    words: str = Field(min_length=1, description="What to look for, in the words of the question.")
    limit: int | None = Field(
        default=None,
        ge=1,
        le=_MOST_FOUND,
        description=f"Most tables, 1 to {_MOST_FOUND}; null: {_FOUND_BY_DEFAULT}.",
    )


class DescribeTable(Arguments):
    """The arguments of `describe_table`."""

    table: str = Field(min_length=1, description="Name of the table, with or without its schema.")


QuestionExamples = Callable[[str, Question], Awaitable[Sequence[Example]]]
"""Gives what answered questions like these words, as far as the question's actor may see it."""


class SchemaReader:
    """Describes catalogues; what it works out of one is kept as long as the catalogue is.

    Args:
        samples: whether stored values are shown and searched, those of personal columns never.
        nearest: the tables that mean what words mean, as far as that is known; None: words alone
            rank tables.
        examples: gives what answered similar questions.
    """

    def __init__(
        self,
        *,
        samples: bool,
        nearest: Nearest | None = None,
        examples: QuestionExamples | None = None,
    ) -> None:
        self.samples = samples
        self._nearest = nearest
        self._examples = examples
        self._ranking = RANKING if samples else RANKING_WITHOUT_VALUES
        self._described = IndexPart(self._describe)

    def _describe(self, index: CatalogIndex) -> SchemaText:
        schema = SchemaText(index.catalog, samples=self.samples)
        schema.prepare(_BUDGET)
        return schema

    async def described(self, catalog: Catalog) -> SchemaText:
        """Return the description of the catalogue."""
        return await self._described.ready(catalog)

    async def found(
        self, words: str, most: int, catalog: Catalog, question: Question | None = None
    ) -> list[Table]:
        """Return the tables that have to do with the words, the most relevant first.

        Args:
            question: examples that its actor may see count too; None: none do.
        """
        search = SchemaSearch(await self._ranking.ready(catalog))
        near, examples = await self._alike(words, catalog, question)
        tables = await asyncio.to_thread(search.tables, words[:_MOST_WORDS], most, near, examples)
        return [catalog.by_key[table.key] for table in tables]

    async def matches(
        self, words: str, most: int, catalog: Catalog, question: Question
    ) -> list[TableMatch]:
        """Find the same tables with the reasons, which takes longer."""
        search = SchemaSearch(await self._ranking.ready(catalog))
        near, examples = await self._alike(words, catalog, question)
        return await asyncio.to_thread(search.matches, words[:_MOST_WORDS], most, near, examples)

    async def _alike(
        self, words: str, catalog: Catalog, question: Question | None
    ) -> tuple[Sequence[TableKey], Sequence[Example]]:
        """Find the tables that mean what the words mean, and examples of such questions."""
        near: Sequence[TableKey] = ()
        if self._nearest is not None:
            near = await self._nearest(catalog, words)

        examples: Sequence[Example] = ()
        if self._examples is not None and question is not None:
            examples = await self._examples(words, question)

        return near, examples


def schema_tools(reader: SchemaReader) -> tuple[Tool[SearchSchema], Tool[DescribeTable]]:
    """Return `search_schema` and `describe_table`."""

    async def search(context: ToolContext, arguments: SearchSchema) -> ToolResult:
        catalog = await context.database.catalog()
        tables = await reader.found(
            arguments.words, arguments.limit or _FOUND_BY_DEFAULT, catalog, context.question
        )
        schema = await reader.described(catalog)
        text = await asyncio.to_thread(_search_result_text, schema, tables, arguments.words)
        count = len(tables)
        return ToolResult(text, Text(f"找到 {count} 个相关的表", f"{count} tables found"))

    async def describe(context: ToolContext, arguments: DescribeTable) -> ToolResult:
        catalog = await context.database.catalog()
        table = table_named(arguments.table, catalog)
        schema = await reader.described(catalog)
        text = await asyncio.to_thread(_told_of, table, schema, samples=reader.samples)
        return ToolResult(text, Text(f"表 {table.name} 的结构", f"Columns of {table.name}"))

    everyone = frozenset({EVERYONE})
    return (
        Tool(
            "search_schema",
            Text("查找数据表", "Search the schema"),
            "Finds tables by what a question is about, and gives their columns, types, comments, "
            "keys and known "
            "values. Use it before writing SQL.",
            SearchSchema,
            search,
            everyone,
        ),
        Tool(
            "describe_table",
            Text("查看表结构", "Describe a table"),
            "Gives all columns of one table with types, comments, keys, known values and which "
            "tables refer to it. Use "
            "it when search_schema left out columns, or a name is already known.",
            DescribeTable,
            describe,
            everyone,
        ),
    )


def _search_result_text(schema: SchemaText, tables: Sequence[Table], words: str) -> str:
    total = len(schema.catalog.tables)
    if not total:
        return "No table may be read."
    if not tables:
        return (
            f"No table has to do with these words. The tables:\n{schema.overview(words, _BUDGET)}"
        )

    text, left_out = schema.some(tables, words, _BUDGET)
    lines = [f"{len(tables)} of {total} tables, the most relevant first:", text]
    if left_out:
        named = ", ".join(map(schema.name, left_out[:_MOST_NAMED]))
        lines.append(f"Found too, but too large to show here; call describe_table for: {named}")

    return "\n".join(filter(None, lines))


# ------------------------------------------------------------------------------
# one table


def _told_of(table: Table, schema: SchemaText, *, samples: bool) -> str:
    described = schema.described(table)
    lines = list(within(_BUDGET - estimated_tokens(described.head), described.columns))
    further = table.columns[len(lines) :]
    values = _many_values(table) if samples else ()
    below = list(within(_BUDGET, (*described.keys, *_referring(table, schema), *values)))
    return "\n".join([described.head, *lines, *_named(further), *below])


def _named(columns: Sequence[Column]) -> Iterator[str]:
    """Yield the columns for whose lines there is no room, with their types alone."""
    if columns:
        named = list(
            within(_BUDGET, (f"{identifier(column.name)} {column.type}" for column in columns))
        )
        more = f", and {len(columns) - len(named)} more" if len(named) < len(columns) else ""
        yield f"  -- further columns: {', '.join(named)}{more}"


def _referring(table: Table, schema: SchemaText) -> Iterator[str]:
    references = [
        f"{schema.name(other)} ({', '.join(map(identifier, key.columns))})"
        for other in schema.catalog.tables
        for key in other.foreign_keys
        if key.target == table.key
    ]
    if references:
        more = (
            f", and {len(references) - _MOST_REFERENCES} more"
            if len(references) > _MOST_REFERENCES
            else ""
        )
        yield f"Referred to by: {', '.join(references[:_MOST_REFERENCES])}{more}"


def _many_values(table: Table) -> Iterator[str]:
    """Yield the known values of columns that have more than a line of the description shows."""
    for column in table.columns:
        if (
            column.is_complete
            and len(column.values) > MAX_VALUES
            and not column.allowed
            and not column.period
        ):
            values = [
                value
                for value in open_values(table, column)
                if one_line(value, _MOST_VALUE_CHARS) == value
            ]
            more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
            if values:
                yield (
                    f"Values of {identifier(column.name)}: {row_line(values[:_MOST_VALUES])}{more}"
                )
