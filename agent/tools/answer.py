"""The body of an answer of a flow with tools: words, their result, and the figures' sources."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from agent.answers.figure_tracing import (
    FigureSource,
    TracedFigures,
    traced_figures,
    tracing_warnings,
)
from agent.thinking import Skills
from agent.tools.session import ToolSession
from agent.tools.tool import ToolFindings, ToolResult
from common.errors import InvalidSql
from common.inquiry import Emit, Inquiry
from common.text import Lang, Text
from common.values import QuestionType

ROUTING = "agent"
"""Routing mode of answers whose flow has none: the model decides by its calls."""

_QUERIED = Text("智能体查询了数据库", "The agent queried the database")
_TALKED = Text("智能体没有查询数据库", "The agent did not query the database")
_STOPPED = Text(
    "{limit}回答在完成之前停止，内容由规则根据已有的查询结果生成。",
    "{limit} The answer was stopped before it was complete; rules wrote it from the results so "
    "far.",
)
_STOPPED_EMPTY = Text(
    "在限制之内没有得到答案，也没有查询到任何结果。请缩小问题的范围后重试。",
    "No answer was reached within the limits, and no result was found. Ask for less at once.",
)
_SO_FAR = Text("到目前为止查询到：", "Found so far: ")


@dataclass(frozen=True)
class ToolAnswer:
    """The end of a question to a flow with tools.

    Attributes:
        text: what the user reads.
        execution_path: steps done, in order.
        warnings: the warnings of the steps before.
    """

    text: str
    inquiry: Inquiry
    execution_path: Sequence[str]
    warnings: Sequence[str] = field(default_factory=tuple)


def completed_body(ended: ToolAnswer, session: ToolSession, *, today: date) -> dict[str, Any]:
    """Return the body, without ids and times."""
    lang = ended.inquiry.lang
    traced = _traced(ended, session, today)
    resting_on = _resting_on(session, traced)
    kind: QuestionType = "DATABASE" if resting_on else "CHAT"
    return {
        "response_type": kind,
        "response": ended.text,
        **(_findings_json(resting_on, ended.text) if resting_on else {}),
        **session.shown,
        "execution_path": list(ended.execution_path),
        "classification_info": _classification(kind, lang),
        "routing_mode_used": ROUTING,
        "routing_mode_source": "request" if session.question.agent else "configuration",
        "sql_repair_applied": _is_repaired(session.results.values()),
        "warnings": [*ended.warnings, *tracing_warnings(traced, lang)],
        "usage": dict(vars(session.usage)),
        "figures": [{"figure": figure, "call_id": call_id} for figure, call_id in traced.sources],
        "sources": [_source(findings) for findings in _queried(session)],
    }


def limit_warning(limit: Text, lang: Lang) -> str:
    """Return the warning of an answer that a limit has stopped."""
    return Text(_STOPPED.zh.format(limit=limit.zh), _STOPPED.en.format(limit=limit.en)).to(lang)


async def found_so_far(
    inquiry: Inquiry,
    session: ToolSession,
    rules: Skills,
    already_read: str = "",
    emit: Emit | None = None,
) -> str:
    """Return the answer of a question that a limit has stopped: rules put the results into words.

    Args:
        already_read: what the user has read of the answer; the text begins with it.
        emit: passes the text on that follows `already_read`.
    """
    findings = _latest_with_rows(session)
    text = _STOPPED_EMPTY.to(inquiry.lang)
    if findings is not None:
        summary = await rules.summarize(inquiry, findings.sql, findings.result)
        text = _SO_FAR.to(inquiry.lang) + summary.value

    added = f"\n\n{text}" if already_read else text
    if emit is not None:
        emit(added)

    return already_read + added


def _traced(ended: ToolAnswer, session: ToolSession, today: date) -> TracedFigures:
    queried = {findings.call_id for findings in _queried(session)}
    sources = []
    for call_id, result in session.results.items():
        shows_rows_again = result.found is not None and call_id not in queried
        if result.error_type is None and not shows_rows_again:  # an error says no figures
            sources.append(_figure_source(call_id, result))

    inquiry = ended.inquiry
    return traced_figures(ended.text, sources, inquiry.question, inquiry.history, today=today)


def _figure_source(call_id: str, result: ToolResult) -> FigureSource:
    if result.found is None:
        return FigureSource(call_id, text=result.text)

    return FigureSource(call_id, result.found.result, result.found.sql)


def _resting_on(session: ToolSession, traced: TracedFigures) -> ToolFindings | None:
    """Return the result that the answer rests on.

    It is the last that was shown again as a chart, else the last that a figure of the text comes
    from, else the last with rows.
    """
    queried = {findings.call_id for findings in _queried(session)}
    named = {call_id for _, call_id in traced.sources}
    latest_first = list(session.found.values())[::-1]
    for findings in latest_first:
        if findings.call_id not in queried:
            return findings

    for findings in latest_first:
        if findings.call_id in named:
            return findings

    return _latest_with_rows(session)


def _queried(session: ToolSession) -> list[ToolFindings]:
    """Return the results, without those that show the rows of an earlier one again."""
    first: dict[int, ToolFindings] = {}
    for findings in session.found.values():
        first.setdefault(id(findings.result), findings)

    return list(first.values())


def _latest_with_rows(session: ToolSession) -> ToolFindings | None:
    """Return the last result with rows, else the last one."""
    latest_first = list(session.found.values())[::-1]
    for findings in latest_first:
        if findings.result.rows:
            return findings

    return latest_first[0] if latest_first else None


def _findings_json(findings: ToolFindings, text: str) -> dict[str, Any]:
    return {
        "sql": findings.sql,
        **findings.shown,
        "summary": text,
        "generation_method": "llm",
    }


def _source(findings: ToolFindings) -> dict[str, Any]:
    return {
        "call_id": findings.call_id,
        "tool": findings.tool,
        "sql": findings.sql,
        "row_count": findings.result.row_count,
    }


def _classification(kind: QuestionType, lang: Lang) -> dict[str, Any]:
    reason = (_QUERIED if kind == "DATABASE" else _TALKED).to(lang)
    return {"question_type": kind, "confidence": 1.0, "method": "agent", "reason": reason}


def _is_repaired(results: Iterable[ToolResult]) -> bool:
    """Tell whether a refused statement was followed by one that PostgreSQL ran."""
    was_refused = False
    for result in results:
        if result.found is not None and was_refused:
            return True

        was_refused = was_refused or result.error_type == InvalidSql.error_type

    return False
