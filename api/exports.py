"""`GET /api/v0/runs/{run_id}/export`: an answer's rows as a file, or its chart."""

import asyncio
import re
from collections.abc import Generator, Iterator
from datetime import datetime
from typing import Any

from flask import Blueprint, Response, request

from agent.answers.table_files import FORMATS, TableFile, stored_columns
from agent.services.export_service import ExportService, WantedRows
from api.access.callers import acting_as
from api.disconnect import RequestClient
from api.models.request_models import PICTURE, STORED_VALUES, ExportQuery
from api.requests import parse_reader, parse_run_id
from api.responses import set_file_name
from api.slots import QuestionSlots
from api.waiting import WAIT_S, WorkOutcome, outcome_of, result_of
from common.errors import ENDING_TEXT, ServiceEnding
from common.ports import RowStream
from common.runtime import NoItem, ThreadQueue, is_ending, loop

_KEPT_BYTES = 32  # one for each second that a page may take, as statements are limited by default
_ASK_AGAIN_S = 1.0
_LONGEST_NAME = 60  # characters of a question in a file's name
_NOT_IN_NAMES = re.compile(r'[\s\\/:*?"<>|.\x00-\x1f\x7f]+')


def exports_blueprint(service: ExportService, slots: QuestionSlots) -> Blueprint:
    """Return the endpoint that sends a result's rows as a file.

    An export takes one of the `slots` for questions until its last byte is sent.
    """
    blueprint = Blueprint("exports", __name__)

    @blueprint.get("/api/v0/runs/<run_id>/export")
    def export_run(run_id: str) -> Response:
        query = ExportQuery.read(request.args)
        reader = parse_reader(request.args, request.headers.get("Accept-Language"))
        wanted_rows = WantedRows(
            parse_run_id(run_id), acting_as(reader.user_id), query.conversation_id, query.call_id
        )
        if query.format == PICTURE:
            picture = result_of(service.picture(wanted_rows, reader.lang), slots, request.environ)
            response = Response(picture.content, content_type="image/png")
            return _named(response, wanted_rows.run_id, picture.question, query.format)

        is_stored = query.values == STORED_VALUES
        opening = service.open(wanted_rows, reader.lang, with_names=not is_stored)
        opened = result_of(opening, slots, request.environ)
        rows, columns = opened.content.rows, opened.content.columns
        if is_stored:
            columns = stored_columns(rows.columns, rows.column_types)

        file = FORMATS[query.format](columns)
        download = _Download(rows, file, request.environ)
        response = Response(download.pieces(), content_type=file.media_type)
        # Not a `finally` in `pieces`: closing a generator that was never started does not run any
        # of its body.
        response.call_on_close(lambda: _close(rows))
        response.headers["X-Max-Rows"] = str(service.max_rows)
        return _named(response, wanted_rows.run_id, opened.question, query.format)

    return blueprint


def _named(response: Response, run_id: str, question: str, kind: str) -> Response:
    """Return the response as a file that is called after its question and the day."""
    words = _NOT_IN_NAMES.sub(" ", question).strip()[:_LONGEST_NAME].strip()
    name = f"{words} {datetime.now().astimezone():%Y-%m-%d}" if words else run_id
    set_file_name(response, name, kind, otherwise=run_id)
    return response


class _Download:
    """A file that is sent while its rows are read.

    A client that has closed its sending end may have left, or may still read; only sending shows
    it, and nothing may be sent beside the file. So the last bytes of what there is are kept back,
    and go one at a time while PostgreSQL computes the next rows.
    """

    def __init__(self, rows: RowStream, file: TableFile, environ: dict[str, Any]) -> None:
        self._rows = rows
        self._file = file
        self._client = RequestClient(environ, self._probe, ask_again_s=_ASK_AGAIN_S)
        self._queue: ThreadQueue[WorkOutcome[list[list[Any]]]] | None = None
        self._kept_back = b""

    def pieces(self) -> Iterator[bytes]:
        """Yield the file piece by piece, as its rows arrive.

        An error in the middle breaks the connection, so that nobody takes half a file for a whole
        one.

        Raises:
            Cancelled: the client has left; the SQL is stopped.
            ServiceEnding: the process ends.
        """
        yield from self._passed_on(self._file.begin())
        while page := (yield from self._next_page()):
            if is_ending():
                raise ServiceEnding(ENDING_TEXT)

            yield from self._passed_on(self._file.rows(page))

        if self._kept_back:
            yield self._kept_back

        yield from self._file.end(is_limited=self._rows.is_limited)

    def _next_page(self) -> Generator[bytes, None, list[list[Any]]]:
        """Yield the next rows, or a byte when the client is to be probed."""
        outcome: WorkOutcome[list[list[Any]]] = WorkOutcome()
        queue = ThreadQueue(outcome_of(self._rows.page()), is_abandoned=self._client.has_left)
        self._queue = queue
        try:
            while (item := queue.take(WAIT_S)) is not None:
                if not isinstance(item, NoItem):
                    outcome = item
                elif byte := self._next_byte():
                    yield byte
        finally:
            queue.cancel()  # no effect when the page is there

        return outcome.result()

    def _probe(self) -> None:
        if self._queue is not None:
            self._queue.wake()

    def _passed_on(self, piece: bytes) -> Iterator[bytes]:
        whole = self._kept_back + piece
        self._kept_back = whole[-_KEPT_BYTES:]
        if len(whole) > _KEPT_BYTES:
            yield whole[:-_KEPT_BYTES]

    def _next_byte(self) -> bytes:
        byte, self._kept_back = self._kept_back[:1], self._kept_back[1:]
        return byte


def _close(rows: RowStream) -> None:
    asyncio.run_coroutine_threadsafe(rows.aclose(), loop())
