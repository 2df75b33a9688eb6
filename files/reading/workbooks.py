"""Workbooks (XLSX), read by calamine: values and the last results of formulas, never the formulas.

Calamine is quick and expands no XML entities. It reads a sheet as a whole, which is why the parts
of a workbook are measured before, and why this runs in a process of bounded memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
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
from files.reading.reading_limits import ReadingLimits
from files.reading.sheets import MergedCells, Row
from files.reading.unreadable import UnreadableFile, refusal

_MOST_CELLS = 60_000_000  # of the rectangle that a sheet fills
_TOP_ROWS = 50  # in which merged cells are of interest


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
            raise _damaged() from error

        self._name = name
        return self._sheet


@dataclass(frozen=True)
class WorkbookSheet:
    """One sheet of a workbook."""

    sheets: _SheetsInTurn
    name: str
    limits: ReadingLimits

    def _read(self) -> CalamineSheet:
        return self.sheets.read(self.name)

    @property
    def merged(self) -> tuple[MergedCells, ...]:
        """Return merged cells near the top."""
        sheet = self._read()
        if sheet.start is None:
            return ()

        # Rows come without the empty columns on the left, but with the empty ones above.
        margin = sheet.start[1]
        found = []
        for (top, left), (bottom, right) in sheet.merged_cell_ranges or []:
            if top < _TOP_ROWS:
                found.append(MergedCells(top, left - margin, bottom, right - margin))

        return tuple(found)

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the sheet, from the first.

        Raises:
            UnreadableFile: the sheet is too large, or damaged.
        """
        sheet = self._read()
        if sheet.width > self.limits.columns:
            raise too_wide(sheet.width, 1, self.limits)
        if sheet.height * sheet.width > _MOST_CELLS:
            raise refusal(
                f"工作表“{self.name}”太大：请另存为 CSV。",
                f"The sheet {self.name!r} is too large: save it as CSV.",
            )

        for number, cells in enumerate(sheet.iter_rows(), 1):
            row = [_text(cell) for cell in cells]
            if max(map(len, row), default=0) > self.limits.cell_chars:
                raise too_large_cell(number, self.limits)

            yield row


def workbook_sheets(path: Path, limits: ReadingLimits) -> list[WorkbookSheet]:
    """Return the sheets that people see, with cells.

    Raises:
        UnreadableFile: it is no workbook, or protected by a password.
    """
    try:
        workbook = CalamineWorkbook.from_path(path)
    except (CalamineError, OSError) as error:
        raise _damaged() from error

    found = []
    sheets = _SheetsInTurn(workbook)
    for sheet in workbook.sheets_metadata:
        is_shown = sheet.visible is SheetVisibleEnum.Visible
        if is_shown and sheet.typ is SheetTypeEnum.WorkSheet:
            found.append(WorkbookSheet(sheets, sheet.name, limits))

    return found


def _damaged() -> UnreadableFile:
    return refusal(
        "工作簿无法读取：它已损坏，或有密码保护。请重新另存为 XLSX。",
        "The workbook can't be read: it is damaged, or protected by a password. Save it as XLSX "
        "again.",
    )


def _text(cell: Any) -> str:
    """Return a cell as a text file would have it."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, float):
        return _number(cell)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime):
        return cell.isoformat(" ", "seconds")
    if isinstance(cell, date | time):
        return cell.isoformat()

    return str(cell)


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))

    # What sheets show: 0.1 + 0.2 is 0.3 there
    return f"{value:.15g}"
