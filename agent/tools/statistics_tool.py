"""`statistics`: figures about all rows of an earlier call's statement, worked out by SQL, each with
its method.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import simplejson
from pydantic import Field

from agent.analysis.analysing import AnalysisRequest, Analyst
from agent.analysis.analysis_limits import MOST_HORIZON
from agent.tools.found_rows import CALL_ID, rows_of
from agent.tools.run_sql import not_valid
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult
from common.errors import InvalidSql
from common.text import Text
from common.values import AnalysisKind
from knowledge.language.safe_text import one_line

_MOST_CHARS = 6_000  # of one result
_MOST_LINE = 1_500


class Analyse(Arguments):
    """The arguments of `statistics`."""

    call_id: str = Field(description=CALL_ID)
    what: AnalysisKind = Field(
        description="describe: totals, mean, quartiles; shares: by group; change: over time, "
        "and where it comes "
        "from; outliers; forecast: the next periods."
    )
    measure: str | None = Field(
        default=None, description="Column of figures; null: the first ones."
    )
    by: str | None = Field(default=None, description="Column of groups or times; null: the first.")
    horizon: int | None = Field(
        default=None,
        ge=1,
        le=MOST_HORIZON,
        description=f"Periods to forecast, 1 to {MOST_HORIZON}; null: a few.",
    )


def statistics_tool(analyst: Analyst) -> Tool[Analyse]:
    """Build the tool, which analyses all rows of an earlier call."""

    async def run(context: ToolContext, arguments: Analyse) -> ToolResult:
        sql = rows_of(arguments.call_id, context).sql
        lang = context.question.answer_lang
        request = AnalysisRequest(
            lang, (arguments.what,), arguments.measure, arguments.by, arguments.horizon
        )
        try:
            analysis = await analyst.analyse(sql, request, context.database)
        except InvalidSql as error:
            return await not_valid(error, sql, context.database)

        count = len(analysis["findings"])
        return ToolResult(
            _analysis_text(analysis), Text(f"得到 {count} 条结论", f"Findings: {count}")
        )

    return Tool(
        "statistics",
        Text("统计分析", "Statistics"),
        "Works out figures about all rows of an earlier call, by SQL: describe, shares, change, "
        "outliers, or a "
        "forecast of rows over time. Name the method when you tell its figures.",
        Analyse,
        run,
        frozenset({EVERYONE}),
    )


def _analysis_text(analysis: Mapping[str, Any]) -> str:
    lines = []
    room = _MOST_CHARS
    for line in _lines(analysis):
        room -= len(line) + 1
        if room < 0:
            lines.append("… more is left out")
            break

        lines.append(line)

    return "\n".join(lines) or "Nothing can be said of these rows."


def _lines(analysis: Mapping[str, Any]) -> Iterator[str]:
    for finding in analysis["findings"]:
        yield _bounded_line(f"- {finding['text']} [method: {finding['method']}]")
        yield _bounded_line(f"  figures: {_json(finding['figures'])}")

    for point in (analysis.get("forecast") or {}).get("points", ()):
        yield _bounded_line(f"  forecast: {_json(point)}")

    for warning in analysis["warnings"]:
        yield _bounded_line(f"- not told: {warning}")


def _bounded_line(line: str) -> str:
    indent = len(line) - len(line.lstrip())
    return line[:indent] + one_line(line, _MOST_LINE)


def _json(value: Any) -> str:
    return simplejson.dumps(
        value, ensure_ascii=False, use_decimal=True, ignore_nan=True, default=str
    )
