"""`run_sql`: one query, run as the one who asks."""

from collections.abc import Iterator

from pydantic import Field

from agent.answers.shown_result import shown_result
from agent.thinking.llm.repair_hints import error_text
from agent.thinking.llm.rows_text import row_count_phrases, row_line, rows_text
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolFindings, ToolResult
from common.errors import InvalidSql
from common.ports import Database
from common.text import Text
from common.values import Catalog, QueryResult
from knowledge.language.safe_text import identifier, one_line
from knowledge.language.spelling import alike
from knowledge.tables.name_suggestions import with_suggestions
from knowledge.values.filter_correction import looks_empty, missing_comparisons
from knowledge.values.personal_data import open_values

NAME = "run_sql"

_MOST_ROWS = 30  # that the model is shown; the user sees all that were kept
_MOST_CHARS = 6_000  # of these rows
_MOST_UNFOUNDED = 5
_MOST_SIMILAR = 3
_MOST_VALUE_CHARS = 100
_ROWS = Text("查询到 {} 行", "{} rows")
_ONE_ROW = Text("查询到 1 行", "1 row")
_MORE_ROWS = Text("查询到超过 {} 行，已截断", "More than {} rows; only these were kept")


class RunSql(Arguments):
    """The arguments of `run_sql`."""

    sql: str = Field(description="One PostgreSQL SELECT statement.")


def run_sql_tool(*, samples: bool) -> Tool[RunSql]:
    """Return the tool by which a model runs a statement and sees its rows.

    Args:
        samples: whether a model may be told stored values that it did not select.
    """

    async def run(context: ToolContext, arguments: RunSql) -> ToolResult:
        return await sql_result(NAME, arguments.sql, context, samples=samples)

    return Tool(
        NAME,
        Text("执行查询", "Run SQL"),
        "Runs one read-only SQL query on the connected PostgreSQL database and gives the first "
        "rows. Aggregate, filter "
        "and sort in SQL instead of fetching many rows. Look at the schema first: never guess "
        "names of tables, columns "
        "or stored values.",
        RunSql,
        run,
        frozenset({EVERYONE}),
    )


async def sql_result(
    tool: str, sql: str, context: ToolContext, *, samples: bool, is_planned: bool = False
) -> ToolResult:
    """Return the rows of `sql` as the call's result, or what is wrong with it.

    Args:
        tool: name of the tool that runs it.
        samples: as for `run_sql_tool`.
        is_planned: whether it was planned for this question before, within the limits on plans.

    Raises:
        StatementRejected: the guard or a limit refuses it; `InvalidSql` is a result.
        QueryTimeout, DatabaseUnavailable: it could not be run.
    """
    database = context.database
    try:
        if not is_planned:
            await database.explain(sql)  # for the limits on plans

        result = await database.run(sql)
    except InvalidSql as error:
        return await not_valid(error, sql, database)

    catalog = await database.catalog()
    shown = shown_result(sql, result, catalog, context.question.answer_lang)
    findings = ToolFindings(context.call_id, tool, sql, result, shown)
    text = "\n".join(
        [
            result_text(result),
            *(_why_empty(sql, catalog, samples=samples) if looks_empty(result) else ()),
        ]
    )
    return ToolResult(text, _summary(result), found=findings)


async def not_valid(error: InvalidSql, sql: str, database: Database) -> ToolResult:
    """Return the result of a call whose SQL PostgreSQL refused: what, where, and which names may
    have been meant.
    """
    catalog = await database.catalog()
    text = f"{error.error_type}: {error_text(error, sql, catalog)}"
    return ToolResult(text, with_suggestions(error, sql, catalog).text, error.error_type)


def result_text(result: QueryResult) -> str:
    """Return the rows as a model is shown them: how many, of which types, and the first of them."""
    rows, shown = rows_text(result, most_rows=_MOST_ROWS, most_chars=_MOST_CHARS)
    count, listed = row_count_phrases(result, shown)
    lines = [
        f"{count}. {listed}" if result.rows else "0 rows.",
        f"types: {row_line(result.column_types)[:_MOST_CHARS]}",
        f"columns and rows:\n{rows}",
    ]
    if result.cut_columns:
        lines.insert(
            1, f"Cut, because too long: cells of {row_line(result.cut_columns)[:_MOST_CHARS]}"
        )

    return "\n".join(lines)


def _summary(result: QueryResult) -> Text:
    form = _ONE_ROW if result.row_count == 1 else _ROWS
    if result.is_limited:
        form = _MORE_ROWS

    return Text(form.zh.format(result.row_count), form.en.format(result.row_count))


def _why_empty(sql: str, catalog: Catalog, *, samples: bool) -> Iterator[str]:
    for comparison in list(missing_comparisons(sql, catalog))[:_MOST_UNFOUNDED]:
        table, column = comparison.table, comparison.column
        value = one_line(comparison.text, _MOST_VALUE_CHARS)
        line = (
            f"No row has {row_line([value])} in {identifier(table.name)}.{identifier(column.name)}."
        )
        near = alike(comparison.text, open_values(table, column))[:_MOST_SIMILAR] if samples else ()
        yield f"{line} Similar stored values: {row_line(near)}" if near else line
