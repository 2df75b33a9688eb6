"""`export`: a link to the rows of an earlier call as a file, which is made when somebody fetches
it.
"""

from typing import Literal
from urllib.parse import urlencode

from pydantic import Field

from agent.question import Question
from agent.tools.found_rows import CALL_ID, rows_of
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult
from common.text import Text

ExportFormat = Literal["csv", "json", "xlsx"]


class ExportRows(Arguments):
    """The arguments of `export`."""

    call_id: str = Field(description=CALL_ID)
    format: ExportFormat


def export_tool(*, max_rows: int) -> Tool[ExportRows]:
    """Return the tool that offers a query's rows as a file.

    Args:
        max_rows: most rows of one file.
    """

    async def run(context: ToolContext, arguments: ExportRows) -> ToolResult:
        findings = rows_of(arguments.call_id, context)
        url = _link(findings.call_id, arguments.format, context.question)
        offer = {"call_id": findings.call_id, "format": arguments.format, "url": url}
        text = (
            f"The answer shows the user a link to the file: {url}. It can be fetched once the "
            f"question is answered, "
            f"and holds up to {max_rows} rows as they are then."
        )
        name = arguments.format
        return ToolResult(
            text, Text(f"{name} 文件的链接", f"Link to the {name} file"), shown={"exports": [offer]}
        )

    return Tool(
        "export",
        Text("导出结果", "Export rows"),
        "Offers the user all rows of an earlier call as a file. Use it when the user asks for a "
        "file or for more rows "
        "than are shown.",
        ExportRows,
        run,
        frozenset({EVERYONE}),
    )


def _link(call_id: str, kind: ExportFormat, question: Question) -> str:
    """Return where the file is fetched; without API keys the address says whose run it is."""
    parameters = {"format": kind, "call_id": call_id}
    if question.actor.user_id:
        parameters["user_id"] = question.actor.user_id

    return f"/api/v0/runs/{question.run_id}/export?{urlencode(parameters)}"
