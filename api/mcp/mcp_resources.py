"""What Citu lets MCP's clients read: schemas, metrics, reports, and answers with their rows."""

import base64
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.answers.table_files import FORMATS, stored_columns
from agent.services.export_service import WantedRows
from api.answer_fields import answer_fields
from api.mcp import answer_view
from api.mcp.caller_reports import open_reports, report_label
from api.mcp.content import Json, McpCaller
from api.mcp.mcp_services import McpServices
from api.mcp.messages import INVALID_PARAMS, McpError
from api.requests import parse_database, parse_run_id, parse_table_name
from common.envelope import to_json
from common.errors import InvalidRequest, NotFound
from common.text import Text

JSON = "application/json"
_PAGE = 100
_MOST_TABLES = 1_000
_MOST_BYTES = 4_000_000  # of a file of rows; larger ones are fetched over HTTP
_TOO_LARGE = Text(
    "文件过大：请用工具 export 给出的地址下载。",
    "The file is too large to be read here: fetch it at the address that the tool export gives.",
)

Contents = Mapping[str, Any]
"""Text or a blob, as the protocol writes the contents of a resource, with its media type."""

Read = Callable[[McpServices, McpCaller, Mapping[str, str]], Awaitable[Contents]]


@dataclass(frozen=True)
class McpResource:
    """A kind of thing that can be read.

    Attributes:
        uri: a template; `{name}` stands for one part of the address.
        of_database: whether there is one for each database, so that it is listed.
        is_alone: whether there is one for all, which is listed too.
    """

    uri: str
    name: str
    description: str
    media_type: str
    read: Read
    of_database: bool = False
    is_alone: bool = False

    def matches(self, uri: str) -> Mapping[str, str] | None:
        """Return the variable parts of an address; None: it is another kind's."""
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(self.uri))
        match = re.fullmatch(pattern, uri)
        return match.groupdict() if match is not None else None


def _json(body: Any) -> Contents:
    return {"mimeType": JSON, "text": to_json(body)}


async def _schema(services: McpServices, caller: McpCaller, parts: Mapping[str, str]) -> Contents:
    schema = services.databases.of(parse_database(parts), caller.actor).schema
    tables: list[Any] = []
    cursor: str | None = None
    while len(tables) < _MOST_TABLES:
        page = await schema.tables(_PAGE, cursor, caller.actor)
        tables.extend(page["tables"])
        cursor = page.get("next_cursor")
        if cursor is None:
            break

    return _json({"table_count": page["table_count"], "tables": tables})


async def _table(services: McpServices, caller: McpCaller, parts: Mapping[str, str]) -> Contents:
    schema = services.databases.of(parse_database(parts), caller.actor).schema
    return _json(await schema.table(parse_table_name(parts["table"]), caller.actor))


async def _metrics(services: McpServices, caller: McpCaller, parts: Mapping[str, str]) -> Contents:
    name = services.databases.checked(parse_database(parts), caller.actor)
    catalog = await services.asked.database(name, caller.actor).catalog()
    metrics = [
        {
            "name": metric.name,
            "label": metric.names.label(caller.lang) or metric.name,
            "table": ".".join(metric.table),
            "expression": metric.expression,
        }
        for metric in catalog.metrics
    ]
    return _json({"metrics": metrics})


async def _reports(services: McpServices, caller: McpCaller, parts: Mapping[str, str]) -> Contents:
    database = services.databases.checked(parse_database(parts), caller.actor)
    listed = [
        {"question": report_label(report, caller), "sql": report.sql}
        for name, report in await open_reports(services, caller)
        if name == database
    ]
    return _json({"reports": listed})


async def _answer(services: McpServices, caller: McpCaller, parts: Mapping[str, str]) -> Contents:
    view = await services.runs.look(caller.actor.owner, parse_run_id(parts["run_id"]))
    data = view.last.data if view.last is not None else {}
    run_fields = {"question": view.record.head.question, "state": view.record.state}
    return _json({**run_fields, **answer_fields(data)})


async def _rows(services: McpServices, caller: McpCaller, parts: Mapping[str, str]) -> Contents:
    run_id = parse_run_id(parts["run_id"])
    wanted_rows = WantedRows(run_id, caller.actor)
    opened = await services.exports.open(wanted_rows, caller.lang, with_names=False)
    rows = opened.content.rows
    try:
        file = FORMATS[parts["format"]](stored_columns(rows.columns, rows.column_types))
        written = bytearray(file.begin())
        while page := await rows.page():
            written += file.rows(page)
            if len(written) > _MOST_BYTES:
                raise InvalidRequest(_TOO_LARGE, field="uri")

        for piece in file.end(is_limited=rows.is_limited):
            written += piece
    finally:
        await rows.aclose()

    media_type = file.media_type.partition(";")[0]
    if parts["format"] == "xlsx":
        return {"mimeType": media_type, "blob": base64.b64encode(written).decode()}

    return {"mimeType": media_type, "text": written.decode()}


async def _view(_services: McpServices, _caller: McpCaller, _parts: Mapping[str, str]) -> Contents:
    # No address is named: the document fetches nothing.
    shown = {"csp": {"connectDomains": [], "resourceDomains": []}, "prefersBorder": True}
    text = answer_view.answer_view()
    return {"mimeType": answer_view.MEDIA_TYPE, "text": text, "_meta": {"ui": shown}}


RESOURCES: tuple[McpResource, ...] = (
    McpResource(
        answer_view.URI,
        "Answer",
        "Table and chart of an answer, for clients that show documents in a sandbox",
        answer_view.MEDIA_TYPE,
        _view,
        is_alone=True,
    ),
    McpResource(
        "citu://{database}/schema",
        "Tables",
        "The tables that the caller may read, with their comments",
        JSON,
        _schema,
        of_database=True,
    ),
    McpResource(
        "citu://{database}/metrics",
        "Metrics",
        "Figures that the business has names for, with their SQL",
        JSON,
        _metrics,
        of_database=True,
    ),
    McpResource(
        "citu://{database}/reports",
        "Reports",
        "Questions with certified SQL",
        JSON,
        _reports,
        of_database=True,
    ),
    McpResource(
        "citu://{database}/tables/{table}",
        "Table",
        "Columns, keys, values and metrics of one table",
        JSON,
        _table,
    ),
    McpResource("citu://runs/{run_id}", "Answer", "An answer of the caller", JSON, _answer),
    McpResource(
        "citu://runs/{run_id}/rows.{format}",
        "Rows",
        "All rows of an answer as csv, json or xlsx, as they are now",
        "application/octet-stream",
        _rows,
    ),
)
"""Everything that can be read, by the form of its address."""


def listed_resources(services: McpServices, caller: McpCaller) -> Sequence[Json]:
    """Return the resources of the service, and of each database that the caller may ask."""
    alone = [_resource_json(resource) for resource in RESOURCES if resource.is_alone]
    of_databases = [
        {
            "uri": resource.uri.replace("{database}", database.name),
            "name": f"{resource.name} ({database.label(caller.lang)})",
            "description": resource.description,
            "mimeType": resource.media_type,
        }
        for database in services.asked.open_to(caller.actor)
        for resource in RESOURCES
        if resource.of_database
    ]
    return [*alone, *of_databases]


def _resource_json(resource: McpResource) -> Json:
    return {
        "uri": resource.uri,
        "name": resource.name,
        "description": resource.description,
        "mimeType": resource.media_type,
    }


def resource_templates() -> Sequence[Json]:
    """Return the forms of the addresses of what is not listed one by one."""
    return [
        {
            "uriTemplate": resource.uri,
            "name": resource.name,
            "description": resource.description,
            "mimeType": resource.media_type,
        }
        for resource in RESOURCES
        if not (resource.of_database or resource.is_alone)
    ]


async def read_resource(services: McpServices, uri: str, caller: McpCaller) -> Json:
    """Return the contents of an address.

    Raises:
        McpError: there is nothing at this address for the caller.
        CituError: it can't be read now.
    """
    for resource in RESOURCES:
        parts = resource.matches(uri)
        if parts is not None and parts.get("format", "csv") in FORMATS:
            try:
                return {"uri": uri, **await resource.read(services, caller, parts)}
            except (NotFound, InvalidRequest) as error:
                message = error.message(caller.lang)
                raise McpError(INVALID_PARAMS, message, {"uri": uri}) from error

    message = "Resource not found: resources/list and resources/templates/list say what there is"
    raise McpError(INVALID_PARAMS, message, {"uri": uri})
