"""Workbooks (XLSX), read by calamine: values and the last results of formulas, never the formulas.

Calamine is quick and expands no XML entities. It reads a sheet as a whole, which is why the parts
of a workbook are measured before, large sheets are divided, and this runs in a process of bounded
memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    SheetTypeEnum,
    SheetVisibleEnum,
    XmlError,
    ZipError,
)

from files.reading.delimited import too_large_cell, too_wide
from files.reading.divided_workbooks import divided
from files.reading.reading_limits import ReadingLimits
from files.reading.sheets import MergedCells, Row
from files.reading.unreadable import UnreadableFile, refusal

_MOST_CELLS = 60_000_000  # of the rectangle that a sheet fills
_BATCH_ROWS = 2000
_NUMBER = "{:.15g}".format  # what sheets show: 0.1 + 0.2 is 0.3 there
_MOST_MERGED = 100_000  # merged cells that are looked at


class _SheetsInTurn:
    """Reads the sheets of a workbook, and holds the one that was read last.

    A sheet is looked at several times, one after the other, and takes long to be read.
    """

    def __init__(self, workbook: CalamineWorkbook) -> None:
        self._workbook = workbook
        self._name = ""
        self._sheet: CalamineSheet | None = None

    def read(self, name: str) -> CalamineSheet:
        """Return a sheet; raises `UnreadableFile`."""
        if self._sheet is not None and self._name == name:
            return self._sheet

        self._sheet = None  # so that two are never held
        try:
            self._sheet = self._workbook.get_sheet_by_name(name)
        except (CalamineError, XmlError, ZipError) as error:
            raise _damaged_workbook() from error

        self._name = name
        return self._sheet


@dataclass(frozen=True)
class WorkbookSheet:
    """One sheet of a workbook.

    Attributes:
        pieces: names of the sheets that have its rows; more than one where it is large.
    """

    sheets: _SheetsInTurn
    name: str
    pieces: tuple[str, ...]
    limits: ReadingLimits

    @property
    def merged(self) -> tuple[MergedCells, ...]:
        """Return the merged cells."""
        last = self._read(self.pieces[-1])  # what follows the rows tells of them
        ranges = last.merged_cell_ranges
        if not ranges:
            return ()

        margin = self._margin()
        return tuple(
            MergedCells(top, left - margin, bottom, right - margin)
            for (top, left), (bottom, right) in ranges[:_MOST_MERGED]
        )

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the sheet, from the first.

        Raises:
            UnreadableFile: the sheet is too large, or damaged.
        """
        margin = self._margin()
        number = 0
        for piece in self.pieces:
            sheet = self._read(piece)
            if sheet.start is None:
                continue

            top, left = sheet.start
            if top < number:
                raise _damaged_workbook()  # rows in no order

            yield from repeat([], top - number)
            number = top
            padding = [""] * (left - margin)
            for rows in self._batches(sheet):
                yield from self._texts(rows, padding, number)
                number += len(rows)

    def _batches(self, sheet: CalamineSheet) -> Iterator[list[list[Any]]]:
        """Yield the rows from the first that has cells."""
        if len(self.pieces) > 1:
            yield sheet.to_python()
            return

        assert sheet.start is not None
        rows = islice(sheet.iter_rows(), sheet.start[0], None)
        while batch := list(islice(rows, _BATCH_ROWS)):
            yield batch

    def _texts(self, rows: list[list[Any]], padding: Row, number: int) -> Iterator[Row]:
        """Yield rows as texts; a column of a sheet mostly has one kind of cells."""
        columns = [_column(cells) for cells in zip(*rows, strict=True)]
        for row in zip(*columns, strict=True):
            number += 1
            if max(map(len, row)) > self.limits.cell_chars:
                raise too_large_cell(number, self.limits)

            yield [*padding, *row]

    def _margin(self) -> int:
        """Return the number of empty columns on the left."""
        lefts = (left for left in map(self._first_column, self.pieces) if left is not None)
        margin: int | None = None
        for left in lefts:
            margin = left if margin is None else min(margin, left)
            if margin == 0:
                break

        return margin or 0

    def _first_column(self, piece: str) -> int | None:
        start = self._read(piece).start
        return None if start is None else start[1]

    def _read(self, piece: str) -> CalamineSheet:
        """Return a part of the sheet; raises `UnreadableFile`."""
        sheet = self.sheets.read(piece)
        if sheet.width > self.limits.columns:
            raise too_wide(sheet.width, 1, self.limits)
        if sheet.height * sheet.width > _MOST_CELLS:
            raise refusal(
                f"工作表“{self.name}”太大：请另存为 CSV。",
                f"The sheet {self.name!r} is too large: save it as CSV.",
            )

        return sheet


def workbook_sheets(path: Path, folder: Path, limits: ReadingLimits) -> list[WorkbookSheet]:
    """Return the sheets that people see, with cells.

    Args:
        folder: where large sheets may be unpacked.

    Raises:
        UnreadableFile: it is no workbook, protected by a password, or larger than it may be.
    """
    book = divided(path, folder, limits)
    try:
        workbook = CalamineWorkbook.from_path(path if book is None else book.path)
    except (CalamineError, OSError) as error:
        raise _damaged_workbook() from error

    sheets = _SheetsInTurn(workbook)
    if book is not None:
        return [WorkbookSheet(sheets, one.title, one.pieces, limits) for one in book.sheets]

    sheets_found = []
    for sheet in workbook.sheets_metadata:
        is_shown = sheet.visible is SheetVisibleEnum.Visible
        if is_shown and sheet.typ is SheetTypeEnum.WorkSheet:
            sheets_found.append(WorkbookSheet(sheets, sheet.name, (sheet.name,), limits))

    return sheets_found


def _damaged_workbook() -> UnreadableFile:
    return refusal(
        "工作簿无法读取：它已损坏，或有密码保护。请重新另存为 XLSX。",
        "The workbook can't be read: it is damaged, or protected by a password. Save it as XLSX "
        "again.",
    )


def _column(cells: Sequence[Any]) -> Sequence[str]:
    """Return cells as a text file would have them."""
    kinds = set(map(type, cells))
    if kinds == {str}:
        return cells
    if kinds == {float}:
        return list(map(_NUMBER, cells))

    return [cell if type(cell) is str else _text(cell) for cell in cells]


def _text(cell: Any) -> str:
    """Return a cell as a text file would have it."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, float):
        return _NUMBER(cell)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime):
        return cell.isoformat(" ", "seconds")
    if isinstance(cell, date | time):
        return cell.isoformat()

    return str(cell)
