"""The tools that Citu offers over MCP: one table, whose rows are what clients are told of each.

A tool that models of this service may use as well is open to the same groups (TOOL_GROUPS).
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from agent.analysis.analysing import AnalysisRequest
from agent.question import Question
from agent.runs.events import stored_event
from agent.services.analysis_service import WantedAnalysis
from agent.services.export_service import WantedRows
from agent.services.sql_service import GivenSql
from agent.tools.registry import ToolRegistry
from api.answer_fields import answer_fields
from api.answer_markdown import rows_text
from api.mcp import answer_view
from api.mcp.answers import given_answer, step_of, texts
from api.mcp.caller_reports import reports_of
from api.mcp.content import Json, McpCall, McpCaller, Result, Steps
from api.mcp.mcp_services import McpServices
from api.mcp.messages import INVALID_PARAMS, McpError
from api.models.request_models import AnalyzeBody, ExportQuery, SearchQuery, SqlBody
from api.requests import (
    ETL,
    parse_ask,
    parse_database,
    parse_etl_ask,
    parse_run_id,
    parse_table_name,
)
from api.run_frames import Frames, WaitingRun, frames_after, frames_of, last_frame
from common.actor import Actor
from common.envelope import to_json
from common.text import Lang, Text, language_of

_DECLINED = Text("用户没有回答，运行已取消。", "The user did not answer; the run was cancelled.")


Run = Callable[[McpServices, McpCall], Steps]


@dataclass(frozen=True)
class McpTool:
    """A tool as clients are told of it.

    Attributes:
        arguments: JSON Schema of each argument; those whose name is in `required` must be given.
        result: JSON Schema of the fields of the structured result that programs rely on.
        like: name of the tool of this service's models whose groups may use it; None: everyone.
        has_rows: whether clients may show its result by the answer's view.
    """

    title: str
    description: str
    arguments: Mapping[str, Json]
    required: tuple[str, ...]
    result: Mapping[str, Json]
    run: Run
    like: str | None = None
    has_rows: bool = False

    def is_open_to(self, actor: Actor, registry: ToolRegistry) -> bool:
        """Tell whether an actor may use it."""
        return self.like is None or registry.find(self.like, actor) is not None

    def definition(self, name: str) -> Json:
        """Return the definition of the protocol."""
        meta = {"_meta": {"ui": {"resourceUri": answer_view.URI}}} if self.has_rows else {}
        return {
            "name": name,
            "title": self.title,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": dict(self.arguments),
                "required": list(self.required),
                "additionalProperties": False,
            },
            "outputSchema": {"type": "object", "properties": dict(self.result)},
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
            **meta,
        }


# ------------------------------------------------------------------------------
# asking


async def _ask(services: McpServices, call: McpCall) -> Steps:
    waiting = _waiting(call)
    if waiting is None:
        question = _question(services, call)
        leave, is_watched = call.caller.hold_slot(), call.caller.is_watching
        frames: Frames | None = frames_of(services.runs, question, leave, is_watched=is_watched)
    else:
        frames = await _resumed(services, call, waiting)

    if frames is None:
        yield Result({"content": texts(_DECLINED.to(call.caller.lang)), "isError": True})
        return

    can_ask = "elicitation" in call.capabilities
    async with aclosing(frames):
        async for frame in frames:
            data = stored_event(frame.data).data
            step = step_of(data, _language(call), can_ask=can_ask)
            if step is not None:
                yield step


def _language(call: McpCall) -> Lang:
    """Return the language of an answer: that of its question."""
    return language_of(str(call.arguments.get("question", "")))


def _question(services: McpServices, call: McpCall) -> Question:
    body = {name: value for name, value in call.arguments.items() if name != "answer_to"}
    if body.get("agent") == ETL:
        asked = parse_etl_ask(body, services.max_question_chars)
    else:
        asked = parse_ask(body, services.max_question_chars, services.agents)

    question = replace(
        asked.question,
        actor=call.caller.actor,
        is_credible=call.caller.is_credible,
        stream_tokens=False,
    )
    if question.database is not None:
        services.databases.checked(question.database, question.actor)

    return question


def _waiting(call: McpCall) -> WaitingRun | None:
    """Return the run whose question a call answers; None: it asks one itself."""
    fields = call.state if call.state is not None else call.arguments
    text = fields.get("answer_to")
    return None if text is None else WaitingRun.parse(str(text))


async def _resumed(services: McpServices, call: McpCall, waiting: WaitingRun) -> Frames | None:
    """Give an answer to the run that waits for it; return its further frames.

    None: the user declined, and the run is cancelled.
    """
    content: Json = {"answer": call.arguments.get("question")}
    if call.state is not None:
        response = (call.responses or {}).get("answer")
        owner = call.caller.actor.owner
        if not isinstance(response, dict):  # the client came back without one
            return await last_frame(services.runs, owner, waiting.run_id)
        if response.get("action") != "accept":
            await services.runs.cancel(owner, waiting.run_id)
            return None

        content = response.get("content") or {}

    leave = call.caller.hold_slot()
    return await frames_after(
        services.runs, call.caller.actor, waiting, lambda asked: given_answer(asked, content), leave
    )


# ------------------------------------------------------------------------------
# the other tools


Answer = Callable[[McpServices, McpCall], Awaitable[Json]]


def _at_once(answer: Answer) -> Run:
    """Return a tool that has a result and no steps."""

    async def run(services: McpServices, call: McpCall) -> Steps:
        yield Result(await answer(services, call))

    return run


def _result(body: Json, text: str | None = None) -> Json:
    """Return a result; without a text of its own, its text is the JSON."""
    return {"content": texts(text or to_json(body)), "structuredContent": body}


async def _search_schema(services: McpServices, call: McpCall) -> Json:
    database = parse_database(call.arguments)
    asked = {"q": call.arguments.get("words"), "limit": str(call.arguments.get("limit", 10))}
    query = SearchQuery.read(asked, max_chars=services.max_question_chars)
    actor = call.caller.actor
    tables = await services.databases.of(database, actor).schema.search(query.q, query.limit, actor)
    return _result(tables)


async def _describe_table(services: McpServices, call: McpCall) -> Json:
    database = parse_database(call.arguments)
    name = parse_table_name(str(call.arguments.get("table", "")), "table")
    actor = call.caller.actor
    return _result(await services.databases.of(database, actor).schema.table(name, actor))


async def _run_sql(services: McpServices, call: McpCall) -> Json:
    fields = SqlBody.read(dict(call.arguments))
    caller = call.caller
    statement = GivenSql(fields.sql, caller.lang, caller.actor, database=fields.database)
    answer = await services.databases.of(statement.database, statement.actor).sql.run(statement)
    fields_kept = answer_fields({"response_type": "DATABASE", **answer})
    return _result(fields_kept, rows_text(answer["query_result"], caller.lang))


async def _statistics(services: McpServices, call: McpCall) -> Json:
    arguments = {name: value for name, value in call.arguments.items() if name != "run_id"}
    fields = AnalyzeBody.read(arguments)
    request = AnalysisRequest(
        lang=fields.lang or call.caller.lang,
        what=fields.what,
        measure=fields.measure,
        by=fields.by,
        horizon=fields.horizon,
    )
    wanted_analysis = WantedAnalysis(_run_id(call), call.caller.actor, request)
    analysis = await services.analyses.analyze(wanted_analysis)
    text = "\n".join(finding["text"] for finding in analysis.get("findings", ()))
    return _result(analysis, text or None)


async def _export(services: McpServices, call: McpCall) -> Json:
    run_id = _run_id(call)
    file_format = ExportQuery.read({"format": call.arguments.get("format", "csv")}).format
    # Opened to learn whether there are rows, which whoever fetches the file reads.
    rows = WantedRows(run_id, call.caller.actor)
    opened = await services.exports.open(rows, call.caller.lang, with_names=False)
    await opened.content.rows.aclose()
    url = f"{call.caller.address}/api/v0/runs/{run_id}/export?format={file_format}"
    return _result({"url": url, "max_rows": services.exports.max_rows}, url)


async def _list_reports(services: McpServices, call: McpCall) -> Json:
    database = parse_database(call.arguments)
    if database is not None:
        services.databases.checked(database, call.caller.actor)

    listed = []
    for report in await reports_of(services, call.caller):
        if database in (None, report.database):
            listed.append(report.shown_to(call.caller))

    return _result({"reports": listed})


def _run_id(call: McpCall) -> str:
    return parse_run_id(str(call.arguments.get("run_id", "")))


# ------------------------------------------------------------------------------
# the table

_TEXT: Json = {"type": "string"}
_TEXTS: Json = {"type": "array", "items": {"type": "string"}}
_OBJECTS: Json = {"type": "array", "items": {"type": "object"}}
_DATABASE: Json = {"type": "string", "description": "Only where there are several"}
_RUN: Json = {"type": "string", "description": "run_id of an answer"}
_ROWS: Json = {
    "type": "object",
    "properties": {
        "columns": _TEXTS,
        "labels": _TEXTS,
        "units": {"type": "array"},
        "rows": {"type": "array", "items": {"type": "array"}},
        "row_count": {"type": "integer"},
        "is_limited": {"type": "boolean"},
    },
}

TOOLS: Mapping[str, McpTool] = {
    "ask": McpTool(
        "Ask the database",
        "Answer a question about the data, in Chinese or English. Returns words, rows with labels "
        "and units, and the SQL. Use conversation_id of an earlier answer for a follow-up; where "
        "there are choices, ask the user and send one.",
        {
            "question": _TEXT,
            "conversation_id": _TEXT,
            "agent": {
                "type": "string",
                "description": "ask: one query (default); tool_loop, tool_graph: several steps; "
                "etl: a draft of transformations",
            },
            "database": _DATABASE,
            "answer_to": {
                "type": "string",
                "description": "Of an earlier result that asked: question is the user's answer",
            },
        },
        ("question",),
        {
            "response": _TEXT,
            "sql": _TEXT,
            "query_result": _ROWS,
            "warnings": _TEXTS,
            "choices": _TEXTS,
            "follow_ups": _TEXTS,
            "sources": _OBJECTS,
            "answer_to": _TEXT,
            "conversation_id": _TEXT,
            "run_id": _TEXT,
        },
        _ask,
        has_rows=True,
    ),
    "search_schema": McpTool(
        "Search tables",
        "Find the tables that words or a question are about, the best first.",
        {
            "words": _TEXT,
            "limit": {"type": "integer", "minimum": 1, "maximum": 50},
            "database": _DATABASE,
        },
        ("words",),
        {"tables": _OBJECTS},
        _at_once(_search_schema),
        like="search_schema",
    ),
    "describe_table": McpTool(
        "Describe a table",
        "Columns, types, comments, values, keys and metrics of one table.",
        {"table": _TEXT, "database": _DATABASE},
        ("table",),
        {"name": _TEXT, "columns": _OBJECTS, "foreign_keys": _OBJECTS},
        _at_once(_describe_table),
        like="describe_table",
    ),
    "run_sql": McpTool(
        "Run a query",
        "Run one read-only PostgreSQL SELECT within the caller's rights. Prefer ask.",
        {"sql": _TEXT, "database": _DATABASE},
        ("sql",),
        {"sql": _TEXT, "query_result": _ROWS, "warnings": _TEXTS, "run_id": _TEXT},
        _at_once(_run_sql),
        like="run_sql",
        has_rows=True,
    ),
    "statistics": McpTool(
        "Analyse an answer",
        "Describe, share, compare or forecast the rows of an answer.",
        {
            "run_id": _RUN,
            "what": {
                "type": "array",
                "items": {"enum": ["describe", "shares", "change", "outliers", "forecast"]},
            },
            "measure": {"type": "string", "description": "A column of figures"},
            "by": {"type": "string", "description": "A column of groups or times"},
        },
        ("run_id",),
        {"findings": _OBJECTS, "warnings": _TEXTS},
        _at_once(_statistics),
        like="statistics",
    ),
    "export": McpTool(
        "Export an answer",
        "Return an address at which all rows of an answer are fetched as a file, with the same "
        "key.",
        {"run_id": _RUN, "format": {"enum": ["csv", "json", "xlsx"]}},
        ("run_id",),
        {"url": _TEXT, "max_rows": {"type": "integer"}},
        _at_once(_export),
        like="export",
    ),
    "list_reports": McpTool(
        "List reports",
        "Questions that operators keep with certified SQL; ask them as they are written.",
        {"database": _DATABASE},
        (),
        {"reports": _OBJECTS},
        _at_once(_list_reports),
    ),
}
"""All tools, in the order in which clients list them."""


def tool_of(name: str, services: McpServices, caller: McpCaller) -> McpTool:
    """Return a tool that the caller may use.

    Raises:
        McpError: there is none of that name for the caller.
    """
    tool = TOOLS.get(name)
    if tool is None or not tool.is_open_to(caller.actor, services.registry):
        raise McpError(INVALID_PARAMS, f"Unknown tool: {name}; tools/list says which there are")

    return tool
