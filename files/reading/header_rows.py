"""Where a sheet's table begins: titles above it, its header, and the names of its columns."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from common.text import Text
from files.reading.sheets import MergedCells, Row
from files.reading.value_forms import FORMS, is_null

SAMPLE_ROWS = 200
"""Rows that are looked at."""
_MOST_TITLES = 30
_LONGEST_NAME = 120  # characters of what may be a column's name
_FORMS = tuple(form for form in FORMS if form.type != "boolean")


@dataclass(frozen=True)
class SheetLayout:
    """Where the parts of a table stand; rows are counted from 1.

    Attributes:
        header_row: the first row of the header; 0: there is none.
        header_rows: how many rows the header has.
        first_row: the number of the first row of data.
        titles: what stands above the header.
        names: the names of the columns as written; "" where there is none.
    """

    header_row: int
    header_rows: int
    first_row: int
    titles: tuple[str, ...]
    names: tuple[str, ...]
    reason: Text


def layout_of(
    sample: Sequence[Row],
    merged: Sequence[MergedCells] = (),
    header_row: int | None = None,
    header_rows: int | None = None,
) -> SheetLayout | None:
    """Return the layout of a sheet; None: it is empty.

    Args:
        sample: its first rows, with empty ones, and values without spaces around them.
        header_row: where a caller says that the header is; 0: nowhere.
        header_rows: how many rows a caller says it has.
    """
    filled = [number for number, row in enumerate(sample) if any(row)]
    if not filled:
        return None

    width = _width([sample[number] for number in filled])
    if header_row is not None:
        return _told(sample, merged, header_row, header_rows, width)

    first = _first_full(sample, filled, width)
    below = [sample[number] for number in filled if number > first]
    if not _is_header(sample[first], below):
        return _without_header(sample, first, width)

    top, count = _extent(sample, merged, first, below, width)
    reason = Text("这一行是名称，下面是数据", "this row holds names, and data stands below")
    if count > 1:
        reason = Text("合并的标题占两行", "merged titles take two rows")

    names = _names(sample[top : top + count], merged, top, width)
    return SheetLayout(top + 1, count, top + count + 1, _texts(sample[:top]), names, reason)


def _told(
    sample: Sequence[Row], merged: Sequence[MergedCells], row: int, rows: int | None, width: int
) -> SheetLayout:
    """Return the layout that a caller has said; a header has one row unless told otherwise."""
    reason = Text("由您指定", "said by you")
    if row == 0:
        return SheetLayout(0, 0, 1, (), ("",) * width, reason)

    top = row - 1
    count = rows or 1
    names = _names(sample[top : top + count], merged, top, width)
    return SheetLayout(row, count, row + count, _texts(sample[:top]), names, reason)


def _without_header(sample: Sequence[Row], first: int, width: int) -> SheetLayout:
    """Return the layout of a sheet whose data begins at a row, counted from 0."""
    reason = Text("第一行已经是数据", "the first row is data already")
    return SheetLayout(0, 0, first + 1, _texts(sample[:first]), ("",) * width, reason)


def _width(rows: Sequence[Row]) -> int:
    """Return the number of columns that most rows have, the larger one of two."""
    counts = Counter(map(_length, rows))
    return max(counts, key=lambda width: (counts[width], width))


def _length(row: Row) -> int:
    """Return how many cells there are up to the last that is not empty."""
    for length in range(len(row), 0, -1):
        if row[length - 1]:
            return length

    return 0


def _count(row: Row) -> int:
    return sum(map(bool, row))


def _first_full(sample: Sequence[Row], filled: Sequence[int], width: int) -> int:
    """Return the first row that is no title: that fills at least half of the columns."""
    least = 1 if width == 1 else max(2, width / 2)
    for number in filled[:_MOST_TITLES]:
        if _count(sample[number]) >= least:
            return number

    return filled[0]


def _texts(rows: Sequence[Row]) -> tuple[str, ...]:
    texts = [" ".join(filter(None, row)) for row in rows]
    return tuple(filter(None, texts))


def _is_value(cell: str) -> bool:
    """Tell whether a text is written as a number, a date or another value, and is no name."""
    if is_null(cell):
        return bool(cell)

    return any(form.one.fullmatch(cell) for form in _FORMS)


def _is_period(cell: str) -> bool:
    """Tell whether a text may head a column of figures: a year, a month."""
    if len(cell) != 4:
        return "年" in cell

    return cell.isdigit() and 1900 <= int(cell) <= 2100


def _is_header(row: Row, below: Sequence[Row]) -> bool:
    """Tell whether a row that is not empty holds names of the values below it."""
    cells = list(filter(None, row))
    if max(map(len, cells)) > _LONGEST_NAME:
        return False

    values = list(filter(_is_value, cells))
    if values:
        return _names_periods(row, cells, values)
    if _has_values(below, len(row)):
        return True

    return not _repeats_below(row, below)


def _names_periods(row: Row, cells: Sequence[str], values: Sequence[str]) -> bool:
    """Tell whether the values of a row are periods that head columns: "city | 2023 | 2024"."""
    if _is_value(row[0]) or len(set(cells)) < len(cells):
        return False

    return all(map(_is_period, values))


def _repeats_below(row: Row, below: Sequence[Row]) -> bool:
    """Tell whether a cell of the row stands again below it, as values do and names don't."""
    columns = zip(row, _columns(below), strict=False)
    return any(cell and cell in cells_below for cell, cells_below in columns)


def _has_values(rows: Sequence[Row], width: int) -> bool:
    """Tell whether some column holds mostly values that are no plain words."""
    for column in islice(_columns(rows[:50]), width):
        cells = list(filter(None, column))
        values = sum(map(_is_value, cells))
        if values > len(cells) / 2:
            return True

    return False


def _extent(
    sample: Sequence[Row],
    merged: Sequence[MergedCells],
    first: int,
    below: Sequence[Row],
    width: int,
) -> tuple[int, int]:
    """Return the first row of the header, and how many rows it has: one or two."""
    if first > 0 and _heads_groups(sample[first - 1], sample[first], merged, first - 1):
        return first - 1, 2

    row = sample[first]
    has_gaps = _count(row[:width]) < width
    if not has_gaps or not _has_values(below[1:], width):
        return first, 1

    return first, 2 if _completes(row, sample[first + 1], width) else 1


def _completes(row: Row, second: Row, width: int) -> bool:
    """Tell whether the row below a header holds names, and fills all of its gaps."""
    names = list(filter(None, second))
    if not names or any(map(_is_value, names)):
        return False

    together = [_cell_at(row, place) or _cell_at(second, place) for place in range(width)]
    return all(together)


def _heads_groups(above: Row, header: Row, merged: Sequence[MergedCells], number: int) -> bool:
    """Tell whether the row above a header names groups of its columns."""
    if _count(above) < 2:
        return False

    spans = _wide_spans(merged, number)
    if not spans:
        names = list(filter(None, header))
        return len(set(names)) < len(names)

    widest = max(span.right - span.left + 1 for span in spans)
    return widest < _length(header)


def _wide_spans(merged: Sequence[MergedCells], row: int) -> list[MergedCells]:
    """Return the merged cells that begin in a row and cover several columns."""
    spans = []
    for span in merged:
        is_wide = span.left < span.right
        if is_wide and span.top == row:
            spans.append(span)

    return spans


def _cell_at(row: Row, place: int) -> str:
    return row[place] if place < len(row) else ""


def _columns(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each column; those that short rows lack are empty."""
    return zip_longest(*rows, fillvalue="")


def _names(
    header: Sequence[Row], merged: Sequence[MergedCells], top: int, width: int
) -> tuple[str, ...]:
    """Return the names; of two rows, that of the group before that of the column."""
    if not header:
        return ("",) * width

    width = max(width, *map(_length, header))
    if len(header) == 1:
        return tuple(_cell_at(header[0], place) for place in range(width))

    names = []
    spread = _spread(header, merged, top, width)
    for place in range(width):
        parts = dict.fromkeys(_cell_at(row, place) for row in spread)
        names.append(" ".join(filter(None, parts)))

    return tuple(names)


def _spread(
    header: Sequence[Row], merged: Sequence[MergedCells], top: int, width: int
) -> list[Row]:
    """Return the rows of a header with the names of groups above each of their columns."""
    spread = []
    for offset, row in enumerate(header):
        cells = [_cell_at(row, place) for place in range(width)]
        spans = _wide_spans(merged, top + offset)
        if spans:
            _fill_spans(cells, spans)
        elif offset < len(header) - 1:
            cells = _filled_right(cells, header[offset + 1])

        spread.append(cells)

    return spread


def _fill_spans(cells: Row, spans: Sequence[MergedCells]) -> None:
    """Write the name of each merged cell above all of its columns."""
    width = len(cells)
    for span in spans:
        end = min(span.right + 1, width)
        for place in range(span.left, end):
            cells[place] = cells[span.left]


def _filled_right(cells: Row, below: Row) -> Row:
    """Return the names of groups, each up to the next one, over columns that have names."""
    group = ""
    filled = []
    for place, cell in enumerate(cells):
        if cell:
            group = cell

        is_named = cell or _cell_at(below, place)
        filled.append(group if is_named else "")

    return filled
