"""Text files of rows: which delimiter they have, and their rows in bounded memory."""

import csv
import io
import re
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TextIO

from common.text import Text
from files.reading.encodings import Encoding
from files.reading.reading_limits import ReadingLimits
from files.reading.sheets import MergedCells, Row
from files.reading.unreadable import UnreadableFile, refusal

DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|"}
"""Delimiters by the names that callers know them by."""

_MARKUP = {
    re.compile(r"<(!--|(!doctype html|html|head|body|table|meta)\b)", re.IGNORECASE): "HTML",
    re.compile(r"<(\?xml|\w[^<>]*>\s*<\w)", re.IGNORECASE): "XML",
    re.compile(r"\{\s*\"[^\"]*\"\s*:|\[\s*(\{|\[)"): "JSON",
}
_SEPARATING = re.compile(r"[\n\r,;|\t]")  # in a value that may have swallowed others
_HEAD_CHARS = 2_000
_SAMPLE_ROWS = 200
_EVEN = 0.9  # share of the rows that are as wide as most, in what is clearly a table
_SAMPLE_CHARS = 256 * 1024


@dataclass(frozen=True)
class Delimiter:
    """A delimiter, and why it is taken to be that."""

    name: str
    reason: Text

    @property
    def sign(self) -> str:
        """Return the character that separates the cells."""
        return DELIMITERS[self.name]


@dataclass(frozen=True)
class DelimitedSheet:
    """A text file as a sheet."""

    path: Path
    encoding: Encoding
    delimiter: Delimiter
    limits: ReadingLimits
    merged: tuple[MergedCells, ...] = ()

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the text file, empty ones included.

        Raises:
            UnreadableFile: a line, a value or a row is too long, or a quotation mark is not closed.
        """
        csv.field_size_limit(self.limits.cell_chars)
        row: Row = []
        first, following = 1, 1  # the number of the row's first line, and of the next row's
        with _open_text(self.path, self.encoding) as text:
            lines = _lines(text, self.limits.line_chars)
            reader = csv.reader(lines, delimiter=self.delimiter.sign)
            try:
                for row in reader:
                    first, following = following, reader.line_num + 1
                    if len(row) > self.limits.columns:
                        yield _within(row, reader.line_num, self.limits)
                    else:
                        yield row
            except csv.Error as error:
                raise _unreadable_line(error, reader.line_num, self.limits) from error

        if row and _SEPARATING.search(row[-1]):
            self._check_is_closed(first)

    def _check_is_closed(self, first: int) -> None:
        """Refuse the file if a quotation mark in the last row, from a line on, is not closed.

        Without strictness, all that follows such a mark is one value.
        """
        with _open_text(self.path, self.encoding) as text:
            lines = islice(_lines(text, self.limits.line_chars), first - 1, None)
            try:
                deque(csv.reader(lines, delimiter=self.delimiter.sign, strict=True), maxlen=0)
            except csv.Error as error:
                if "end of data" in str(error):
                    raise refusal(
                        f"从第 {first} 行开始，有一个引号没有结束：请补上，或写成两个引号。",
                        f"A quotation mark that begins in line {first} or later is not closed: "
                        "close it, or write it twice.",
                    ) from error


def check_markup(path: Path, encoding: Encoding) -> None:
    """Refuse texts that are no rows of cells.

    Raises:
        UnreadableFile: it is a web page, XML or JSON.
    """
    with _open_text(path, encoding) as text:
        head = text.read(_HEAD_CHARS).lstrip("\ufeff \t\r\n")

    for pattern, kind in _MARKUP.items():
        if pattern.match(head):
            raise refusal(
                f"这是 {kind}，不是表格，无论文件叫什么：请用 Excel 打开并另存为 XLSX 或 CSV。",
                f"This is {kind} and no table, whatever the file is called: open it in Excel and "
                "save it as XLSX or CSV.",
            )


def delimiter_of(path: Path, encoding: Encoding) -> Delimiter:
    """Return the delimiter by which most rows at the beginning have equally many columns."""
    with _open_text(path, encoding) as text:
        sample = text.read(_SAMPLE_CHARS)

    best, best_score, best_columns = "comma", 0.0, 1
    for name, sign in DELIMITERS.items():
        columns, score = _evenness(sample, sign)
        if score > best_score:
            best, best_score, best_columns = name, score, columns

    if best_columns < 2:
        return Delimiter("comma", Text("只有一列", "there is one column"))

    reason = Text(f"多数行因此有 {best_columns} 列", f"most rows have {best_columns} columns by it")
    return Delimiter(best, reason)


def is_clearly_delimited(path: Path, encoding: Encoding) -> bool:
    """Tell whether nearly all rows at the beginning have equally many columns, and several."""
    with _open_text(path, encoding) as text:
        sample = text.read(_SAMPLE_CHARS)

    if len(sample.strip().splitlines()) < 2:
        return False

    evenness = (_evenness(sample, sign) for sign in DELIMITERS.values())
    return any(columns > 1 and score >= _EVEN for columns, score in evenness)


def _evenness(sample: str, sign: str) -> tuple[int, float]:
    """Return the usual number of columns by a delimiter, and how well it speaks for it."""
    reader = csv.reader(io.StringIO(sample), delimiter=sign)
    counts: Counter[int] = Counter()
    try:
        for row in islice(reader, _SAMPLE_ROWS):
            if any(row):
                counts[len(row)] += 1
    except csv.Error:
        return 1, 0.0

    wide = [(count, columns) for columns, count in counts.items() if columns > 1]
    if not wide:
        return 1, 0.0

    rows, columns = max(wide)
    share = rows / counts.total()
    # A comma stands in many texts; of two that are as even, the one that gives more columns.
    return columns, share + min(columns, 50) / 1000


@contextmanager
def _open_text(path: Path, encoding: Encoding) -> Iterator[TextIO]:
    with path.open(encoding=encoding.codec, newline="", errors="replace") as text:
        yield text


def _lines(text: TextIO, longest: int) -> Iterator[str]:
    for line in iter(partial(text.readline, longest), ""):
        if len(line) == longest:
            raise refusal(
                f"有一行超过 {longest} 个字符：这不像是表格。",
                f"A line has more than {longest} characters: this does not look like a table.",
            )

        yield line


def _within(row: Row, line: int, limits: ReadingLimits) -> Row:
    """Return the row without empty cells at its end.

    Raises:
        UnreadableFile: it still has more columns than a table may have.
    """
    while row and not row[-1].strip():
        row.pop()

    if len(row) > limits.columns:
        raise too_wide(len(row), line, limits)

    return row


def too_wide(columns: int, row: int, limits: ReadingLimits) -> UnreadableFile:
    """Return the error for a row of more columns than a table may have."""
    return refusal(
        f"第 {row} 行有 {columns} 列，一张表最多 {limits.columns} 列。",
        f"Row {row} has {columns} columns; a table may have {limits.columns}.",
    )


def too_large_cell(row: int, limits: ReadingLimits) -> UnreadableFile:
    """Return the error for a value that is too long."""
    return refusal(
        f"第 {row} 行有一个值超过 {limits.cell_chars} 个字符。引号没有成对吗？",
        f"A value in row {row} has more than {limits.cell_chars} characters. Is a quotation "
        "mark missing?",
    )


def _unreadable_line(error: csv.Error, line: int, limits: ReadingLimits) -> UnreadableFile:
    if "field larger" in str(error):
        return too_large_cell(line, limits)

    return refusal(f"第 {line} 行无法读取：{error}。", f"Line {line} can't be read: {error}.")
