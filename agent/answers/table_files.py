"""Rows as files, written piece by piece as the rows come.

A spreadsheet takes a text that begins with `=` for a formula, and would run what a stranger has
stored. CSV has no types, so such a text gets an apostrophe before it; in XLSX it is a text and
stays as it is.
"""

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import IO, Any, Protocol
from xml.sax.saxutils import escape

import xlsxwriter

from agent.answers.reference_rows import NamesByColumn, column_labels
from common.envelope import to_json
from common.text import Lang
from common.values import QueryResult
from knowledge.results.result_columns import ResultColumn
from knowledge.results.value_labels import value_labels
from knowledge.results.written_values import NumberFormat, format_of

Row = Sequence[Any]


@dataclass(frozen=True)
class FileColumn:
    """A column of a file.

    Attributes:
        name, type: as PostgreSQL has them.
        header: what readers call it, with its unit.
        labels: what readers call stored values.
        format: how its numbers are written, where they are no names of things.
    """

    name: str
    type: str
    header: str
    labels: Mapping[str, str] = field(default_factory=dict)
    format: NumberFormat | None = None


def file_columns(
    columns: Sequence[ResultColumn], result: QueryResult, lang: Lang, names: NamesByColumn
) -> tuple[FileColumn, ...]:
    """Return the columns of a result for a file that people read.

    Args:
        names: what the rows are called to which columns of keys refer.
    """
    columns_of_file = []
    headers = column_labels(columns, names)
    for place, (column, kind) in enumerate(zip(columns, result.column_types, strict=True)):
        header = headers[place]
        if column.unit is not None:
            header = f"{header} ({column.unit})"

        labels = value_labels(column.output, lang)
        if place in names:
            labels = names[place].names

        shown_as = format_of(column, kind)
        columns_of_file.append(FileColumn(column.output.name, kind, header, labels, shown_as))

    return tuple(columns_of_file)


def stored_columns(names: Sequence[str], types: Sequence[str]) -> tuple[FileColumn, ...]:
    """Return columns whose names and values are written as they are stored."""
    return tuple(FileColumn(name, kind, name) for name, kind in zip(names, types, strict=True))


class TableFile(Protocol):
    """Writes one file. The pieces of `begin`, `rows` and `end` are the file, in this order."""

    media_type: str

    def begin(self) -> bytes:
        """Return the bytes before the first row."""

    def rows(self, rows: Sequence[Row]) -> bytes:
        """Return further rows; may be empty while the file is not complete."""

    def end(self, *, is_limited: bool) -> Iterator[bytes]:
        """Return the rest of the file; `is_limited`: there are more rows than were written."""


# ------------------------------------------------------------------------------
# CSV

_BYTE_ORDER_MARK = "\ufeff"  # by which Excel knows UTF-8
# Full-width forms as well, since spreadsheets in Chinese and Japanese take them for the same.
# Blanks before the sign are skipped by some.
_FORMULA = re.compile(r"\A(?:[\t\r\n]|[\s\u00ad\u200b-\u200f\u2060\ufeff]*+[=+\-@＝＋－＠])")
_PLAIN_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


class CsvFile:
    """RFC 4180 in UTF-8: a header, then the rows. NULL is an empty field."""

    media_type = "text/csv; charset=utf-8"

    def __init__(self, columns: Sequence[FileColumn]) -> None:
        self._columns = columns

    def begin(self) -> bytes:
        return _BYTE_ORDER_MARK.encode() + _csv([[column.header for column in self._columns]])

    def rows(self, rows: Sequence[Row]) -> bytes:
        return _csv(_labelled(row, self._columns) for row in rows)

    def end(self, *, is_limited: bool) -> Iterator[bytes]:  # noqa: ARG002 - CSV can't say it
        return iter(())


def _csv(rows: Iterable[Row]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([_csv_field(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def _labelled(row: Row, columns: Sequence[FileColumn]) -> Row:
    """Return the row with the labels of its values in their place."""
    return [
        column.labels.get(str(value), value) if column.labels else value
        for value, column in zip(row, columns, strict=True)
    ]


def _csv_field(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        is_harmless = not _FORMULA.match(value) or _PLAIN_NUMBER.fullmatch(value)
        return value if is_harmless else f"'{value}"

    if isinstance(value, list | dict):
        return to_json(value)

    if isinstance(value, Decimal):
        return format(value, "f")

    return value


# ------------------------------------------------------------------------------
# JSON


class JsonFile:
    """`{"columns", "column_types", "rows", "row_count", "is_limited"}`, as in an answer's
    `query_result`: columns and values as they are stored.
    """

    media_type = "application/json; charset=utf-8"

    def __init__(self, columns: Sequence[FileColumn]) -> None:
        self._head = {
            "columns": [column.name for column in columns],
            "column_types": [column.type for column in columns],
        }
        self._count = 0

    def begin(self) -> bytes:
        return _utf8(to_json(self._head)[:-1] + ',"rows":[')

    def rows(self, rows: Sequence[Row]) -> bytes:
        if not rows:
            return b""

        separator = ",\n" if self._count else "\n"
        self._count += len(rows)
        return _utf8(separator + ",\n".join(map(to_json, rows)))

    def end(self, *, is_limited: bool) -> Iterator[bytes]:
        yield _utf8(f'],"row_count":{self._count},"is_limited":{to_json(is_limited)}}}\n')


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# ------------------------------------------------------------------------------
# XLSX

_MOST_CHARS = 32_767  # a cell has
_MOST_DIGITS = 15  # Excel's numbers keep; longer ones stay text
_MOST_EXPONENT = 300  # of ten, beyond which numbers don't fit into Excel's
_DATE_FORMATS = {"date": "yyyy-mm-dd", "timestamp": "yyyy-mm-dd hh:mm:ss"}
_NUMBER_FORMATS = {"money": "#,##0.00", "percent": '0.00"%"'}
_WHOLE, _DECIMAL = "#,##0", "#,##0.00##"
_WIDTHS = {"date": 12, "timestamp": 20, "bool": 8}
_NUMBER_WIDTH, _TEXT_WIDTH, _WIDEST = 14, 20, 60
_LATIN = 0x2E7F  # characters beyond it are as wide as two
_FIRST_YEAR = 1901  # Excel's calendar has a day in 1900 that never was
_DAY_ZERO = datetime(1899, 12, 30)  # from which Excel counts days
_ROWS_END = "</sheetData>"
_NO_ROWS = "<sheetData/>"  # of a book without columns
# The cells that there are. It stands before the rows, when nobody knows how many will come; without
# it readers look.
_DIMENSION = re.compile(r'<dimension ref="[^"]*"/>')
_STYLE = re.compile(r'<c r="[A-Z]+2" s="(\d+)">')
# What XML can't hold is written like this in a workbook; so is what only looks like it.
_UNWRITABLE = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)"
)


class XlsxFile:
    """A workbook of one sheet, sent while its rows come.

    XlsxWriter makes everything but the rows: it would need all of them before it can write the
    first byte.
    """

    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

    def __init__(self, columns: Sequence[FileColumn]) -> None:
        self._columns = columns
        self._written = _Outlet()
        self._zip = _Zip(self._written, "w", zipfile.ZIP_DEFLATED)
        self._parts = _empty_book(columns)
        self._sheet_name = next(name for name in self._parts if "worksheets/sheet" in name)
        sheet = self._parts[self._sheet_name].replace(_NO_ROWS, f"<sheetData>{_ROWS_END}")
        head, _, self._tail = _DIMENSION.sub("", sheet).partition(_ROWS_END)
        example = head.find('<row r="2"')
        self._head = head if example < 0 else head[:example]
        styles = iter(_STYLE.findall(head))
        self._styles = {
            number: next(styles)
            for number, column in enumerate(columns)
            if _cell_format(column) is not None
        }
        self._sheet: IO[bytes]

    def begin(self) -> bytes:
        for name, text in self._parts.items():
            if name != self._sheet_name:
                self._zip.writestr(name, text)

        self._sheet = self._zip.open(self._sheet_name, "w", force_zip64=True)
        self._sheet.write(self._head.encode())
        return self._written.taken()

    def rows(self, rows: Sequence[Row]) -> bytes:
        self._sheet.write("".join(map(self._row, rows)).encode())
        return self._written.taken()

    def end(
        self,
        *,
        is_limited: bool,  # noqa: ARG002 - a table of cells has no place for it
    ) -> Iterator[bytes]:
        self._sheet.write(f"{_ROWS_END}{self._tail}".encode())
        self._sheet.close()
        self._zip.close()
        yield self._written.taken()

    def _row(self, row: Row) -> str:
        cells = [self._cell(*one) for one in enumerate(_labelled(row, self._columns))]
        return f"<row>{''.join(cells)}</row>"

    def _cell(self, number: int, value: Any) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, bool):
            return f'<c t="b"><v>{value:d}</v></c>'

        style = f' s="{self._styles[number]}"' if number in self._styles else ""
        if _is_number_of_excel(value):
            shown = value if isinstance(value, int) else repr(float(value))
            return f"<c{style}><v>{shown}</v></c>"
        if self._columns[number].type in _DATE_FORMATS:
            day = _day_of_excel(value)
            if day is not None:
                return f"<c{style}><v>{day}</v></c>"

        text = escape(_UNWRITABLE.sub(_written_out, _cell_text(value)[:_MOST_CHARS]))
        return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


class _Zip(zipfile.ZipFile):
    def __del__(self) -> None:
        """Not finished when it is thrown away: an export that was broken off has nobody left to
        read its end.
        """


class _Outlet(io.RawIOBase):
    """Collects what is written until it is taken; a ZIP file in it is written from the front to the
    back.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _empty_book(columns: Sequence[FileColumn]) -> dict[str, str]:
    """Return parts of a workbook by name: a header, and a second row that shows the styles of
    dates and numbers.
    """
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        sheet.freeze_panes(1, 0)
        head = book.add_format({"bold": True, "bottom": 1})
        for number, column in enumerate(columns):
            sheet.write_string(0, number, column.header[:_MOST_CHARS], head)
            sheet.set_column(number, number, _width(column))
            shown_as = _cell_format(column)
            if shown_as is not None:
                sheet.write_number(1, number, 0, book.add_format({"num_format": shown_as}))

    with zipfile.ZipFile(file) as book_file:
        return {name: book_file.read(name).decode() for name in book_file.namelist()}


def _cell_format(column: FileColumn) -> str | None:
    """Return how Excel shows the column's dates or numbers; None for texts and keys."""
    if column.type in _DATE_FORMATS:
        return _DATE_FORMATS[column.type]
    if column.format == "number":
        return _WHOLE if column.type.startswith("int") else _DECIMAL

    return _NUMBER_FORMATS.get(column.format or "plain")


def _width(column: FileColumn) -> float:
    """Return a width, in characters, that holds the header and most values of such a column."""
    header = sum(2 if ord(character) > _LATIN else 1 for character in column.header)
    needed = _WIDTHS.get(column.type, _TEXT_WIDTH if column.format is None else _NUMBER_WIDTH)
    return float(min(max(header + 2, needed), _WIDEST))


def _written_out(found: re.Match[str]) -> str:
    return f"_x{ord(found.group()):04X}_"


def _is_number_of_excel(value: Any) -> bool:
    """Tell whether Excel keeps all digits of the number."""
    if isinstance(value, float):
        return True
    if isinstance(value, int):
        return len(str(abs(value))) <= _MOST_DIGITS
    if not isinstance(value, Decimal) or abs(value.adjusted()) > _MOST_EXPONENT:
        return False

    # Not by normalize(), which rounds to the digits that Python computes with.
    return len("".join(map(str, value.as_tuple().digits)).strip("0")) <= _MOST_DIGITS


def _day_of_excel(text: str) -> float | None:
    """Return the day or time as Excel's number of days, if Excel has it and shows all of it."""
    try:
        day = datetime.fromisoformat(text)
    except ValueError:  # before Christ, infinity, after 9999
        return None

    is_shown = day.year >= _FIRST_YEAR and day.microsecond == 0
    if is_shown:
        return (day - _DAY_ZERO) / timedelta(days=1)

    return None


def _cell_text(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")

    return value if isinstance(value, str) else to_json(value)


FORMATS: Mapping[str, type[CsvFile] | type[JsonFile] | type[XlsxFile]] = {
    "csv": CsvFile,
    "json": JsonFile,
    "xlsx": XlsxFile,
}
"""The kinds of files by the ending of their names."""
