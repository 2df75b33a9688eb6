"""`chart`: a chart of rows that an earlier call found."""

from pydantic import Field

from agent.answers.requested_chart import ChartRequest, ChartType, requested_chart_of
from agent.tools.found_rows import CALL_ID, rows_of
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolFindings, ToolResult
from common.text import Text
from knowledge.results.result_columns import result_columns


class DrawChart(Arguments):
    """The arguments of `chart`."""

    call_id: str = Field(description=CALL_ID)
    type: ChartType | None = Field(default=None, description="null: what fits best.")
    x: str | None = Field(
        default=None, description="Column of groups or times; null: what fits best."
    )
    y: str | None = Field(default=None, description="Column of figures; null: what fits best.")


def chart_tool() -> Tool[DrawChart]:
    """Return the tool. It gives the charted rows again: an answer that shows the latest rows shows
    this chart of them.
    """

    async def run(context: ToolContext, arguments: DrawChart) -> ToolResult:
        charted = rows_of(arguments.call_id, context)
        catalog, lang = await context.database.catalog(), context.question.answer_lang
        columns = result_columns(charted.sql, charted.result, catalog, lang)
        chart = requested_chart_of(
            columns, charted.result, lang, ChartRequest(arguments.type, arguments.x, arguments.y)
        )
        findings = ToolFindings(
            context.call_id, "chart", charted.sql, charted.result, {**charted.shown, "chart": chart}
        )
        drawn = ", ".join(
            f"{key}={chart[key]}" for key in ("x", "y", "series") if chart[key] is not None
        )
        text = (
            f"The user sees a {chart['type']} chart ({drawn}) of the rows of {arguments.call_id}."
        )
        return ToolResult(
            text, Text(f"图表：{chart['title']}", f"Chart: {chart['title']}"), found=findings
        )

    return Tool(
        "chart",
        Text("绘制图表", "Draw a chart"),
        "Shows the user a chart of the rows that an earlier call found. Rows get a fitting chart "
        "by themselves: use it "
        "only to show them differently.",
        DrawChart,
        run,
        frozenset({EVERYONE}),
    )
