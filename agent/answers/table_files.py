"""Rows as files, written piece by piece: CSV and JSON as the rows come, XLSX into a temporary file.

A spreadsheet takes a text that begins with `=` for a formula, and would run what a stranger has stored. CSV has no
types, so such a text gets an apostrophe before it; in XLSX it is a text and stays as it is.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Protocol

import xlsxwriter
from xlsxwriter.worksheet import Worksheet

from common.envelope import to_json

Row = Sequence[Any]


class TableFile(Protocol):
    """Writes one file. The pieces of `begin`, `rows` and `end` are the file, in this order."""

    media_type: str

    def begin(self) -> bytes:
        """What stands before the first row."""

    def rows(self, rows: Sequence[Row]) -> bytes:
        """Further rows; may be empty while the file is not complete."""

    def end(self, *, is_limited: bool) -> Iterator[bytes]:
        """The rest. `is_limited`: whether there are more rows than were written."""

    def close(self) -> None:
        """Removes what the file took; it may be incomplete."""


# --------------------------------------------------------------------------------------------------------------- CSV

_BYTE_ORDER_MARK = "\ufeff"  # by which Excel knows UTF-8
# Full-width forms as well, since spreadsheets in Chinese and Japanese take them for the same.
_FORMULA = re.compile(r"[=+\-@＝＋－＠\t\r]")
_PLAIN_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


class CsvFile:
    """RFC 4180 in UTF-8: a header, then the rows. NULL is an empty field."""

    media_type = "text/csv; charset=utf-8"

    def __init__(self, columns: Sequence[str], column_types: Sequence[str]) -> None:  # noqa: ARG002 - as the others
        self._columns = columns

    def begin(self) -> bytes:
        """See `TableFile.begin`."""
        return _BYTE_ORDER_MARK.encode() + self.rows([self._columns])

    def rows(self, rows: Sequence[Row]) -> bytes:
        """See `TableFile.rows`."""
        text = io.StringIO()
        csv.writer(text).writerows([_csv_field(value) for value in row] for row in rows)
        return text.getvalue().encode("utf-8", "replace")

    def end(self, *, is_limited: bool) -> Iterator[bytes]:  # noqa: ARG002 - CSV can't say it
        """See `TableFile.end`."""
        return iter(())

    def close(self) -> None:
        """See `TableFile.close`."""


def _csv_field(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        is_harmless = not _FORMULA.match(value) or _PLAIN_NUMBER.fullmatch(value)
        return value if is_harmless else f"'{value}"
    if isinstance(value, list | dict):
        return to_json(value)
    return format(value, "f") if isinstance(value, Decimal) else value


# -------------------------------------------------------------------------------------------------------------- JSON


class JsonFile:
    """`{"columns", "column_types", "rows", "row_count", "is_limited"}`, as in an answer's `query_result`."""

    media_type = "application/json; charset=utf-8"

    def __init__(self, columns: Sequence[str], column_types: Sequence[str]) -> None:
        self._head = {"columns": list(columns), "column_types": list(column_types)}
        self._count = 0

    def begin(self) -> bytes:
        """See `TableFile.begin`."""
        return _utf8(to_json(self._head)[:-1] + ',"rows":[')

    def rows(self, rows: Sequence[Row]) -> bytes:
        """See `TableFile.rows`."""
        if not rows:
            return b""
        separator = ",\n" if self._count else "\n"
        self._count += len(rows)
        return _utf8(separator + ",\n".join(map(to_json, rows)))

    def end(self, *, is_limited: bool) -> Iterator[bytes]:
        """See `TableFile.end`."""
        yield _utf8(f'],"row_count":{self._count},"is_limited":{to_json(is_limited)}}}\n')

    def close(self) -> None:
        """See `TableFile.close`."""


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# -------------------------------------------------------------------------------------------------------------- XLSX

_SHEET_ROWS = 1_048_575  # a sheet has, besides its header
_MOST_CHARS = 32_767  # a cell has
_MOST_DIGITS = 15  # Excel's numbers keep; longer ones stay text
_IN_MEMORY = 1024 * 1024  # bytes of the finished file before it goes to the disk
_PIECE = 64 * 1024
_DATE_FORMATS = {"date": "yyyy-mm-dd", "timestamp": "yyyy-mm-dd hh:mm:ss"}
_FIRST_YEAR = 1901  # Excel's calendar has a day in 1900 that never was


class XlsxFile:
    """A workbook, with further sheets where one is full. It can be sent when all rows are written."""

    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

    def __init__(self, columns: Sequence[str], column_types: Sequence[str]) -> None:
        self._columns = columns
        self._file: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - `close` closes it
        # Rows go to temporary files at once. Text is text: neither formulas nor links are made of it.
        options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        self._book = xlsxwriter.Workbook(self._file, options)
        self._head = self._book.add_format({"bold": True, "bottom": 1})
        self._dates: Mapping[int, Any] = {
            number: self._book.add_format({"num_format": _DATE_FORMATS[kind]})
            for number, kind in enumerate(column_types)
            if kind in _DATE_FORMATS
        }
        self._is_finished = False
        self._sheet = self._new_sheet()

    def begin(self) -> bytes:
        """See `TableFile.begin`."""
        return b""

    def rows(self, rows: Sequence[Row]) -> bytes:
        """See `TableFile.rows`."""
        for row in rows:
            if self._next_row > _SHEET_ROWS:
                self._sheet = self._new_sheet()
            for number, value in enumerate(row):
                self._write(number, value)
            self._next_row += 1
        return b""

    def end(self, *, is_limited: bool) -> Iterator[bytes]:  # noqa: ARG002 - the response's headers say it
        """See `TableFile.end`."""
        self._is_finished = True
        self._book.close()
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            yield piece

    def close(self) -> None:
        """See `TableFile.close`."""
        if not self._is_finished:
            self._is_finished = True
            self._book.close()  # removes the temporary files of its sheets
        self._file.close()

    def _new_sheet(self) -> Worksheet:
        sheet = self._book.add_worksheet()
        sheet.freeze_panes(1, 0)
        for number, name in enumerate(self._columns):
            sheet.write_string(0, number, name[:_MOST_CHARS], self._head)
        self._next_row = 1
        return sheet

    def _write(self, number: int, value: Any) -> None:
        at = (self._next_row, number)
        if value is None:
            return
        if isinstance(value, bool):
            self._sheet.write_boolean(*at, value)
        elif _is_number_of_excel(value):
            self._sheet.write_number(*at, value)
        elif number in self._dates and (day := _day_of_excel(value)) is not None:
            self._sheet.write_datetime(*at, day, self._dates[number])
        else:
            self._sheet.write_string(*at, _text(value)[:_MOST_CHARS])


def _is_number_of_excel(value: Any) -> bool:
    """Whether Excel keeps all digits of the number."""
    if isinstance(value, float):
        return True
    if isinstance(value, int):
        return len(str(abs(value))) <= _MOST_DIGITS
    return isinstance(value, Decimal) and len(value.normalize().as_tuple().digits) <= _MOST_DIGITS


def _day_of_excel(text: str) -> date | datetime | None:
    """The day or time, if Excel has it and shows all of it."""
    try:
        day = datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
    except ValueError:  # before Christ, infinity, after 9999
        return None
    is_shown = not isinstance(day, datetime) or day.microsecond == 0
    return day if day.year >= _FIRST_YEAR and is_shown else None


def _text(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    return value if isinstance(value, str) else to_json(value)


FORMATS: Mapping[str, type[CsvFile] | type[JsonFile] | type[XlsxFile]] = {
    "csv": CsvFile,
    "json": JsonFile,
    "xlsx": XlsxFile,
}
"""The kinds of files by the ending of their names."""
