"""Makes a `QueryResult` within the caps from a result as PostgreSQL's text: whole if it fits, else
with cells cut.

The length of a result as text is not known before it is written: compressed text may grow a
hundredfold, and a number of a few bytes may have 131,000 digits. A result that turns out too large
is queried again by `cut_query`, which cuts its cells in the server.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import ValidationFailed
from common.text import Text
from common.values import QueryResult
from databases.execution.value_rendering import PgType, Render, as_is, renderer
from postgres.connection import Row, TextRows

ROW = "citu_row_8c1f"
"""The alias of the user's statement: a name that no column will have."""

TOO_WIDE = "citu: row too wide"
"""Begins the error that a row raises which is too wide; see `while_narrow`."""

# OFFSET 0 keeps PostgreSQL from evaluating expressions twice: for the row, and for its size.
SELECT_ROW = f"SELECT {ROW}.* FROM (SELECT * FROM ("
"""Begins a query for the rows of the statement that follows; `while_narrow` ends it."""

MOST_COLUMNS = 1600
"""Most columns of a result that is cut: PostgreSQL allows 1664 in one list, and some of them are
ours.
"""

# Columns are numbered, because a name may occur twice.
_COLUMNS = f"SELECT * FROM ({{sql}}\n) AS {ROW} LIMIT 0"
_WHOLE, _SHORTENED = "=", "<"
# `format` gives every type the text that would be sent. A cast to text may be the user's own, or
# give another text.
_CELL = (
    "CASE WHEN {c} IS NOT DISTINCT FROM NULL THEN NULL ELSE pg_catalog.format('%s', {c}) END AS {c}"
)
# The first character of a cell says whether it is whole.
_SHORT_CELL = (
    "CASE WHEN pg_catalog.octet_length({c}) > {most}"
    f" THEN '{_SHORTENED}' || pg_catalog.left({{c}}, {{kept}})"
    f" ELSE '{_WHOLE}' || {{c}} END AS {{c}}"
)
_FITTING = "CASE WHEN size <= {bytes} THEN {c} END"
# Whole rows until the cap is reached. If there are more, one more row is returned with nothing but
# its `size`.
_CUT = f"""WITH {ROW} AS (SELECT * FROM ({{sql}}\n) AS {ROW} LIMIT {{rows}})
SELECT {{fitting}} FROM (
    SELECT s.*, pg_catalog.pg_column_size(s) + {{frame}} AS own,
           pg_catalog.sum(pg_catalog.pg_column_size(s) + {{frame}})
               OVER (ROWS UNBOUNDED PRECEDING) AS size
    FROM (
        SELECT {{short}} FROM (SELECT {{cells}} FROM {ROW} AS r {{names}} OFFSET 0) AS t OFFSET 0
    ) AS s
) AS u WHERE size - own <= {{bytes}}"""
# Added to the length of each cell: hundreds of thousands of tiny cells also take long to read and
# to write.
_FRAME_BYTES = 32
# What `pg_column_size` counts for a row, and for each of its cells, beside the text.
_ROW_BYTES = 300
_CELL_BYTES = 8
_CHARACTER_BYTES = 4

_ELLIPSIS = "…"
# Once parsed, JSON and arrays take many times the memory of their text, and long to parse and
# write.
_MOST_STRUCTURED_CHARS = 512 * 1024
_TURN_S = 0.01  # of rendering before the event loop serves others


@dataclass(frozen=True)
class Caps:
    """Most rows and bytes (as text) of one result."""

    rows: int
    bytes: int


def while_narrow(most_bytes: int) -> str:
    """Return the end of `SELECT_ROW`: a row that is stored in more bytes raises an error before any
    of it is sent.
    """
    return (
        f"\n) AS {ROW} OFFSET 0) AS {ROW}"
        f" WHERE CASE WHEN pg_catalog.pg_column_size({ROW}) > {most_bytes}"
        f" THEN CAST('{TOO_WIDE} ' || pg_catalog.pg_column_size({ROW}) AS pg_catalog.int4) = 0"
        " ELSE true END"
    )


def columns_query(sql: str) -> str:
    """Return a query with the columns of `sql` and no rows."""
    return _COLUMNS.format(sql=sql)


def cut_query(sql: str, columns: int, caps: Caps) -> str:
    """Return a query for `sql`, which has `columns` columns, with cells as text, cut so that a row
    fits; see `cut_result`.
    """
    most, kept = _cell_limits(columns, caps)

    def listed(form: str, *before: str) -> str:
        names = (f"c{number}" for number in range(1, columns + 1))
        return ", ".join(
            [
                *before,
                *(form.format(c=name, most=most, kept=kept, bytes=caps.bytes) for name in names),
            ]
        )

    return _CUT.format(
        sql=sql,
        rows=caps.rows + 1,
        bytes=caps.bytes,
        frame=columns * _FRAME_BYTES,
        fitting=listed(_FITTING, "size"),
        short=listed(_SHORT_CELL),
        cells=listed(_CELL),
        names=f"({listed('{c}')})" if columns else "",
    )


def _cell_limits(columns: int, caps: Caps) -> tuple[int, int]:
    """Return most bytes of a cell that stays whole, and how many characters of a longer one are
    kept.
    """
    share = max(1, (caps.bytes - _ROW_BYTES) // max(1, columns) - _CELL_BYTES - _FRAME_BYTES)
    return share, max(1, share // _CHARACTER_BYTES)


async def whole_result(fetched: TextRows, types: Mapping[int, PgType], caps: Caps) -> QueryResult:
    """Return the first rows that fit. Empties `fetched`."""
    total = len(fetched.rows)
    fitting = list(_fitting(fetched.rows, caps))
    fetched.rows.clear()
    renders = _renderers(fetched.columns, fitting, types)
    rendered_rows = await _rendered(fitting, renders)
    return _query_result(fetched, types, rendered_rows, is_limited=len(rendered_rows) < total)


async def rendered_page(fetched: TextRows, types: Mapping[int, PgType]) -> list[list[Any]]:
    """Return the values of all rows. Empties `fetched`."""
    renders = [renderer(oid, types) for _, oid in fetched.columns]
    return await _rendered(fetched.rows, renders)


def _fitting(rows: Sequence[Row], caps: Caps) -> Iterator[Row]:
    size = 0
    for row in rows[: caps.rows]:
        size += sum(map(_bytes, row)) + len(row) * _FRAME_BYTES
        if size > caps.bytes:
            break

        yield row


def _bytes(cell: str | None) -> int:
    if not cell:
        return 0

    return len(cell) if cell.isascii() else len(cell.encode("utf-8"))


async def cut_result(fetched: TextRows, types: Mapping[int, PgType], caps: Caps) -> QueryResult:
    """Return the rows of a `cut_query`, with the statement's own column names. Empties `fetched`.

    Raises:
        ValidationFailed: not one row fits.
    """
    total = len(fetched.rows)
    fitting = [row[1:] for row in fetched.rows if int(row[0]) <= caps.bytes][: caps.rows]
    fetched.rows.clear()
    if total and not fitting:
        raise ValidationFailed(_too_wide(caps))

    renders = _renderers(fetched.columns, fitting, types)
    columns = list(map(_CutColumn, renders))
    rows = await _rendered(fitting, [column.value for column in columns])
    cut_columns = [
        name
        for (name, _), column in zip(fetched.columns, columns, strict=True)
        if column.is_shortened
    ]
    is_limited = len(rows) < total or bool(cut_columns)
    return _query_result(
        fetched, types, rows, is_limited=is_limited, cut_columns=tuple(cut_columns)
    )


class _CutColumn:
    """Reads the cells of one column of a `cut_query`."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self.is_shortened = False

    def value(self, cell: str) -> Any:
        if cell.startswith(_WHOLE):
            return self._render(cell[1:])

        # It stays text whatever its type is: a part of a number would be another number.
        self.is_shortened = True
        return cell[1:] + _ELLIPSIS


def _renderers(
    columns: Sequence[tuple[str, int]],
    rows: Sequence[Row],
    types: Mapping[int, PgType],
) -> list[Render]:
    """Return a function for each column.

    Columns of JSON and arrays stay text when they are too long together.
    """
    left = _MOST_STRUCTURED_CHARS
    renders: list[Render] = []
    for n, (_, oid) in enumerate(columns):
        render = renderer(oid, types)
        if types[oid].is_structured:
            size = sum(len(row[n] or "") for row in rows)
            if size <= left:
                left -= size
            else:
                render = as_is

        renders.append(render)

    return renders


async def _rendered(rows: list[Row], renders: Sequence[Render]) -> list[list[Any]]:
    """Return the rows' values, by a function per column; the loop serves others in between.

    Empties `rows`, to free the texts.
    """
    rendered_rows: list[list[Any]] = []
    rows.reverse()
    until = time.monotonic() + _TURN_S
    while rows:
        cells = zip(rows.pop(), renders, strict=True)
        rendered_rows.append([None if cell is None else render(cell) for cell, render in cells])
        if time.monotonic() > until:
            await asyncio.sleep(0)
            until = time.monotonic() + _TURN_S

    return rendered_rows


def _query_result(
    fetched: TextRows,
    types: Mapping[int, PgType],
    rows: list[list[Any]],
    *,
    is_limited: bool,
    cut_columns: tuple[str, ...] = (),
) -> QueryResult:
    return QueryResult(
        columns=tuple(name for name, _ in fetched.columns),
        column_types=tuple(types[oid].name for _, oid in fetched.columns),
        rows=tuple(rows),
        is_limited=is_limited,
        cut_columns=cut_columns,
    )


def _too_wide(caps: Caps) -> Text:
    zh = f"结果中有一行超过{caps.bytes}字节，请少选或截短较大的列。"
    return Text(
        zh,
        f"One row of the result is larger than {caps.bytes} bytes; "
        "select fewer or shorter columns.",
    )
