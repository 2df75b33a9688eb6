"""Finds the figures of a summary, or of an answer about earlier results, that do not stand in what it was written from.

A model that is told not to calculate still does, and one that sees the first rows speaks about all of them. Its words
are not changed, since they may have been read already; the user is told which figures to distrust.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import isfinite
from typing import Any

import simplejson

from common.text import Lang, Text
from common.values import QueryResult, Turn

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_PLAIN = re.compile(_NUMBER)
# The unit follows its number; longer ones come first.
_UNITS: dict[str, float] = {
    "千万": 1e7, "百万": 1e6, "万": 1e4, "亿": 1e8, "千": 1e3,
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "bn": 1e9, "k": 1e3, "m": 1e6,
    "%": 0.01, "％": 0.01,
}  # fmt: skip
_STATED = re.compile(
    rf"({_NUMBER})[ \t]*(千万|百万|万|亿|千|%|％|(?:thousand|million|billion|bn|k|m)\b)?", re.IGNORECASE
)
_ITEM_NUMBER = re.compile(r"^\s*\d{1,2}(?:[.)]\s|[、）])", re.MULTILINE)
_MAX_NAMED = 5  # figures named in the warning


def doubtful_figures(text: str, result: QueryResult, *sources: str) -> list[str]:
    """The figures in `text`, as written, that are neither in the rows nor in `sources` nor a rank or count of rows.

    Rounded figures and those in units (`1.2万`, `35%`) are compared with the precision they are written with.
    """
    return _doubtful(text, lambda: _sorted_figures((*sources, *result.columns), result.rows), result.row_count)


def doubtful_figures_about(turns: Sequence[Turn], text: str, *sources: str) -> list[str]:
    """The same for an answer about earlier turns: the rows they show, their words, SQL and answers are what is known.

    Numbers of a list's items are no figures. An answer that has no result to be about is not judged.
    """
    if not any(turn.sql for turn in turns):
        return []
    said = (part for turn in turns for part in (turn.question, turn.sql or "", turn.answer, *turn.columns))
    counts = [turn.row_count for turn in turns if turn.row_count]
    cells = [*(row for turn in turns for row in turn.rows), counts]
    known = partial(_sorted_figures, (*sources, *said), cells)
    return _doubtful(_ITEM_NUMBER.sub("", text), known, max(counts, default=0))


def figures_warning(figures: list[str], lang: Lang) -> str:
    """What the user is told about those of a summary."""
    named = _named(figures)
    return Text(
        f"摘要中的这些数字不在查询结果里，请以结果数据为准：{named}",
        f"These figures of the summary are not among the rows; trust the rows: {named}",
    ).to(lang)


def earlier_figures_warning(figures: list[str], lang: Lang) -> str:
    """What the user is told about those of an answer about earlier results."""
    named = _named(figures)
    return Text(
        f"回答中的这些数字不在之前的查询结果里，请以结果数据为准：{named}",
        f"These figures of the answer are not among the earlier results; trust the results: {named}",
    ).to(lang)


def _named(figures: list[str]) -> str:
    return ", ".join(dict.fromkeys(figures[:_MAX_NAMED]))


def _doubtful(text: str, known: Callable[[], list[float]], row_count: int) -> list[str]:
    stated = [match for match in _STATED.finditer(text) if not _is_rank_or_count(match[1], match[2], row_count)]
    if not stated:  # then nobody need look through the rows
        return []
    figures = known()
    return [match[0].strip() for match in stated if not _is_known(match[1], match[2], figures)]


def _sorted_figures(sources: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[float]:
    said = (number for source in sources for number in _of_text(source))
    return sorted(filter(isfinite, {*_of_cells(rows), *said}))


def _is_rank_or_count(digits: str, unit: str | None, row_count: int) -> bool:
    value = float(digits.replace(",", ""))
    return unit is None and value.is_integer() and 1 <= value <= row_count


def _is_known(digits: str, unit: str | None, known: list[float]) -> bool:
    value = float(digits.replace(",", ""))
    decimals = len(digits.partition(".")[2])
    scales = {1.0, _UNITS[unit.lower()]} if unit else {1.0}
    return any(_contains(known, value * scale, 0.5001 * 10.0**-decimals * scale) for scale in scales)


def _contains(known: list[float], value: float, tolerance: float) -> bool:
    position = bisect_left(known, value - tolerance)
    return position < len(known) and known[position] <= value + tolerance


def _of_cells(rows: Iterable[Iterable[Any]]) -> Iterator[float]:
    for row in rows:
        for cell in row:
            yield from _of_cell(cell)


def _of_cell(cell: Any) -> Iterator[float]:
    if cell is None or isinstance(cell, bool):
        return
    if isinstance(cell, (list, dict)):
        cell = simplejson.dumps(cell, use_decimal=True, default=str)
    if isinstance(cell, str):
        yield from _of_text(cell)
    else:
        yield abs(float(str(cell)))  # an int may be too large to be converted directly


def _of_text(text: str) -> Iterator[float]:
    return (float(digits.replace(",", "")) for digits in _PLAIN.findall(text))
