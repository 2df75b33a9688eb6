"""Finds figures of a summary or of an answer that do not occur in its sources.

Models calculate although they are told not to, and speak about all rows when they have seen only
the first. The text is not changed, because the user may have read it already; a warning names the
figures to distrust.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, ulp
from typing import Any

import simplejson

from agent.answers.figures_in_text import (
    NUMBER,
    UNITS,
    StatedFigure,
    figures_of_text,
    is_count_or_rank,
    list_item_positions,
    quarters_of_dates,
    stated_figures,
)
from common.text import Lang, Text
from common.values import QueryResult, Turn

# Values that the SQL compares with and limits were asked for; positions, divisors and precisions
# were not.
_ASKED_IN_SQL = re.compile(
    rf"'[^']*'|(?:[<>=]|\b(?:BETWEEN|AND|LIMIT|IN\s*\()|\bCURRENT_DATE\s*-)\s*(?:{NUMBER})",
    re.IGNORECASE,
)
_MAX_NAMED = 5  # figures named in the warning
_READ_OF_CELL = 20_000  # characters of a cell whose figures are known


@dataclass(frozen=True)
class KnownFigures:
    """Figures that a stated one may come from.

    Attributes:
        figures: ascending.
        quarters: those that dates lie in, 1 to 4.
    """

    figures: Sequence[float]
    quarters: frozenset[int]


def doubtful_figures(
    text: str, result: QueryResult, question: str = "", sql: str = ""
) -> list[str]:
    """Return the figures in `text`, as written, that are neither in the rows nor in the question.

    The number of rows, ranks among the rows, and values that the SQL compares with are not
    doubtful. Rounded figures and figures with units (`1.2万`, `35%`) are compared at the precision
    they are written with.
    """
    texts = (question, asked_in_sql(sql), *result.columns)
    return _doubtful(text, lambda: known_figures(texts, result.rows), {result.row_count})


def doubtful_figures_about(turns: Sequence[Turn], text: str, *sources: str) -> list[str]:
    """Return the doubtful figures of an answer about earlier turns.

    Known are the rows, words, SQL and answers of these turns. Without an earlier query there is
    nothing to check against, so no figure is doubtful.
    """
    if not any(turn.sql for turn in turns):
        return []

    counts = {turn.row_count for turn in turns if turn.row_count}
    return _doubtful(text, lambda: known_of_turns(turns, *sources), counts)


def known_of_turns(turns: Sequence[Turn], *sources: str) -> KnownFigures:
    """Return the figures that the turns and the texts `sources` hold."""
    texts = list(sources)
    rows: list[Sequence[Any]] = []
    for turn in turns:
        texts += [turn.question, turn.sql or "", turn.answer, *turn.columns]
        rows += turn.rows
        if turn.row_count:
            rows.append([turn.row_count])

    return known_figures(texts, rows)


def asked_in_sql(sql: str) -> str:
    """Return the values that a statement compares with, and its limits: these were asked for."""
    return " ".join(_ASKED_IN_SQL.findall(sql))


def figures_warning(figures: list[str], lang: Lang) -> str:
    """Return the warning about doubtful figures of a summary."""
    named = _figure_list(figures)
    return Text(
        f"摘要中的这些数字不在查询结果里，请以结果数据为准：{named}",
        f"These figures of the summary are not among the rows; trust the rows: {named}",
    ).to(lang)


def earlier_figures_warning(figures: list[str], lang: Lang) -> str:
    """Return the warning about doubtful figures of an answer about earlier results."""
    named = _figure_list(figures)
    return Text(
        f"回答中的这些数字不在之前的查询结果里，请以结果数据为准：{named}",
        "These figures of the answer are not among the earlier results; "
        f"trust the results: {named}",
    ).to(lang)


def _figure_list(figures: list[str]) -> str:
    return ", ".join(dict.fromkeys(figures[:_MAX_NAMED]))


def _doubtful(
    text: str, collect_known: Callable[[], KnownFigures], row_counts: Collection[int]
) -> list[str]:
    items = list_item_positions(text, max(row_counts, default=0))
    stated = [
        figure
        for figure in stated_figures(text)
        if figure.start not in items and not is_count_or_rank(figure, text, row_counts)
    ]
    if not stated:  # spares collecting the figures of all rows
        return []

    known = collect_known()
    return [figure.written for figure in stated if not is_known(figure, known)]


def known_figures(sources: Iterable[str], rows: Iterable[Iterable[Any]]) -> KnownFigures:
    """Return the figures that the texts and the rows hold."""
    texts, rows = tuple(sources), tuple(rows)
    figures = set(_of_cells(rows))
    for text in texts:
        figures.update(figures_of_text(text))

    quarters: set[int] = set()
    for text in (*texts, *_texts_of(rows)):
        quarters |= quarters_of_dates(text)

    return KnownFigures(sorted(filter(isfinite, figures)), frozenset(quarters))


def _texts_of(rows: Iterable[Iterable[Any]]) -> set[str]:
    return {cell[:_READ_OF_CELL] for row in rows for cell in row if isinstance(cell, str)}


def is_known(figure: StatedFigure, known: KnownFigures) -> bool:
    """Tell whether one of the figures is the stated one, at the precision it is written with."""
    if figure.is_quarter and figure.value in known.quarters:
        return True

    decimals = len(figure.digits.partition(".")[2])
    scales = {1.0, UNITS[figure.unit.lower()]} if figure.unit else {1.0}
    for scale in scales:
        value = figure.value * scale
        rounding = 0.5001 * 10.0**-decimals * scale
        # Beyond twelve digits a float is less precise than what is written.
        if _contains(known.figures, value, rounding + 2 * ulp(value)):
            return True

    return False


def _contains(ordered: Sequence[float], value: float, tolerance: float) -> bool:
    position = bisect_left(ordered, value - tolerance)
    return position < len(ordered) and ordered[position] <= value + tolerance


def _of_cells(rows: Iterable[Iterable[Any]]) -> Iterator[float]:
    """Give the figures of all cells; cells that are equal are read once."""
    texts: set[str] = set()
    numbers: set[Any] = set()
    for row in rows:
        for cell in row:
            if isinstance(cell, str):
                texts.add(cell[:_READ_OF_CELL])
            elif isinstance(cell, (list, dict)):
                written = simplejson.dumps(cell, use_decimal=True, default=str)
                texts.add(written[:_READ_OF_CELL])
            elif cell is not None and not isinstance(cell, bool):
                numbers.add(cell)

    for text in texts:
        yield from figures_of_text(text)

    for number in numbers:
        yield abs(float(str(number)))  # an int may be too large to be converted directly
