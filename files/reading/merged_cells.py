"""Cells that are merged down over several rows: the value of the first is that of each row."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from files.reading.column_types import Misfits
from files.reading.sheets import MergedCells, Row
from files.reading.value_forms import readers

_NUMBERS = readers("integer", ()) + readers("numeric", ())


class MergedRows:
    """Fills in the values of merged cells.

    A number is not repeated, since it may be what several rows have together.

    Attributes:
        filled: rows that got the value of a cell above.
        left_empty: rows that did not, because it is a number.
    """

    def __init__(self, merged: Sequence[MergedCells], first_row: int) -> None:
        """Take the merged cells of data, which begins at a row counted from 1."""
        self.filled = Misfits()
        self.left_empty = Misfits()
        self._beginning: defaultdict[int, list[MergedCells]] = defaultdict(list)
        for cells in merged:
            is_of_data = cells.top + 1 >= first_row and cells.left >= 0
            if is_of_data and cells.bottom > cells.top:
                self._beginning[cells.top].append(cells)

    def filled_in(self, rows: Iterable[Row]) -> Iterable[Row]:
        """Return all rows of the sheet, from its first on, with the values."""
        if not self._beginning:
            return rows

        return self._filled_in(rows)

    def _filled_in(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows with a merged cell's value in each of the rows that it covers."""
        # By column: the last row that has the value, and the value.
        values: dict[int, tuple[int, str]] = {}
        for number, row in enumerate(rows):
            values = {place: value for place, value in values.items() if value[0] >= number}
            yield self._with(values, number, row)
            for cells in self._beginning.get(number, ()):
                value = row[cells.left].strip() if cells.left < len(row) else ""
                if value:
                    values[cells.left] = (cells.bottom, value)

    def _with(self, values: dict[int, tuple[int, str]], number: int, row: Row) -> Row:
        filled = row
        for place, (_, value) in values.items():
            if place < len(row) and row[place].strip():
                continue
            if _is_number(value):
                self.left_empty.add(number + 1)
                continue

            self.filled.add(number + 1)
            missing = place + 1 - len(filled)
            filled = [*filled, *[""] * missing]
            filled[place] = value

        return filled


def _is_number(value: str) -> bool:
    return any(form.read(value) is not None for form in _NUMBERS)
