"""`GET /api/v0/runs/{run_id}/export`: an answer's rows as a file, sent while they are read, or its chart."""

import asyncio
from collections.abc import Iterator

from flask import Blueprint, Response, request

from agent.answers.table_files import FORMATS, TableFile
from agent.ask.export_desk import ExportDesk, WantedRows
from api.access.callers import acting_as
from api.disconnect import Client
from api.places import Places
from api.requests import parse_export, parse_reader, parse_run_id
from api.waiting import result_of
from common.errors import CANCELLED_TEXT, Cancelled
from common.ports import RowStream
from common.runtime import is_ending, loop, run

_PICTURE = "png"
_PAGE_S = 3600.0  # the database's own time limits end sooner; this one helps when the event loop is gone


def exports_blueprint(desk: ExportDesk, places: Places) -> Blueprint:
    """The blueprint. An export takes one of the `places` for questions until its last byte is sent."""
    blueprint = Blueprint("exports", __name__)

    @blueprint.get("/api/v0/runs/<run_id>/export")
    def export_run(run_id: str) -> Response:
        kind, conversation_id, call_id = parse_export(request.args, (*FORMATS, _PICTURE))
        reader = parse_reader(request.args, request.headers.get("Accept-Language"))
        wanted = WantedRows(parse_run_id(run_id), acting_as(reader.user_id), conversation_id, call_id)
        if kind == _PICTURE:
            picture = result_of(desk.picture(wanted, reader.lang), places, request.environ)
            return _named(Response(picture, content_type="image/png"), wanted, kind)
        rows = result_of(desk.open(wanted), places, request.environ)
        file = FORMATS[kind](rows.columns, rows.column_types)
        # Nothing may be written beside the file, so a client that half-closed is not probed: the next piece shows it.
        client = Client(request.environ, ask=lambda: None)
        response = Response(_pieces(rows, file, client), content_type=file.media_type)
        # Not a `finally` in _pieces: closing a generator that was never started does not run any of its body.
        response.call_on_close(lambda: _close(rows))
        response.headers["X-Max-Rows"] = str(desk.max_rows)
        return _named(response, wanted, kind)

    return blueprint


def _named(response: Response, wanted: WantedRows, kind: str) -> Response:
    response.headers["Content-Disposition"] = f'attachment; filename="{wanted.run_id}.{kind}"'
    return response


def _pieces(rows: RowStream, file: TableFile, client: Client) -> Iterator[bytes]:
    """The file. An error in the middle breaks the connection, so that nobody takes half a file for a whole one."""
    if piece := file.begin():
        yield piece
    while page := run(rows.page(), _PAGE_S):
        if is_ending() or client.has_left():
            raise Cancelled(CANCELLED_TEXT)
        if piece := file.rows(page):
            yield piece
    yield from file.end(is_limited=rows.is_limited)


def _close(rows: RowStream) -> None:
    asyncio.run_coroutine_threadsafe(rows.aclose(), loop())
