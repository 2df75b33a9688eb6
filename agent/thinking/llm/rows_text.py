"""Writes a result into a prompt: a few rows, short cells, exact figures, and what is left out."""

from collections.abc import Iterable
from typing import Any

import simplejson

from common.values import QueryResult
from knowledge.language.safe_text import one_line

MAX_ROWS_SHOWN = 50
_MAX_CELL = 200
_BUDGET = 12_000  # characters of all rows together


def rows_text(
    result: QueryResult, *, most_rows: int = MAX_ROWS_SHOWN, most_chars: int = _BUDGET
) -> tuple[str, int]:
    """Return the header and the first rows, one JSON list per line, and how many rows that is."""
    lines = [row_line(result.columns)[:most_chars]]
    room = most_chars - len(lines[0])
    for row in result.rows[:most_rows]:
        line = row_line(row)
        room -= len(line) + 1
        if room < 0 and len(lines) > 1:
            break

        lines.append(line[:most_chars])

    return "\n".join(lines), len(lines) - 1


def row_count_phrases(result: QueryResult, shown: int) -> tuple[str, str]:
    """Return two English phrases: how many rows there are, and how many the model sees."""
    count = result.row_count
    total = _rows(count)
    if result.is_limited:
        total = f"more than {count} rows, of which {count} were kept"
    elif shown == count:
        return total, "All of them are listed."

    return total, f"Only the first {_rows(shown)} are listed; you have not seen the others."


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


# Made once, because making one for every row is slow.
_ROWS = simplejson.JSONEncoder(ensure_ascii=False, use_decimal=True, ignore_nan=True, default=str)


def row_line(cells: Iterable[Any]) -> str:
    """Return one row as a JSON list on one line, its cells shortened."""
    shown = [_cell(cell) for cell in cells]
    return _ROWS.encode(shown)


def _cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        value = simplejson.dumps(value, ensure_ascii=False, use_decimal=True, default=str)
    if isinstance(value, str):
        return one_line(value, _MAX_CELL)

    return value
