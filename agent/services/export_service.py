"""An answer's rows beyond those it shows: its SQL is run again as whoever asks for them, and read
page by page.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agent.answers.chart import Chart, chart_of
from agent.answers.chart_image import can_draw, chart_png
from agent.answers.reference_rows import names_for_file
from agent.answers.requested_chart import ChartRequest, requested_chart_of
from agent.answers.table_files import FileColumn, file_columns
from agent.runs.past_answers import PastAnswers
from common.actor import Actor
from common.audit import Occasion
from common.errors import InvalidRequest, InvalidSql, NotFound
from common.ports import Database, RowStream
from common.text import Lang, Text
from common.values import QueryResult
from knowledge.results.result_columns import ResultColumn, result_columns
from knowledge.tables.name_suggestions import with_suggestions

T = TypeVar("T")

_NO_ROWS = Text("这个回答没有查询结果，无法导出。", "This answer has no rows to export.")
_NO_CHART = Text(
    "这个回答适合用表格展示，没有图表。", "A table shows this answer best; there is no chart of it."
)
_CANNOT_DRAW = Text(
    "format 无效：此服务未安装 matplotlib，无法导出 png；请安装 requirements-charts.txt，或选择 "
    "csv、json、xlsx。",
    "format is not valid: this service has no matplotlib to draw png with. Install "
    "requirements-charts.txt, or choose "
    "csv, json or xlsx.",
)


@dataclass(frozen=True)
class WantedRows:
    """A request for the rows of an answer.

    Attributes:
        conversation_id: the id of the run's conversation; see `Answers.find`.
        call_id: the id of the tool call whose rows are wanted; None: those of the answer itself.
    """

    run_id: str
    actor: Actor
    conversation_id: str | None = None
    call_id: str | None = None


@dataclass(frozen=True)
class AnswerExport(Generic[T]):
    """Rows or a picture, with the question that they answer."""

    content: T
    question: str


@dataclass(frozen=True)
class LabelledRows:
    """Rows of an answer, with what readers call their columns and values."""

    rows: RowStream
    columns: tuple[FileColumn, ...]


_AXES = ("type", "x", "y", "series")  # what makes a chart of the same columns the same chart


@dataclass(frozen=True)
class _Shown:
    """The answer that the user saw: the SQL of its rows, and their chart if there was one and it is
    still kept.
    """

    question: str
    sql: str
    chart: Mapping[str, Any] | None
    database: str | None


class ExportService:
    """Opens the rows of answers.

    Args:
        open_database: gives the datasource for an occasion; its statements are audited.
        max_rows: most rows of one export.
    """

    def __init__(
        self,
        answers: PastAnswers,
        open_database: Callable[[Occasion], Database],
        *,
        max_rows: int,
    ) -> None:
        self._answers = answers
        self._open_database = open_database
        self.max_rows = max_rows

    async def open(
        self, wanted_rows: WantedRows, lang: Lang, *, with_names: bool = True
    ) -> AnswerExport[LabelledRows]:
        """Return the answer's rows as they are now; the caller closes the stream.

        Args:
            with_names: keys are told by the names of the rows to which they refer.

        Raises:
            NotFound: the user has no such answer or call, it is no longer kept, or it has no SQL.
            Conflict: the question is still being answered.
            StatementRejected, QueryTimeout, DatabaseUnavailable: as for a question's own SQL.
            StoreUnavailable: the answer can't be read.
        """
        shown = await self._find_shown(wanted_rows)

        async def opening(database: Database, sql: str) -> LabelledRows:
            catalog = await database.catalog()
            names = await names_for_file(sql, database, lang) if with_names else {}
            rows = await database.stream(sql, self.max_rows)
            without_rows = QueryResult(rows.columns, rows.column_types, ())
            columns = result_columns(sql, without_rows, catalog, lang)
            return LabelledRows(rows, file_columns(columns, without_rows, lang, names))

        return await self._of_answer(wanted_rows, shown, opening)

    async def picture(self, wanted_rows: WantedRows, lang: Lang) -> AnswerExport[bytes]:
        """Return the answer's chart as a PNG file, of as many rows as an answer has.

        Raises:
            InvalidRequest: charts can't be drawn here.
            NotFound: as `open`; or a table shows the rows best, so there is no chart.
            …and whatever else `open` raises.
        """
        if not can_draw():
            raise InvalidRequest(_CANNOT_DRAW, field="format")

        shown = await self._find_shown(wanted_rows)

        async def drawing(database: Database, sql: str) -> bytes:
            result = await database.run(sql)
            columns = result_columns(sql, result, await database.catalog(), lang)
            chart = _chart(shown.chart, columns, result, lang)
            if chart is None:
                raise NotFound(_NO_CHART)

            return await asyncio.to_thread(chart_png, chart, columns, result, lang)

        return await self._of_answer(wanted_rows, shown, drawing)

    async def _find_shown(self, wanted_rows: WantedRows) -> _Shown:
        answered = await self._answers.find(
            wanted_rows.actor.owner, wanted_rows.run_id, wanted_rows.conversation_id
        )
        if wanted_rows.call_id is not None:
            result = await self._answers.result_of_call(
                wanted_rows.actor.owner, wanted_rows.run_id, wanted_rows.call_id
            )
            return _Shown(answered.question, result["sql"], result.get("chart"), answered.database)

        if answered.sql is None:
            raise NotFound(_NO_ROWS)

        return _Shown(answered.question, answered.sql, answered.chart, answered.database)

    async def _of_answer(
        self, wanted_rows: WantedRows, shown: _Shown, act: Callable[[Database, str], Awaitable[T]]
    ) -> AnswerExport[T]:
        """Run `act` with the answer's SQL and the database as the caller may see it."""
        database = self._open_database(
            Occasion(
                "export",
                wanted_rows.run_id,
                wanted_rows.actor,
                wanted_rows.conversation_id,
                database=shown.database,
            )
        )
        sql = shown.sql
        try:
            await database.explain(sql)  # for the limits on plans
            return AnswerExport(await act(database, sql), shown.question)
        except InvalidSql as error:
            raise with_suggestions(error, sql, await database.catalog()) from error


def _chart(
    shown: Mapping[str, Any] | None,
    columns: Sequence[ResultColumn],
    result: QueryResult,
    lang: Lang,
) -> Chart | None:
    """Return the chart that the user saw, which may be one that was asked for; where today's rows
    don't fit it, theirs.
    """
    suggested = chart_of(columns, result, lang)
    if shown is None or _has_axes_of(shown, suggested):
        return suggested

    with suppress(InvalidRequest):
        return requested_chart_of(
            columns, result, lang, ChartRequest(shown["type"], shown["x"], shown["y"])
        )

    return suggested


def _has_axes_of(shown: Mapping[str, Any], chart: Chart | None) -> bool:
    return chart is not None and all(shown.get(key) == chart[key] for key in _AXES)
